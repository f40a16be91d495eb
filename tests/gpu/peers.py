"""What engine-bench is compared with on a GPU: torch, timed in the same session.

usage: peers.py OUT.json [llama qwen prefill picture attention dense vae]

With PEERS_WAIT=FILE nothing is timed before FILE is there: what is compiled first does not disturb others.

Writes {"about": versions, "samples": {row name of engine-bench: [figure, …]}}. Weights are random, times are
by CUDA events after warm-up, and each peer is the fastest way to write it that was found: one function,
torch.compile, a CUDA graph recorded by hand.
"""

import json
import os
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")
torch.set_grad_enabled(False)
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
GPU = "cuda"
samples = {}


def seconds(work, repeats, warm=5):
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    while os.environ.get("PEERS_WAIT") and not os.path.exists(os.environ["PEERS_WAIT"]):
        time.sleep(0.05)
    for _ in range(warm):
        work()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]


def keep(name, figures, unit):
    samples[name] = figures
    middle = sorted(figures)[len(figures) // 2]
    print(f"{name:44s} {middle:12.4f} {unit} [{min(figures):.4f}, {max(figures):.4f}]", flush=True)


def recorded(function, *inputs):
    """The replay of a CUDA graph of `function`."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(*inputs)
    torch.cuda.synchronize()
    return graph.replay


def decode(name, hidden, layers, heads, inner, vocab, tied, head_norms, tune):
    """One decode step at position 128 of a context of 1024, products fused as far as shapes allow."""
    import torch._inductor.config as inductor

    torch._dynamo.reset()
    inductor.coordinate_descent_tuning = tune
    kv, dim, context = 8, 128, 1024
    kind = dict(device=GPU, dtype=torch.bfloat16)

    def matrix(outputs, inputs):
        return torch.randn(outputs, inputs, **kind) * 0.02

    embed = matrix(vocab, hidden)
    head = embed if tied else matrix(vocab, hidden)
    weights = [
        dict(
            qkv=matrix((heads + 2 * kv) * dim, hidden),
            back=matrix(hidden, heads * dim),
            gate_up=matrix(2 * inner, hidden),
            down=matrix(hidden, inner),
            first=torch.ones(hidden, **kind),
            second=torch.ones(hidden, **kind),
            of_q=torch.ones(dim, **kind),
            of_k=torch.ones(dim, **kind),
            keys=torch.zeros(1, kv, context, dim, **kind),
            values=torch.zeros(1, kv, context, dim, **kind),
        )
        for _ in range(layers)
    ]
    last = torch.ones(hidden, **kind)
    frequencies = 1e6 ** (-torch.arange(0, dim, 2, device=GPU).float() / dim)
    places = torch.arange(context, device=GPU)

    def norm(x, weight):
        return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)

    def turn(x, cosines, sines):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1).to(torch.bfloat16)

    def step(token, position):
        x = F.embedding(token, embed)
        angles = position.float() * frequencies
        cosines, sines = angles.cos(), angles.sin()
        seen = (places <= position)[None, None, None]
        for w in weights:
            qkv = F.linear(norm(x, w["first"]), w["qkv"])
            q, k, v = qkv.split((heads * dim, kv * dim, kv * dim), -1)
            q, k, v = q.view(1, 1, heads, dim), k.view(1, 1, kv, dim), v.view(1, 1, kv, dim)
            if head_norms:
                q, k = norm(q, w["of_q"]), norm(k, w["of_k"])
            q, k = (turn(part.transpose(1, 2), cosines, sines) for part in (q, k))
            w["keys"].index_copy_(2, position, k)
            w["values"].index_copy_(2, position, v.transpose(1, 2))
            mixed = F.scaled_dot_product_attention(q, w["keys"], w["values"], attn_mask=seen, enable_gqa=True)
            x = x + F.linear(mixed.transpose(1, 2).reshape(1, 1, heads * dim), w["back"])
            gate, up = F.linear(norm(x, w["second"]), w["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w["down"])
        return F.linear(norm(x, last), head).argmax(-1)

    token = torch.zeros(1, 1, dtype=torch.long, device=GPU)
    position = torch.tensor([128], device=GPU)
    replay = recorded(torch.compile(step, fullgraph=True), token, position)
    keep(name, [1 / s for s in seconds(replay, 50)], "tokens/s")
    torch._dynamo.reset()


def prefill(name, tokens):
    """A prompt of the Llama-3-8B shape, causal, logits of the last token only."""
    torch._dynamo.reset()
    hidden, layers, heads, kv, dim, inner, vocab = 4096, 32, 32, 8, 128, 14336, 128256
    kind = dict(device=GPU, dtype=torch.bfloat16)

    def matrix(outputs, inputs):
        return torch.randn(outputs, inputs, **kind) * 0.02

    embed, head = matrix(vocab, hidden), matrix(vocab, hidden)
    weights = [
        (matrix((heads + 2 * kv) * dim, hidden), matrix(hidden, heads * dim), matrix(2 * inner, hidden), matrix(hidden, inner))
        for _ in range(layers)
    ]
    one = torch.ones(hidden, **kind)
    frequencies = 1e6 ** (-torch.arange(0, dim, 2, device=GPU).float() / dim)
    angles = torch.arange(tokens, device=GPU).float()[:, None] * frequencies
    cosines, sines = angles.cos(), angles.sin()

    def turn(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), -1).to(torch.bfloat16)

    @torch.compile(fullgraph=True)
    def layer(x, qkv, back, gate_up, down):
        y = F.linear(F.rms_norm(x, (hidden,), one, 1e-6), qkv)
        q, k, v = y.split((heads * dim, kv * dim, kv * dim), -1)
        q, k, v = (part.view(1, tokens, -1, dim).transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True, enable_gqa=True)
        x = x + F.linear(mixed.transpose(1, 2).reshape(1, tokens, heads * dim), back)
        gate, up = F.linear(F.rms_norm(x, (hidden,), one, 1e-6), gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, down)

    ids = torch.randint(0, vocab, (1, tokens), device=GPU)

    def work():
        x = F.embedding(ids, embed)
        for parts in weights:
            x = layer(x, *parts)
        return F.linear(F.rms_norm(x[:, -1:], (hidden,), one, 1e-6), head).argmax(-1)

    keep(name, [s * 1e3 for s in seconds(work, 9)], "ms")
    torch._dynamo.reset()


class Compact(nn.Module):
    """SRVGGNetCompact of the Real-ESRGAN repository, 64 features, twice the size."""

    def __init__(self, convs):
        super().__init__()
        body = [nn.Conv2d(3, 64, 3, 1, 1), nn.PReLU(64)]
        for _ in range(convs):
            body += [nn.Conv2d(64, 64, 3, 1, 1), nn.PReLU(64)]
        self.body = nn.Sequential(*body, nn.Conv2d(64, 12, 3, 1, 1))

    def forward(self, x):
        return F.pixel_shuffle(self.body(x), 2) + F.interpolate(x, scale_factor=2, mode="nearest")


def picture(name, convs):
    torch._dynamo.reset()
    model = Compact(convs).to(GPU, torch.float16).eval().to(memory_format=torch.channels_last)
    x = torch.rand(1, 3, 720, 1280, device=GPU, dtype=torch.float16).contiguous(memory_format=torch.channels_last)
    compiled = torch.compile(model)
    keep(name, [1 / s for s in seconds(lambda: compiled(x), 30)], "frames/s")
    torch._dynamo.reset()


class Growing(nn.Module):
    """A residual dense block of ESRGAN: 64 features, 32 more by each of four convolutions."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(64 + 32 * at, 32 if at < 4 else 64, 3, 1, 1) for at in range(5)])

    def forward(self, x):
        seen = [x]
        for conv in self.convs[:4]:
            seen.append(F.leaky_relu(conv(torch.cat(seen, 1)), 0.2))
        return self.convs[4](torch.cat(seen, 1)) * 0.2 + x


class Dense(nn.Module):
    """RRDBNet of the Real-ESRGAN repository at twice the size."""

    def __init__(self, blocks=23):
        super().__init__()
        self.first = nn.Conv2d(12, 64, 3, 1, 1)
        self.blocks = nn.ModuleList([nn.Sequential(Growing(), Growing(), Growing()) for _ in range(blocks)])
        self.trunk, self.up1, self.up2, self.high = (nn.Conv2d(64, 64, 3, 1, 1) for _ in range(4))
        self.last = nn.Conv2d(64, 3, 3, 1, 1)

    def forward(self, x):
        first = y = self.first(F.pixel_unshuffle(x, 2))
        for block in self.blocks:
            y = block(y) * 0.2 + y
        y = first + self.trunk(y)
        for up in (self.up1, self.up2):
            y = F.leaky_relu(up(F.interpolate(y, scale_factor=2, mode="nearest")), 0.2)
        return self.last(F.leaky_relu(self.high(y), 0.2))


def dense(name):
    torch._dynamo.reset()
    model = Dense().to(GPU, torch.float16).eval().to(memory_format=torch.channels_last)
    x = torch.rand(1, 3, 720, 1280, device=GPU, dtype=torch.float16).contiguous(memory_format=torch.channels_last)
    compiled = torch.compile(model)
    keep(name, [1 / s for s in seconds(lambda: compiled(x), 21)], "frames/s")
    torch._dynamo.reset()


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(32, inputs, 1e-6), nn.GroupNorm(32, outputs, 1e-6)])
        self.convs = nn.ModuleList([nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)])
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = x
        for norm, conv in zip(self.norms, self.convs):
            y = conv(F.silu(norm(y)))
        return y + self.shortcut(x)


