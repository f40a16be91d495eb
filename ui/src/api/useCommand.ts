import { useCallback, useEffect, useRef, useState } from "react";
import { toast } from "../app/toasts";
import { call, said } from "./client";
import type { ArgsOf, CommandName, ResultOf } from "./shapes";

export interface Runner<N extends CommandName> {
  /** Carry it out; undefined when it was refused (the person has been told). */
  run: (args: ArgsOf<N>) => Promise<ResultOf<N> | undefined>;
  busy: boolean;
  error: string | undefined;
}

/** A command behind a control: busy while it runs, a toast when it is refused. */
export function useCommand<N extends CommandName>(name: N, options: { quiet?: boolean } = {}): Runner<N> {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const mounted = useRef(true);
  useEffect(() => {
    mounted.current = true;
    return () => {
      mounted.current = false;
    };
  }, []);
  const quiet = options.quiet ?? false;
  const run = useCallback(
    async (args: ArgsOf<N>) => {
      setBusy(true);
      setError(undefined);
      try {
        return await call(name, args);
      } catch (refused) {
        if (mounted.current) setError(said(refused));
        if (!quiet) toast("bad", said(refused));
        return undefined;
      } finally {
        if (mounted.current) setBusy(false);
      }
    },
    [name, quiet],
  );
  return { run, busy, error };
}
