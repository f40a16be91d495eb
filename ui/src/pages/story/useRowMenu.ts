import { ArrowDown, ArrowUp, ClipboardCopy, ClipboardPaste, LayoutGrid, Plus, Sparkles, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { go } from "../../app/route";
import type { MenuItem } from "../../parts/Menu";
import { useStory } from "./context";
import { runOn } from "./rowActions";

/** What can be done with a scene or a shot. */
export function useRowMenu(kind: "scene" | "shot", id: string): (MenuItem | null)[] {
  const { t } = useTranslation();
  const tools = useStory();
  const item = (what: Parameters<typeof runOn>[1]) => () => void runOn(tools, what, { kind, id });
  return [
    kind === "scene"
      ? { label: t("story.rewrite_scene"), icon: Sparkles, onPick: () => tools.rewrite({ kind, id, title: id }) }
      : { label: t("story.rewrite_shot"), icon: Sparkles, onPick: () => tools.rewrite({ kind, id, title: id }) },
    { label: t("story.add_shot"), icon: Plus, keys: "Alt+Enter", onPick: item("add_shot") },
    { label: t("story.add_scene"), icon: Plus, keys: "Alt+Shift+Enter", onPick: item("add_scene") },
    ...(kind === "shot" ? [{ label: t("story.to_board"), icon: LayoutGrid, onPick: () => go("board", { at: id }) }] : []),
    null,
    { label: t("story.up"), icon: ArrowUp, keys: "Alt+Up", onPick: item("up") },
    { label: t("story.down"), icon: ArrowDown, keys: "Alt+Down", onPick: item("down") },
    { label: t("story.copy"), icon: ClipboardCopy, keys: "Mod+C", onPick: item("copy") },
    { label: t("story.paste"), icon: ClipboardPaste, keys: "Mod+V", onPick: item("paste") },
    null,
    { label: kind === "scene" ? t("story.remove_scene") : t("story.remove_shot"), icon: Trash2, keys: "Alt+Delete", danger: true, onPick: item("remove") },
  ];
}
