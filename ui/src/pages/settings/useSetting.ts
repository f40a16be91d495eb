import { put } from "../../api/queries";
import type { Settings } from "../../api/shapes";
import { useCommand } from "../../api/useCommand";

/** Set one field of the settings; the answer is what they are now. */
export function useSetting(): { set: (field: keyof Settings | "llm_key", value: unknown) => Promise<void>; busy: boolean } {
  const command = useCommand("settings.set");
  return {
    busy: command.busy,
    set: async (field, value) => {
      const state = await command.run({ field, value });
      if (state) put("settings.get", {}, state);
    },
  };
}
