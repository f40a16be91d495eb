import { spawn } from "node:child_process";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { assert, openSample, shotsOf, toPage, until } from "./kit.mjs";

const status = async (api) => (await api("cluster.state")).status;
const hereOf = (name) => (now) => now?.workers.some((worker) => worker.worker === name && worker.here);

async function axe(page, where) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  assert.deepEqual(violations.map((each) => `${where}: ${each.id}: ${each.nodes[0]?.html.slice(0, 120)}`), []);
}

/** A worker as a person starts it: the line that the page gave, in a folder of its own. */
function startWorker(studio, command, name) {
  const [, verb, flag, line] = command.split(" ");
  assert.deepEqual([verb, flag], ["worker", "--join"]);
  return spawn(process.env.LONGTAKE_BIN, ["--json", verb, flag, line, "--name", name, "--data", join(studio.home, name)], { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, LONGTAKE_DATA: join(studio.home, `${name}-data`) } });
}

export const cluster = [
  {
    name: "cluster: what is shown of machines, and what can be asked of them",
    async run({ page, api, fake }) {
      await toPage(page, "Cluster");
      await page.getByRole("heading", { name: "No cluster yet" }).waitFor();
      await axe(page, "none");
      // What is no line is refused, and said so beside it.
      await page.getByLabel("Its line for films").fill("nonsense");
      await page.getByRole("button", { name: "Use it" }).click();
      await page.getByRole("main").getByRole("alert").waitFor();
      assert.equal((await api("cluster.state")).place, undefined);
      if (!fake) return;
      await page.getByRole("button", { name: "Start a cluster" }).click();
      const row = (name) => page.getByRole("listitem", { name, exact: true });
      await row("spark-1").waitFor();
      await axe(page, "machines");
      await row("spark-3").getByText(/^Away since .*\(5 min\)$/).waitFor();
      await row("spark-1").getByRole("button", { name: "Give spark-1 nothing more" }).click();
      await until(() => status(api), (now) => now.workers[0].draining, "it drains");
      await row("spark-1").getByRole("button", { name: "Give spark-1 work again" }).click();
      await until(() => status(api), (now) => !now.workers[0].draining, "it works again");
      await row("spark-3").getByRole("button", { name: "Forget spark-3" }).click();
      await until(() => status(api), (now) => now.workers.length === 3, "it is forgotten");
      await page.getByRole("switch", { name: "Make films on the cluster" }).click();
      await until(() => api("cluster.state"), (now) => !now.makes_films, "films are made here");
      await page.getByRole("button", { name: "Look for problems" }).click();
      const first = page.getByRole("region", { name: "Findings" }).getByRole("listitem").first();
      await first.getByText(/it went away/).waitFor();
      await axe(page, "findings");
    },
  },
  {
    name: "cluster: started, joined by a worker with the page's line, a film made there, drained, gone",
    real: true,
    async run({ page, api, studio, context, ...rest }) {
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      const project = await openSample({ page, api, studio, context, ...rest });
      const [one] = shotsOf(await api("project.state", { project }));
      await toPage(page, "Cluster");
      await page.getByRole("button", { name: "Start a cluster" }).click();
      await page.getByText("No machine has joined").waitFor({ timeout: 60_000 });
      // Only this machine is let in unless others were asked for.
      assert.match((await status(api)).address, /^127\.0\.0\.1:/);
      // The line is on the page only when it is asked for.
      const secret = (await api("cluster.line")).command;
      assert.ok(!(await page.content()).includes(secret.split(" ").at(-1)));
      await page.getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByText("The line is on the clipboard.").waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
      await page.getByRole("button", { name: "Show", exact: true }).click();
      assert.equal(await page.getByRole("textbox", { name: "Line for another machine" }).inputValue(), secret);
      await page.getByRole("main").getByRole("button", { name: "Hide", exact: true }).click();
      const worker = startWorker(studio, secret, "second");
      const ended = new Promise((done) => worker.on("exit", (code) => done(code)));
      try {
        await until(() => status(api), hereOf("second"), "the worker joined", 60_000);
        const row = page.getByRole("listitem", { name: "second", exact: true });
        await row.getByText("Free").waitFor();
        await page.getByRole("button", { name: "Look for problems" }).click();
        await page.getByRole("region", { name: "Findings" }).getByText(/its files answer in/).waitFor({ timeout: 30_000 });
        await axe(page, "joined");

        // A shot's picture is made there, not here.
        await page.getByRole("switch", { name: "Make films on the cluster" }).click();
        await until(() => api("cluster.state"), (now) => now.makes_films, "films go there");
        await api("render.start", { project, what: { shots: [one.id] }, draft: true });
        const [job] = await until(() => api("queue.list"), (jobs) => ["done", "failed"].includes(jobs[0]?.state), "it was made", 180_000);
        assert.equal(job.state, "done", job.error);
        const now = await until(() => status(api), (each) => each.workers[0].done > 0, "the worker made some of it");
        assert.ok(now.workers[0].done > 0);

        await page.getByRole("button", { name: "Pause", exact: true }).click();
        await until(() => status(api), (each) => each.paused, "paused");
        await page.getByRole("button", { name: "Resume", exact: true }).click();
        await until(() => status(api), (each) => !each.paused, "resumed");
        await row.getByRole("button", { name: "Give second nothing more" }).click();
        await until(() => status(api), (each) => each.workers[0].draining, "it drains");
        await row.getByRole("button", { name: "Give second work again" }).click();
        await until(() => status(api), (each) => !each.workers[0].draining, "it works again");
        await row.getByRole("button", { name: "Let second finish and leave" }).click();
        assert.equal(await ended, 0);
      } finally {
        worker.kill("SIGKILL");
      }
      await page.getByRole("button", { name: "End it" }).click();
      await page.getByText("Not reachable").waitFor({ timeout: 30_000 });
      assert.equal((await api("cluster.state")).runs_here, false);
      await page.getByRole("button", { name: "Leave it" }).click();
      await page.getByRole("heading", { name: "No cluster yet" }).waitFor();
      assert.equal((await api("cluster.state")).place, undefined);
    },
  },
];
