import i18n from "i18next";
import { initReactI18next } from "react-i18next";
import { usePrefs } from "../app/prefs";
import { de } from "./de";
import { en } from "./en";

declare module "i18next" {
  interface CustomTypeOptions {
    resources: { translation: typeof en };
    returnNull: false;
  }
}

void i18n.use(initReactI18next).init({
  lng: usePrefs.getState().language,
  fallbackLng: "en",
  resources: { en: { translation: en }, de: { translation: de } },
  interpolation: { escapeValue: false },
  initAsync: false,
});

usePrefs.subscribe((now, before) => {
  if (now.language !== before.language) void i18n.changeLanguage(now.language);
});

export default i18n;
