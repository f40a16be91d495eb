// A server with a film in memory, for work on the page alone: no engine, nothing kept, no part of
// the product. Run: node tests/fake/server.mjs [SCENES] [PORT] after `npm run build`.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";

const ui = join(dirname(fileURLToPath(import.meta.url)), "../..");
const stills = join(ui, "../assets/samples/stills");
const source = readFileSync(join(ui, "src/api/apply.ts"), "utf8");
const { code } = await transformWithOxc(source, "apply.ts");
const { applyEdit } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2" };
export const CSP =
  "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const VERBS = ["waits", "turns away from the window", "reads the letter twice", "hears the ferry", "counts the steps", "opens the door a little"];
const WHO = ["MARA", "ELIAS", "THE KEEPER"];

function filmOf(scenes, names) {
  let number = 0;
  const list = Array.from({ length: scenes }, (_, at) => ({
    id: `scene-${at + 1}`,
    heading: ["The harbour before light", "Inside the lamp room", "A road inland", "The storm window"][at % 4],
    place: ["harbour", "tower"][at % 2],
    time: ["dawn", "night", "noon"][at % 3],
    shots: Array.from({ length: 5 }, (_, each) => {
      number += 1;
      const shot = {
        id: `shot-${number}`,
        length: `${3 + (number % 4)} s`,
        framing: ["wide", "close", "over the shoulder"][number % 3],
        action: `${WHO[number % 3][0]}${WHO[number % 3].slice(1).toLowerCase()} ${VERBS[number % VERBS.length]}. The light on the water moves slowly across the wall, and nobody says what they came to say.`,
        fit: "cover",
        move: ["push 1 -> 1.15 at 50% 50%", "still", "pan 40% -> 60% at 50% zoom 1.3"][number % 3],
        transition: number % 5 === 1 ? "cross-fade 1 s" : "cut",
        continuity: "cut",
      };
      if (number % 7 !== 0) shot.picture = names[number % names.length];
      if (number % 2 === 0) shot.lines = [{ speaker: WHO[number % 3], text: "You left the door open so the house would not feel shut." }];
      if (number % 4 === 0) shot.lines.push({ text: "Nobody asked the cat. She walked aboard.", by: { text: "model" } });
      return shot;
    }),
  }));
  return {
    longtake: 1,
    title: "The Door Left Open",
    logline: "A family leaves its house standing open and carries the rest of its life in the hem of a coat.",
    language: "en",
    style: "sepia and silver prints, slow moves, one voice remembering",
    size: "1280x720",
    fps: "24",
    length: "3 min",
    cast: WHO.map((name) => ({ name, look: "late forties, grey coat, tired and kind", voice: "af_heart" })),
    places: [
      { id: "harbour", name: "Rivers and harbours", look: "flat water, moored boats" },
      { id: "tower", name: "The lamp room", look: "brass, glass, salt" },
    ],
    scenes: list,
  };
}

const secsOf = (length) => Number.parseFloat(length) * (length.endsWith("frames") ? 1 / 24 : 1);

