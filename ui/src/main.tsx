import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { showPrefs } from "./app/prefs";
import { followHash } from "./app/route";
import { startSession } from "./app/session";
import "./styles/theme.css";
import "./text";

showPrefs();
followHash();
startSession();
const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
