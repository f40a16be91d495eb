"""Trains the autoencoder, then the transformer, on pictures composed on the fly. See README.md."""
import argparse, json, math, os, re, time
import multiprocessing as mp
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from PIL import Image
import model
from model import Dit, Vae, Text, Block, DIT, VAE
from scenes import Sampler, bank, KINDS, TIMES, HUE, NSLOT, HOLD
import judge

PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+")
TOK, SIDE, PX = 32, 16, 256
START = time.time()
CUDA = torch.cuda.is_available()
DEV = "cuda" if CUDA else "cpu"
DT = torch.bfloat16 if CUDA else torch.float32


def pieces(caption, table, head, tail):
    ids = list(head)
    for p in PIECE.findall(caption):
        if p not in table:
            return None
        ids += table[p]
    return ids + list(tail)


def worker(q, index, hues, rows, seed, n, tab):
    s = Sampler(index, hues, rows, seed)
    while True:
        caps, bgs, sl, ids, ln = [], [], [], np.zeros((n, TOK), np.int64), np.zeros(n, np.int64)
        while len(caps) < n:
            c, b, k = s()
            p = pieces(c, tab["pieces"], tab["head"], tab["tail"])
            if p is None or len(p) > TOK:
                continue
            ids[len(caps), :len(p)], ln[len(caps)] = p, len(p)
            caps.append(c); bgs.append(b); sl.append(k)
        q.put((np.array(bgs, np.float32), np.array(sl, np.float32), ids, ln, caps[:64]))


def unpack_q4_1(raw, shape):
    b = raw.view(-1, 20)
    d, m = b[:, :2].contiguous().view(torch.float16).float(), b[:, 2:4].contiguous().view(torch.float16).float()
    q = torch.cat([b[:, 4:] & 15, b[:, 4:] >> 4], 1).float()
    return (q * d + m).view(*shape)


def cloth(I, Q):
    """1 where a colour is neither skin nor hair (which lie about the I axis), 0 where it is"""
    return ((Q.abs() - .75 * I) / .03 + .5).clamp(0, 1)


