"""The judge: a small network that learns to tell the training pictures' subjects apart on any background, and nearest neighbours by it
among an icon set (twemoji) that neither it nor the model ever saw. `python judge.py --work work --sheet judge.png --net judge.pt` judges."""
import argparse, json, math, os, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from scenes import HOLD, ASK, SCENES, art

SIDE = 112


def prompt(i):
    n, c, k, b = HOLD[i]
    style = [", flat style", ", cartoon style"][i % 2] if i % 3 else ""
    if b:
        return f"{art(n)} and {art(b)}{style}"
    return f"{art((c + ' ' + n).strip())} {SCENES[k][0][0]}{' at night' if i % 7 == 0 and k not in ('space', 'room') else ''}{style}"


# What counts as the same subject: drawings of one thing under several names of the sets. Written before this network judged anything, but by
# people who had seen what an earlier judge took the pictures for.
SAME = [v.split(",") for v in """automobile,oncoming automobile,sport utility vehicle,racing car,taxi,oncoming taxi,police car,oncoming police car,pickup truck
house,house with garden,houses,derelict house,hut
hot beverage,teacup without handle,beer mug,tumbler glass
bicycle,person biking,man biking,woman biking
umbrella,umbrella with rain drops,umbrella on ground,closed umbrella
bird,black bird,dove,eagle,parrot
fish,tropical fish,blowfish
tent,camping,circus tent
chair,seat
key,old key
woman's hat,top hat,billed cap,graduation cap
sailboat,speedboat,motor boat,canoe,ship,passenger ship,ferry
locomotive,train,high speed train,bullet train,light rail,station,metro,tram,tram car,railway car,monorail,mountain railway
bus,oncoming bus,trolleybus,minibus
closed book,green book,blue book,orange book,books,open book,notebook,notebook with decorative cover,ledger
tulip,rose,hibiscus,sunflower,blossom,cherry blossom,white flower,hyacinth,lotus,bouquet,wilted flower,rosette
mushroom,brown mushroom
dragon,dragon face
crown,person with crown
gem stone,ring
dress,sari,kimono,woman's clothes
guitar,banjo,violin
cat,cat face,black cat,grinning cat
dog,dog face,guide dog,service dog,poodle
horse,horse face,carousel horse,unicorn
fox,wolf
bear,polar bear,teddy bear
rabbit,rabbit face
lion,tiger face
tiger,tiger face
cow,cow face,ox,water buffalo,bison
pig,pig face,boar
monkey,monkey face,see no evil monkey,gorilla
whale,spouting whale,dolphin
elephant,mammoth
camel,two hump camel
duck,goose,swan
chipmunk,beaver
honeybee,fly
mouse,mouse face,rat
airplane,small airplane,airplane departure,airplane arrival
fire engine,ambulance,delivery truck,articulated lorry
castle,japanese castle
hamburger,sandwich
birthday cake,shortcake,moon cake,pie
musical keyboard,keyboard
trumpet,postal horn,trombone
snowman,snowman without snow
deciduous tree,evergreen tree,leafless tree
red apple,green apple,cherries
telephone,telephone receiver
dagger,crossed swords,kitchen knife
mantelpiece clock,alarm clock,timer clock,stopwatch,watch
candle,diya lamp
drum,long drum
bell,bellhop bell
camera,camera with flash,video camera
lemon,lime
ladder,playground slide
bed,person in bed""".split("\n")]


def plain(name):
    """a person's name without sex: the sets draw one thing three times"""
    return " ".join(w for w in name.split() if w not in ("man", "woman", "person", "men", "women", "people")) or "person"


def kin(names):
    """name -> names that are the same subject"""
    out = {n: {m for m in names if plain(m) == plain(n)} for n in names}
    for g in SAME:
        for n in g:
            out.setdefault(n, {n}).update(g)
    return out


class Net(nn.Module):
    def __init__(self, classes, out=320):
        super().__init__()
        w = [64, 128, 256, 384]
        c = lambda i, o, s=1: nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o))
        self.a = nn.ModuleList([c(3 if not i else w[i - 1], v, 2) for i, v in enumerate(w)])
        self.b = nn.ModuleList([nn.ModuleList([nn.Sequential(c(v, v), nn.ReLU(True), c(v, v)) for _ in range(1 if not i else 2)]) for i, v in enumerate(w)])
        self.out = nn.Linear(w[-1] * 2, out)
        self.classes = nn.Parameter(torch.randn(classes, out) * .05)

    def forward(self, x):
        x = x * 2 - 1
        for a, b in zip(self.a, self.b):
            x = F.relu(a(x))
            for v in b:
                x = F.relu(x + v(x))
        return F.normalize(self.out(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)).float(), dim=-1)


