import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import { Failed, PageHead, SkeletonRows } from "../../parts/states";
import { Help } from "./Help";
import { LanguageModel } from "./LanguageModel";
import { Looks } from "./Looks";
import { Storage } from "./Storage";
import { Work } from "./Work";

/** What a person chooses for this machine. */
export default function Settings() {
  const { t } = useTranslation();
  const { data, error, again } = useQuery("settings.get", {});
  return (
    <div className="h-full overflow-y-auto">
      <div className="mx-auto flex max-w-3xl flex-col gap-8 px-8 py-8">
        <PageHead title={t("pages.settings")} about={t("settings.about")} />
        {error && !data && <Failed what={error} again={again} />}
        {!data && !error && <SkeletonRows rows={4} className="h-32" />}
        {data && (
          <>
            <Looks />
            <LanguageModel state={data} />
            <Storage state={data} />
            <Work state={data} />
            <Help />
          </>
        )}
      </div>
    </div>
  );
}
