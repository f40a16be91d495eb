import { assert, openSample, shotsOf, until, write } from "./kit.mjs";

export const outside = [
  {
    name: "a lost connection loses no edit",
    async run({ page, api, context, ...rest }) {
      const project = await openSample({ page, api, context, ...rest });
      const now = () => api("project.state", { project });
      const [one, two] = shotsOf(await now());
      let away = true;
      await context.route("**/api/call/**", (route) => (away ? route.abort("connectionrefused") : route.continue()));
      const action = (id) => page.locator(`[data-row="shot:${id}"]`).getByRole("textbox", { name: "Action" });
      await write(action(one.id), "written while nobody listened");
      await write(action(two.id), "and this as well");
      await page.getByText("2 edits not saved yet").waitFor();
      assert.equal(await action(one.id).inputValue(), "written while nobody listened");
      away = false;
      await until(now, (state) => shotsOf(state)[0].action === "written while nobody listened" && shotsOf(state)[1].action === "and this as well", "both were sent");
      await page.getByText("Saved", { exact: true }).waitFor();
    },
  },
  {
    name: "two browsers see each other's edits",
    async run({ page, api, browser, studio, ...rest }) {
      const project = await openSample({ page, api, studio, ...rest });
      const other = await (await browser.newContext()).newPage();
      await other.goto(studio.entry ?? studio.url);
      await other.goto(`${studio.url}#/story?project=${encodeURIComponent(project)}`);
      await other.waitForSelector('[data-row^="shot:"]');
      const [one] = shotsOf(await api("project.state", { project }));
      const action = (where) => where.locator(`[data-row="shot:${one.id}"]`).getByRole("textbox", { name: "Action" });
      await write(action(page), "from the first");
      await until(() => action(other).inputValue(), (text) => text === "from the first", "the second sees it");
      await write(action(other), "from the second");
      await until(() => action(page).inputValue(), (text) => text === "from the second", "the first sees it");
      await other.context().close();
    },
  },
  {
    name: "an edit that is refused is put back and its text kept",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const before = shotsOf(await api("project.state", { project }))[0];
      const action = page.locator(`[data-row="shot:${before.id}"]`).getByRole("textbox", { name: "Action" });
      await write(action, "x".repeat(1_000_000));
      await page.getByText(/has been put back/).first().waitFor();
      assert.equal(await action.inputValue(), before.action);
      await page.getByRole("button", { name: "Copy the text that was refused" }).first().waitFor();
      assert.equal(shotsOf(await api("project.state", { project }))[0].action, before.action);
    },
  },
  {
    name: "a browser that was not let in is told what to do",
    real: true,
    async run({ browser, studio }) {
      const context = await browser.newContext();
      const stranger = await context.newPage();
      const answer = await stranger.goto(studio.url);
      assert.equal(answer.status(), 401);
      const call = await stranger.request.post(`${studio.url}api/call/app.state`, { data: {} });
      assert.equal(call.status(), 401);
      await context.close();
    },
  },
  {
    name: "a killed studio comes back with everything",
    real: true,
    async run({ page, api, studio, ...rest }) {
      const project = await openSample({ page, api, studio, ...rest });
      const [one] = shotsOf(await api("project.state", { project }));
      const action = page.locator(`[data-row="shot:${one.id}"]`).getByRole("textbox", { name: "Action" });
      await write(action, "before the end");
      await until(() => api("project.state", { project }), (state) => shotsOf(state)[0].action === "before the end", "saved");
      await studio.kill("SIGKILL");
      await write(action, "while it was gone");
      await page.getByText("1 edit not saved yet").waitFor();
      await studio.restart();
      await page.getByText("Saved", { exact: true }).waitFor();
      const after = await api("project.state", { project });
      assert.equal(shotsOf(after)[0].action, "while it was gone");
      assert.equal(await action.inputValue(), "while it was gone");
    },
  },
];