def train(a, data):
    """Shapes must carry the subject, not the sets' manners: colours, textures, shading and outlines are changed at random."""
    torch.manual_seed(3)
    dev, n = data.spr.device, len(data.spr)
    cuda = dev.type == "cuda"
    label = torch.tensor([s[0] for s in data.index["sprites"]], device=dev)
    # every drawing of a subject weighs alike, however many skins it has
    weight = 1 / torch.bincount(label, minlength=len(data.index["concepts"])).float().sqrt()[label]
    bg = torch.cat([F.interpolate(data.bank[i:i + 256].float() / 255, (SIDE, SIDE), mode="area") for i in range(0, len(data.bank), 256)])
    net = Net(len(data.index["concepts"])).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=.05, fused=cuda)
    A = torch.tensor([[.299, .587, .114], [.596, -.274, -.322], [.211, -.523, .312]], device=dev)
    Ai, t0, B = torch.linalg.inv(A), time.time(), 512 if cuda else 8
    r = lambda *s: torch.rand(*s, device=dev)
    live = dict(net.state_dict())
    ema = {k: v.clone() for k, v in live.items()}
    it = 0
    while it < a.judge:
        fr = max(it / a.judge, (time.time() - t0) / a.judge_seconds)
        if fr >= 1:
            break
        for g in opt.param_groups:
            g["lr"] = 2e-3 * min(1, (it + 1) / 100) * (.5 + .5 * math.cos(math.pi * fr))
        i = torch.multinomial(weight, B, replacement=True)
        sc, th = .45 + .5 * r(B), (r(B) - .5) * .6
        fx = 1 - 2 * (r(B) < .4).float()
        cs, sn = th.cos() / sc, th.sin() / sc
        sx, shear = .8 + .4 * r(B), (r(B) - .5) * .4
        m = torch.stack([torch.stack([cs * fx * sx, -sn * sx + shear, (r(B) - .5) * (1 - sc) * 2], 1), torch.stack([sn * fx, cs, (r(B) - .5) * (1 - sc) * 2], 1)], 1)
        grid = F.affine_grid(m, (B, 4, SIDE, SIDE), align_corners=False)
        grid = grid + F.interpolate((r(B, 2, 5, 5) - .5) * .16 * r(B, 1, 1, 1), (SIDE, SIDE), mode="bicubic").permute(0, 2, 3, 1)   # bent
        q = F.grid_sample(data.half[i].float() / 255, grid, align_corners=False)
        turn = (r(B) - .5) * 6.28 * (r(B) < .5)
        Z = torch.zeros_like(turn)
        M = Ai @ torch.stack([torch.stack([Z + 1, Z, Z], 1), torch.stack([Z, turn.cos(), -turn.sin()], 1), torch.stack([Z, turn.sin(), turn.cos()], 1)], 1) @ A
        grey = (r(B, 1, 1) < .1).float()
        M = M * (1 - grey) + grey * A[0].expand(B, 3, 3)
        M = M * (.5 + .8 * r(B, 1, 1))
        rgb = torch.einsum("nij,njhw->nihw", M, q[:, :3]).clamp(min=0)
        # textures: a small random filter; shading: few steps of brightness; outlines: darkened along the edge
        k = torch.randn(B * 3, 1, 3, 3, device=dev) * .12
        k[:, :, 1, 1] += 1
        f = F.conv2d(F.pad(rgb, (1, 1, 1, 1), mode="replicate").reshape(1, B * 3, SIDE + 2, SIDE + 2), k, groups=B * 3).view_as(rgb).clamp(min=0)
        rgb = torch.where(r(B, 1, 1, 1) < .3, f, rgb)
        lv = torch.randint(3, 9, (B, 1, 1, 1), device=dev).float()
        rgb = torch.where(r(B, 1, 1, 1) < .25, (rgb * lv).round() / lv, rgb)
        edge = (F.max_pool2d(q[:, 3:], 3, 1, 1) + F.max_pool2d(-q[:, 3:], 3, 1, 1)).clamp(0, 1)
        rgb = torch.where(r(B, 1, 1, 1) < .2, rgb * (1 - edge * r(B, 1, 1, 1)), rgb)
        rgb = torch.minimum(rgb, q[:, 3:])
        y = bg[torch.randint(0, len(bg), (B,), device=dev)]
        p = r(B, 1, 1, 1)
        y = torch.where(p < .4, torch.ones_like(y), torch.where(p < .55, r(B, 3, 1, 1).expand_as(y), y))
        x = rgb + y * (1 - q[:, 3:])
        k = r(B, 1, 1, 1)
        x = torch.where(k < .3, F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1), x)   # drawn pictures are softer
        cx, cy, cw = r(B, 1, 1, 1), r(B, 1, 1, 1), .12 * r(B, 1, 1, 1) * (r(B, 1, 1, 1) < .4)
        g = torch.arange(SIDE, device=dev) / SIDE
        x = torch.where(((g[None, None, None] - cx).abs() < cw) & ((g[None, None, :, None] - cy).abs() < cw), r(B, 3, 1, 1), x)   # part hidden
        with torch.autocast(dev.type, torch.bfloat16, enabled=cuda):
            e = net(x.clamp(0, 1).contiguous(memory_format=torch.channels_last))
        loss = F.cross_entropy(e @ F.normalize(net.classes, dim=-1).T * 24, label[i], label_smoothing=.1)
        opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
        with torch.no_grad():
            for name, v in live.items():
                if v.is_floating_point():
                    ema[name].lerp_(v, max(.002, 1 / (it + 1)))
        it += 1
        if it % 500 == 1:
            print("judge", it, round(time.time() - t0, 1), "s", round(loss.item(), 3), flush=True)
    torch.save({k: v.half() for k, v in ema.items()}, a.out + "/judge.pt")
    print("judge done", it, round(time.time() - t0, 1), "s", flush=True)


