import { create } from "zustand";
import { commitDrafts } from "../parts/drafts";

export const PAGES = ["welcome", "story", "board", "export", "queue", "models", "cluster", "settings"] as const;
export type Page = (typeof PAGES)[number];

/** Pages that show the open project. */
export const OF_PROJECT: readonly Page[] = ["story", "board", "export"];

export interface Route {
  page: Page;
  /** Folder of the open project. */
  project: string | undefined;
  /** What on the page: a shot, a scene, a tab. */
  at: string | undefined;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const asked = PAGES.find((page) => page === path) ?? "welcome";
  const search = new URLSearchParams(query);
  const project = search.get("project") ?? undefined;
  const page = OF_PROJECT.includes(asked) && !project ? "welcome" : asked;
  return { page, project, at: search.get("at") ?? undefined };
}

export function routeHash({ page, project, at }: Route): string {
  const search = new URLSearchParams();
  if (project) search.set("project", project);
  if (at) search.set("at", at);
  const query = search.toString();
  return `#/${page}${query ? `?${query}` : ""}`;
}

export const useRoute = create<Route>(() => parseRoute(typeof location === "undefined" ? "" : location.hash));

export function followHash(): void {
  window.addEventListener("hashchange", () => {
    commitDrafts();
    useRoute.setState(parseRoute(location.hash), true);
  });
}

/** No project is open any more. */
export function leave(): void {
  location.hash = routeHash({ page: "welcome", project: undefined, at: undefined });
}

/** Show a page; the open project stays open. */
export function go(page: Page, to: { project?: string; at?: string } = {}): void {
  const route: Route = { page, project: to.project ?? useRoute.getState().project, at: to.at };
  const hash = routeHash(route);
  if (hash !== location.hash) location.hash = hash;
}