class Data:
    def __init__(self, a):
        self.index = json.load(open(a.data + "/index.json"))
        self.tab = json.load(open(a.text + "/tokens.json"))
        raw = torch.load(a.text + "/text.pt", weights_only=True)
        q, sc = raw.pop("token_embd.weight")   # as in the file: 8 bits, one step per 32
        raw["token_embd.weight"] = (q.view(len(q), -1, 32).float() * sc.float()[..., None]).view(len(q), -1)
        W = {k: (unpack_q4_1(v[0].to(DEV), v[1]) if isinstance(v, (tuple, list)) else v.float()).to(DEV, DT) for k, v in raw.items()}
        self.text = Text(W, self.tab["layers"])
        self.text.set_prefix(self.tab["prefix"])
        blob = np.memmap(a.data + "/sprites.bin", mode="r", dtype=np.uint8)
        n, S = len(self.index["sprites"]), self.index["size"]
        from concurrent.futures import ThreadPoolExecutor
        import io
        out = np.zeros((n, 4, S, S), np.uint8)

        def one(i):
            _, _, _, off, ln, w, h = self.index["sprites"][i]
            x = np.asarray(Image.open(io.BytesIO(blob[off:off + ln].tobytes())).convert("RGBA"))
            y0, x0 = (S - h) // 2, (S - w) // 2
            out[i, :, y0:y0 + h, x0:x0 + w] = x.transpose(2, 0, 1)
        with ThreadPoolExecutor(16) as ex:
            list(ex.map(one, range(n)))
        self.spr = torch.from_numpy(out).to(DEV)
        small = []
        for i in range(0, n, 512):
            v = self.spr[i:i + 512].float()
            v[:, :3] *= v[:, 3:] / 255
            self.spr[i:i + 512] = v.round().to(torch.uint8)
            small.append(F.avg_pool2d(v, 2).round().to(torch.uint8))
        self.half = torch.cat(small)
        self.wh = torch.tensor([[s[5] / S, s[6] / S] for s in self.index["sprites"]], device=DEV)
        hues = self.hues()
        g = torch.Generator(device=DEV).manual_seed(a.seed)
        rows, parts, at = {}, [], 0
        for k in KINDS:
            for t in TIMES:
                m = a.bank if t == "day" else a.bank // 2
                for _ in range(0, m, 16):
                    parts.append((bank(k, t, 16, PX, DEV, g) * 255).round().to(torch.uint8))
                rows[k, t] = (at, at + -(-m // 16) * 16)
                at = rows[k, t][1]
        self.bank = torch.cat(parts)
        self.q = mp.Queue(8 * a.workers)
        self.ps = [mp.Process(target=worker, args=(self.q, self.index, hues, rows, a.seed * 1000 + i, a.chunk, self.tab), daemon=True) for i in range(a.workers)]
        for p in self.ps:
            p.start()

    def hues(self):
        """per sprite: dominant hue (turns of the chroma plane of YIQ), how single-hued it is, and both again without skin and hair"""
        out = []
        for i in range(0, len(self.half), 512):
            v = self.half[i:i + 512].float() / 255
            r, g, b = v[:, 0], v[:, 1], v[:, 2]
            I, Q = .596 * r - .274 * g - .322 * b, .211 * r - .523 * g + .312 * b
            area, row = v[:, 3].sum((1, 2)).clamp(min=1), []
            for k in (torch.ones_like(I), cloth(I, Q)):
                a, b = (I * k).sum((1, 2)), (Q * k).sum((1, 2))
                m = (I ** 2 + Q ** 2).sqrt() * k
                full = .75 if not row else .12
                row += [torch.atan2(b, a) / 6.2832, (a ** 2 + b ** 2).sqrt() / m.sum((1, 2)).clamp(min=1e-3) * ((m > .12).float().sum((1, 2)) / area).clamp(max=full) / full]
            out.append(torch.stack(row, 1))
        return torch.cat(out).tolist()

    @torch.no_grad()
    def draw(self, bg, slots):
        """-> rgb over white where nothing is, and alpha: [n, 4, 256, 256] in 0..1"""
        n = len(bg)
        row = bg[:, 0].long()
        x = self.bank[row.clamp(min=0)].to(DT) / 255
        x = torch.where((row < 0)[:, None, None, None], bg[:, 1:4, None, None].to(DT), x)
        x = torch.cat([x, (row != -2).to(DT)[:, None, None, None].expand(n, 1, PX, PX)], 1)
        g = (torch.arange(PX, device=DEV) + .5) / PX
        v, u = torch.meshgrid(g, g, indexing="ij")
        for k in range(NSLOT):
            s = slots[:, k]
            on = (s[:, 0] >= 0).nonzero()[:, 0]
            for big in (0, 1):
                w = on[(s[on, 3] * PX > 112) == bool(big)]
                if not len(w):
                    continue
                p = s[w]
                i, (cx, cy, sc) = p[:, 0].long(), (p[:, j, None, None] for j in (1, 2, 3))
                y = x[w]
                ww, hh = self.wh[i].unbind(1)
                rx, by = ww[:, None, None] * sc * .46, cy + hh[:, None, None] * sc / 2
                sh = (1 - (((u - cx) / rx) ** 2 + ((v - by + .004) / (.018 + .03 * sc)) ** 2)).clamp(0, 1).sqrt() * .34 * p[:, 6, None, None]
                y = torch.cat([y[:, :3] * (1 - sh[:, None].to(DT)), y[:, 3:]], 1)
                grid = torch.stack([(u - cx) / sc * 2 * (1 - 2 * p[:, 4, None, None]), (v - cy) / sc * 2], -1)
                q = F.grid_sample((self.spr if big else self.half)[i].to(DT) / 255, grid.to(DT) if CUDA else grid, mode="bilinear", padding_mode="zeros", align_corners=False)
                c, sn = torch.cos(p[:, 5] * 6.2832), torch.sin(p[:, 5] * 6.2832)
                A = torch.tensor([[.299, .587, .114], [.596, -.274, -.322], [.211, -.523, .312]], device=DEV)
                Z = torch.zeros_like(c)
                Rm = torch.stack([torch.stack([Z + 1, Z, Z], 1), torch.stack([Z, c, -sn], 1), torch.stack([Z, sn, c], 1)], 1)
                M = torch.linalg.inv(A) @ Rm @ A
                M = M * (1 - p[:, 7, None, None] * torch.tensor([.38, .34, .14], device=DEV)[None, :, None])
                rgb = torch.einsum("nij,njhw->nihw", M.to(DT), q[:, :3])
                if len(on):
                    I, Q = .596 * q[:, 0] - .274 * q[:, 1] - .322 * q[:, 2], .211 * q[:, 0] - .523 * q[:, 1] + .312 * q[:, 2]
                    keep = (p[:, 8, None, None].to(DT) * (1 - cloth(I, Q)))[:, None]
                    rgb = rgb + keep * (q[:, :3] - rgb)
                rgb = torch.minimum(rgb.clamp(min=0), q[:, 3:])
                x[w] = torch.cat([rgb, q[:, 3:]], 1) + y * (1 - q[:, 3:])
        return x.clamp(0, 1)

    def batch(self):
        bg, sl, ids, ln, caps = self.q.get()
        t = lambda v: torch.from_numpy(v).to(DEV, non_blocking=True)
        return self.draw(t(bg), t(sl)), t(ids), t(ln), caps

    def encode_text(self, captions):
        ids = torch.zeros(len(captions), TOK, dtype=torch.long)
        ln = torch.zeros(len(captions), dtype=torch.long)
        for i, c in enumerate(captions):
            p = pieces(c, self.tab["pieces"], self.tab["head"], self.tab["tail"])
            assert p, c
            ids[i, :len(p)], ln[i] = torch.tensor(p), len(p)
        return self.text(ids.to(DEV)), ln.to(DEV)


def pack(a, raw, ema, state):
    """what a later run resumes from, in parts of less than 16 MiB"""
    t = time.time()
    keys = list(ema)
    half = len(keys) // 2
    for j, part in enumerate((keys[:half], keys[half:])):
        torch.save(dict(ema={k: ema[k].half() for k in part}, raw={k: raw[k].bfloat16() for k in part} if raw else {}, **state), f"{a.out}/part{j}.tmp")
        os.replace(f"{a.out}/part{j}.tmp", f"{a.out}/part{j}.pt")
    print("kept", state, round(time.time() - t, 1), "s", flush=True)


def eager(f, *v):
    with torch.compiler.set_stance("force_eager"):
        return f(*v)


def rgba(x):
    return x * 2 - 1


def sheet(x, path, cols):
    x = (x.float().clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()
    n, ch, h, w = x.shape
    r = -(-n // cols)
    im = np.full((r * (h + 4), cols * (w + 4), ch), 255, np.uint8)
    for i in range(n):
        a, b = (i // cols) * (h + 4), (i % cols) * (w + 4)
        im[a:a + h, b:b + w] = x[i].transpose(1, 2, 0)
    Image.fromarray(im).save(path)


class Critic(nn.Module):
    """looks at patches and says whether they are drawn or decoded"""

    def __init__(self, d=48):
        super().__init__()
        c = lambda i, o: nn.Conv2d(i, o, 4, 2, 1)
        self.net = nn.ModuleList([c(4, d), c(d, 2 * d), c(2 * d, 4 * d), nn.Conv2d(4 * d, 1, 3, 1, 1)])

    def forward(self, x):
        f = []
        for i, l in enumerate(self.net):
            x = l(x)
            if i < 3:
                x = F.leaky_relu(x, .2); f.append(x)
        return x, f


def train_vae(a, data):
    torch.manual_seed(a.seed)
    m, critic = Vae().to(DEV), Critic().to(DEV)
    if CUDA:
        m, critic = m.to(memory_format=torch.channels_last), critic.to(memory_format=torch.channels_last)
    lrs = torch.zeros(2, device=DEV)
    par = list(m.parameters())
    kw = dict(fused=True, capturable=True) if CUDA else {}
    opt = torch.optim.AdamW(par, lr=lrs[0] if CUDA else a.vae_lr, betas=(.9, .99), weight_decay=1e-4, **kw)
    copt = torch.optim.AdamW(critic.parameters(), lr=lrs[1] if CUDA else a.critic_lr, betas=(.5, .99), weight_decay=0, **kw)
    names = list(m.state_dict())
    live = [v for v in m.state_dict().values()]
    ema = [v.detach().clone().float() for v in live]
    keep = torch.zeros((), device=DEV)
    stat = torch.zeros(5, device=DEV)
    cast = lambda: torch.autocast(DEV, torch.bfloat16, enabled=CUDA)
    gx, gy = (lambda v: v[..., 1:] - v[..., :-1]), (lambda v: v[..., 1:, :] - v[..., :-1, :])

    def step(x, down, adv):
        with cast():
            mu, lv = m.encode(x)
            lv = lv.float().clamp(-12, 4); mu = mu.float()
            kl = .5 * (mu ** 2 + lv.exp() - 1 - lv).mean()
            z = mu + (lv * .5).exp() * torch.randn_like(mu)
            if down:
                z, x = F.avg_pool2d(z, 2), F.avg_pool2d(x, 2)
            out = m.decode(z)
        x, y = x.float(), out.detach().float().requires_grad_()
        l1 = (y - x).abs().mean()
        e = (gx(y) - gx(x)).abs().mean() + (gy(y) - gy(x)).abs().mean()
        p, q = F.avg_pool2d(y, 4), F.avg_pool2d(x, 4)
        e2 = (gx(p) - gx(q)).abs().mean() + (gy(p) - gy(q)).abs().mean() + (p - q).abs().mean()
        rec = l1 + e + .5 * e2
        gr, = torch.autograd.grad(rec, y)
        fool = torch.zeros((), device=DEV)
        if adv:
            for v in critic.parameters():
                v.requires_grad_(False)
            with cast():
                s, f = critic(y)
                _, t = critic(x)
            like = sum((b - c.detach()).float().abs().mean() for b, c in zip(f, t)) / 3
            fool = like - s.float().mean() * a.fool
            ga, = torch.autograd.grad(fool, y)
            gr = gr + ga * (a.adv * gr.norm() / (ga.norm() + 1e-8))
            for v in critic.parameters():
                v.requires_grad_(True)
        for v in par:
            v.grad = None
        torch.autograd.backward([out, kl * a.kl], [gr.to(out.dtype), None])
        torch.nn.utils.clip_grad_norm_(par, 1.0)
        opt.step()
        torch._foreach_mul_(ema, keep)
        torch._foreach_add_(ema, torch._foreach_mul([v.detach().float() for v in live], 1 - keep))
        hinge = torch.zeros((), device=DEV)
        if adv:
            for v in critic.parameters():
                v.grad = None
            with cast():
                r, g = critic(torch.cat([x, y.detach()]))[0].float().chunk(2)
            hinge = F.relu(1 - r).mean() + F.relu(1 + g).mean()
            hinge.backward()
            copt.step()
        stat.copy_(torch.stack([l1.detach(), e.detach(), kl.detach(), fool.detach(), hinge.detach()]))

    graphs, warm = {}, {}

    def run(x, down, adv):
        if not CUDA or a.no_graph:
            return step(x, down, adv)
        k = (tuple(x.shape), down, adv)
        if k not in graphs:
            warm.setdefault(k, [x.clone(memory_format=torch.channels_last), 0])
            warm[k][0].copy_(x)
            if warm[k][1] < 4:
                warm[k][1] += 1
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    step(warm[k][0], down, adv)
                torch.cuda.current_stream().wait_stream(side)
                return
            torch.cuda.synchronize()
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g):
                step(warm[k][0], down, adv)
            graphs[k] = g
        warm[k][0].copy_(x)
        graphs[k].replay()
    side = torch.cuda.Stream() if CUDA else None
    B, N = a.vae_batch, a.vae_pool
    pool = torch.empty(N, 4, PX, PX, dtype=torch.uint8, device=DEV)
    at = 0

    def fill():
        nonlocal at
        x = (data.batch()[0] * 255).round().to(torch.uint8)[:N]
        at = 0 if at + len(x) > N else at
        pool[at:at + len(x)] = x
        at += len(x)
    t0, it, log = time.time(), 0, []
    for _ in range(max(1, N // a.chunk)):
        fill()
    tl = time.time()
    print("vae pool", round(tl - t0, 1), "s", flush=True)
    while True:
        el = time.time() - t0
        fr = el / a.vae_seconds
        if fr >= 1 or it >= a.max_steps:
            break
        full, adv = fr > .68, fr > a.adv_from
        if it % 10 == 9:
            fill()
        k = torch.randint(0, N, (B if not full else B // 3,), device=DEV)
        x = pool[k]
        if not full:
            i, j = (torch.randint(0, 129, (2,)) // 4 * 4).tolist()
            x = x[..., i:i + 128, j:j + 128]
        x = (x.float() / 127.5 - 1).contiguous(memory_format=torch.channels_last if CUDA else torch.contiguous_format)
        lr = a.vae_lr * min(1, (it + 1) / 100) * min(1, (1 - fr) / .45 + .01)
        lrs.copy_(torch.tensor([lr, a.critic_lr * min(1, (1 - fr) / .2 + .05)]))
        keep.fill_(min(.998, (1 + it) / (10 + it)))
        if not CUDA:
            opt.param_groups[0]["lr"] = lr
        down = it % 5 == 4
        run(x, down, adv and not down)
        if not down:
            log.append(stat.clone())
        it += 1
        if it % 250 == 0 or it in (10, 50):
            v = [round(q, 4) for q in torch.stack(log[-200:]).mean(0).tolist()]
            print(f"vae {it} {el:.0f}s l1 {v[0]} edge {v[1]} kl {v[2]} fool {v[3]} hinge {v[4]} {'full' if full else 'crop'} {(time.time() - tl) * 1000 / 250:.1f} ms", flush=True)
            tl = time.time()
    m.load_state_dict(dict(zip(names, ema)))
    m.eval()
    with torch.no_grad(), cast():
        x = data.batch()[0][:a.sheet]
        mu = torch.cat([m.encode(rgba(data.batch()[0][:64].float()))[0].float() for _ in range(a.stat)])
        y = m.decode(m.encode(rgba(x.float()))[0]).float().clamp(-1, 1) / 2 + .5
    d = (y - x.float()) ** 2
    psnr = -10 * torch.log10(d[:, :3].mean((1, 2, 3)))
    mean, std = mu.mean((0, 2, 3)), mu.std((0, 2, 3))
    print("vae steps", it, "psnr", psnr.mean().item(), "worst", psnr.min().item(), "alpha mse", d[:, 3].mean().item(), "std", [round(v, 2) for v in std.tolist()], flush=True)
    sheet(torch.stack([x, y.to(x.dtype)], 1).flatten(0, 1), a.out + "/vae.png", 8)
    torch.save({"w": {k: v.half() for k, v in zip(names, ema)}, "mean": mean.cpu(), "std": std.cpu()}, a.out + "/vae.pt")


class Muon:
    """Orthogonalised momentum for the blocks' matrices, in stacks of one shape; Adam for the rest."""

    def __init__(self, model, lr, wd):
        self.lr, self.wd = lr, wd
        mats, rest = {}, []
        for n, p in model.named_parameters():
            if p.ndim == 2 and n.startswith("transformer_blocks"):
                mats.setdefault(min(p.shape) * 65536 + max(p.shape), []).append(p)
            else:
                rest.append(p)
        self.mats = list(mats.values())
        self.mom = [[torch.zeros_like(p) for p in g] for g in self.mats]
        self.adam = torch.optim.AdamW(rest, lr=lr, betas=(.9, .99), weight_decay=wd * .1, fused=CUDA)

    @staticmethod
    def turn(G):
        X = G / (G.norm(dim=(1, 2), keepdim=True) * 1.02 + 1e-7)
        for _ in range(5):
            A = X @ X.mT
            X = 3.4445 * X + (-4.775 * A + 2.0315 * A @ A) @ X
        return X

    @torch.no_grad()
    def step(self, lr):
        for g, mom in zip(self.mats, self.mom):
            gr = [p.grad for p in g]
            torch._foreach_mul_(mom, .95)
            torch._foreach_add_(mom, gr)
            G = torch.stack([(a + .95 * b) if p.shape[0] <= p.shape[1] else (a + .95 * b).T for a, b, p in zip(gr, mom, g)]).to(torch.bfloat16 if CUDA else torch.float32)
            X = Muon.turn(G)
            sc = .2 * math.sqrt(max(g[0].shape))
            up = [(u if p.shape[0] <= p.shape[1] else u.T).to(p.dtype) for u, p in zip(X, g)]
            torch._foreach_mul_(g, 1 - lr * self.wd)
            torch._foreach_add_(g, up, alpha=-lr * sc)
        for gp in self.adam.param_groups:
            gp["lr"] = lr
        self.adam.step()
        for g in self.mats:
            for p in g:
                p.grad = None
        self.adam.zero_grad(set_to_none=True)


@torch.no_grad()
def sample(net, txt, ln, un, unl, steps, cfg, shift, seed=0):
    g = torch.Generator(device=DEV).manual_seed(seed)
    n = len(txt)
    z = torch.randn(n, SIDE * SIDE, DIT["in_channels"], device=DEV, generator=g)
    s = torch.linspace(1, 0, steps + 1, device=DEV)
    s = shift * s / (1 + (shift - 1) * s)
    T2, L2 = torch.cat([txt, un.expand(n, -1, -1)]), torch.cat([ln, unl.expand(n)])
    for i in range(steps):
        with torch.autocast(DEV, torch.bfloat16, enabled=CUDA):
            v = net(torch.cat([z, z]).to(DT), T2, L2, s[i].expand(2 * n), SIDE).float()
        c, u = v.chunk(2)
        z = z + (s[i + 1] - s[i]) * (u + cfg * (c - u))
    return z


PROMPTS = ["a red apple on a table at night", "a fox in the snow", "a red lighthouse, flat style", "a dog in a park, flat style", "a cat cut out, flat style", "a blue car on a street",
           "a house in the mountains", "a sailboat on the sea at sunset", "an astronaut in space", "a castle on the hills, cartoon style", "a tree on a transparent background, flat style",
           "a woman walking in red on a transparent background, flat style", "a rocket in space, 3d", "two cats on the beach", "a dog and a cat cut out, cartoon style", "a man walking with light skin in green cut out, flat style",
           "a girl with dark skin cut out, flat style", "a camel in the desert", "a robot in a city at night", "an old woman with light skin in blue cut out, flat style", "a green apple", "a bear cut out, flat style",
           "an elephant next to a lion", "a house cut out, flat style", "a forest in the rain", "a city at night", "a pizza on a table, flat style",
           "a horse cut out, flat style", "a snowman in the snow at night", "a beach at sunset", "a purple dragon on the hills", "a boat cut out, flat style"]


def compiled():
    Block.forward = torch.compile(Block.forward, dynamic=False)
    Muon.turn = torch.compile(Muon.turn, dynamic=False)


def warm(a):
    """Compiles the transformer's step on made-up inputs into the cache on disk, while the autoencoder trains; a check as well."""
    t0 = time.time()
    compiled()
    net = Dit().to(DEV)
    opt = Muon(net, a.lr, a.wd)
    B = a.batch
    for i in range(3):
        with torch.autocast(DEV, torch.bfloat16, enabled=CUDA):
            v = net(torch.randn(B, SIDE * SIDE, 32, device=DEV).to(DT), torch.randn(B, TOK, 576, device=DEV).to(DT), torch.randint(6, 30, (B,), device=DEV), torch.rand(B, device=DEV), SIDE)
        v.float().square().mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step(a.lr)
        print("warm", i, round(time.time() - t0, 1), "s", v.float().std().item(), flush=True)
    if CUDA:
        torch.cuda.synchronize()
    t = time.time()
    for i in range(10):
        with torch.autocast(DEV, torch.bfloat16, enabled=CUDA):
            v = net(torch.randn(B, SIDE * SIDE, 32, device=DEV).to(DT), torch.randn(B, TOK, 576, device=DEV).to(DT), torch.randint(6, 30, (B,), device=DEV), torch.rand(B, device=DEV), SIDE)
        v.float().square().mean().backward()
        opt.step(a.lr)
    if CUDA:
        torch.cuda.synchronize()
    print("warm step", round((time.time() - t) * 100, 1), "ms", flush=True)


def train_dit(a, data):
    torch.manual_seed(a.seed + 1)
    ck = torch.load(a.vae, weights_only=True)
    vae = Vae().to(DEV, DT)
    vae.load_state_dict(ck["w"])
    if CUDA:
        vae = vae.to(memory_format=torch.channels_last)
    mean, std = ck["mean"].to(DEV), ck["std"].to(DEV)
    net = Dit().to(DEV)
    opt = Muon(net, a.lr, a.wd)
    state = {"step": 0, "seen": 0}
    ema = {k: v.detach().clone() for k, v in net.state_dict().items()}
    if a.resume:
        parts = [torch.load(f"{a.resume}/part{j}.pt", weights_only=True, map_location=DEV) for j in (0, 1)]
        net.load_state_dict({k: v.float() for p in parts for k, v in (p["raw"] or p["ema"]).items()})
        ema = {k: v.float() for p in parts for k, v in (p["ema"] or p["raw"]).items()}
        state = {k: parts[0][k] for k in state}
        print("resumed at", state, flush=True)

    @torch.no_grad()
    def make():
        x, ids, ln, _ = data.batch()
        mu = torch.cat([vae.encode(rgba(v).to(DT, memory_format=torch.channels_last))[0] for v in x.split(512)])
        z = (mu.float() - mean[:, None, None]) / std[:, None, None]
        return z.flatten(2).transpose(1, 2).to(torch.bfloat16), data.text(ids).to(torch.bfloat16), ln
    pool = [make() for _ in range(a.pool)]
    Z, T, L = (torch.cat(v) for v in zip(*pool))
    del pool
    n = len(Z)
    head = torch.tensor([data.tab["head"] + data.tab["tail"]], device=DEV)
    un = torch.zeros(1, TOK, 576, device=DEV, dtype=torch.bfloat16)
    un[:, :head.shape[1]] = data.text(head)
    unl = torch.tensor([head.shape[1]], device=DEV)
    ev = tuple(v[:256].clone() for v in (Z, T, L)); E = len(ev[0])
    gen = torch.Generator(device=DEV).manual_seed(7)
    evn, evt = torch.randn(ev[0].shape, device=DEV, generator=gen), (torch.arange(E, device=DEV) + .5) / E

    def loss_fn(z, noise, t, txt, ln):
        with torch.autocast(DEV, torch.bfloat16, enabled=CUDA):
            zt = (1 - t)[:, None, None] * z + t[:, None, None] * noise
            v = net(zt.to(DT), txt.to(DT), ln, t, SIDE)
        return ((v.float() - (noise - z)) ** 2).mean((1, 2))
    f = loss_fn
    if CUDA and not a.no_compile:
        compiled()
    t0, log, pos, it0, saved = time.time(), [], 0, state["step"], False
    a.dit_seconds = min(a.dit_seconds, a.deadline - (t0 - START))
    print("pool", n, "start", round(t0 - START), "s; run", round(a.dit_seconds), "s", flush=True)
    B = a.batch
    every = a.reuse   # steps between fresh chunks
    tl = time.time()
    curve = []
    while True:
        el = time.time() - t0
        fr = el / a.dit_seconds
        if fr >= 1 or state["step"] - it0 >= a.max_steps:
            break
        if state["step"] % every == 0:
            z, t, l = make()
            k = len(z)
            Z[pos:pos + k], T[pos:pos + k], L[pos:pos + k] = z, t, l
            pos = (pos + k) % n
        i = torch.randint(0, n, (B,), device=DEV)
        z, txt, ln = Z[i].float(), T[i], L[i]
        drop = torch.rand(B, device=DEV) < .1
        txt = torch.where(drop[:, None, None], un, txt)
        ln = torch.where(drop, unl, ln)
        t = torch.sigmoid(torch.randn(B, device=DEV) + a.tshift)
        loss = f(z, torch.randn_like(z), t, txt, ln).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        s = state["step"]
        lr = a.lr * min(1, (s - it0 + 1) / a.warm)
        if a.cool:
            lr *= min(1, (1 - fr) / a.cool + .005)
        opt.step(lr)
        d = min(a.ema, (1 + s) / (10 + s))
        with torch.no_grad():
            torch._foreach_lerp_(list(ema.values()), list(net.state_dict().values()), 1 - d)
        log.append(loss.detach())
        state["step"] += 1; state["seen"] += B
        if not saved and time.time() - START > a.save_at:
            saved = True
            pack(a, net.state_dict(), ema, state)
        if state["step"] % a.log == 0 or state["step"] - it0 in (20, 100):
            raw = {k: v.clone() for k, v in net.state_dict().items()}
            net.load_state_dict(ema)
            with torch.no_grad():
                e = eager(loss_fn, ev[0].float(), evn, evt, ev[1], ev[2])
            net.load_state_dict(raw)
            q = [round(v.mean().item(), 4) for v in e.chunk(4)]
            r = dict(step=state["step"], seen=state["seen"], s=round(el), loss=round(torch.stack(log[-a.log:]).mean().item(), 4), ema_by_t=q, lr=round(lr, 6))
            curve.append(r)
            print("dit", r, round((time.time() - tl) / a.log * 1000, 1), "ms", flush=True)
            tl = time.time()
    json.dump(curve, open(a.out + "/curve.json", "w"))
    pack(a, net.state_dict() if a.keep_raw else None, ema, state)
    net.load_state_dict(ema)
    net.eval()
    for what, prompts, cols in (("sample", PROMPTS, 8), ("judge", [judge.prompt(i) for i in range(len(HOLD))], 10)):
        txt, ln = data.encode_text(prompts)
        z = eager(sample, net, txt, ln, un, unl, 20, 3.5, a.shift)
        z = z.transpose(1, 2).unflatten(2, (SIDE, SIDE)) * std[:, None, None] + mean[:, None, None]
        with torch.no_grad():
            y = vae.decode(z.to(DT)).float().clamp(-1, 1) / 2 + .5
        sheet(y, f"{a.out}/{what}.png", cols)
    print("done", state, flush=True)


def main():
    p = argparse.ArgumentParser()
    for k, v in dict(data="data", text="text", out="out", vae="", resume="", keep="", stage="vae,dit").items():
        p.add_argument("--" + k, default=v)
    for k, v in dict(seed=1, workers=6, chunk=512, bank=192, vae_batch=96, sheet=32, stat=8, max_steps=10**9, batch=512, pool=100, reuse=8, warm=200, log=500, vae_pool=6144, judge=100000, near=100).items():
        p.add_argument("--" + k, type=int, default=v)
    for k, v in dict(vae_lr=1.5e-3, vae_seconds=150., judge_seconds=90., dit_seconds=400., kl=1.5e-3, lr=2e-3, wd=.02, ema=.9995, tshift=.2, shift=1.5, cool=0., deadline=1e9, save_at=1e9, critic_lr=8e-4, adv=.4, adv_from=.4, fool=.3).items():
        p.add_argument("--" + k, type=float, default=v)
    p.add_argument("--no-compile", action="store_true")
    p.add_argument("--no-graph", action="store_true")
    p.add_argument("--keep-raw", action="store_true")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    if CUDA:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        if not a.no_compile:
            torch._dynamo.config.recompile_limit = 64
            model.fast["norm"] = torch.compile(model.norm, dynamic=True)
    t = time.time()
    if "warm" in a.stage:
        return warm(a)
    data = Data(a)
    if "judge" in a.stage:
        return judge.train(a, data)
    if "near" in a.stage:
        return judge.near(a, data)
    print("data", round(time.time() - t, 1), "s, bank", tuple(data.bank.shape), "sprites", tuple(data.spr.shape), flush=True)
    x, _, ln, caps = data.batch()
    sheet(x[:a.sheet], a.out + "/data.png", 8)
    open(a.out + "/data.txt", "w").write("\n".join(caps))
    if "vae" in a.stage:
        train_vae(a, data)
        a.vae = a.vae or a.out + "/vae.pt"
    if "dit" in a.stage:
        train_dit(a, data)


if __name__ == "__main__":
    main()
