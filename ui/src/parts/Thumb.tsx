import { Image as ImageIcon } from "lucide-react";
import { memo, useState } from "react";
import { thumbUrl } from "../api/client";
import { cx } from "./cx";

interface ThumbProps {
  hash: string | undefined;
  width: number;
  alt: string;
  colour?: string | undefined;
  fit?: "cover" | "contain";
  /** No mark in an empty place: something else is said there. */
  plain?: boolean | undefined;
  className?: string;
}

/** A small picture of bytes; the place is kept while it comes and when there is none. */
export const Thumb = memo(function Thumb({ hash, width, alt, colour, fit = "cover", plain = false, className }: ThumbProps) {
  const [failed, setFailed] = useState<string>();
  if (!hash || failed === hash) {
    return (
      <div
        className={cx("flex items-center justify-center bg-back text-quiet", className)}
        style={colour ? { background: colour } : undefined}
        role={alt ? "img" : undefined}
        aria-label={alt || undefined}
      >
        {!colour && !plain && <ImageIcon className="size-6 opacity-60" strokeWidth={1.25} aria-hidden />}
      </div>
    );
  }
  return (
    <img
      src={thumbUrl(hash, width)}
      alt={alt}
      loading="lazy"
      decoding="async"
      draggable={false}
      onError={() => setFailed(hash)}
      className={cx("bg-back", fit === "cover" ? "object-cover" : "object-contain", className)}
    />
  );
});
