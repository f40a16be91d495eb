import { upload } from "../../api/client";
import { edit } from "../../api/edits";
import { scriptNow, shotOf } from "../../api/project";
import type { Edit, Json, Script, Shot } from "../../api/shapes";
import { several } from "../story/changes";

export type MediaUse = "picture" | "video" | "voice" | "effect" | "ambience" | "music";

/** What a file may become on a shot, by its type. */
export function usesOf(type: string, name: string): MediaUse[] {
  if (type.startsWith("image/") || /\.(png|jpe?g|webp|tiff?)$/i.test(name)) return ["picture"];
  if (type.startsWith("video/") || /\.(mp4|mov|mkv|webm|m4v)$/i.test(name)) return ["video"];
  if (type.startsWith("audio/") || /\.(wav|mp3|flac|ogg|opus|m4a|aac)$/i.test(name)) return ["voice", "effect", "ambience", "music"];
  return [];
}

/** The edit that puts a file of the project on a shot. A shot shows one of picture, video and
 *  colour, so the others go with the same step. */
export function placeMedia(script: Script, shot: Shot, use: MediaUse, name: string): Edit | undefined {
  const set = (field: string, value: Json): Edit => ({ edit: "set", kind: "shot", id: shot.id, field, value });
  const shows = ["picture", "video", "colour"] as const;
  switch (use) {
    case "picture":
    case "video": {
      const gone = shows.filter((field) => field !== use && shot[field] !== undefined).map((field) => set(`/${field}`, null));
      const put = set(`/${use}`, use === "picture" ? name : { file: name });
      return gone.length === 0 ? put : several(`${use} of ${shot.id}`, [...gone, put]);
    }
    case "voice":
      return shot.lines?.length ? set("/lines/0/voice", name) : undefined;
    case "effect":
    case "ambience":
      return set("/sounds", [...(shot.sounds ?? []), { kind: use, file: name }] as unknown as Json);
    case "music": {
      const cue = { file: name, from: shot.id, gain: -14, fade_in: "2 s", fade_out: "2 s" };
      return { edit: "set", kind: "film", id: "", field: "/music", value: [...(script.music ?? []), cue] };
    }
  }
}

/** Bring a file into the project and put it on a shot; false: it cannot be used so there. */
export async function dropOn(project: string, shot: string, file: File, use: MediaUse): Promise<boolean> {
  const { name } = await upload(project, file);
  const script = scriptNow(project);
  const now = script && shotOf(script, shot);
  const change = now && placeMedia(script, now, use, name);
  if (change) edit(project, change);
  return change !== undefined;
}
