import { useTranslation } from "react-i18next";
import { Keys } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { useActions } from "./commands";

/** All keys that work now. */
export function Shortcuts({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation();
  const actions = useActions((state) => state.groups);
  const groups = new Map<string, { title: string; keys: string }[]>();
  for (const action of Object.values(actions).flat()) {
    if (!action.keys) continue;
    groups.set(action.group, [...(groups.get(action.group) ?? []), { title: action.title, keys: action.keys.split(" ")[0] ?? "" }]);
  }
  return (
    <Dialog open={open} onClose={onClose} title={t("shortcuts.title")} wide>
      <div className="columns-1 gap-8 sm:columns-2">
        {[...groups].map(([group, rows]) => (
          <div key={group} className="mb-5 break-inside-avoid">
            <h3 className="mb-1.5 text-sm text-quiet">{group}</h3>
            <dl>
              {rows.map((row) => (
                <div key={row.title} className="flex items-center justify-between gap-4 border-b border-line py-1.5">
                  <dt className="text-loud">{row.title}</dt>
                  <dd>
                    <Keys keys={row.keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
