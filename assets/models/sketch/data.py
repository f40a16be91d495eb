"""Prepares what train.py reads.

    python data.py concepts --pkgs PKGS --out work     which emoji, their names and keywords; then: node render.mjs PKGS work
    python data.py sprites  --pkgs PKGS --out work     crop, scale and pack the pictures -> work/sprites.bin, work/index.json
    python data.py text     --gguf FILE --out work     first 8 blocks of the text model + the tokens in use -> work/text.pt, work/tokens.json

PKGS is the folder node_modules that `npm install` filled with the packages listed in README.md. Every picture is cropped to what is
drawn, scaled so that its longer side is 192 px and stored as WebP with alpha.
"""
import argparse, io, json, os, random, re
from concurrent.futures import ThreadPoolExecutor
import numpy as np

SIZE, LAYERS = 192, 8
STYLES = ["flat", "3d", "cartoon"]
FOLDER = {"flat": "fluent-emoji-flat", "cartoon": "noto"}
SYMBOLS = set("""warning|musical note|musical notes|red circle|yellow circle|blue circle|sparkle|white heart""".replace("\n", "").split("|"))
FACES = set("""grinning face|smiling face with sunglasses|crying face|angry face|sleeping face|smiling face with smiling eyes|thinking face|cowboy hat face|partying face|
skull|clown face|ogre|goblin|ghost|alien|alien monster|robot|grinning cat|see-no-evil monkey|love letter|red heart|broken heart|heart on fire|collision|dizzy|
sweat droplets|thought balloon|speech balloon|heart with ribbon|fearful face|astonished face|yawning face""".replace("\n", "").split("|"))
HANDS = re.compile(r"(hand|finger|index|thumb|fist|gesture|palms?|salute|nail polish|selfie|biceps|\b(leg|foot|ear|nose|brain|heart|lungs|tooth|eyes?|tongue|mouth|lip)$|"
                   r"frowning|pouting|tipping|facepalm|shrugg|deaf|bowing|raising|feeding|massage|haircut|bunny|levitating|silhouette|speaking|fingerprint|pregnant|tuxedo|veil|"
                   r"skullcap|steamy|^(Mx|person|man|woman) ?(beard|bald|Claus)|holding hands|couple|family|kiss)", re.I)
# people drawn in several skin tones: everyone that a story's cast may need
TONES = re.compile(r"^(baby|child|boy|girl|man|woman|person|older person|old man|old woman|prince|princess|elf|fairy|mage|superhero|detective|astronaut|"
                   r"((man|woman|person) )?(student|teacher|farmer|cook|artist|astronaut|firefighter|police officer|scientist|health worker|pilot|singer|detective|mage|"
                   r"superhero|walking|running|standing|kneeling|dancing|climbing|swimming|rowing boat|biking|surfing|in lotus position|juggling|with white cane|"
                   r"red hair|curly hair|white hair|blond hair))$")
TONE = {1: "1f3fb", 2: "1f3fd", 3: "1f3ff"}
plain = lambda s: s.lower().replace("’", "'").replace("ñ", "n").replace("-", " ").replace(":", "").replace(",", " and").replace("“", "").replace("”", "")
bare = lambda e: "-".join("%04x" % ord(c) for c in e if ord(c) != 0xFE0F)
toned = lambda key, t: "-".join([key.split("-")[0], t, *key.split("-")[1:]])


def wanted(n, g, tone):
    if g == "Flags" or n.startswith("keycap") or re.search(r"clock face|o’clock|thirty$|facing right|cigarette|bikini|briefs|love hotel|hundred|(BACK|END|ON!|SOON|TOP)", n):
        return False
    if g == "Symbols":
        return n in SYMBOLS
    if g == "Smileys & Emotion":
        return n in FACES
    return g != "People & Body" or not HANDS.search(n)


def concepts(a):
    d = json.load(open(f"{a.pkgs}/unicode-emoji-json/data-by-emoji.json"))
    kw = json.load(open(f"{a.pkgs}/emojilib/dist/emoji-en-US.json"))
    out = {}
    for e, v in d.items():
        if wanted(v["name"], v["group"], v["skin_tone_support"]):
            out[bare(e)] = dict(name=v["name"], group=v["group"], tone=bool(v["skin_tone_support"] and TONES.match(v["name"])), kw=[k.replace("_", " ") for k in kw.get(e, [])])
    json.dump(out, open(a.out + "/concepts.json", "w"))
    json.dump([*out, *(toned(k, t) for k, v in out.items() if v["tone"] for t in TONE.values())], open(a.out + "/want.json", "w"))
    print(len(out), "concepts")


