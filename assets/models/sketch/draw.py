"""Draws prompts on the CPU with the shipped weights: python draw.py MODEL WORK OUT.png COLS < prompts (one a line). WORK is what data.py made."""
import json, sys, types
import numpy as np, torch
from PIL import Image
import train
from model import Dit, Vae, Text

folder, work, out, cols = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
torch.set_grad_enabled(False)
import struct
f = open(folder + "/sketch.safetensors", "rb"); n = struct.unpack("<Q", f.read(8))[0]; head = json.loads(f.read(n)); blob = f.read()
get = lambda k: torch.from_numpy(np.frombuffer(blob[slice(*head[k]["data_offsets"])], {"I8": np.int8, "F16": np.float16}[head[k]["dtype"]]).astype(np.float32).reshape(head[k]["shape"]))
w = {k: get(k) for k in head if k != "__metadata__"}
full = {k: v * w[k + ".scale"].view(-1, *[1] * (v.ndim - 1)) if k + ".scale" in w else v for k, v in w.items() if not k.endswith(".scale")}
part = lambda p: {k[len(p):]: v for k, v in full.items() if k.startswith(p)}
net, vae = Dit().eval(), Vae().eval()
net.load_state_dict(part("transformer.")); vae.load_state_dict(part("vae."))
c = json.load(open(folder + "/config.json"))
mean, std = (torch.tensor(c["vae"]["latents_" + k])[:, None, None] for k in ("mean", "std"))
D = train.Data.__new__(train.Data)
D.tab = json.load(open(work + "/tokens.json"))
raw = torch.load(work + "/text.pt", weights_only=True)
q, sc = raw.pop("token_embd.weight")
raw["token_embd.weight"] = (q.view(len(q), -1, 32).float() * sc.float()[..., None]).view(len(q), -1)
D.text = Text({k: (train.unpack_q4_1(v[0], v[1]) if isinstance(v, (tuple, list)) else v.float()) for k, v in raw.items()}, D.tab["layers"])
D.text.set_prefix(D.tab["prefix"])
prompts = [l.strip() for l in sys.stdin if l.strip()]
ok = []
for p in prompts:
    try:
        D.encode_text([p]); ok.append(p)
    except AssertionError:
        print("cannot encode", p)
un = torch.zeros(1, train.TOK, 576); h = torch.tensor([D.tab["head"] + D.tab["tail"]]); un[:, :h.shape[1]] = D.text(h); unl = torch.tensor([h.shape[1]])
imgs = []
for i in range(0, len(ok), 8):
    txt, ln = D.encode_text(ok[i:i + 8])
    z = train.sample(net, txt, ln, un, unl, 16, 3.5, 1.5, seed=i)
    z = z.transpose(1, 2).unflatten(2, (16, 16)) * std + mean
    imgs.append(vae.decode(z).clamp(-1, 1) / 2 + .5)
    train.sheet(torch.cat(imgs), out, cols)
