import { Mic, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { said, upload } from "../../api/client";
import { toast } from "../../app/toasts";
import { Button } from "../../parts/Button";
import { clockText } from "../../parts/figures";

const TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];
const LONGEST_SECS = 600;

/** Records a voice with the microphone and gives the name of the file it became. */
export function RecordVoice({ project, name, onRecorded }: { project: string; name: string; onRecorded: (file: string) => void }) {
  const { t } = useTranslation();
  const [secs, setSecs] = useState<number>();
  const [busy, setBusy] = useState(false);
  const recorder = useRef<MediaRecorder>(undefined);
  const latest = useRef(onRecorded);
  latest.current = onRecorded;
  useEffect(() => () => recorder.current?.stream.getTracks().forEach((track) => track.stop()), []);

  const keep = async (parts: Blob[], type: string): Promise<void> => {
    setBusy(true);
    try {
      const ending = type.includes("ogg") ? "ogg" : type.includes("mp4") ? "m4a" : "webm";
      const stamp = new Date().toISOString().replaceAll(/[-:]|\..*$/g, "");
      const { name: file } = await upload(project, new File(parts, `${name}-${stamp}.${ending}`, { type }));
      latest.current(file);
    } catch (error) {
      toast("bad", t("media.refused", { name, why: said(error) }));
    } finally {
      setBusy(false);
    }
  };
  const start = async (): Promise<void> => {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
      const now = new MediaRecorder(stream, mimeType ? { mimeType } : {});
      const parts: Blob[] = [];
      const began = performance.now();
      const clock = setInterval(() => {
        const passed = (performance.now() - began) / 1000;
        setSecs(passed);
        if (passed > LONGEST_SECS) now.stop();
      }, 250);
      now.ondataavailable = (event) => parts.push(event.data);
      now.onstop = () => {
        clearInterval(clock);
        stream.getTracks().forEach((track) => track.stop());
        setSecs(undefined);
        void keep(parts, now.mimeType);
      };
      recorder.current = now;
      setSecs(0);
      now.start();
    } catch (error) {
      toast("bad", t("record.no_microphone", { why: said(error) }));
    }
  };
  if (typeof MediaRecorder === "undefined" || !navigator.mediaDevices) return null;
  return secs === undefined ? (
    <Button size="sm" icon={Mic} busy={busy} onClick={() => void start()}>
      {t("record.start")}
    </Button>
  ) : (
    <Button size="sm" look="danger" icon={Square} onClick={() => recorder.current?.stop()}>
      <span className="numeric">{t("record.stop", { time: clockText(secs) })}</span>
    </Button>
  );
}