class Mixing(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(32, channels, 1e-6)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        count, channels, height, width = x.shape
        tokens = self.norm(x).permute(0, 2, 3, 1).reshape(count, height * width, channels)
        q, k, v = self.qkv(tokens)[:, None].chunk(3, -1)
        mixed = self.out(F.scaled_dot_product_attention(q, k, v)[:, 0])
        return x + mixed.reshape(count, height, width, channels).permute(0, 3, 1, 2)


class Latents(nn.Module):
    """The decoder of AutoencoderKL with 128, 256, 512 and 512 channels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 512, 3, padding=1)
        self.middle = nn.Sequential(Residual(512, 512), Mixing(512), Residual(512, 512))
        self.levels, self.ups, before = nn.ModuleList(), nn.ModuleList(), 512
        for channels in (512, 512, 256, 128):
            self.levels.append(nn.Sequential(*[Residual(channels if at else before, channels) for at in range(3)]))
            before = channels
        for channels in (512, 512, 256):
            self.ups.append(nn.Conv2d(channels, channels, 3, padding=1))
        self.norm, self.last = nn.GroupNorm(32, 128, 1e-6), nn.Conv2d(128, 3, 3, padding=1)

    def forward(self, x):
        x = self.middle(self.first(x))
        for at, level in enumerate(self.levels):
            x = level(x)
            if at < 3:
                x = self.ups[at](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.norm(x)))


def vae(name):
    torch._dynamo.reset()
    model = Latents().to(GPU, torch.bfloat16).eval().to(memory_format=torch.channels_last)
    x = torch.rand(1, 4, 128, 128, device=GPU, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)
    compiled = torch.compile(model)
    keep(name, [1e3 * s for s in seconds(lambda: compiled(x), 15)], "ms")
    torch._dynamo.reset()


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def one(name, tokens, heads, kv, causal, backend):
        q = torch.randn(1, heads, tokens, 128, device=GPU, dtype=torch.bfloat16)
        k, v = (torch.randn(1, kv, tokens, 128, device=GPU, dtype=torch.bfloat16) for _ in range(2))
        with sdpa_kernel(backend):
            work = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv)
            times = seconds(work, 25)
        operations = 4 * tokens * tokens * heads * 128 * (0.5 if causal else 1)
        keep(name, [operations / s / 1e12 for s in times], "TFLOP/s")

    cudnn, flash = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
    one("attention-4608-24x128-both-ways", 4608, 24, 24, False, cudnn)
    one("attention-4608-24x128-both-ways-flash", 4608, 24, 24, False, flash)
    one("attention-8192-32x128-over-8-causal", 8192, 32, 8, True, cudnn)


def main():
    wanted = sys.argv[2:] or ["llama", "qwen", "prefill", "picture", "attention", "dense", "vae"]
    for what in wanted:
        start = time.time()
        try:
            if what == "llama":
                decode("decode-llama-3-8b-bf16", 4096, 32, 32, 14336, 128256, False, False, False)
            elif what == "qwen":
                decode("decode-qwen3-0.6b-bf16", 1024, 28, 16, 3072, 151936, True, True, True)
            elif what == "prefill":
                prefill("prefill-llama-3-8b-8192", 8192)
            elif what == "picture":
                picture("srvgg-x2-animevideov3-720p-f16", 16)
                picture("srvgg-x2-32-convs-720p-f16", 32)
            elif what == "attention":
                attention()
            elif what == "dense":
                dense("rrdbnet-x2-720p-f16")
            elif what == "vae":
                vae("vae-decode-1024")
        except Exception as error:  # a peer that fails leaves its row without a peer
            print(f"{what} failed: {type(error).__name__} {str(error)[:300]}", flush=True)
        torch.cuda.empty_cache()
        print(f"-- {what} took {time.time() - start:.0f} s", flush=True)
    about = f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, torch.compile"
    with open(sys.argv[1], "w") as file:
        json.dump({"about": about, "samples": samples}, file)


main()