export async function startFake({ scenes = 6, port = 0, empty = false } = {}) {
  const names = readdirSync(stills).filter((name) => name.endsWith(".jpg"));
  const bytesBy = new Map(names.map((name) => [createHash("sha256").update(name).digest("hex"), readFileSync(join(stills, name))]));
  const hashOf = Object.fromEntries(names.map((name) => [name, createHash("sha256").update(name).digest("hex")]));
  const project = "/films/the-door.longtake";
  let script = filmOf(scenes, names);
  let revision = 1;
  const undo = [];
  const redo = [];
  let snapshots = [];
  let proposal = null;
  let settings = { language: "en", theme: "dark", text_scale: 1, projects_folder: "/srv/maker/Films", cache_cap_bytes: 50e9, resume_jobs: true, notify: false, draft_first: false };
  const now = Date.now();
  let jobs = empty ? [] : [
    { id: 4, kind: "render.start", title: "Render The Door Left Open", title_coded: { code: "render_all", values: { film: "The Door Left Open" } }, project, state: "running", step: "making the pictures", step_coded: { code: "making_pictures", values: {} }, device: "studio-01 · cpu", preview: { number: 1, of: "segment:boats" }, done: 41, of: 120, secs_left: 95, created_unix_millis: now - 60_000, started_unix_millis: now - 58_000 },
    { id: 5, kind: "export.start", title: "Export “The Door Left Open” (web)", project, state: "waiting", done: 0, of: 0, created_unix_millis: now - 50_000 },
    { id: 6, kind: "models.pull", title: "Fetch SmolLM2 135M", state: "waiting", done: 0, of: 0, created_unix_millis: now - 40_000 },
    { id: 3, kind: "export.start", title: "Export “The Door Left Open” (cinema)", project, state: "done", done: 10, of: 10, created_unix_millis: now - 9e6, started_unix_millis: now - 9e6, ended_unix_millis: now - 8.9e6, result: { type: "export", out: "/films/a.mp4", hash: "aa", bytes: 1, warnings: [] } },
    { id: 2, kind: "story.write", title: "Write from a premise", project, state: "failed", done: 1, of: 4, created_unix_millis: now - 9.5e6, ended_unix_millis: now - 9.4e6, error: "cannot reach the language model: connection refused, http://127.0.0.1:11434/v1" },
    { id: 1, kind: "render.start", title: "Make 12 shots", project, state: "interrupted", done: 3, of: 12, created_unix_millis: now - 9.9e6, ended_unix_millis: now - 9.8e6 },
  ];
  const sockets = new Set();
  let seq = 1;
  const frame = (text) => {
    const body = Buffer.from(text);
    const head = body.length < 126 ? Buffer.from([0x81, body.length]) : Buffer.from([0x81, 126, body.length >> 8, body.length & 255]);
    return Buffer.concat([head, body]);
  };
  const tell = (event) => {
    seq += 1;
    for (const socket of sockets) socket.write(frame(JSON.stringify({ seq, event })));
  };
  const changed = () => {
    revision += 1;
    tell({ type: "project_changed", project, revision });
  };
  const state = () => {
    let start = 0;
    const shots = {};
    let index = 0;
    for (const shot of script.scenes.flatMap((scene) => scene.shots)) {
      const length_secs = secsOf(shot.length);
      index += 1;
      shots[shot.id] = { state: ["made", "made", "missing", "made", "failed", "running"][index % 6], start_secs: start, length_secs, to_draw: !shot.picture && !shot.video && !shot.colour, ...(shot.picture ? { picture: hashOf[shot.picture] } : {}) };
      if (shots[shot.id].state === "failed") shots[shot.id].why = "the picture is missing";
      start += length_secs;
    }
    const lint = [
      { level: "warning", rule: "film-length", what: "the film is 4800 frames (200.00 s), 4320 (180.00 s) were asked for", advice: "shorten shots by 480 frames together", what_coded: { code: "film_length", values: { got: 4800, got_secs: 200, asked: 4320, asked_secs: 180 } }, advice_coded: { code: "shorten_shots", values: { frames: 480 } }, kind: "film" },
      { level: "warning", rule: "speech-rate", what: "13 words in 3.00 s are too many to be said", advice: "lengthen the shot to 4.4 s or cut to 9 words", what_coded: { code: "too_many_words", values: { words: 13, secs: 3 } }, advice_coded: { code: "lengthen_or_cut", values: { secs: 4.4, words: 9 } }, kind: "shot", id: script.scenes[0].shots[1]?.id ?? "", field: "/length", fix: { label: "Lengthen to 4.5 s", label_coded: { code: "lengthen_to", values: { length: "4.5 s" } }, edit: { edit: "set", kind: "shot", id: script.scenes[0].shots[1]?.id ?? "", field: "/length", value: "4.5 s" } } },
      { level: "fault", rule: "missing-picture", what: "the shot shows nothing", advice: "name a picture, video or colour", kind: "shot", id: "shot-7", field: "/picture" },
    ];
    return {
      project, name: "the-door", revision, script, lint, snapshots, shots,
      ...(undo.length ? { undo: { label: undo.at(-1).label, at_unix_millis: now } } : {}),
      ...(redo.length ? { redo: { label: redo.at(-1).label, at_unix_millis: now } } : {}),
      pictures: Object.fromEntries([...names.map((name) => [name, { kind: "picture", hash: hashOf[name], media_type: "image/jpeg", bytes: 1, missing: false, used: true, shipped: false }]), ["lost.png", { kind: "picture", hash: "dd", media_type: "image/png", bytes: 0, missing: true, used: true, shipped: false }], ["ambience-sea", { kind: "sound", hash: "bb", media_type: "audio/ogg", bytes: 1, missing: false, used: false, shipped: true }]]),
      film: { width_px: 1280, height_px: 720, fps: "24", secs: start },
      proposal: proposal !== null,
    };
  };
  const edited = (label, next) => {
    undo.push({ label, script });
    redo.length = 0;
    script = next;
    changed();
    return { revision, label };
  };
  let jobNumber = 10;
  const job = (kind, title, result, after) => {
    jobNumber += 1;
    const made = { id: jobNumber, kind, title, project, state: "running", step: "scene 1 of 3", done: 1, of: 3, secs_left: 2, created_unix_millis: Date.now(), started_unix_millis: Date.now() };
    jobs = [made, ...jobs];
    tell({ type: "job", job: made });
    setTimeout(() => {
      const ended = { ...made, state: "done", done: 3, ended_unix_millis: Date.now(), result };
      jobs = jobs.map((each) => (each.id === made.id ? ended : each));
      after?.();
      tell({ type: "job", job: ended });
    }, 400);
    return { job: made.id };
  };
  // Takes by shot: what it shows, two stills, and what people think of them.
  const takesBy = new Map();
  const shotNow = (id) => script.scenes.flatMap((scene) => scene.shots).find((shot) => shot.id === id);
  const takesOf = (id) => {
    const { picture } = shotNow(id);
    if (!takesBy.has(id)) takesBy.set(id, picture ? [{ name: picture, by: "library", rating: 0 }, ...[1, 2].map((by, at) => ({ name: names[(names.indexOf(picture) + by * 3) % names.length], by: "stills", seed: 4_021_733 + at * 977, prompt: shotNow(id).action, rating: at * 4 }))] : []);
    return takesBy.get(id).map((take) => ({ take: hashOf[take.name], at_unix_millis: now, kind: "picture", media_type: "image/jpeg", ...take, chosen: take.name === picture }));
  };
  const oneTake = ({ shot, take }) => takesBy.get(shot).find((each) => hashOf[each.name] === take);
  const model = (id, name, kind, bytes, here, allows, isDefault) => ({ id, name, kind, bytes, bytes_here: here, memory_bytes: bytes * 1.2, licence: allows ? "Apache-2.0" : "LicenseRef-research", licence_link: "https://example.org", allows: { commercial: allows, redistribution: allows, note: allows ? "keep the licence text with copies of the weights" : "research only" }, state: here === 0 ? "missing" : here < bytes ? "partial" : "installed", default: isDefault, folder: `/srv/maker/.local/share/longtake/models/${id}` });
  const settingsState = () => ({ settings, llm_key_set: false, llm_key_file: "/srv/maker/.local/share/longtake/llm.key", cache_folder: "/srv/maker/.cache/longtake", cache_bytes: 12.4e9, models_folder: "/srv/maker/.local/share/longtake/models", models_bytes: 1.2e9, data_folder: "/srv/maker/.local/share/longtake", devices: ["cpu: 16 threads, AVX2"] });
  let cluster;
  const worker = (name, more) => ({ worker: name, here: true, away_secs: 0, draining: cluster.draining.has(name), devices: ["cuda:0 (gb10)"], memory_bytes: 128e9, models: 9, node_types: 41, release: "0.4.0", url: "http://10.0.0.2:7411", clock_off_secs: 0.1, jobs: [], done: 212, ...more });
  const clusterState = () => {
    if (!cluster) return { runs_here: false, open: false, makes_films: false, jobs_per_minute: {} };
    const workers = [
      worker("spark-1", { jobs: [{ node: "segment:boats", node_type: "film.segment", part: 0.62, secs: 14 }] }),
      worker("spark-2", { jobs: [{ node: "line:letter:1", node_type: "speech.line", part: null, secs: 3 }], done: 187 }),
      worker("spark-3", { here: false, away_secs: 312, done: 0 }),
      worker("studio-01", { devices: ["cpu:0 (cpu-x86-64)"], memory_bytes: 64e9, models: 5, done: 31 }),
    ].filter((each) => !cluster.gone.has(each.worker));
    return { place: "/srv/maker/.local/share/longtake/cluster", runs_here: cluster.runs_here, open: false, makes_films: cluster.makes_films, status: { address: "127.0.0.1:4222", nats_version: "2.15.1", paused: cluster.paused, lease_secs: 30, owner: null, workers }, jobs_per_minute: { "spark-1": 6.4, "spark-2": 5.9, "studio-01": 0.8 } };
  };
  const commands = {
    "app.state": () => ({ version: "0.4.0", machine: { host: "studio-01", cpu: "AMD Ryzen 9 7950X", cores: 32, memory_bytes: 64e9, free_disk_bytes: 412e9, gpus: ["NVIDIA GeForce RTX 4090"] }, ready: { language_model: true, voice: true, pictures: true, upscaler: false }, models_folder: "/srv/maker/.local/share/longtake/models", cache_folder: "/srv/maker/.cache/longtake", projects_folder: settings.projects_folder }),
    "app.recent": () => empty ? [] : [
      { path: project, name: "the-door", title: script.title, poster: hashOf[names[0]], modified_unix_millis: now - 3e5, missing: false, open: true },
      { path: "/films/b.longtake", name: "keeper", title: "The Lighthouse Keeper’s Radio", poster: hashOf[names[3]], modified_unix_millis: now - 9e7, missing: false, open: false },
      { path: "/films/c.longtake", name: "ünïcode 場景 🎬", title: "", poster: hashOf[names[5]], modified_unix_millis: now - 4e8, missing: false, open: false },
      { path: "/films/gone.longtake", name: "gone", title: "An older film on a disk that is not there", modified_unix_millis: now - 9e9, missing: true, open: false },
    ],
    "app.forget": () => ({}),
    "project.create": (args) => { script = { ...filmOf(1, names), title: args.name }; script.scenes[0].shots.length = 1; changed(); return state(); },
    "project.open": state, "project.open_sample": state, "project.state": state, "project.close": () => ({}),
    "project.edit": ({ edit }) => edited(edit.edit === "set" ? `set ${edit.field.slice(1)}` : edit.edit, applyEdit(script, edit)),
    "project.undo": () => { const step = undo.pop(); if (!step) return { revision }; redo.push({ label: step.label, script }); script = step.script; changed(); return { revision, label: step.label }; },
    "project.redo": () => { const step = redo.pop(); if (!step) return { revision }; undo.push({ label: step.label, script }); script = step.script; changed(); return { revision, label: step.label }; },
    "project.snapshot": ({ name }) => { const made = { name, at_unix_millis: Date.now() }; snapshots = [made, ...snapshots.filter((each) => each.name !== name)]; changed(); return made; },
    "project.restore": ({ name }) => edited(`restore ${name}`, script),
    "project.forget_snapshot": ({ name }) => { snapshots = snapshots.filter((each) => each.name !== name); changed(); return {}; },
    "project.find": ({ text }) => script.scenes.flatMap((scene) => scene.shots.filter((shot) => shot.action?.toLowerCase().includes(text.toLowerCase())).map((shot) => ({ kind: "shot", id: shot.id, field: "/action", text: shot.action }))),
    "story.write": () => job("story.write", "Write from a premise", { type: "proposal", changes: 4 }, () => { proposal = fakeProposal(script); tell({ type: "proposal_changed", project }); }),
    "story.rewrite": () => job("story.rewrite", "Rewrite", { type: "proposal", changes: 4 }, () => { proposal = fakeProposal(script); tell({ type: "proposal_changed", project }); }),
    "story.text": () => ({ markdown: `# ${script.title}\n\n## Scene ${script.scenes[0].id}\n` }),
    "story.read": ({ text }) => { if (!text.includes("#")) throw new Error("the script is faulty:\n  line 1: expected a heading"); return { script, lint: [] }; },
    "proposal.get": () => proposal,
    "proposal.take": () => { proposal = null; tell({ type: "proposal_changed", project }); return edited("take changes", { ...script, title: `${script.title}.` }); },
    "proposal.refuse": () => { proposal = null; tell({ type: "proposal_changed", project }); return {}; },
    "voices.list": () => [{ id: "af_heart", title: "Heart", language: "en-US", licence: "Apache-2.0", default: true }, { id: "bm_george", title: "George", language: "en-GB", licence: "Apache-2.0", default: false }],
    "voice.hear": () => job("voice.hear", "Hear a voice", { type: "sound", hash: "cc", secs: 2 }),
    "render.plan": () => ({ to_make: 12, reused: 48, unknown: 2, predicted_secs: 184, warnings: [], nodes: script.scenes[0].shots.flatMap((shot, at) => [{ node: `segment:${shot.id}`, type_name: "film.segment", state: ["will_run", "reused", "unknown", "will_run"][at % 4], shot: shot.id }]) }),
    "render.start": () => job("render.start", "Make shots", { type: "render", made: 12, reused: 48, warnings: [] }),
    "takes.list": ({ shot }) => takesOf(shot),
    "takes.choose": (args) => edited(`shot ${args.shot}: another take`, applyEdit(script, { edit: "set", kind: "shot", id: args.shot, field: "/picture", value: oneTake(args).name })),
    "takes.rate": (args) => { oneTake(args).rating = args.rating; changed(); return { revision }; },
    "takes.remove": (args) => { takesBy.set(args.shot, takesBy.get(args.shot).filter((each) => each !== oneTake(args))); changed(); return { revision }; },
    "takes.make": ({ shot }) => { const had = takesBy.get(shot); const name = names.find((each) => !had.some((take) => take.name === each)); return job("takes.make", `Another picture for ${shot}`, { type: "take", shot, take: hashOf[name], seed: 77, kept: true, new: true }, () => { had.push({ name, by: "stills", seed: 77, rating: 0 }); changed(); }); },
    "makers.list": () => [{ id: "stills", name: "", ready: true, default: true, draws: false, negative: false, references: false }, { id: "sketch", name: "Sketch", ready: true, default: false, draws: true, negative: true, references: false }, { id: "painter-9", name: "Painter 9", ready: false, why: "no pictures can be made with the model \"painter-9\" here yet", default: false, draws: true, negative: true, references: false }],
    "takes.draw": ({ what, count = 1 }) => {
      const bare = (shot) => !shot.picture && !shot.video && (!shot.colour || shot.by?.colour === "rule");
      const ids = what === "missing" ? script.scenes.flatMap((scene) => scene.shots).filter(bare).map((shot) => shot.id) : what.shots;
      const takes = ids.flatMap((shot) => {
        const had = takesOf(shot).length;
        const [value, mark] = (shotNow(shot).seed ?? "").split(" ");
        return Array.from({ length: mark === "locked" ? 1 : count }, (_, at) => ({ shot, take: hashOf[names.filter((name) => !takesBy.get(shot)?.some((each) => each.name === name))[at]], seed: mark === "locked" ? Number(value) : 5_000 + had + at, kept: true, new: true }));
      });
      return job("takes.draw", ids.length === 1 ? `Draw a picture for ${ids[0]}` : `Draw the ${takes.length} missing pictures`, { type: "drawn", takes }, () => {
        for (const { shot, take, seed } of takes) {
          const name = names.find((each) => hashOf[each] === take);
          const had = takesBy.get(shot);
          if (!had.some((each) => each.name === name)) had.push({ name, by: "model", model: "sketch", seed, prompt: shotNow(shot).action, rating: 0 });
          if (bare(shotNow(shot))) script = applyEdit(script, { edit: "set", kind: "shot", id: shot, field: "/picture", value: name });
        }
        changed();
      });
    },
    "export.presets": () => ["web", "vertical", "cinema", "archive"].map((id) => ({ id, name: id, docs: id, crf: 20, effort: "medium" })),
    "export.predict": ({ commercial }) => { if (commercial && settings.theme === "never") throw new Error("refused"); return { secs_to_make: 312, to_make: 60, bytes: 48e6, film_secs: state().film.secs, out: `${project}/exports/The Door Left Open.mp4`, licence: [{ what: "Kokoro 82M (voice)", licence: "Apache-2.0", commercial: true, note: "" }, { what: "Sample stills", licence: "CC0-1.0", commercial: true, note: "" }], warnings: [{ text: "2 lines are to be spoken first; until then their lengths are estimates", coded: { code: "lines_to_speak", values: { count: 2 } } }] }; },
    "export.start": () => job("export.start", "Export", { type: "export", out: "/films/a.mp4", hash: hashOf[names[0]], bytes: 48e6, warnings: [] }),
    "export.list": () => empty ? [] : [{ path: "/films/The Door Left Open.mp4", name: "The Door Left Open.mp4", hash: hashOf[names[0]], bytes: 48.2e6, made_unix_millis: now - 8e6, lufs: -16.1, true_peak_dbtp: -1.3 }],
    "export.reveal": () => ({}),
    "media.play": ({ hash }) => ({ state: "ready", hash, is_copy: false }),
    "media.relink": ({ name }) => ({ name, hash: hashOf[names[2]], media_type: "image/jpeg", bytes: 1 }),
    "queue.list": () => jobs,
    ...Object.fromEntries(["cancel", "retry", "pause", "resume"].map((what) => [`queue.${what}`, ({ id }) => { const to = { cancel: "cancelled", retry: "waiting", pause: "paused", resume: "running" }[what]; jobs = jobs.map((each) => (each.id === id ? { ...each, state: to } : each)); const one = jobs.find((each) => each.id === id); tell({ type: "job", job: one }); return one; }])),
    "queue.move": () => ({}),
    "queue.log": () => ["12:01:03 plan: 12 to make, 48 reused", "12:01:04 segment:shot-3 begins", "12:01:22 segment:shot-3 made in 18.2 s"],
    "queue.clear": () => { jobs = jobs.filter((each) => ["running", "waiting", "paused"].includes(each.state)); return {}; },
    "models.list": () => [model("smollm2-135m-instruct-q4_1", "SmolLM2 135M Instruct (Q4_1)", "text", 98e6, 98e6, true, true), model("qwen3-8b", "Qwen3 8B (Q4_K)", "text", 5e9, 2e9, true, false), model("kokoro-82m", "Kokoro 82M", "speech", 326e6, 326e6, true, true), model("realesrgan-x2", "RealESRGAN 2x", "upscale", 67e6, 0, true, true), model("research-x2", "Research upscaler", "upscale", 120e6, 0, false, false)],
    "models.pull": () => job("models.pull", "Fetch", { type: "model", whole: true }), "models.verify": () => job("models.verify", "Verify", { type: "model", whole: true }), "models.remove": () => ({ bytes: 1, left: [] }),
    "cluster.state": clusterState,
    "cluster.start": () => { cluster = { runs_here: true, paused: false, makes_films: true, draining: new Set(), gone: new Set() }; return clusterState(); },
    "cluster.use": ({ cluster: line }) => { if (!line.startsWith("longtake1:")) throw new Error("this is no line that joins a cluster"); cluster = { runs_here: false, paused: false, makes_films: false, draining: new Set(), gone: new Set() }; return clusterState(); },
    "cluster.stop": () => { cluster = undefined; return clusterState(); }, "cluster.leave": () => { cluster = undefined; return clusterState(); },
    "cluster.line": () => ({ command: "longtake worker --join longtake1:c2VjcmV0LWxpbmU" }),
    "cluster.pause": ({ on }) => { cluster.paused = on; return {}; }, "cluster.films": ({ on }) => { cluster.makes_films = on; return {}; },
    "cluster.drain": ({ worker, order }) => { if (order === "forget" || order === "leave") cluster.gone.add(worker); else if (order === "drain") cluster.draining.add(worker); else cluster.draining.delete(worker); return {}; },
    "cluster.doctor": () => [{ machine: "here", severity: "fine", found: "nats-server 2.15.1", advice: "" }, { machine: "here", severity: "advice", found: "vm.compaction_proactiveness is 20: steps stop for 100 ms and more", advice: "sudo sysctl -w vm.compaction_proactiveness=0, and the same in /etc/sysctl.d" }, { machine: "spark-3", severity: "wrong", found: "it went away 312 s ago", advice: "look at its log; or `longtake cluster drain NAME --forget`" }, { machine: "spark-1", severity: "fine", found: "its files answer in 3 ms", advice: "" }],
    "settings.get": settingsState,
    "settings.set": ({ field, value }) => { if (field !== "llm_key") settings = { ...settings, [field]: value }; tell({ type: "settings_changed" }); return settingsState(); },
    "settings.test_llm": () => ({ ok: true, what: "SmolLM2 135M Instruct answered “Yes.” in 0.4 s" }),
    "cache.prune": () => ({ bytes: 12.4e9 }), "diagnostics.bundle": () => ({ path: "/srv/maker/longtake-diagnostics.zip" }),
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    const send = (status, type, body) => response.writeHead(status, { "content-type": type, "content-security-policy": CSP }).end(body);
    if (url.pathname.startsWith("/api/call/")) {
      const parts = [];
      request.on("data", (part) => parts.push(part)).on("end", () => {
        try {
          const command = commands[url.pathname.slice("/api/call/".length)];
          if (!command) return send(404, "application/json", JSON.stringify({ error: { code: "not_found", message: `no command ${url.pathname}` } }));
          send(200, "application/json", JSON.stringify({ ok: command(JSON.parse(Buffer.concat(parts).toString())) }));
        } catch (error) {
          send(400, "application/json", JSON.stringify({ error: { code: "bad_input", message: error.message } }));
        }
      });
      return;
    }
    if (url.pathname === "/api/upload") {
      request.resume().on("end", () => send(200, "application/json", JSON.stringify({ ok: { name: url.searchParams.get("name"), hash: hashOf[names[2]], media_type: "image/jpeg", bytes: 1 } })));
      return;
    }
    if (url.pathname.startsWith("/wave/")) return send(200, "application/json", JSON.stringify({ ok: Array.from({ length: 72 }, (_, at) => 0.2 + 0.6 * Math.abs(Math.sin(at / 5))) }));
    if (/^\/(thumb|media)\//.test(url.pathname)) {
      const bytes = bytesBy.get(url.pathname.split("/")[2]);
      return bytes ? send(200, "image/jpeg", bytes) : send(404, "text/plain", "");
    }
    if (url.pathname.startsWith("/preview/")) return send(200, "image/jpeg", bytesBy.get(hashOf[names[0]]));
    const file = normalize(join(ui, "dist", url.pathname === "/" ? "index.html" : url.pathname));
    if (!file.startsWith(join(ui, "dist"))) return send(403, "text/plain", "");
    try {
      send(200, TYPES[extname(file)] ?? "application/octet-stream", readFileSync(file));
    } catch {
      send(404, "text/plain", "");
    }
  });
  server.on("upgrade", (request, socket) => {
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
    socket.write(frame(JSON.stringify({ seq, event: { type: "hello", version: "0.4.0", session: "fake" } })));
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => sockets.delete(socket));
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    project,
    script: () => script,
    settings: () => settings,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      server.close();
    },
    /** The network goes away for the page: sockets end and nothing is answered. */
    port: server.address().port,
  };
}

function fakeProposal(script) {
  const [one, two] = script.scenes[0].shots;
  const change = (number, shot, field, next) => ({ number, path: `/scenes/${script.scenes[0].id}/shots/${shot.id}${field}`, kind: "shot", id: shot.id, field, old: shot[field.slice(1)] ?? null, new: next, by: "model" });
  return {
    at_unix_millis: Date.now(),
    from: "shorter",
    changes: [
      { number: 1, path: "/title", kind: "film", id: "", field: "/title", old: script.title, new: "The Open Door", by: "model" },
      change(2, one, "/action", `${one.action.split(".")[0]} and does not look back. The light on the water moves across the wall.`),
      change(3, one, "/framing", "very wide"),
      { number: 4, path: `/scenes/${script.scenes[0].id}/shots/new-shot`, kind: "shot", id: "new-shot", field: "", old: null, new: { id: "new-shot", length: "3 s", action: "The ferry leaves without them." }, by: "model" },
      ...(two ? [change(5, two, "/note", "hold longer")] : []),
    ],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fake = await startFake({ scenes: Number(process.argv[2] ?? 6), port: Number(process.argv[3] ?? 7870) });
  console.log(fake.url);
}
