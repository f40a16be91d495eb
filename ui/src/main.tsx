import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { showPrefs } from "./app/prefs";
import { followHash } from "./app/route";
import { startSession } from "./app/session";
import { stayAwake } from "./app/wake";
import "./styles/theme.css";
import "./text";

showPrefs();
followHash();
startSession();
stayAwake();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
