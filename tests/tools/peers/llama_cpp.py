"""llama.cpp, driven line by line for `longtake-bench text`.

Reads one JSON request a line, writes one JSON reply a line:
    {"do": "load", "path": P, "threads": N, "kv_f32": B} -> {"version": V}
    {"do": "greedy", "text": T, "new": N}           -> {"prompt": [ids], "new": [ids]}
    {"do": "prefill", "ids": [ids]}                 -> {"secs": S, "cpu_secs": S}
    {"do": "decode", "prompt": [ids], "ids": [ids]} -> the same, of `ids` one by one
    {"do": "logits", "ids": [ids], "out": F}        -> {"vocab": V}; F holds f32 [ids, vocab]
Needs llama-cpp-python, built from source for the machine: see llama_cpp.txt and
    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python -r llama_cpp.txt
"""

import json
import sys
import time

import llama_cpp
import numpy as np


def load(request):
    global model
    threads = request["threads"]
    model = llama_cpp.Llama(
        request["path"],
        n_ctx=1024,
        n_batch=512,
        n_threads=threads,
        n_threads_batch=threads,
        type_k=0 if request.get("kv_f32") else None,
        type_v=0 if request.get("kv_f32") else None,
        verbose=False,
    )
    return {"version": llama_cpp.__version__}


def greedy(request):
    prompt = model.tokenize(request["text"].encode(), add_bos=False)
    model.reset()
    model.eval(prompt)
    new = []
    for _ in range(request["new"]):
        row = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.ctx, -1), (model.n_vocab(),))
        new.append(int(row.argmax()))
        model.eval(new[-1:])
    return {"prompt": prompt, "new": new}


def spent(start):
    return {"secs": time.perf_counter() - start[0], "cpu_secs": time.process_time() - start[1]}


def prefill(request):
    model.reset()
    start = time.perf_counter(), time.process_time()
    model.eval(request["ids"])
    return spent(start)


def decode(request):
    model.reset()
    model.eval(request["prompt"])
    start = time.perf_counter(), time.process_time()
    for token in request["ids"]:
        model.eval([token])
    return spent(start)


def logits(request):
    model.reset()
    with open(request["out"], "wb") as out:
        for token in request["ids"]:
            model.eval([token])
            row = llama_cpp.llama_get_logits_ith(model.ctx, -1)
            out.write(np.ctypeslib.as_array(row, (model.n_vocab(),)).astype("<f4").tobytes())
    return {"vocab": model.n_vocab()}


DO = {"load": load, "greedy": greedy, "prefill": prefill, "decode": decode, "logits": logits}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(DO[request["do"]](request)), flush=True)
