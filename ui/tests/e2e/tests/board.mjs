import { PICTURE, assert, drag, openSample, shotsOf, toPage, until, write } from "./kit.mjs";

const card = (page, id) => page.locator(`[data-card="${id}"]`);

export const board = [
  {
    name: "board: cards by key, and everything about a shot",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const now = () => api("project.state", { project });
      const [one, two] = shotsOf(await now());
      const shot = async (id) => shotsOf(await now()).find((each) => each.id === id);
      await toPage(page, "Board");
      await card(page, one.id).focus();
      await page.keyboard.press("ArrowRight");
      await page.getByRole("complementary").getByRole("heading", { name: two.id }).waitFor();
      await page.keyboard.press("ArrowLeft");
      await page.getByRole("complementary").getByRole("heading", { name: one.id }).waitFor();
      const side = page.getByRole("complementary");
      await write(side.getByRole("combobox", { name: "Framing" }), "extreme close");
      await until(() => shot(one.id), (each) => each.framing === "extreme close", "the framing is set");
      await side.getByRole("combobox", { name: "Camera" }).selectOption("pan");
      await until(() => shot(one.id), (each) => each.move.startsWith("pan"), "the camera pans");
      await side.getByRole("textbox", { name: "From (%)" }).fill("20");
      await page.keyboard.press("Enter");
      await until(() => shot(one.id), (each) => each.move.includes("20% ->"), "from there");
      await side.getByRole("combobox", { name: "Fit" }).selectOption("contain");
      await until(() => shot(one.id), (each) => each.fit === "contain", "shown whole");
      await write(side.getByRole("textbox", { name: /^For whoever/ }), "hold longer");
      await until(() => shot(one.id), (each) => each.note === "hold longer", "a note");
      await side.getByRole("button", { name: "Add title" }).click();
      await until(() => shot(one.id), (each) => (each.titles?.length ?? 0) === (one.titles?.length ?? 0) + 1, "a title");
      await side.getByRole("button", { name: "Add sound" }).click();
      await until(() => shot(one.id), (each) => (each.sounds?.length ?? 0) === (one.sounds?.length ?? 0) + 1, "a sound");
      await side.getByRole("button", { name: "Add line" }).click();
      await until(() => shot(one.id), (each) => (each.lines?.length ?? 0) === (one.lines?.length ?? 0) + 1, "a line");
      await card(page, two.id).click();
      await side.getByRole("heading", { name: two.id }).waitFor();
      await side.getByRole("combobox", { name: "Into this shot" }).selectOption("through-black");
      await until(() => shot(two.id), (each) => each.transition === "through-black 1 s", "it comes through black");
      await side.getByRole("combobox", { name: "Continuity" }).selectOption("continue");
      await until(() => shot(two.id), (each) => each.continuity === `continue ${one.id}`, "it carries on");
      await side.getByRole("combobox", { name: "File", exact: true }).first().selectOption({ label: "One colour" });
      await until(() => shot(two.id), (each) => each.colour === "#000000" && each.picture === undefined, "it shows one colour");
    },
  },
  {
    name: "board: shots are dragged and stepped",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const ids = async () => shotsOf(await api("project.state", { project })).map((shot) => shot.id);
      const [one, two] = await ids();
      await toPage(page, "Board");
      await card(page, two).waitFor();
      await drag(page, card(page, one), card(page, two), 0.85);
      await until(ids, (list) => list[0] === two && list[1] === one, "dragged");
      await card(page, one).focus();
      await page.keyboard.press("Alt+ArrowLeft");
      await until(ids, (list) => list[0] === one, "stepped back");
    },
  },
  {
    name: "board: an own picture on a shot, chosen and dropped",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const [one, two] = shotsOf(await api("project.state", { project }));
      const shot = async (id) => shotsOf(await api("project.state", { project })).find((each) => each.id === id);
      await toPage(page, "Board");
      await card(page, one.id).click();
      await page.locator('input[type="file"]').setInputFiles(PICTURE);
      await until(() => shot(one.id), (each) => each.picture?.includes("場景"), "the chosen picture is on the shot");
      const data = await page.evaluateHandle(
        ({ name, mimeType, bytes }) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0))], name, { type: mimeType }));
          return transfer;
        },
        { name: "dropped.png", mimeType: PICTURE.mimeType, bytes: PICTURE.buffer.toString("base64") },
      );
      await card(page, two.id).dispatchEvent("dragover", { dataTransfer: data });
      await card(page, two.id).dispatchEvent("drop", { dataTransfer: data });
      await until(() => shot(two.id), (each) => each.picture?.includes("dropped"), "the dropped picture is on the shot");
      const three = await page.evaluateHandle(
        ({ mimeType, bytes }) => {
          const transfer = new DataTransfer();
          const content = Uint8Array.from(atob(bytes), (each) => each.charCodeAt(0));
          for (const name of ["one.png", "two.png"]) transfer.items.add(new File([content], name, { type: mimeType }));
          transfer.items.add(new File([content], "notes.zip", { type: "application/zip" }));
          return transfer;
        },
        { mimeType: PICTURE.mimeType, bytes: PICTURE.buffer.toString("base64") },
      );
      await card(page, one.id).dispatchEvent("drop", { dataTransfer: three });
      await until(() => shot(one.id), (each) => each.picture?.startsWith("one"), "the first of several is on the shot");
      await until(() => shot(two.id), (each) => each.picture?.startsWith("two"), "the second on the next");
      await page.getByText(/^notes.zip is no picture/).first().waitFor();
      // A file beside all cards leaves the page where it is.
      const before = page.url();
      await page.locator("header").first().dispatchEvent("drop", { dataTransfer: data });
      assert.equal(page.url(), before);
    },
  },
  {
    name: "board: a voice is recorded for a line",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const spoken = async () => shotsOf(await api("project.state", { project })).find((shot) => shot.lines?.length > 0);
      const { id } = await spoken();
      await toPage(page, "Board");
      await card(page, id).click();
      await page.getByRole("complementary").getByRole("button", { name: "Record" }).first().click();
      await page.waitForTimeout(1200);
      await page.getByRole("button", { name: /^Stop 0:0/ }).click();
      await until(spoken, (shot) => shot.lines[0].voice?.startsWith(id), "the line has the recorded voice");
    },
  },
  {
    name: "board: one shot is made, after what will run was shown",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      // One colour, so that no picture has to be enlarged first.
      const [, one] = shotsOf(await api("project.state", { project }));
      const set = (field, value) => ({ edit: "set", kind: "shot", id: one.id, field, value });
      await api("project.edit", { project, edit: { edit: "several", label: "colour", edits: [set("/picture", null), set("/colour", "#203040")] } });
      await toPage(page, "Board");
      await card(page, one.id).click();
      await page.getByRole("complementary").getByRole("button", { name: "Make this shot" }).click();
      await page.getByText("To make").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
      const state = await until(() => api("project.state", { project }), (each) => each.shots[one.id].state === "made", "the shot is made", 240_000);
      const media = await page.request.get(`${new URL("/", page.url()).href}media/${state.shots[one.id].made}`, { headers: { range: "bytes=0-99" } });
      assert.equal(media.status(), 206);
      await page.getByText("Play the made shot").first().waitFor();
    },
  },
];
