import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "../../parts/Button";
import { Select, TextField } from "../../parts/Field";
import { NumberInput } from "../../parts/NumberInput";
import { Thumb } from "../../parts/Thumb";
import { type CameraMove, EASINGS, MOVE_KINDS, type MoveKind, type View, moveFault, moveText, newMove, parseMove, viewsOf } from "./camera";

interface Props {
  value: string | undefined;
  hash: string | undefined;
  colour: string | undefined;
  aspect: number;
  secs: number;
  onCommit: (text: string | null) => void;
}

function Frame({ view, dashed, label }: { view: View; dashed?: boolean; label: string }) {
  return (
    <rect
      x={view.x - 50 * view.size}
      y={view.y - 50 * view.size}
      width={100 * view.size}
      height={100 * view.size}
      transform={view.roll ? `rotate(${view.roll} ${view.x} ${view.y})` : undefined}
      fill="none"
      stroke="var(--lt-accent)"
      strokeWidth={1.5}
      strokeDasharray={dashed ? "5 4" : undefined}
      vectorEffect="non-scaling-stroke"
    >
      <title>{label}</title>
    </rect>
  );
}

/** The picture with the first view (dashed) and the last, and the move played over it. */
function Preview({ move, hash, colour, aspect, secs }: { move: CameraMove; hash: string | undefined; colour: string | undefined; aspect: number; secs: number }) {
  const { t } = useTranslation();
  const [from, to] = viewsOf(move);
  const inner = useRef<HTMLDivElement>(null);
  const [playing, setPlaying] = useState(false);
  const played = useRef<Animation>(undefined);
  useEffect(() => () => played.current?.cancel(), []);
  const see = (view: View): string => {
    const zoom = 1 / view.size;
    return `scale(${zoom}) rotate(${-view.roll}deg) translate(${50 - view.x}%, ${50 - view.y}%)`;
  };
  const play = (): void => {
    if (playing) {
      played.current?.cancel();
      setPlaying(false);
      return;
    }
    const animation = inner.current?.animate([{ transform: see(from) }, { transform: see(to) }], { duration: Math.min(secs, 20) * 1000, easing: move.easing });
    if (!animation) return;
    played.current = animation;
    setPlaying(true);
    animation.onfinish = () => setPlaying(false);
    animation.oncancel = () => setPlaying(false);
  };
  return (
    <div className="flex flex-col gap-2">
      <div className="relative w-full overflow-hidden rounded-md bg-film" style={{ aspectRatio: aspect }}>
        <div ref={inner} className="size-full">
          <Thumb hash={hash} width={640} alt={t("shot.picture")} colour={colour} className="size-full" />
        </div>
        {!playing && move.kind !== "still" && (
          <svg viewBox="0 0 100 100" preserveAspectRatio="none" className="absolute inset-0 size-full" aria-hidden>
            <Frame view={from} dashed label={t("camera.first")} />
            <Frame view={to} label={t("camera.last")} />
          </svg>
        )}
      </div>
      {move.kind !== "still" && (
        <Button size="sm" look="quiet" className="self-start" onClick={play} disabled={!hash && !colour}>
          {playing ? t("camera.stop") : t("camera.play")}
        </Button>
      )}
    </div>
  );
}

/** What the camera does over the picture of a shot. */
export function CameraEditor({ value, hash, colour, aspect, secs, onCommit }: Props) {
  const { t } = useTranslation();
  const move = parseMove(value);
  if (!move) {
    return <TextField label={t("camera.label")} value={value ?? ""} onPause={false} onCommit={(text) => onCommit(text.trim() === "" ? null : text.trim())} />;
  }
  const change = (part: Partial<CameraMove>): void => {
    const next = { ...move, ...part };
    if (moveFault(next) === undefined) onCommit(moveText(next));
  };
  const zooming = move.kind === "push" || move.kind === "pull";
  const figure = (label: string, field: "from" | "to" | "x" | "y" | "zoom", min: number, max: number, step: number, unit?: string) => (
    <NumberInput label={label} value={move[field]} min={min} max={max} step={step} {...(unit ? { unit } : {})} onCommit={(number) => change({ [field]: number })} />
  );
  return (
    <div className="flex flex-col gap-3">
      <Preview key={value} move={move} hash={hash} colour={colour} aspect={aspect} secs={secs} />
      <div className="grid grid-cols-2 gap-3">
        <Select
          label={t("camera.label")}
          value={move.kind}
          choices={MOVE_KINDS.map((kind) => ({ value: kind, label: t(`camera.kinds.${kind}`) }))}
          onChange={(kind) => onCommit(moveText(newMove(kind as MoveKind)))}
        />
        {move.kind !== "still" && (
          <Select label={t("camera.easing")} value={move.easing} choices={EASINGS.map((easing) => ({ value: easing, label: t(`camera.easings.${easing}`) }))} onChange={(easing) => change({ easing })} />
        )}
      </div>
      {move.kind !== "still" && (
        <div className="grid grid-cols-2 gap-3">
          {zooming && figure(t("camera.zoom_from"), "from", move.kind === "push" ? 1 : move.to, move.kind === "push" ? move.to : 20, 0.05, "×")}
          {zooming && figure(t("camera.zoom_to"), "to", move.kind === "push" ? move.from : 1, move.kind === "push" ? 20 : move.from, 0.05, "×")}
          {(move.kind === "pan" || move.kind === "tilt") && figure(t("camera.from"), "from", 0, 100, 1, "%")}
          {(move.kind === "pan" || move.kind === "tilt") && figure(t("camera.to"), "to", 0, 100, 1, "%")}
          {move.kind === "roll" && figure(t("camera.from"), "from", -45, 45, 0.5, "°")}
          {move.kind === "roll" && figure(t("camera.to"), "to", -45, 45, 0.5, "°")}
          {move.kind !== "pan" && figure(t("camera.x"), "x", 0, 100, 1, "%")}
          {move.kind !== "tilt" && figure(t("camera.y"), "y", 0, 100, 1, "%")}
          {!zooming && figure(t("camera.zoom"), "zoom", 1, 20, 0.05, "×")}
        </div>
      )}
    </div>
  );
}