def embed(net, pictures):
    out = []
    with torch.no_grad():
        for i in range(0, len(pictures), 32):
            x = F.interpolate(pictures[i:i + 32], (SIDE, SIDE), mode="bilinear", antialias=True)
            out.append(net(x))
    return torch.cat(out)


def cells(x, k=16):
    return F.adaptive_avg_pool2d(x, k)


def near(a, data):
    """Each picture of the sheet beside the nearest of many training pictures (mean square of 16 x 16 cells over white). They differ in
    composition where the brightness of the cells correlates below .9, in colour where the colours of 4 x 4 cells are .05 apart in the mean."""
    from PIL import Image
    im = torch.from_numpy(np.asarray(Image.open(a.out + "/judge.png").convert("RGBA")).copy()).to(data.spr.device).float() / 255
    mine = torch.stack([im[i // 10 * 260:i // 10 * 260 + 256, i % 10 * 260:i % 10 * 260 + 256] for i in range(len(HOLD))]).permute(0, 3, 1, 2)
    mine = mine[:, :3]   # colour lies over white where nothing is, in the training pictures too
    f = cells(mine).flatten(1)
    best, at = torch.full((len(f),), 9., device=f.device), torch.zeros_like(mine)
    seen = 0
    for _ in range(a.near):
        x = data.batch()[0][:, :3].float()
        d = (torch.cdist(f, cells(x).flatten(1)) ** 2 / f.shape[1])
        v, i = d.min(1)
        w = v < best
        best[w], at[w] = v[w], x[i[w]]
        seen += len(x)
    lum = lambda x: (cells(x) * torch.tensor([.299, .587, .114], device=x.device)[None, :, None, None]).sum(1).flatten(1)
    p, q = lum(mine), lum(at)
    p, q = p - p.mean(1, keepdim=True), q - q.mean(1, keepdim=True)
    corr = (p * q).sum(1) / (p.norm(dim=1) * q.norm(dim=1) + 1e-6)
    colour = (cells(mine, 4) - cells(at, 4)).abs().mean((1, 2, 3))
    other, hue = corr < .9, colour > .05
    print("of", len(f), "pictures beside the nearest of", seen, "training pictures:", int((other | hue).sum()), "differ;", int(other.sum()), "in composition,", int(hue.sum()), "in colour", flush=True)
    pair = torch.stack([mine, at], 1).flatten(0, 1)
    grid = F.pad(F.interpolate(pair, (96, 96), mode="area"), (1, 1, 1, 1), value=1)
    rows = grid.view(10, 20, 3, 98, 98).permute(0, 3, 1, 4, 2).reshape(980, 1960, 3)
    Image.fromarray((rows.clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()).save(a.out + "/near.png")


def judge(a):
    """Right subject among the 5 nearest icons of the held-out set, by cosine of the network's features; windows: whole, and for pairs both halves."""
    from PIL import Image
    index = json.load(open(a.work + "/index.json"))
    names = [c["name"] for c in index["concepts"]]
    net = Net(len(names)); net.load_state_dict({k: v.float() for k, v in torch.load(a.net, weights_only=True, map_location="cpu").items()}); net.eval()
    icons, label = [], []
    for i, c in enumerate(index["concepts"]):
        p = f"{a.work}/png/twemoji/{c['key']}.png"
        if os.path.exists(p):
            im = Image.open(p).convert("RGBA"); bg = Image.new("RGBA", im.size, "white"); bg.alpha_composite(im)
            s = Image.new("RGB", (im.width * 5 // 4,) * 2, "white"); s.paste(bg.convert("RGB"), (im.width // 8, im.width // 8))
            icons.append(torch.from_numpy(np.asarray(s.resize((128, 128))).copy()).permute(2, 0, 1).float() / 255); label.append(i)
    E = embed(net, torch.stack(icons))
    n = lambda s: names.index(ASK.get(s, s))
    # what the judge itself can do: the training pictures themselves against the held-out set
    blob = np.memmap(a.work + "/sprites.bin", mode="r", dtype=np.uint8)
    import io
    real, want = [], []
    for s in index["sprites"][::a.every]:
        im = Image.open(io.BytesIO(blob[s[3]:s[3] + s[4]].tobytes())).convert("RGBA"); bg = Image.new("RGBA", (240, 240), "white"); bg.alpha_composite(im, ((240 - im.width) // 2, (240 - im.height) // 2))
        real.append(torch.from_numpy(np.asarray(bg.convert("RGB").resize((128, 128))).copy()).permute(2, 0, 1).float() / 255); want.append(s[0])
    same = kin(names)
    among = lambda i, t: any(names[label[j]] in same[names[i]] for j in t.tolist())
    top = (embed(net, torch.stack(real)) @ E.T).topk(5, 1).indices
    hit = [among(w, t) for w, t in zip(want, top)]
    asked = {n(v) for h in HOLD for v in (h[0], h[3]) if v}
    mine = [h for h, w in zip(hit, want) if w in asked]
    print("the training pictures themselves among", len(label), "icons:", round(sum(hit) / len(hit), 3), "of", len(hit), "; of subjects asked for:", round(sum(mine) / max(1, len(mine)), 3), "of", len(mine))
    im = np.asarray(Image.open(a.sheet).convert("RGBA")).astype(np.float32) / 255
    rgb = im[..., :3]
    good = []
    for i, (s, c, k, b) in enumerate(HOLD):
        y, x = i // 10 * 260, i % 10 * 260
        p = torch.from_numpy(rgb[y:y + 256, x:x + 256].copy()).permute(2, 0, 1)[None]
        big = lambda v: F.interpolate(v, (256, 256), mode="bilinear")
        wins = [p, big(p[:, :, 64:256, 32:224])] if not b else [big(p[:, :, 56:200, 0:144]), big(p[:, :, 56:200, 112:256])]
        t = [[label[j] for j in r.tolist()] for r in (embed(net, torch.cat(wins)) @ E.T).topk(5, 1).indices]
        ok = lambda s: any(names[j] in same[names[n(s)]] for r in t for j in r)
        good.append((ok(s), ok(b) if b else None))
        if not good[-1][0]:
            print(prompt(i), "->", [names[r[0]] for r in t])
    print("right subject in the top 5:", sum(g[0] for g in good), "of", len(good), "; second subjects:", sum(bool(g[1]) for g in good), "of", sum(g[1] is not None for g in good))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for k in ("work", "sheet", "net"):
        p.add_argument("--" + k)
    p.add_argument("--every", type=int, default=5)
    judge(p.parse_args())
