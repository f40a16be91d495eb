import { Check } from "lucide-react";
import { Slider } from "radix-ui";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { thumbUrl } from "../../api/client";
import type { Take } from "../../api/shapes";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Select } from "../../parts/Field";
import { Thumb } from "../../parts/Thumb";
import { Stars } from "./Stars";
import { madeBy } from "./takes";

interface Props {
  takes: Take[];
  shot: string;
  aspect: number;
  onChoose: (take: Take) => void;
  onRate: (take: Take, rating: number) => void;
  onClose: () => void;
}

/** Two takes over each other, parted by a line that is moved by mouse or keys. */
export function CompareDialog({ takes, shot, aspect, onChoose, onRate, onClose }: Props) {
  const { t } = useTranslation();
  const chosen = takes.find((take) => take.chosen) ?? takes[0];
  const [first, setFirst] = useState(chosen?.take ?? "");
  const [second, setSecond] = useState(takes.findLast((take) => take.take !== chosen?.take)?.take ?? "");
  const [at, setAt] = useState(50);
  const [left, right] = [first, second].map((hash) => takes.find((take) => take.take === hash));
  const name = (take: Take): string => t("takes.numbered", { number: takes.indexOf(take) + 1, by: madeBy(t, take) });
  const choices = takes.map((take) => ({ value: take.take, label: name(take) }));
  // The small picture of the list is there at once; the large one comes over it.
  const picture = (take: Take | undefined, hidden: number) => (
    <div className="absolute inset-0 bg-cover bg-center" style={{ clipPath: `inset(0 ${hidden}% 0 0)`, ...(take ? { backgroundImage: `url("${thumbUrl(take.take, 320)}")` } : {}) }}>
      <Thumb hash={take?.take} width={1280} alt={take ? name(take) : ""} className="size-full bg-transparent!" />
    </div>
  );
  const side = (label: string, take: Take | undefined, set: (hash: string) => void) => (
    <div className="flex min-w-0 flex-col gap-2">
      <Select label={label} value={take?.take ?? ""} choices={choices} onChange={set} />
      {take && (
        <div className="flex flex-wrap items-center justify-between gap-2">
          <Stars label={t("takes.rating", { number: takes.indexOf(take) + 1 })} rating={take.rating} onRate={(rating) => onRate(take, rating)} />
          <Button size="sm" look={take.chosen ? "quiet" : "primary"} icon={Check} disabled={take.chosen} onClick={() => onChoose(take)}>
            {t(take.chosen ? "takes.in_film" : "takes.use")}
          </Button>
        </div>
      )}
    </div>
  );
  return (
    <Dialog open onClose={onClose} wide title={t("takes.compare_title", { shot })} about={t("takes.compare_about")}>
      <div className="flex flex-col gap-4">
        <div className="relative mx-auto max-h-[55vh] w-full overflow-hidden rounded-md bg-film" style={{ aspectRatio: aspect }}>
          {picture(right, 0)}
          {picture(left, 100 - at)}
          <Slider.Root className="absolute inset-0 flex touch-none items-center select-none" value={[at]} min={0} max={100} step={1} onValueChange={([next]) => next !== undefined && setAt(next)}>
            <Slider.Track className="relative h-full grow cursor-ew-resize" />
            <Slider.Thumb aria-label={t("takes.line")} aria-valuetext={t("takes.line_at", { part: at })} className="flex w-0.5 items-center justify-center" asChild>
              <span>
                <span className="absolute -inset-y-[100vh] w-0.5 bg-[#fff] shadow-float" aria-hidden />
                <span className="relative size-6 shrink-0 rounded-full border-2 border-[#fff] bg-film/60" aria-hidden />
              </span>
            </Slider.Thumb>
          </Slider.Root>
        </div>
        <div className="grid grid-cols-2 gap-4">
          {side(t("takes.left"), left, setFirst)}
          {side(t("takes.right"), right, setSecond)}
        </div>
      </div>
    </Dialog>
  );
}
