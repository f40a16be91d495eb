import { Plus, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Edit, Json, Shot, Title, TitleRole } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { Labelled, Select, TextField } from "../../parts/Field";
import { LengthInput } from "../story/LengthInput";
import { setShot } from "../story/changes";
import { Section } from "./Section";

const ROLES: TitleRole[] = ["title", "subtitle", "lower-third", "caption"];

/** Text over the picture. */
export function TitlesEditor({ shot, edit, fps }: { shot: Shot; edit: (change: Edit | undefined) => void; fps: number }) {
  const { t } = useTranslation();
  const titles = shot.titles ?? [];
  const put = (list: Title[]): void => edit(setShot(shot.id, "/titles", list.length > 0 ? (list as unknown as Json) : null));
  return (
    <Section
      title={t("titles.label")}
      aside={
        <Button size="sm" look="quiet" icon={Plus} onClick={() => put([...titles, { role: titles.length === 0 ? "title" : "subtitle", text: t("titles.new_text") }])}>
          {t("titles.add")}
        </Button>
      }
    >
      {titles.length === 0 && <p className="text-sm text-quiet">{t("titles.none")}</p>}
      {titles.map((title, at) => {
        const change = (part: Partial<Title>): void => put(titles.map((each, index) => (index === at ? { ...each, ...part } : each)));
        return (
          <div key={at} className="flex flex-col gap-2 rounded-md border border-line bg-page p-2.5">
            <div className="flex items-center gap-2">
              <Select hideLabel label={t("titles.role")} className="grow" value={title.role} choices={ROLES.map((role) => ({ value: role, label: t(`titles.roles.${role}`) }))} onChange={(role) => change({ role: role as TitleRole })} />
              <IconButton icon={Trash2} size="sm" label={t("titles.remove")} onClick={() => put(titles.filter((_, index) => index !== at))} />
            </div>
            <TextField label={t("titles.text")} multiline rows={2} value={title.text} onCommit={(text) => (text.trim() === "" ? put(titles.filter((_, index) => index !== at)) : change({ text }))} />
            <div className="grid grid-cols-2 gap-2">
              <Labelled label={t("titles.at")} id={`title-at-${at}`}>
                <LengthInput id={`title-at-${at}`} label={t("titles.at")} value={title.at ?? "0 s"} fps={fps} zero onCommit={(text) => change({ at: text })} className="h-8 w-full rounded-md" />
              </Labelled>
              <Labelled label={t("titles.for")} id={`title-for-${at}`}>
                <LengthInput id={`title-for-${at}`} label={t("titles.for")} value={title.for ?? ""} fps={fps} placeholder={t("titles.to_end")} onCommit={(text) => change({ for: text })} className="h-8 w-full rounded-md" />
              </Labelled>
            </div>
          </div>
        );
      })}
    </Section>
  );
}
