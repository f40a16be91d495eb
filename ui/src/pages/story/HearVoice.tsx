import { Volume2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl } from "../../api/client";
import { useCommand } from "../../api/useCommand";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { useJob } from "../../parts/useJob";
import { jobError } from "../../text/say";

/** Speaks a line in a voice and plays it. */
export function HearVoice({ voice, text }: { voice: string; text: () => string }) {
  const { t } = useTranslation();
  const hear = useCommand("voice.hear");
  const [playing, setPlaying] = useState(false);
  const audio = useRef<HTMLAudioElement>(null);
  const { job, follow } = useJob((ended) => {
    const hash = ended.result?.type === "sound" ? ended.result.hash : undefined;
    if (ended.state !== "done" || !hash) {
      if (ended.state === "failed") toast("bad", jobError(ended) ?? t("common.failed"));
      return;
    }
    const sound = new Audio(mediaUrl(hash));
    sound.onended = () => setPlaying(false);
    audio.current = sound;
    setPlaying(true);
    sound.play().catch(() => setPlaying(false));
  });
  useEffect(() => () => audio.current?.pause(), []);
  return (
    <Button
      size="sm"
      look="quiet"
      icon={Volume2}
      busy={hear.busy || job !== undefined}
      aria-pressed={playing}
      onClick={async () => {
        if (playing) {
          audio.current?.pause();
          setPlaying(false);
          return;
        }
        const started = await hear.run({ text: text().slice(0, 300), ...(voice === "" ? {} : { voice }) });
        if (started) follow(started.job);
      }}
    >
      {playing ? t("cast.stop") : t("cast.hear")}
    </Button>
  );
}
