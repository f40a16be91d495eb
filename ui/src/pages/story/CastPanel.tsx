import { Plus, Sparkles, Trash2, UserRound } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useQuery } from "../../api/queries";
import type { CastMember, ProjectState, Voice } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { Empty } from "../../parts/states";
import { HearVoice } from "./HearVoice";
import { References } from "./References";
import { freshId, renameCast, textOrNull } from "./changes";
import { useStory } from "./context";

function Member({ state, member, voices, names }: { state: ProjectState; member: CastMember; voices: Voice[]; names: Set<string> }) {
  const { t } = useTranslation();
  const { edit, rewrite, script } = useStory();
  const set = (field: string, text: string): void => edit({ edit: "set", kind: "cast", id: member.name, field, value: textOrNull(text) });
  const said = (): string => {
    const lines = script()?.scenes.flatMap((scene) => scene.shots.flatMap((shot) => shot.lines ?? []));
    return lines?.find((line) => line.speaker === member.name)?.text ?? t("cast.sample");
  };
  return (
    <li className="flex flex-col gap-3 rounded-lg border border-line bg-page p-3">
      <div className="flex items-end gap-1">
        <div className="grow">
          <TextField
            label={t("cast.name")}
            value={member.name}
            onPause={false}
            check={(text) => (text.trim() === "" ? t("cast.name_fault") : text.trim() !== member.name && names.has(text.trim()) ? t("cast.name_taken") : undefined)}
            onCommit={(text) => {
              const now = script();
              if (now) edit(renameCast(now, member.name, text));
            }}
          />
        </div>
        <IconButton icon={Sparkles} label={t("story.improve_what", { what: member.name })} onClick={() => rewrite({ kind: "cast", id: member.name, field: "/look", title: member.name })} />
        <IconButton icon={Trash2} label={t("cast.remove", { name: member.name })} onClick={() => edit({ edit: "remove", kind: "cast", id: member.name })} />
      </div>
      <TextField label={t("cast.look")} multiline rows={2} value={member.look ?? ""} placeholder={t("cast.look_hint")} onCommit={(text) => set("/look", text)} />
      <TextField
        label={t("cast.voice")}
        value={member.voice ?? ""}
        placeholder={t("cast.voice_hint")}
        list="voices"
        onPause={false}
        onCommit={(text) => set("/voice", text)}
        aside={voices.length > 0 ? <HearVoice voice={voices.some((voice) => voice.id === member.voice) ? (member.voice ?? "") : ""} text={said} /> : undefined}
      />
      <References state={state} kind="cast" id={member.name} name={member.name} files={member.references ?? []} />
    </li>
  );
}

/** Who speaks or is seen. */
export function CastPanel({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { edit } = useStory();
  const voices = useQuery("voices.list", {}).data ?? [];
  const cast = state.script.cast ?? [];
  const names = new Set(cast.map((each) => each.name));
  const add = (): void => {
    const after = cast.at(-1)?.name;
    edit({ edit: "add", kind: "cast", body: { name: freshId(names, t("cast.new_name")) }, ...(after === undefined ? {} : { after }) });
  };
  const button = (
    <Button icon={Plus} onClick={add}>
      {t("cast.add")}
    </Button>
  );
  if (cast.length === 0) {
    return (
      <Empty icon={UserRound} title={t("cast.none")} actions={button} className="py-6">
        {t("cast.none_hint")}
      </Empty>
    );
  }
  return (
    <div className="flex flex-col items-start gap-3">
      <datalist id="voices">
        {voices.map((voice) => (
          <option key={voice.id} value={voice.id}>
            {voice.title}
          </option>
        ))}
      </datalist>
      <ul className="flex w-full flex-col gap-3">
        {cast.map((member) => (
          <Member key={member.name} state={state} member={member} voices={voices} names={names} />
        ))}
      </ul>
      {button}
    </div>
  );
}
