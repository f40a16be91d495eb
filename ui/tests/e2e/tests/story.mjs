import { assert, drag, openSample, shotsOf, until, write } from "./kit.mjs";

const row = (page, id) => page.locator(`[data-row="shot:${id}"]`);

export const story = [
  {
    name: "story: texts, lengths and lines are edited in place, undone and redone",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      const before = await now();
      const [first] = shotsOf(before);
      await write(row(page, first.id).getByRole("textbox", { name: "Action" }), "Someone walks in. שלום عالم 🎬");
      await until(now, (state) => shotsOf(state)[0].action === "Someone walks in. שלום عالم 🎬", "the action is set");
      const length = row(page, first.id).getByRole("textbox", { name: "Length" });
      await length.click();
      await length.fill("7,5");
      await length.press("Enter");
      await until(now, (state) => shotsOf(state)[0].length === "7.5 s", "the length is set");
      await length.fill("soon");
      await length.blur();
      assert.equal(await length.inputValue(), "7.5 s");
      await write(page.getByRole("textbox", { name: "Heading of scene 1" }), "A new heading");
      await until(now, (state) => state.script.scenes[0].heading === "A new heading", "the heading is set");
      await page.getByRole("button", { name: /^Undo/ }).click();
      await until(now, (state) => state.script.scenes[0].heading === before.script.scenes[0].heading, "undone");
      await page.keyboard.press("Control+z");
      await until(now, (state) => shotsOf(state)[0].length === first.length, "undone by key");
      await page.keyboard.press("Control+Shift+Z");
      await until(now, (state) => shotsOf(state)[0].length === "7.5 s", "redone by key");
      await row(page, first.id).getByRole("button", { name: "Add line" }).click();
      const lines = await until(now, (state) => (shotsOf(state)[0].lines?.length ?? 0) === (first.lines?.length ?? 0) + 1, "a line more");
      const at = shotsOf(lines)[0].lines.length - 1;
      await write(row(page, first.id).getByRole("textbox", { name: /^Line of/ }).nth(at), "Who is there?");
      await until(now, (state) => shotsOf(state)[0].lines[at].text === "Who is there?", "the line is written");
    },
  },
  {
    name: "story: scenes and shots are added, moved, copied and removed by key",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      const ids = async () => shotsOf(await now()).map((shot) => shot.id);
      const before = await ids();
      await row(page, before[0]).getByRole("textbox", { name: "Action" }).click();
      await page.keyboard.press("Alt+ArrowDown");
      await until(ids, (list) => list[1] === before[0] && list[0] === before[1], "the shot is one further down");
      await page.keyboard.press("Alt+ArrowUp");
      await until(ids, (list) => list.join() === before.join(), "and back");
      await page.keyboard.press("Alt+Enter");
      await until(ids, (list) => list.length === before.length + 1 && list[0] === before[0], "a shot more");
      await page.keyboard.press("Alt+Delete");
      await until(ids, (list) => list.join() === before.join(), "and removed");
      await page.keyboard.press("Alt+Shift+Enter");
      await until(now, (state) => state.script.scenes.length > 1 && state.script.scenes[1].shots.length === 1, "a scene more");
      await page.keyboard.press("Control+z");
      await until(ids, (list) => list.join() === before.join(), "undone in one step");
      const tree = page.getByRole("tree", { name: "Outline" });
      await tree.focus();
      await page.keyboard.press("Home");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Control+c");
      await page.keyboard.press("Control+v");
      await until(ids, (list) => list.length === before.length + 1, "pasted");
    },
  },
  {
    name: "story: a scene and a shot are dragged in the outline",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      const before = await now();
      const [one, two, three] = shotsOf(before).map((shot) => shot.id);
      const item = (id) => page.locator(`[data-outline="shot:${id}"]`);
      await item(one).hover();
      await drag(page, item(one).locator("span").last(), item(two), 0.9);
      await until(now, (state) => shotsOf(state)[0].id === two && shotsOf(state)[1].id === one, "the shot was dragged");
      const [a, b] = before.script.scenes.map((scene) => scene.id);
      const scene = (id) => page.locator(`[data-outline="scene:${id}"]`);
      await scene(b).hover();
      await drag(page, scene(b).locator("span").last(), scene(a), 0.2);
      await until(now, (state) => state.script.scenes[0].id === b, "the scene was dragged");
      assert.ok(three);
    },
  },
  {
    name: "story: find, checks, versions, cast and places",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      const before = await now();
      const word = shotsOf(before)[2].action.split(" ")[1];
      await page.keyboard.press("Control+f");
      await page.getByRole("textbox", { name: "Find in the script" }).fill(word);
      const found = await api("project.find", { project, text: word });
      await page.getByText(new RegExp(`^${found.length} places?$`)).waitFor();
      await page.keyboard.press("Enter");
      await page.keyboard.press("Escape");
      await page.getByRole("tab", { name: "Cast" }).click();
      await page.getByRole("button", { name: "Add a person" }).click();
      await until(now, (state) => state.script.cast?.at(-1)?.name === "New person", "a person more");
      await write(page.getByRole("textbox", { name: "Name" }).last(), "ADA");
      await until(now, (state) => state.script.cast?.at(-1)?.name === "ADA", "renamed");
      await write(page.getByRole("textbox", { name: "Look" }).last(), "tall");
      await until(now, (state) => state.script.cast?.at(-1)?.look === "tall", "described");
      await page.getByRole("tab", { name: "Places" }).click();
      await page.getByRole("button", { name: "Add a place" }).click();
      await until(now, (state) => state.script.places?.length === (before.script.places?.length ?? 0) + 1, "a place more");
      await page.getByRole("tab", { name: "Versions" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill("before");
      await page.getByRole("button", { name: "Keep", exact: true }).click();
      await until(now, (state) => state.snapshots.some((each) => each.name === "before"), "kept");
      await page.getByRole("tab", { name: "Film" }).click();
      await write(page.getByRole("textbox", { name: "Title", exact: true }), "Another title");
      await until(now, (state) => state.script.title === "Another title", "titled");
      await page.getByRole("tab", { name: "Versions" }).click();
      await page.getByRole("button", { name: "Restore before" }).click();
      if (!rest.fake) await until(now, (state) => state.script.title === before.script.title, "restored");
      await page.getByRole("button", { name: "Drop before" }).click();
      await until(now, (state) => state.snapshots.length === 0, "dropped");
    },
  },
  {
    name: "story: a fix button mends what it says",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      if (!rest.fake) await api("project.edit", { project, edit: { edit: "set", kind: "film", id: "", field: "/title", value: "The Door Left Open" } });
      const fixable = (state) => state.lint.find((each) => each.fix && each.kind === "shot");
      let state = await now();
      if (!fixable(state)) {
        const shot = shotsOf(state)[0];
        await api("project.edit", { project, edit: { edit: "set", kind: "shot", id: shot.id, field: "/length", value: "0.3 s" } });
        state = await until(now, (each) => fixable(each) !== undefined || each.lint.length > 0, "the linter says something");
      }
      const message = fixable(state);
      if (!message) throw new Error(`no message with a fix among ${JSON.stringify(state.lint).slice(0, 300)}`);
      await page.getByRole("tab", { name: "Checks" }).click();
      await page.getByRole("complementary").getByRole("button", { name: message.fix.label }).last().click();
      await until(now, (each) => each.revision > state.revision, "mended");
    },
  },
  {
    name: "story: the script as text, and a faulty one refused",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      await page.getByRole("button", { name: "Script as text" }).click();
      const text = page.getByRole("dialog").getByRole("textbox", { name: "Script as text" });
      await until(() => text.inputValue(), (value) => value.includes("#"), "the text is shown");
      const markdown = await text.inputValue();
      await text.fill("no script at all");
      await page.getByRole("button", { name: "Take this text" }).click();
      await page.getByRole("dialog").getByRole("alert").waitFor();
      if (rest.fake) return;
      await text.fill(markdown.replace("The Door Left Open", "The Door Left Shut"));
      await page.getByRole("button", { name: "Take this text" }).click();
      await until(() => api("project.state", { project }), (state) => state.script.title === "The Door Left Shut", "taken");
    },
  },
];
