import { assert, openSample, shotsOf, toPage, until, write } from "./kit.mjs";

const actionOf = (page, id) => page.locator(`[data-row="shot:${id}"]`).getByRole("textbox", { name: "Action" });

export const typing = [
  {
    name: "typing: text that an input method composes is sent when it is finished, not before",
    async run({ page, api, context, ...rest }) {
      const project = await openSample({ page, api, context, ...rest });
      const first = async () => shotsOf(await api("project.state", { project }))[0];
      const { id } = await first();
      const action = actionOf(page, id);
      await write(action, "start");
      await until(first, (shot) => shot.action === "start", "saved");
      const sent = [];
      page.on("request", (request) => request.url().endsWith("/project.edit") && sent.push(request.postData()));
      await action.click();
      await page.keyboard.press("End");
      // As an input method for Japanese does it: kana are composed, then turned into kanji.
      const keys = await context.newCDPSession(page);
      for (const text of ["と", "とう", "とうだ", "とうだい", "灯台"]) await keys.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
      // Longer than the pause after which what was typed becomes an edit.
      await page.waitForTimeout(2_000);
      assert.deepEqual(sent, []);
      assert.equal(await action.inputValue(), "start灯台");
      await keys.send("Input.insertText", { text: "灯台" });
      await action.blur();
      await until(first, (shot) => shot.action === "start灯台", "it is sent once it is finished");
      assert.equal(sent.length, 1, sent.join("\n"));
    },
  },
  {
    name: "typing: right-to-left text, emoji and slashes stay as they are, on every page",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const [{ id }] = shotsOf(await api("project.state", { project }));
      const words = "היא עומדת ליד החלון // C:\\ಕ 👩‍👩‍👧 ‏(1/2) <b>&amp;";
      const action = actionOf(page, id);
      await write(action, words);
      await until(async () => shotsOf(await api("project.state", { project }))[0].action, (text) => text === words, "kept to the letter");
      // Each text runs as its own first letter says; the page keeps its direction.
      assert.equal(await action.evaluate((field) => getComputedStyle(field).direction), "rtl");
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).direction), "ltr");
      await toPage(page, "Board");
      await page.locator(`[data-card="${id}"]`).click();
      const there = page.getByRole("complementary").getByRole("textbox", { name: "Action" });
      await until(() => there.inputValue(), (text) => text === words, "the same on the board");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false);
    },
  },
];
