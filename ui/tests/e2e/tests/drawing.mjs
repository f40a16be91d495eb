import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { PICTURE, assert, openSample, shotsOf, toPage, until, write } from "./kit.mjs";

const card = (page, id) => page.locator(`[data-card="${id}"]`);
const DRAWING_MILLIS = 240_000;
const axe = async (page, where) => {
  const { violations } = await new AxeBuilder({ page }).analyze();
  assert.deepEqual(violations.map((each) => `${where}: ${each.id}: ${each.nodes[0]?.html.slice(0, 120)}`), []);
};

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

/** The same page in both colours, as a picture, where pictures are kept. */
async function looked(page, name) {
  const out = process.env.LONGTAKE_E2E_OUT;
  if (!out) return;
  for (const theme of ["dark", "light"]) {
    await page.evaluate((wanted) => document.documentElement.setAttribute("data-theme", wanted), theme);
    await page.waitForTimeout(250);
    await page.screenshot({ path: join(out, `${name}-${theme}.png`) });
  }
  await page.evaluate(() => document.documentElement.setAttribute("data-theme", "dark"));
}

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

export const drawing = [
  {
    name: "drawing: a picture and scouts become takes, one is chosen, undo takes it back",
    async run({ page, api, fake, ...rest }) {
      const { side, takes, shot, id } = await chosenShot({ page, api, fake, ...rest });
      const before = await takes();
      const first = (await shot()).picture;
      await side.getByRole("button", { name: "Draw", exact: true }).click();
      const one = await until(takes, (list) => list.length === before.length + 1, "one is drawn", DRAWING_MILLIS);
      const drawn = one.at(-1);
      assert.deepEqual([drawn.by, drawn.model, typeof drawn.seed], ["model", "sketch", "number"]);
      assert.ok(drawn.prompt.length > 0);
      assert.equal((await shot()).picture, first, "a new take replaces nothing");
      await side.getByRole("button", { name: "Draw", exact: true }).and(page.locator(":enabled")).waitFor({ timeout: DRAWING_MILLIS });
      await side.getByRole("button", { name: "Scouts" }).click();
      await page.getByRole("menuitem", { name: "Draw 2 to choose from" }).click();
      const three = await until(takes, (list) => list.length === before.length + 3, "two more", DRAWING_MILLIS);
      assert.equal(new Set(three.map((take) => take.take)).size, three.length, "all differ");
      assert.equal(new Set(three.slice(-3).map((take) => take.seed)).size, 3);
      await side.getByText("Drawn", { exact: true }).first().waitFor();
      await side.getByRole("button", { name: new RegExp(`^Use take ${three.length}:`) }).click();
      await until(takes, (list) => list.at(-1).chosen, "the last is used");
      assert.notEqual((await shot()).picture, first);
      await axe(page, "board with drawn takes");
      await looked(page, "board-drawn");
      if (fake) return;
      const jobs = (await api("queue.list")).filter((job) => job.kind === "takes.draw");
      assert.deepEqual(jobs.map((job) => [job.state, job.result.takes.every((take) => take.shot === id)]), [["done", true], ["done", true]]);
      await page.keyboard.press("Control+z");
      await until(shot, (each) => each.picture === first, "undo takes the choice back");
      assert.equal((await takes()).length, three.length, "and no take");
    },
  },
  {
    name: "drawing: missing pictures are told of, drawn, and shown on their cards",
    async run({ page, api, fake, ...rest }) {
      const { project, id, shot, side } = await chosenShot({ page, api, fake, ...rest });
      await api("project.edit", { project, edit: { edit: "set", kind: "shot", id, field: "/picture", value: null } });
      const draw = page.getByRole("main").getByRole("button", { name: /^Draw \d+ missing$/ });
      await draw.waitFor();
      if (!fake) {
        await side.getByRole("button", { name: "Make this shot" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByText("Pictures to draw first: 1").waitFor();
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        assert.equal((await api("project.state", { project })).shots[id].to_draw, true);
      }
      await draw.click();
      await until(shot, (each) => each.picture !== undefined, "the shot has a picture", DRAWING_MILLIS);
      await draw.waitFor({ state: "detached" });
      await card(page, id).locator("img").waitFor();
    },
  },
  {
    name: "drawing: a locked seed allows no scouts; framings are kept in English",
    async run({ page, api, ...rest }) {
      const { side, shot } = await chosenShot({ page, api, ...rest });
      await write(side.getByRole("textbox", { name: "Seed" }), "42");
      await until(shot, (each) => each.seed === "42", "a seed");
      await side.getByRole("button", { name: "Lock the seed" }).click();
      await until(shot, (each) => each.seed === "42 locked", "it is locked");
      assert.equal(await side.getByRole("button", { name: "Scouts" }).isDisabled(), true);
      await page.evaluate(() => {
        const kept = JSON.parse(localStorage.getItem("longtake.prefs") ?? "{}");
        localStorage.setItem("longtake.prefs", JSON.stringify({ ...kept, language: "de" }));
      });
      await api("settings.set", { field: "language", value: "de" });
      await page.reload();
      const framing = page.getByRole("complementary").getByRole("combobox", { name: "Bildausschnitt" });
      await write(framing, "Totale");
      await until(shot, (each) => each.framing === "wide", "the script has the English word");
      assert.equal(await framing.inputValue(), "Totale");
    },
  },
  {
    name: "media: a missing file is found again by its content, and no other",
    real: true,
    async run({ page, api, studio, ...rest }) {
      const project = await openSample({ page, api, studio, ...rest });
      const [one] = shotsOf(await api("project.state", { project }));
      await toPage(page, "Board");
      await card(page, one.id).click();
      await page.locator('input[type="file"][accept^="image"]').last().setInputFiles(PICTURE);
      const shot = async () => shotsOf(await api("project.state", { project })).find((each) => each.id === one.id);
      const { picture } = await until(shot, (each) => each.picture?.includes("場景"), "the picture is on the shot");
      const { hash } = (await api("project.state", { project })).pictures[picture];
      // Gone from the project and from the cache, as when a disk was tidied up.
      const gone = filesUnder(studio.home).filter((path) => path.replaceAll("/", "").includes(hash));
      assert.ok(gone.length > 0, "its bytes lie somewhere");
      for (const path of gone) rmSync(path);
      await page.reload();
      const file = async () => (await api("project.state", { project })).pictures[picture];
      await until(file, (each) => each.missing, "it is missing");
      await page.getByRole("button", { name: "1 file missing" }).click();
      const dialog = page.getByRole("dialog");
      const input = dialog.locator(`input[data-missing="${picture}"]`);
      await input.setInputFiles({ ...PICTURE, name: "other.png", buffer: Buffer.concat([PICTURE.buffer, Buffer.from([0])]) });
      await page.getByText(/is another file than the one that is missing/).first().waitFor();
      assert.equal((await file()).missing, true);
      const folder = join(studio.home, "films");
      writeFileSync(join(folder, "found under another name.png"), PICTURE.buffer);
      await write(dialog.getByRole("textbox"), folder);
      await dialog.getByRole("button", { name: /^Look for/ }).click();
      await until(file, (each) => !each.missing && each.hash === hash, "it is there again");
    },
  },
  {
    name: "media: an own video plays on the board",
    real: true,
    async run({ page, api, studio, ...rest }) {
      const { project, id, shot } = await chosenShot({ page, api, studio, ...rest });
      await api("render.start", { project, what: { shots: [id] }, draft: true });
      const made = await until(async () => (await api("project.state", { project })).shots[id].made, Boolean, "a draft is there", 120_000);
      const path = filesUnder(studio.home).find((each) => each.replaceAll("/", "").includes(made));
      await page.locator('input[type="file"][accept^="image"]').last().setInputFiles({ name: "own.mp4", mimeType: "video/mp4", buffer: readFileSync(path) });
      await until(shot, (each) => each.video?.file === "own.mp4", "the video is on the shot");
      const video = page.getByRole("complementary").locator("figure video");
      await video.waitFor({ timeout: 120_000 });
      await video.evaluate((element) => {
        element.muted = true;
        return element.play();
      });
      await until(() => video.evaluate((element) => element.currentTime), (at) => at > 0.2, "it plays", 30_000);
      const { hash } = (await api("project.state", { project })).pictures["own.mp4"];
      assert.equal((await api("media.play", { project, hash, name: "own.mp4" }).catch(() => api("media.play", { hash, name: "own.mp4" }))).state, "ready");
    },
  },
];