def sprites(a):
    from PIL import Image
    D = f"{a.pkgs}/@lobehub/fluent-emoji-3d/assets/"
    three = {"-".join(c for c in f[:-5].split("-") if c != "fe0f"): D + f for f in os.listdir(D)}
    names, jobs = [], []
    for key, v in json.load(open(a.out + "/concepts.json")).items():
        n, got = v["name"], 0
        for tone in (0, *TONE) if v["tone"] else (0,):
            k = toned(key, TONE[tone]) if tone else key
            for i, s in enumerate(STYLES):
                p = three.get(k, "") if s == "3d" else f"{a.out}/png/{FOLDER[s]}/{k}.png"
                if os.path.exists(p) and not (tone == 2 and s == "3d"):
                    jobs.append((len(names), i, tone, p)); got += 1
        if got:
            names.append(dict(name=plain(n), key=key, group=v["group"], kw=[plain(k) for k in v["kw"][1:] if re.fullmatch(r"[A-Za-z][A-Za-z '\-]{2,20}", k) and plain(k) != plain(n)][:8]))

    def one(j):
        x = np.asarray(Image.open(j[3]).convert("RGBA"))
        ys, xs = np.where(x[..., 3] > 8)
        if not len(ys):
            return None
        x = x[ys.min():ys.max() + 1, xs.min():xs.max() + 1].astype(np.float32)
        x[..., :3] *= x[..., 3:] / 255
        s = SIZE / max(x.shape[:2])
        h, w = (max(1, round(k * s)) for k in x.shape[:2])
        y = np.stack([np.asarray(Image.fromarray(x[..., i]).resize((w, h), Image.LANCZOS if s < 1 else Image.BICUBIC)) for i in range(4)], -1)
        y[..., :3] = np.clip(y[..., :3] * 255 / np.clip(y[..., 3:], 1e-3, 255), 0, 255)
        b = io.BytesIO()
        Image.fromarray(y.clip(0, 255).round().astype(np.uint8)).save(b, "WEBP", quality=a.quality, alpha_quality=85, method=2)
        return b.getvalue(), w, h
    with ThreadPoolExecutor(os.cpu_count()) as ex:
        res = list(ex.map(one, jobs))
    rows, off = [], 0
    with open(a.out + "/sprites.bin", "wb") as f:
        for j, r in zip(jobs, res):
            if r:
                f.write(r[0]); rows.append([*j[:3], off, len(r[0]), r[1], r[2]]); off += len(r[0])
    json.dump(dict(concepts=names, styles=STYLES, sprites=rows, size=SIZE), open(a.out + "/index.json", "w"))
    print(len(names), "concepts,", len(rows), "pictures,", off, "bytes", [sum(r[1] == i for r in rows) for i in range(len(STYLES))], "toned", sum(r[2] > 0 for r in rows))


def text(a):
    import torch
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    import scenes, train
    r = GGUFReader(a.gguf)
    F = lambda k: [r.fields["tokenizer.ggml." + k].parts[i] for i in r.fields["tokenizer.ggml." + k].data]
    toks, merges, types = [bytes(x).decode() for x in F("tokens")], [bytes(x).decode() for x in F("merges")], [int(x[0]) for x in F("token_type")]
    tk = Tokenizer(models.BPE(vocab={x: i for i, x in enumerate(toks)}, merges=[tuple(m.split(" ")) for m in merges]))
    tk.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tk.add_special_tokens([AddedToken(x, special=True, normalized=False) for x, y in zip(toks, types) if y == 3])
    enc = lambda s: tk.encode(s).ids
    index = json.load(open(a.out + "/index.json"))
    s = scenes.Sampler(index, [[random.random() for _ in range(4)] for _ in index["sprites"]], {(k, t): (0, 1) for k in scenes.KINDS for t in scenes.TIMES}, 5)
    caps = [s()[0] for _ in range(a.captions)] + train.PROMPTS + [train.judge.prompt(i) for i in range(len(scenes.HOLD))]
    P = {p for c in caps for p in train.PIECE.findall(c)}
    for w in {w for c in index["concepts"] for n in [c["name"], *c["kw"]] for w in n.split()}:
        P.update([" " + w, w, w.capitalize()])
    ids = {p: enc(p) for p in P}
    assert all(sum((ids[p] for p in train.PIECE.findall(c)), []) == enc(c) for c in caps[:5000])   # pieces join as the tokenizer would
    head, tail = enc("<|im_start|>user\n"), enc("<|im_end|>\n<|im_start|>assistant\n")
    pre = enc("<|im_start|>system\nComprehend and analyze the provided prompt.<|im_end|>\n")
    used = sorted({t for v in [*ids.values(), head, tail, pre] for t in v})
    m = {v: i for i, v in enumerate(used)}
    f = lambda v: [m[x] for x in v]
    json.dump(dict(pieces={p: f(v) for p, v in ids.items()}, head=f(head), tail=f(tail), prefix=f(pre), layers=LAYERS), open(a.out + "/tokens.json", "w"))
    T = {}
    for t in r.tensors:
        full = lambda: torch.from_numpy(dequantize(t.data, t.tensor_type).astype(np.float32).copy())
        if t.name == "token_embd.weight":
            e = full()[used].view(len(used), -1, 32)
            step = (e.abs().amax(-1) / 127).half()
            T[t.name] = ((e / step.float().clamp(min=1e-9)[..., None]).round().clamp(-127, 127).to(torch.int8).flatten(1), step)
        elif t.name.startswith("blk.") and int(t.name.split(".")[1]) < LAYERS:
            q4 = t.tensor_type.name == "Q4_1"
            T[t.name] = (torch.from_numpy(np.array(t.data).reshape(-1).view(np.uint8).copy()), [int(x) for x in t.shape[::-1]]) if q4 else full()
    torch.save(T, a.out + "/text.pt")
    print(len(used), "tokens,", len(P), "pieces")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["concepts", "sprites", "text"])
    p.add_argument("--pkgs"); p.add_argument("--gguf"); p.add_argument("--out", default="work"); p.add_argument("--captions", type=int, default=150000); p.add_argument("--quality", type=int, default=78)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    globals()[a.what](a)
