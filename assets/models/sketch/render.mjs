// node render.mjs PKGS work: the SVG sets (twemoji for judging alone) as 224 px PNG files in work/png/SET (needs @resvg/resvg-js).
// resvg aborts on one noto picture: run again, it goes on behind it.
import { Resvg } from '@resvg/resvg-js'; import fs from 'fs';
const [, , pkgs, work] = process.argv, want = new Set(JSON.parse(fs.readFileSync(work + '/want.json')));
for (const set of ['fluent-emoji-flat', 'noto', 'twemoji']) {
  const j = JSON.parse(fs.readFileSync(`${pkgs}/@iconify-json/${set}/icons.json`)), ch = JSON.parse(fs.readFileSync(`${pkgs}/@iconify-json/${set}/chars.json`));
  const out = `${work}/png/${set}/`; fs.mkdirSync(out, { recursive: true });
  for (const [code, given] of Object.entries(ch)) {
    const key = code.split('-').filter(c => c !== 'fe0f').join('-'), bad = out + key + '.bad';
    if (!want.has(key) || fs.existsSync(out + key + '.png') || fs.existsSync(bad)) continue;
    fs.writeFileSync(bad, '');
    const alias = !j.icons[given] && j.aliases?.[given], icon = j.icons[alias ? alias.parent : given];
    if (!icon) continue;
    const w = icon.width || j.width || 16, h = icon.height || j.height || 16;
    const body = alias?.hFlip ? `<g transform="translate(${w} 0) scale(-1 1)">${icon.body}</g>` : icon.body;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="${icon.left || 0} ${icon.top || 0} ${w} ${h}" width="${w}" height="${h}">${body}</svg>`;
    fs.writeFileSync(out + key + '.png', new Resvg(svg, { fitTo: { mode: 'width', value: 224 } }).render().asPng());
    fs.unlinkSync(bad);
  }
}
