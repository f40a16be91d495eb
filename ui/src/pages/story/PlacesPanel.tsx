import { MapPin, Plus, Sparkles, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Place, ProjectState } from "../../api/shapes";
import { Button, IconButton } from "../../parts/Button";
import { TextField } from "../../parts/Field";
import { Empty } from "../../parts/states";
import { References } from "./References";
import { freshId, textOrNull } from "./changes";
import { useStory } from "./context";

function Row({ state, place, scenes }: { state: ProjectState; place: Place; scenes: number }) {
  const { t } = useTranslation();
  const { edit, rewrite } = useStory();
  const set = (field: string, text: string): void => edit({ edit: "set", kind: "place", id: place.id, field, value: textOrNull(text) });
  const title = place.name ?? place.id;
  return (
    <li className="flex flex-col gap-3 rounded-lg border border-line bg-page p-3">
      <div className="flex items-end gap-1">
        <div className="grow">
          <TextField label={t("places.name")} value={place.name ?? ""} placeholder={place.id} hint={t("places.used", { count: scenes })} onCommit={(text) => set("/name", text)} />
        </div>
        <div className="flex self-center">
          <IconButton icon={Sparkles} label={t("story.improve_what", { what: title })} onClick={() => rewrite({ kind: "place", id: place.id, field: "/look", title })} />
          <IconButton icon={Trash2} label={t("places.remove", { name: title })} disabled={scenes > 0} onClick={() => edit({ edit: "remove", kind: "place", id: place.id })} />
        </div>
      </div>
      <TextField label={t("places.look")} multiline rows={2} value={place.look ?? ""} placeholder={t("places.look_hint")} onCommit={(text) => set("/look", text)} />
      <References state={state} kind="place" id={place.id} name={title} files={place.references ?? []} />
    </li>
  );
}

/** Where it happens. */
export function PlacesPanel({ state }: { state: ProjectState }) {
  const { t } = useTranslation();
  const { edit } = useStory();
  const places = state.script.places ?? [];
  const add = (): void => {
    const id = freshId(new Set(places.map((place) => place.id)), "place-1");
    const after = places.at(-1)?.id;
    edit({ edit: "add", kind: "place", body: { id, name: t("places.new_name") }, ...(after === undefined ? {} : { after }) });
  };
  const button = (
    <Button icon={Plus} onClick={add}>
      {t("places.add")}
    </Button>
  );
  if (places.length === 0) {
    return (
      <Empty icon={MapPin} title={t("places.none")} actions={button} className="py-6">
        {t("places.none_hint")}
      </Empty>
    );
  }
  return (
    <div className="flex flex-col items-start gap-3">
      <ul className="flex w-full flex-col gap-3">
        {places.map((place) => (
          <Row key={place.id} state={state} place={place} scenes={state.script.scenes.filter((scene) => scene.place === place.id).length} />
        ))}
      </ul>
      {button}
    </div>
  );
}
