import { assert, until } from "./kit.mjs";

export const welcome = [
  {
    name: "welcome: a new project by keyboard",
    real: true,
    async run({ page, api }) {
      await page.keyboard.press("Control+Alt+N");
      await page.getByRole("textbox", { name: "Title" }).waitFor();
      await page.keyboard.type("Tür / 場景 🎬");
      await page.getByRole("radio", { name: /Cinema/ }).click();
      await page.getByRole("combobox", { name: "Frames a second" }).selectOption("25");
      await page.getByRole("combobox", { name: "Language" }).selectOption("de");
      await page.getByRole("button", { name: "Create project" }).click();
      await page.waitForSelector('[data-row^="shot:"]');
      const [recent] = await api("app.recent");
      const state = await api("project.state", { project: recent.path });
      assert.equal(state.script.title, "Tür / 場景 🎬");
      assert.equal(state.script.language, "de");
      assert.equal(state.script.fps, "25");
      assert.ok(state.film.width_px / state.film.height_px > 2.3);
    },
  },
  {
    name: "welcome: the sample film, the list, and leaving it",
    real: true,
    async run({ page, api }) {
      await page.getByRole("button", { name: "Open the sample film" }).click();
      await page.waitForSelector('[data-row^="shot:"]');
      const [recent] = await api("app.recent");
      assert.equal((await api("project.state", { project: recent.path })).script.title, "The Door Left Open");
      await page.getByRole("link", { name: "Home" }).click();
      await page.getByRole("button", { name: /^The Door Left Open/ }).first().click();
      await page.waitForSelector('[data-row^="shot:"]');
      await page.keyboard.press("Control+k");
      await page.keyboard.type("close this");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Your films" }).waitFor();
      await until(() => api("app.recent"), (list) => list[0] && !list[0].open, "the project is closed");
      await page.getByRole("button", { name: /off this list/ }).first().click();
      await until(() => api("app.recent"), (list) => list.length === 0, "it is off the list");
      await page.getByText("Start your first film").waitFor();
    },
  },
  {
    name: "welcome: a project by its folder, and one that is not there",
    real: true,
    async run({ page, api }) {
      const { project } = await api("project.open_sample");
      await api("project.close", { project });
      await page.getByRole("button", { name: "Open…" }).click();
      await page.getByRole("textbox", { name: "Folder of the project" }).fill(`${project}-not-there`);
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByRole("alert").waitFor();
      await page.getByRole("textbox", { name: "Folder of the project" }).fill(project);
      await page.keyboard.press("Enter");
      await page.waitForSelector('[data-row^="shot:"]');
    },
  },
  {
    name: "welcome: what this machine is",
    async run({ page, api }) {
      const { machine, version } = await api("app.state");
      await page.getByText(machine.cpu, { exact: false }).first().waitFor();
      await page.getByText(`Longtake ${version}`).waitFor();
    },
  },
];
