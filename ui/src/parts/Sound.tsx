import { Pause, Play } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl, waveOf } from "../api/client";
import { IconButton } from "./Button";

const BARS = 72;

/** A sound to hear, with its shape. */
export function Sound({ hash, name }: { hash: string; name: string }) {
  const { t } = useTranslation();
  const [bars, setBars] = useState<number[]>();
  const [playing, setPlaying] = useState(false);
  const [part, setPart] = useState(0);
  const audio = useRef<HTMLAudioElement>(null);
  useEffect(() => {
    let shown = true;
    setBars(undefined);
    waveOf(hash, BARS).then(
      (wave) => shown && setBars(wave),
      () => shown && setBars([]),
    );
    return () => {
      shown = false;
    };
  }, [hash]);
  const loudest = Math.max(0.05, ...(bars ?? []));
  return (
    <div className="flex min-w-0 items-center gap-2">
      <IconButton
        icon={playing ? Pause : Play}
        size="sm"
        label={playing ? t("sound.pause", { name }) : t("sound.play", { name })}
        onClick={() => (playing ? audio.current?.pause() : void audio.current?.play())}
      />
      <svg viewBox={`0 0 ${BARS * 4} 32`} preserveAspectRatio="none" className="h-8 min-w-0 grow" aria-hidden>
        {(bars ?? Array.from({ length: BARS }, () => 0)).map((bar, at) => {
          const height = Math.max(1.5, (bar / loudest) * 30);
          return <rect key={at} x={at * 4} y={16 - height / 2} width={2.4} height={height} rx={1} fill={at / BARS < part ? "var(--lt-accent)" : "var(--lt-line-strong)"} />;
        })}
      </svg>
      <audio
        ref={audio}
        src={mediaUrl(hash)}
        preload="none"
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onEnded={() => {
          setPlaying(false);
          setPart(0);
        }}
        onTimeUpdate={(event) => setPart(event.currentTarget.currentTime / (event.currentTarget.duration || 1))}
      />
    </div>
  );
}
