"""The two networks with the parameter names of diffusers' QwenImage21Transformer2DModel and AutoencoderKLQwenImage21
(padded batches, plain tensors: made for training), and the text encoder (first layers of a llama)."""
import math
import torch, torch.nn as nn, torch.nn.functional as F

DIT = dict(patch_size=1, in_channels=32, out_channels=32, num_layers=8, attention_head_dim=64, num_attention_heads=5,
           context_in_dim=576, mlp_ratio=3, axes_dims_rope=(8, 28, 28), eps=1e-6, causal_condition=True)
VAE = dict(base_dim=16, decoder_base_dim=32, z_dim=32, dim_mult=[1, 2, 4, 4, 4], num_res_blocks=1)
lin = lambda i, o: nn.Linear(i, o, bias=False)


class RMS(nn.Module):
    def __init__(self, d, eps, zero=False):
        super().__init__()
        self.weight, self.eps, self.zero = nn.Parameter(torch.zeros(d) if zero else torch.ones(d)), eps, zero

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (self.weight.float() + 1 if self.zero else self.weight.float())).to(x.dtype)


def rotate(x, cos, sin):   # x [B, S, H, D], cos and sin [B, S, D/2]
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    c, s = cos[:, :, None], sin[:, :, None]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2).to(x.dtype)


