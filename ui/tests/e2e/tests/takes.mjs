import { AxeBuilder } from "@axe-core/playwright";
import { PICTURE, assert, openSample, shotsOf, toPage, until, write } from "./kit.mjs";

const card = (page, id) => page.locator(`[data-card="${id}"]`);
const axe = async (page, where) => {
  const { violations } = await new AxeBuilder({ page }).analyze();
  assert.deepEqual(violations.map((each) => `${where}: ${each.id}: ${each.nodes[0]?.html.slice(0, 120)}`), []);
};

/** Half a second of a tone as a WAV file: 8,000 Hz, 16 bits, one channel. */
function tone() {
  const samples = Int16Array.from({ length: 4_000 }, (_, at) => Math.sin(at / 4) * 8_000);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8);
  for (const [at, value] of [[16, 16], [24, 8_000], [28, 16_000]]) head.writeUInt32LE(value, at);
  for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) head.writeUInt16LE(value, at);
  head.write("data", 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer)]);
}

/** The board with a shot chosen that shows a picture. */
async function chosenShot({ page, api, ...rest }) {
  const project = await openSample({ page, api, ...rest });
  const { id } = shotsOf(await api("project.state", { project })).find((each) => each.picture);
  await toPage(page, "Board");
  await card(page, id).click();
  const side = page.getByRole("complementary");
  await side.getByRole("heading", { name: id }).waitFor();
  const takes = () => api("takes.list", { project, shot: id });
  const shot = async () => shotsOf(await api("project.state", { project })).find((each) => each.id === id);
  return { project, id, side, takes, shot };
}

