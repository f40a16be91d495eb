import { toast } from "../../app/toasts";
import { fromClipboard, toClipboard } from "../../parts/browser";
import { commitDrafts } from "../../parts/drafts";
import i18n from "../../text";
import { addScene, addShot, copyText, paste, readCopied, removeScene, removeShot, stepScene, stepShot } from "./changes";
import type { StoryTools } from "./context";
import { type Selection, reveal, select } from "./selection";

export type RowAction = "add_shot" | "add_scene" | "up" | "down" | "copy" | "paste" | "remove";

/** For where the browser does not let the clipboard be read. */
let copiedHere: string | undefined;

/** Remember what was copied, and say so. */
export function wasCopied(text: string, what: Selection): void {
  copiedHere = text;
  toast("info", i18n.t(what.kind === "scene" ? "story.copied_scene" : "story.copied_shot", { id: what.id }));
}

/** Carry out an action on a scene or a shot. */
export async function runOn(tools: Pick<StoryTools, "script" | "edit">, action: RowAction, on: Selection, text?: string): Promise<void> {
  commitDrafts();
  const script = tools.script();
  if (!script) return;
  const scene = script.scenes.find((each) => (on.kind === "scene" ? each.id === on.id : each.shots.some((shot) => shot.id === on.id)));
  if (!scene) return;
  const shot = on.kind === "shot" ? on.id : undefined;
  switch (action) {
    case "add_shot": {
      const { edit, id } = addShot(script, scene.id, shot ?? scene.shots.at(-1)?.id);
      tools.edit(edit);
      reveal({ kind: "shot", id }, true);
      return;
    }
    case "add_scene": {
      const { edit, id } = addScene(script, scene.id);
      tools.edit(edit);
      reveal({ kind: "scene", id }, true);
      return;
    }
    case "up":
    case "down": {
      const step = action === "up" ? -1 : 1;
      const edit = on.kind === "scene" ? stepScene(script, on.id, step) : stepShot(script, on.id, step);
      tools.edit(edit);
      if (edit) reveal(on);
      return;
    }
    case "copy": {
      const copied = copyText(script, on.kind, on.id);
      if (copied === undefined) return;
      wasCopied(copied, on);
      // Where that is refused it can still be pasted in this window.
      await toClipboard(copied);
      return;
    }
    case "paste": {
      const copied = readCopied(text || (await fromClipboard()) || copiedHere || "");
      if (!copied) {
        toast("warn", i18n.t("story.nothing_to_paste"));
        return;
      }
      const { edit, id } = paste(script, copied, { scene: scene.id, shot: shot ?? scene.shots.at(-1)?.id });
      tools.edit(edit);
      reveal({ kind: copied.longtake_copy, id });
      return;
    }
    case "remove": {
      const edit = on.kind === "scene" ? removeScene(script, on.id) : removeShot(script, on.id);
      if (!edit) {
        toast("warn", i18n.t("story.last_one"));
        return;
      }
      const list = on.kind === "scene" ? script.scenes : scene.shots;
      const at = list.findIndex((each) => each.id === on.id);
      const next = list[at + 1] ?? list[at - 1];
      tools.edit(edit);
      select(next ? { kind: on.kind, id: next.id } : undefined);
    }
  }
}

