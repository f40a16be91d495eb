"""The judge: a small network that learns to tell the training pictures' subjects apart on any background, and nearest neighbours by it
among an icon set (twemoji) that neither it nor the model ever saw. `python judge.py --work work --sheet judge.png --net judge.pt` judges."""
import argparse, json, os, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from scenes import HOLD, ASK, SCENES, art

SIDE = 96


def prompt(i):
    n, c, k, b = HOLD[i]
    style = [", flat style", ", cartoon style"][i % 2] if i % 3 else ""
    if b:
        return f"{art(n)} and {art(b)}{style}"
    return f"{art((c + ' ' + n).strip())} {SCENES[k][0][0]}{' at night' if i % 7 == 0 and k not in ('space', 'room') else ''}{style}"


class Net(nn.Module):
    def __init__(self, classes, d=48, out=256):
        super().__init__()
        w = [d, 2 * d, 4 * d, 6 * d]
        c = lambda i, o, s: nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))
        self.a = nn.ModuleList([c(3, d, 1)] + [c(w[max(0, i - 1)], w[i], 2) for i in range(4)])
        self.b = nn.ModuleList([nn.Sequential(c(v, v, 1), nn.Conv2d(v, v, 3, 1, 1, bias=False), nn.BatchNorm2d(v)) for v in [d] + w])
        self.out = nn.Linear(w[-1] * 2, out)
        self.classes = nn.Parameter(torch.randn(classes, out) * .05)

    def forward(self, x):
        x = x * 2 - 1
        for a, b in zip(self.a, self.b):
            x = a(x)
            x = F.relu(x + b(x))
        return F.normalize(self.out(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)).float(), dim=-1)


def train(a, data):
    torch.manual_seed(3)
    dev, n = data.spr.device, len(data.spr)
    cuda = dev.type == "cuda"
    label = torch.tensor([s[0] for s in data.index["sprites"]], device=dev)
    bg = torch.cat([F.avg_pool2d(data.bank[i:i + 256].float(), 256 // SIDE + (256 % SIDE > 0), ceil_mode=True) for i in range(0, len(data.bank), 256)]) / 255
    bg = F.interpolate(bg, (SIDE, SIDE), mode="bilinear")
    net = Net(len(data.index["concepts"])).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=.02, fused=cuda)
    A = torch.tensor([[.299, .587, .114], [.596, -.274, -.322], [.211, -.523, .312]], device=dev)
    Ai, t0, B = torch.linalg.inv(A), time.time(), 512 if cuda else 8
    r = lambda *s: torch.rand(*s, device=dev)
    for it in range(a.judge):
        for g in opt.param_groups:
            g["lr"] = 2e-3 * min(1, (it + 1) / 100) * (1 - it / a.judge)
        i = torch.randint(0, n, (B,), device=dev)
        sc, th = .45 + .5 * r(B), (r(B) - .5) * .5
        fx = 1 - 2 * (r(B) < .3).float()
        cs, sn = th.cos() / sc, th.sin() / sc
        sx = .85 + .3 * r(B)
        m = torch.stack([torch.stack([cs * fx * sx, -sn * sx, (r(B) - .5) * (1 - sc) * 2], 1), torch.stack([sn * fx, cs, (r(B) - .5) * (1 - sc) * 2], 1)], 1)
        q = F.grid_sample(data.half[i].float() / 255, F.affine_grid(m, (B, 4, SIDE, SIDE), align_corners=False), align_corners=False)
        turn = (r(B) - .5) * 6.28 * (r(B) < .35)
        Z = torch.zeros_like(turn)
        M = Ai @ torch.stack([torch.stack([Z + 1, Z, Z], 1), torch.stack([Z, turn.cos(), -turn.sin()], 1), torch.stack([Z, turn.sin(), turn.cos()], 1)], 1) @ A
        M = M * (.6 + .6 * r(B, 1, 1))
        rgb = torch.minimum(torch.einsum("nij,njhw->nihw", M, q[:, :3]).clamp(min=0), q[:, 3:])
        y = bg[torch.randint(0, len(bg), (B,), device=dev)]
        p = r(B, 1, 1, 1)
        y = torch.where(p < .4, torch.ones_like(y), torch.where(p < .55, r(B, 3, 1, 1).expand_as(y), y))
        x = rgb + y * (1 - q[:, 3:])
        k = r(B, 1, 1, 1)
        x = torch.where(k < .3, F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3, 1), x)   # drawn pictures are softer
        with torch.autocast(dev.type, torch.bfloat16, enabled=cuda):
            e = net(x.contiguous(memory_format=torch.channels_last))
        loss = F.cross_entropy(e @ F.normalize(net.classes, dim=-1).T * 20, label[i], label_smoothing=.1)
        opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
        if it % 250 == 0:
            print("judge", it, round(time.time() - t0, 1), "s", round(loss.item(), 3), flush=True)
    torch.save({k: v.half() for k, v in net.state_dict().items()}, a.out + "/judge.pt")
    print("judge done", round(time.time() - t0, 1), "s", flush=True)


def embed(net, pictures):
    out = []
    with torch.no_grad():
        for i in range(0, len(pictures), 32):
            x = F.interpolate(pictures[i:i + 32], (SIDE, SIDE), mode="bilinear", antialias=True)
            out.append(net(x))
    return torch.cat(out)


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
    for s in index["sprites"][::29]:
        im = Image.open(io.BytesIO(blob[s[3]:s[3] + s[4]].tobytes())).convert("RGBA"); bg = Image.new("RGBA", (240, 240), "white"); bg.alpha_composite(im, ((240 - im.width) // 2, (240 - im.height) // 2))
        real.append(torch.from_numpy(np.asarray(bg.convert("RGB").resize((128, 128))).copy()).permute(2, 0, 1).float() / 255); want.append(s[0])
    top = (embed(net, torch.stack(real)) @ E.T).topk(5, 1).indices
    hit = [w in [label[j] for j in t.tolist()] for w, t in zip(want, top)]
    print("the training pictures themselves, all", len(label), "icons:", round(sum(hit) / len(hit), 3), "of", len(hit))
    im = np.asarray(Image.open(a.sheet).convert("RGBA")).astype(np.float32) / 255
    rgb = im[..., :3]
    good = []
    for i, (s, c, k, b) in enumerate(HOLD):
        y, x = i // 10 * 260, i % 10 * 260
        p = torch.from_numpy(rgb[y:y + 256, x:x + 256].copy()).permute(2, 0, 1)[None]
        big = lambda v: F.interpolate(v, (256, 256), mode="bilinear")
        wins = [p, big(p[:, :, 64:256, 32:224])] if not b else [big(p[:, :, 56:200, 0:144]), big(p[:, :, 56:200, 112:256])]
        t = [[label[j] for j in r.tolist()] for r in (embed(net, torch.cat(wins)) @ E.T).topk(5, 1).indices]
        ok = lambda s: any(n(s) in r for r in t)
        good.append((ok(s), ok(b) if b else None))
        if not good[-1][0]:
            print(prompt(i), "->", [names[r[0]] for r in t])
    print("right subject in the top 5:", sum(g[0] for g in good), "of", len(good), "; second subjects:", sum(bool(g[1]) for g in good), "of", sum(g[1] is not None for g in good))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    for k in ("work", "sheet", "net"):
        p.add_argument("--" + k)
    judge(p.parse_args())
