// What the compiler does not see: no `any`, no component over 400 lines, every text through the
// table of texts, nothing from elsewhere at run time, every command of the server behind a control.
// Run: npm run check.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const LINES_MAX = 400;
const faults = [];

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

const sources = filesUnder(join(root, "src")).filter((path) => /\.(ts|tsx|css)$/.test(path));
const called = new Set();
for (const path of sources) {
  const name = relative(root, path);
  if (name === "src/api/generated.ts") continue;
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n");
  if (lines.length > LINES_MAX && !name.startsWith("src/text/")) faults.push(`${name}: ${lines.length} lines, at most ${LINES_MAX}`);
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  if (/(:\s*any\b|\bas any\b|<any\b|any\[\]|@ts-ignore|@ts-nocheck)/.test(code)) faults.push(`${name}: any, or a check switched off`);
  if (/https?:\/\/(?!127\.0\.0\.1|www\.w3\.org)/.test(code.replace(/"https:\/\/"/g, ""))) faults.push(`${name}: names something on the network`);
  if (/\b(eval|new Function)\s*\(/.test(code)) faults.push(`${name}: makes code from text`);
  if (/dangerouslySetInnerHTML|innerHTML/.test(code)) faults.push(`${name}: writes markup from text`);
  if (name.endsWith(".tsx")) {
    lines.forEach((line, at) => {
      const said = />\s*([A-Z][a-z]+( [a-z]+)+)\s*<\//.exec(line) ?? /\b(?:label|title|placeholder|aria-label)="([A-Z][^"]+)"/.exec(line);
      if (said && said[1] !== "Longtake") faults.push(`${name}:${at + 1}: text outside of the table of texts: ${said[1]}`);
    });
  }
  for (const [, command] of code.matchAll(/\b(?:call|useCommand|useQuery)(?:<[^>]*>)?\(\s*"([a-z_]+\.[a-z_]+)"/g)) called.add(command);
}
const generated = readFileSync(join(root, "src/api/generated.ts"), "utf8");
const known = [...generated.matchAll(/\{ name: "([a-z_]+\.[a-z_]+)", kind:/g)].map(([, name]) => name);
for (const name of known) if (!called.has(name)) faults.push(`the command ${name} has no control`);
for (const name of called) if (!known.includes(name)) faults.push(`a control asks for ${name}, which is no command`);

for (const fault of faults) console.error(fault);
console.log(`${sources.length} files, ${known.length} commands, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