export const takes = [
  {
    name: "takes: another is made, chosen, rated, taken off the list and brought back",
    async run({ page, api, ...rest }) {
      const { side, takes, shot } = await chosenShot({ page, api, ...rest });
      const [first] = await takes();
      assert.equal(first.chosen, true);
      const count = (await takes()).length;
      await side.getByRole("button", { name: "Choose another of the project's pictures" }).click();
      const more = await until(takes, (list) => list.length === count + 1, "there is one take more");
      assert.equal(more.find((take) => take.chosen).take, first.take);
      const made = more.at(-1);
      assert.equal(typeof made.seed, "number");
      await side.getByRole("button", { name: new RegExp(`^Use take ${count + 1}:`) }).click();
      await until(takes, (list) => list.at(-1).chosen, "the new one is used");
      assert.equal((await shot()).picture, made.name);
      const stars = side.getByRole("slider", { name: `Rating of take ${count + 1}` });
      await stars.focus();
      for (const _ of [1, 2, 3]) await page.keyboard.press("ArrowRight");
      await until(takes, (list) => list.at(-1).rating === 3, "three stars by key");
      await stars.locator('[data-star="5"]').click();
      await until(takes, (list) => list.at(-1).rating === 5, "five stars by mouse");
      await page.keyboard.press("End");
      const remove = side.getByRole("button", { name: "Take take 1 off the list" });
      await remove.click();
      await until(takes, (list) => list.length === count && list.every((take) => take.take !== first.take), "it is off the list");
      await page.keyboard.press("Control+z");
      await until(takes, (list) => list.length === count + 1, "undo brings it back");
      await axe(page, "board with takes");
    },
    // The server in memory takes back edits of the script only.
    real: true,
  },
  {
    name: "takes: two are compared by a line that keys and mouse move",
    async run({ page, api, ...rest }) {
      const { side, takes } = await chosenShot({ page, api, ...rest });
      if ((await takes()).length < 2) {
        await side.getByRole("button", { name: "Choose another of the project's pictures" }).click();
        await until(takes, (list) => list.length >= 2, "there are two takes");
      }
      await side.getByRole("button", { name: "Compare" }).click();
      const dialog = page.getByRole("dialog");
      const line = dialog.getByRole("slider", { name: "Line between the takes" });
      await line.focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await line.getAttribute("aria-valuenow"), "51");
      await page.keyboard.press("Home");
      assert.equal(await line.getAttribute("aria-valuenow"), "0");
      const stage = await line.locator("xpath=ancestor::*[@data-orientation][last()]").boundingBox();
      await page.mouse.move(stage.x + stage.width * 0.4, stage.y + stage.height / 2);
      await page.mouse.down();
      await page.mouse.move(stage.x + stage.width * 0.75, stage.y + stage.height / 2, { steps: 6 });
      await page.mouse.up();
      const at = Number(await line.getAttribute("aria-valuenow"));
      assert.ok(at >= 73 && at <= 77, `the line is at ${at}`);
      await axe(page, "compare");
      const right = dialog.getByRole("combobox", { name: "Right" });
      const other = await right.inputValue();
      await dialog.getByRole("button", { name: "Use this take" }).click();
      await until(takes, (list) => list.find((take) => take.take === other).chosen, "the right one is used");
      await dialog.getByRole("combobox", { name: "Left" }).selectOption(other);
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    },
  },
  {
    name: "takes: model, seed with a lock that locks, negative prompt",
    async run({ page, api, fake, ...rest }) {
      const { project, id, side, takes, shot } = await chosenShot({ page, api, ...rest });
      await write(side.getByRole("textbox", { name: "Negative prompt" }), "no people");
      await until(shot, (each) => each.negative === "no people", "a negative prompt");
      const seed = side.getByRole("textbox", { name: "Seed" });
      await write(seed, "often");
      await side.getByRole("alert").filter({ hasText: "A whole number" }).waitFor();
      await write(seed, "42");
      await until(shot, (each) => each.seed === "42", "a seed");
      await side.getByRole("button", { name: "Lock the seed" }).click();
      await until(shot, (each) => each.seed === "42 locked", "it is locked");
      if (!fake) {
        const made = async () => {
          const { job } = await api("takes.make", { project, shot: id });
          const all = await until(() => api("queue.list"), (list) => ["done", "failed"].includes(list.find((each) => each.id === job)?.state), "made");
          return all.find((each) => each.id === job).result;
        };
        const [one, two] = [await made(), await made()];
        assert.deepEqual([one.seed, two.seed, one.take], [42, 42, two.take]);
        await until(takes, (list) => list.some((take) => take.take === one.take), "it is a take");
        assert.equal((await shot()).seed, "42 locked");
      }
      await side.getByRole("button", { name: "Unlock the seed" }).click();
      await until(shot, (each) => each.seed === "42", "it is unlocked");
      const { length } = await api("makers.list");
      const model = side.getByRole("combobox", { name: "Model" });
      assert.equal(await model.locator("option").count(), length);
      await page.keyboard.press("Control+z");
      await until(shot, (each) => each.seed === "42 locked", "undo locks it again");
    },
  },
  {
    name: "takes: a draft is called a draft until the shot is made",
    real: true,
    async run({ page, api, ...rest }) {
      const { project, id, side } = await chosenShot({ page, api, ...rest });
      const status = async () => (await api("project.state", { project })).shots[id];
      await side.getByRole("button", { name: "Make this shot" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("switch", { name: "Draft" }).click();
      await dialog.getByText("To make").waitFor();
      await dialog.getByRole("button", { name: "Start" }).click();
      const draft = await until(status, (each) => each.made !== undefined, "a draft is there", 120_000);
      assert.deepEqual([draft.draft, draft.state], [true, "missing"]);
      await side.getByText("Draft", { exact: true }).waitFor();
      await side.getByText("Play the draft").waitFor();
    },
  },
  {
    name: "takes: a sound dropped on a shot becomes music or a recorded voice",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const script = async () => (await api("project.state", { project })).script;
      const spoken = shotsOf({ script: await script() }).find((shot) => shot.lines?.length > 0);
      await toPage(page, "Board");
      await card(page, spoken.id).click();
      const dropped = async (name, use) => {
        const data = await page.evaluateHandle(
          ({ bytes, name }) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0))], name, { type: "audio/wav" }));
            return transfer;
          },
          { bytes: tone().toString("base64"), name },
        );
        await card(page, spoken.id).dispatchEvent("drop", { dataTransfer: data });
        await page.getByRole("dialog", { name: "What is this sound?" }).getByRole("button", { name: use }).click();
      };
      const cues = (await script()).music?.length ?? 0;
      await dropped("tune.wav", /^Music/);
      const { music } = await until(script, (now) => now.music?.length === cues + 1, "there is music");
      assert.equal(music.at(-1).from, spoken.id);
      await dropped("spoken.wav", /^Recorded voice/);
      await until(script, (now) => shotsOf({ script: now }).find((shot) => shot.id === spoken.id).lines[0].voice?.startsWith("spoken"), "the first line has the voice");
    },
  },
  {
    name: "takes: reference pictures of a person, chosen, dropped and taken off",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const script = async () => (await api("project.state", { project })).script;
      await page.getByRole("tab", { name: "Cast" }).click();
      if (((await script()).cast ?? []).length === 0) await page.getByRole("button", { name: "Add a person" }).click();
      const [{ name }] = (await until(script, (now) => now.cast?.length > 0, "there is somebody")).cast;
      const group = page.getByRole("group", { name: `Reference pictures of ${name}` });
      await group.waitFor();
      const files = async () => (await script()).cast[0].references ?? [];
      await group.locator('input[type="file"]').setInputFiles(PICTURE);
      const [first] = await until(files, (list) => list.length === 1, "a chosen picture");
      const data = await page.evaluateHandle(
        ({ mimeType, bytes }) => {
          const transfer = new DataTransfer();
          const content = [...Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0)), 0];
          transfer.items.add(new File([new Uint8Array(content)], "side.png", { type: mimeType }));
          transfer.items.add(new File(["no"], "notes.txt", { type: "text/plain" }));
          return transfer;
        },
        { mimeType: PICTURE.mimeType, bytes: PICTURE.buffer.toString("base64") },
      );
      await group.dispatchEvent("dragover", { dataTransfer: data });
      await group.dispatchEvent("drop", { dataTransfer: data });
      await until(files, (list) => list.length === 2, "a dropped picture");
      await page.getByText(/^notes.txt is no picture/).first().waitFor();
      await axe(page, "story with reference pictures");
      await group.getByRole("button", { name: `Take ${first} off` }).click();
      await until(files, (list) => list.length === 1 && list[0] !== first, "one is taken off");
      await page.keyboard.press("Control+z");
      await until(files, (list) => list.length === 2, "undo brings it back");
    },
  },
];
