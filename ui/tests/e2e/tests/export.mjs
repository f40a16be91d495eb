import { execFileSync } from "node:child_process";
import { assert, openSample, shotsOf, toPage, until } from "./kit.mjs";

export const exporting = [
  {
    name: "export: a part of the film is written and plays",
    real: true,
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      const shots = shotsOf(await api("project.state", { project }));
      await toPage(page, "Export");
      await page.getByRole("radio", { name: /^Web/ }).click();
      await page.getByRole("switch", { name: "Only a part" }).click();
      await page.getByRole("combobox", { name: "Last shot" }).selectOption(shots[1].id);
      await page.getByRole("switch", { name: "Double small pictures" }).click();
      await page.getByRole("combobox", { name: "Loudness" }).selectOption({ label: "Television, Europe, −23 LUFS" });
      await page.getByRole("textbox", { name: "File name" }).fill("two shots");
      await page.getByText("File size").waitFor();
      await page.getByRole("button", { name: "Export film" }).click();
      const films = await until(() => api("export.list", { project }), (list) => list.length === 1, "a film was written", 480_000);
      assert.ok(films[0].name.startsWith("two shots"));
      const probe = JSON.parse(execFileSync("ffprobe", ["-v", "error", "-show_streams", "-show_format", "-of", "json", films[0].path]).toString());
      assert.ok(Math.abs(films[0].lufs + 23) < 1, `${films[0].lufs} LUFS`);
      await page.getByText(/−23\.\d LUFS|-23\.\d LUFS|-22\.\d LUFS/).first().waitFor();
      for (const type of ["audio", "video"]) assert.equal(probe.streams.filter((stream) => stream.codec_type === type).length, 1, type);
      assert.ok(Number(probe.format.duration) > 5);
      const video = page.locator("video").first();
      await video.waitFor();
      await video.evaluate((element) => {
        element.muted = true;
        return element.play();
      });
      await until(() => video.evaluate((element) => element.currentTime), (at) => at > 0.3, "the film plays");
      await video.evaluate((element) => {
        element.currentTime = element.duration * 0.9;
      });
      await until(() => video.evaluate((element) => !element.seeking && element.currentTime / element.duration > 0.85), Boolean, "and seeks");
    },
  },
  {
    name: "export: what it takes is shown for each preset",
    async run({ page, api, ...rest }) {
      const project = await openSample({ page, api, ...rest });
      await toPage(page, "Export");
      const presets = await api("export.presets");
      for (const preset of presets) {
        await page.locator(`[role="radio"][value="${preset.id}"]`).click();
        await page.getByText("File size").waitFor();
        const ask = () => api("export.predict", { project, preset: preset.id, upscale: false }).catch(() => undefined);
        const predicted = await until(ask, (answer) => answer !== undefined, "it is predicted");
        await page.getByText(`Goes to ${predicted.out}`).waitFor();
      }
      await page.getByRole("switch", { name: "The film is to earn money" }).click();
      await page.getByRole("switch", { name: "Burn in subtitles" }).click();
      await page.getByText("File size").waitFor();
    },
  },
];
