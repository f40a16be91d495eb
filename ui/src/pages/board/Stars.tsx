import { Star } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "../../parts/cx";

const MOST = 5;

/** Stars by mouse or keys; the star that is there already takes the rating back. */
export function Stars({ label, rating, onRate }: { label: string; rating: number; onRate: (rating: number) => void }) {
  const { t } = useTranslation();
  // Seen at once; the list brings it back a moment later.
  const [wished, setWished] = useState<number>();
  useEffect(() => setWished(undefined), [rating]);
  const shown = wished ?? rating;
  const rate = (next: number): void => {
    const wanted = Math.min(MOST, Math.max(0, next));
    if (wanted === shown) return;
    setWished(wanted);
    onRate(wanted);
  };
  const keys: Record<string, () => number> = {
    ArrowRight: () => shown + 1,
    ArrowUp: () => shown + 1,
    ArrowLeft: () => shown - 1,
    ArrowDown: () => shown - 1,
    Home: () => 0,
    End: () => MOST,
  };
  return (
    <div
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={MOST}
      aria-valuenow={shown}
      aria-valuetext={shown === 0 ? t("takes.not_rated") : t("takes.stars", { count: shown })}
      className="inline-flex h-6 shrink-0 items-center rounded-sm"
      onKeyDown={(event) => {
        const key = /^[0-5]$/.test(event.key) ? () => Number(event.key) : keys[event.key];
        if (!key || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        rate(key());
      }}
    >
      {Array.from({ length: MOST }, (_, at) => (
        <span key={at} data-star={at + 1} className="flex h-6 w-4.5 items-center justify-center" onClick={() => rate(shown === at + 1 ? 0 : at + 1)} aria-hidden>
          <Star className={cx("size-3.5", at < shown ? "fill-current text-accent-text" : "text-quiet")} strokeWidth={1.75} />
        </span>
      ))}
    </div>
  );
}
