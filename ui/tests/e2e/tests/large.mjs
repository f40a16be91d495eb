import { assert, openSample, shotsOf, toPage, until } from "./kit.mjs";

/** A film of 60 scenes with 5 shots each, from the shots of the one that is open. */
export async function makeLarge(api, project) {
  const { script } = await api("project.state", { project });
  const shots = script.scenes.flatMap((scene) => scene.shots);
  const scenes = Array.from({ length: 60 }, (_, scene) => ({
    id: `s${scene}`,
    heading: `Scene ${scene}`,
    shots: Array.from({ length: 5 }, (_, at) => ({ ...shots[(scene * 5 + at) % shots.length], id: `s${scene}-${at}`, transition: "cut", continuity: "cut", titles: undefined, action: `Action ${scene}.${at}` })),
  }));
  const { music: _music, credits: _credits, length: _length, places: _places, ...rest } = script;
  await api("project.edit", { project, edit: { edit: "import_script", script: JSON.parse(JSON.stringify({ ...rest, scenes })) } });
}

export const large = [
  {
    name: "a story of 60 scenes: a key changes its own field and nothing else",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      await makeLarge(api, project);
      const field = page.locator('[data-row="shot:s0-0"]').getByRole("textbox", { name: "Action" });
      await until(() => field.inputValue().catch(() => ""), (text) => text === "Action 0.0", "the large film is shown");
      const rows = await page.locator("[data-row]").count();
      assert.ok(rows < 40, `${rows} of 360 rows are drawn`);
      await field.click();
      await page.waitForTimeout(1200);
      await page.evaluate(() => {
        window.changed = 0;
        const own = document.activeElement.closest(".grow-text");
        new MutationObserver((list) => {
          for (const change of list) if (!own.contains(change.target)) window.changed += 1;
        }).observe(document.getElementById("main"), { subtree: true, childList: true, attributes: true, characterData: true });
      });
      await page.keyboard.type("A dozen keys", { delay: 10 });
      assert.equal(await page.evaluate(() => window.changed), 0);
      await until(() => api("project.state", { project }), (state) => shotsOf(state)[0].action.includes("A dozen keys"), "it is kept after a pause");
    },
  },
  {
    name: "a board of 300 shots: few cards are drawn, and the last is one key away",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      await makeLarge(api, project);
      await toPage(page, "Board");
      await page.locator('[data-card="s0-0"]').focus();
      const drawn = await page.locator("[data-card]").count();
      assert.ok(drawn < 60, `${drawn} of 300 cards are drawn`);
      await page.keyboard.press("End");
      await page.locator('[data-card="s59-4"]').waitFor();
      await page.getByRole("complementary").getByRole("heading", { name: "s59-4" }).waitFor();
    },
  },
];
