import { openSample, shotsOf, until } from "./kit.mjs";

export const writing = [
  {
    name: "writing: a voice is heard",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const [voice] = await api("voices.list");
      await api("project.edit", { project, edit: { edit: "add", kind: "cast", body: { name: "ADA", voice: voice.id } } });
      await page.getByRole("tab", { name: "Cast" }).click();
      await page.getByRole("button", { name: "Hear it" }).click();
      const [job] = await until(() => api("queue.list"), (jobs) => jobs[0]?.kind === "voice.hear" && jobs[0].state === "done", "it was spoken", 120_000);
      if (job.result?.type !== "sound" || job.result.secs < 0.5) throw new Error(`expected a sound, got ${JSON.stringify(job.result)}`);
      const sound = await page.request.get(`${new URL("/", page.url()).href}media/${job.result.hash}`);
      if (!sound.headers()["content-type"].startsWith("audio/")) throw new Error(`expected audio, got ${sound.headers()["content-type"]}`);
    },
  },
  {
    name: "writing: a premise becomes a proposal that is taken in part",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const before = await api("project.state", { project });
      await page.getByRole("button", { name: "Write from a premise" }).click();
      await page.getByRole("textbox", { name: "Premise" }).fill("A lighthouse keeper finds a radio that receives tomorrow's news.");
      await page.getByRole("textbox", { name: "Length asked for" }).fill("10 s");
      await page.getByRole("button", { name: "Write", exact: true }).click();
      await page.getByText(/proposed changes?$/).waitFor({ timeout: 300_000 });
      const proposal = await api("proposal.get", { project });
      if (proposal.changes.length < 2) throw new Error("expected several changes");
      await page.getByRole("button", { name: "Tick none" }).click();
      const title = proposal.changes.find((change) => change.field === "/logline") ?? proposal.changes[0];
      await page.locator(`#change-${title.number}`).click();
      await page.getByRole("button", { name: "Take 1", exact: true }).click();
      await until(() => api("project.state", { project }), (state) => state.revision > before.revision, "taken");
      await page.keyboard.press("Control+z");
      await until(() => api("project.state", { project }), (state) => state.script.logline === before.script.logline, "undone");
      if (await api("proposal.get", { project })) {
        await page.getByRole("button", { name: /^Proposal:/ }).click();
        await page.getByRole("button", { name: "Refuse" }).click();
      }
      await until(() => api("proposal.get", { project }), (each) => each === null, "refused");
    },
  },
  {
    name: "writing: a line is written anew",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const [first] = shotsOf(await api("project.state", { project }));
      const row = page.locator(`[data-row="shot:${first.id}"]`);
      await row.getByRole("textbox", { name: /^Line of/ }).first().hover();
      await row.getByRole("button", { name: "What to do with this line" }).first().click();
      await page.getByRole("menuitem", { name: "Rewrite line…" }).click();
      await page.getByRole("button", { name: "Shorter" }).click();
      await page.getByRole("button", { name: "Rewrite", exact: true }).click();
      await until(() => api("queue.list"), (jobs) => jobs.some((job) => job.kind === "story.rewrite" && ["done", "failed"].includes(job.state)), "it ended", 300_000);
    },
  },
];