class Attn(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.to_q, self.to_k, self.to_v = lin(d, d), lin(d, d), lin(d, d)
        self.to_out = nn.ModuleList([lin(d, d)])
        self.norm_q, self.norm_k = RMS(d // heads, 1e-6), RMS(d // heads, 1e-6)

    def forward(self, x, cos, sin, T, bias):
        """bias [B, S]: 0 for a key that is seen, very negative for padding. It rides in a 65th dimension of the heads
        (queries hold 1 there), so that attention needs no mask and the flash kernel can run it."""
        q, k, v = (f(x).unflatten(-1, (self.h, -1)) for f in (self.to_q, self.to_k, self.to_v))
        d = q.shape[-1]
        q, k = rotate(self.norm_q(q), cos, sin), rotate(self.norm_k(k), cos, sin)
        one = torch.arange(8, device=x.device) == 0
        q = torch.cat([q, one.to(q.dtype).expand(*q.shape[:-1], 8)], -1).transpose(1, 2)
        k = torch.cat([k, torch.where(one, bias[:, :, None, None], 0).to(k.dtype).expand(*k.shape[:-1], 8)], -1).transpose(1, 2)
        v = F.pad(v, (0, 8)).transpose(1, 2)
        a = F.scaled_dot_product_attention(q[:, :, :T], k[:, :, :T], v[:, :, :T], is_causal=True, scale=d ** -.5)   # padding is last: never seen
        b = F.scaled_dot_product_attention(q[:, :, T:], k, v, scale=d ** -.5)
        return self.to_out[0](torch.cat([a, b], 2).transpose(1, 2)[..., :d].flatten(2))


class Mlp(nn.Module):
    def __init__(self, d, m):
        super().__init__()
        self.proj, self.out, self.gate_layer = lin(d, m), lin(m, d), lin(d, m)

    def forward(self, x):
        return self.out(F.silu(self.gate_layer(x)) * self.proj(x))


class Block(nn.Module):
    def __init__(self, d, heads, ratio):
        super().__init__()
        self.attn, self.img_mlp = Attn(d, heads), Mlp(d, d * ratio)

    def forward(self, x, mod, cos, sin, T, keys):
        """mod [B + 1, 4, d]: scale, gate, scale, gate of each picture; the last row is the text's"""
        B, N = x.shape[0], x.shape[1] - T
        split = lambda m: torch.cat([m[-1:, None].expand(B, T, -1), m[:-1, None].expand(B, N, -1)], 1)
        s1, g1, s2, g2 = (split(m) for m in mod.unbind(1))
        n = lambda v, s: F.layer_norm(v, v.shape[-1:], eps=1e-6) * (1 + s)
        x = x + g1 * self.attn(n(x, s1), cos, sin, T, keys)
        return x + g2 * self.img_mlp(n(x, s2))


class TimeMlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.linear_1, self.linear_2 = lin(256, d), lin(d, d)


class Dit(nn.Module):
    def __init__(self, c=DIT):
        super().__init__()
        d = self.d = c["attention_head_dim"] * c["num_attention_heads"]
        self.axes = c["axes_dims_rope"]
        self.time_text_embed = nn.ModuleDict({"timestep_embedder": TimeMlp(d)})
        self.txt_in = nn.ModuleDict({"text_norm": RMS(c["context_in_dim"], 1e-6, True), "in_layer": lin(c["context_in_dim"], d), "out_layer": lin(d, d)})
        self.img_in = lin(c["in_channels"], d)
        self.modulation = nn.Sequential(nn.SiLU(), lin(d, 4 * d))
        self.transformer_blocks = nn.ModuleList([Block(d, c["num_attention_heads"], c["mlp_ratio"]) for _ in range(c["num_layers"])])
        self.norm_out = nn.ModuleDict({"linear": lin(d, d)})
        self.proj_out = lin(d, c["out_channels"])
        for n, p in self.named_parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=p.shape[1] ** -.5 * (.3 if n.endswith(("to_out.0.weight", "img_mlp.out.weight")) else 1))
        for p in (self.modulation[1].weight, self.norm_out["linear"].weight, self.proj_out.weight):
            nn.init.normal_(p, std=.002)

    def forward(self, z, txt, length, t, side):
        """z [B, side*side, C], txt [B, T, D] right-padded with `length` valid rows, t [B] in 0..1 -> velocity."""
        B, N, _ = z.shape
        T, dev = txt.shape[1], z.device
        w = self.txt_in
        e = w["out_layer"](F.gelu(w["in_layer"](w["text_norm"](txt)), approximate="tanh"))
        x = torch.cat([e, self.img_in(z)], 1)
        tt = torch.cat([t, t.new_zeros(1)])
        f = torch.exp(-math.log(10000) * torch.arange(128, device=dev) / 128)
        a = 1000 * tt[:, None] * f
        te = self.time_text_embed["timestep_embedder"]
        temb = F.silu(te.linear_2(F.silu(te.linear_1(torch.cat([a.cos(), a.sin()], -1).to(te.linear_1.weight.dtype)))))
        mod = self.modulation[1](temb).unflatten(-1, (4, -1))
        mod = torch.stack([mod[:, 0], mod[:, 1].tanh(), mod[:, 2], mod[:, 3].tanh()], 1)
        g = torch.arange(N, device=dev)
        pos = torch.arange(T, device=dev).expand(B, T)
        rope = []
        for k, d in enumerate(self.axes):
            p = length[:, None].expand(B, N) if k == 0 else ((g // side if k == 1 else g % side) - (side - side // 2)).expand(B, N)
            rope.append(torch.cat([pos, p], 1)[..., None].float() / 10000 ** (torch.arange(0, d, 2, device=dev).float() / d))
        rope = torch.cat(rope, -1)
        cos, sin = rope.cos(), rope.sin()
        keys = torch.cat([torch.where(pos < length[:, None], 0., -30000.), torch.zeros(B, N, device=dev)], 1).to(x.dtype)
        for b in self.transformer_blocks:
            x = b(x, mod, cos, sin, T, keys)
        x = F.layer_norm(x[:, T:], (self.d,), eps=1e-6) * (1 + self.norm_out["linear"](temb)[:-1, None])
        return self.proj_out(x)


# ------------------------------------------------------------------ autoencoder (16x, RGBA), names as in diffusers
conv = lambda i, o, k=3: nn.Conv2d(i, o, k, padding=k // 2)


def norm(x, gamma, act):
    y = x.float()
    y = y * torch.rsqrt(y.pow(2).mean(1, keepdim=True) + 1e-12) * gamma.view(1, -1, 1, 1).float()
    return (F.silu(y) if act else y).to(x.dtype)


fast = {"norm": norm}   # train.py puts a compiled one here


class Norm(nn.Module):
    def __init__(self, d, n=3):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d, *[1] * n))

    def forward(self, x, act=False):
        return fast["norm"](x, self.gamma, act)


class Res(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1, self.norm2, self.conv2 = Norm(i), conv(i, o), Norm(o), conv(o, o)
        self.conv_shortcut = conv(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return self.conv2(self.norm2(self.conv1(self.norm1(x, True)), True)) + self.conv_shortcut(x)


class MidAttn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.to_qkv, self.proj = Norm(d, 2), nn.Conv2d(d, 3 * d, 1), nn.Conv2d(d, d, 1)

    def forward(self, x):
        q, k, v = self.to_qkv(self.norm(x)).flatten(2).transpose(1, 2)[:, None].contiguous().chunk(3, -1)
        return x + self.proj(F.scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2).reshape(x.shape))


class Mid(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attentions, self.resnets = nn.ModuleList([MidAttn(d)]), nn.ModuleList([Res(d, d), Res(d, d)])

    def forward(self, x):
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Down(nn.Module):
    def __init__(self, i, o, n, down, twice):
        super().__init__()
        self.o, self.down, self.twice = o, down, twice
        self.resnets = nn.ModuleList([Res(i if k == 0 else o, o) for k in range(n)])
        if down:
            self.downsampler = nn.ModuleDict({"resample": nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(o, o, 3, stride=2))})

    def forward(self, x):
        y = x
        for r in self.resnets:
            y = r(y)
        if self.down:
            y = self.downsampler["resample"](y)
            x = F.pixel_unshuffle(x, 2)
        if self.twice:   # the video form's empty first frame
            x = x.unflatten(1, (-1, 1, 4))
            x = torch.cat([torch.zeros_like(x), x], 2).flatten(1, 3)
        return y + x.unflatten(1, (self.o, -1)).mean(2)


class Up(nn.Module):
    def __init__(self, i, o, n, up):
        super().__init__()
        self.o, self.up = o, up
        self.resnets = nn.ModuleList([Res(i if k == 0 else o, o) for k in range(n + 1)])
        if up:
            self.upsampler = nn.ModuleDict({"resample": nn.Sequential(nn.Upsample(scale_factor=2.0, mode="nearest-exact"), conv(o, o))})

    def forward(self, x):
        y = x
        for r in self.resnets:
            y = r(y)
        if not self.up:
            return y
        return self.upsampler["resample"](y) + F.pixel_shuffle(x.repeat_interleave(self.o * 4 // x.shape[1], 1), 2)


class Half(nn.Module):
    def forward(self, x):
        x = self.conv_in(x)
        if hasattr(self, "up_blocks"):
            x = self.mid_block(x)
        for b in getattr(self, "up_blocks", None) or self.down_blocks:
            x = b(x)
        if hasattr(self, "down_blocks"):
            x = self.mid_block(x)
        return self.conv_out(self.norm_out(x, True))


class Vae(nn.Module):
    def __init__(self, c=VAE, ch=4):
        super().__init__()
        z, m, n = c["z_dim"], c["dim_mult"], c["num_res_blocks"]
        self.encoder, self.decoder = e, d = Half(), Half()
        w = [c["base_dim"] * k for k in [1] + m]
        e.conv_in = conv(ch, w[0])
        e.down_blocks = nn.ModuleList([Down(w[i], w[i + 1], n, i < len(m) - 1, 0 < i < len(m) - 1) for i in range(len(m))])
        e.mid_block, e.norm_out, e.conv_out = Mid(w[-1]), Norm(w[-1]), conv(w[-1], 2 * z)
        w = [c["decoder_base_dim"] * k for k in [m[-1]] + m[::-1]]
        d.conv_in, d.mid_block = conv(z, w[0]), Mid(w[0])
        d.up_blocks = nn.ModuleList([Up(w[i], w[i + 1], n, i < len(m) - 1) for i in range(len(m))])
        d.norm_out, d.conv_out = Norm(w[-1]), conv(w[-1], ch)
        self.quant_conv, self.post_quant_conv = nn.Conv2d(2 * z, 2 * z, 1), nn.Conv2d(z, z, 1)

    def encode(self, x):
        return self.quant_conv(self.encoder(x)).chunk(2, 1)

    def decode(self, z):
        return self.decoder(self.post_quant_conv(z))


# ------------------------------------------------------------------ text: the first layers of a small llama (GGUF names)
class Text:
    def __init__(self, W, layers, heads=9, kv=3, base=100000.0):
        self.W, self.n, self.h, self.kv, self.base, self.prefix = W, layers, heads, kv, base, None

    def rope(self, x, pos):
        d = x.shape[-1]
        a = pos.float()[:, None] / self.base ** (torch.arange(0, d, 2, device=x.device).float() / d)
        p, q = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([p * a.cos() - q * a.sin(), p * a.sin() + q * a.cos()], -1).flatten(-2).to(x.dtype)

    @torch.no_grad()
    def __call__(self, ids, keep=None):
        W, (B, T) = self.W, ids.shape
        x = F.embedding(ids, W["token_embd.weight"])
        p0 = self.prefix[0][0].shape[2] if self.prefix else 0
        pos = torch.arange(p0, p0 + T, device=ids.device)
        mask = torch.ones(T, p0 + T, dtype=torch.bool, device=ids.device).tril(p0)
        nrm = lambda v, w: F.rms_norm(v.float(), v.shape[-1:], w.float(), 1e-5).to(v.dtype)
        for i in range(self.n):
            g = lambda k: W[f"blk.{i}.{k}.weight"]
            h = nrm(x, g("attn_norm"))
            q, k, v = (F.linear(h, g("attn_" + c)).unflatten(-1, (-1, 64)).transpose(1, 2) for c in "qkv")
            q, k = self.rope(q, pos), self.rope(k, pos)
            if keep is not None:
                keep.append((k, v))
            if self.prefix:
                k, v = (torch.cat([a.expand(B, -1, -1, -1), b], 2) for a, b in zip(self.prefix[i], (k, v)))
            r = self.h // self.kv
            a = F.scaled_dot_product_attention(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1), attn_mask=mask)
            x = x + F.linear(a.transpose(1, 2).flatten(2), g("attn_output"))
            h = nrm(x, g("ffn_norm"))
            x = x + F.linear(F.silu(F.linear(h, g("ffn_gate"))) * F.linear(h, g("ffn_up")), g("ffn_down"))
        return x

    def set_prefix(self, ids):
        keep = []
        self(torch.tensor([ids], device=self.W["token_embd.weight"].device), keep)
        self.prefix = keep
