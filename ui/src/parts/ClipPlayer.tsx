import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mediaUrl, thumbUrl } from "../api/client";
import { useQuery } from "../api/queries";
import { jobStep, sayAll } from "../text/say";
import { Progress, Skeleton } from "./states";

/** Plays a video of the project; one that this page cannot play as a copy, which is made first. */
export function ClipPlayer({ hash, name }: { hash: string; name: string }) {
  const { t } = useTranslation();
  const { data, error } = useQuery("media.play", { hash, name });
  const jobs = useQuery("queue.list", {}, { enabled: data?.state === "making" }).data;
  const [broken, setBroken] = useState(false);
  const box = "flex aspect-video w-full flex-col items-center justify-center gap-3 rounded-md bg-film p-4 text-center text-sm text-[#e8e8e8]";
  if (error && !data) return <p role="alert" className={box}>{error}</p>;
  if (!data) return <Skeleton className="aspect-video w-full" />;
  if (data.state === "never") return <p className={box}>{t("clip.never", { why: sayAll(data.why) })}</p>;
  if (data.state === "making") {
    const job = jobs?.find((each) => each.id === data.job);
    return (
      <div className={box} role="status">
        <span>{(job && jobStep(job)) ?? t("clip.making")}</span>
        <Progress done={job?.done ?? 0} of={job?.of ?? 0} label={t("clip.making")} className="w-2/3" />
      </div>
    );
  }
  if (broken) return <p role="alert" className={box}>{t("clip.broken")}</p>;
  return (
    <figure className="flex flex-col gap-1">
      <video
        key={data.hash}
        controls
        preload="metadata"
        src={mediaUrl(data.hash)}
        poster={thumbUrl(hash, 640)}
        aria-label={t("clip.of", { name })}
        onError={() => setBroken(true)}
        className="max-h-72 w-full rounded-md bg-film"
      />
      {data.is_copy && <figcaption className="text-xs text-quiet">{t("clip.copy")}</figcaption>}
    </figure>
  );
}
