/** Shorthands over the generated types. */
import type { CommandName, Commands, LintMessage, WrittenBy } from "./generated";

export type * from "./generated";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Lint = LintMessage;
export type Origins = { [field in string]: WrittenBy };
export type ArgsOf<N extends CommandName> = Commands[N]["args"];
export type ResultOf<N extends CommandName> = Commands[N]["result"];
