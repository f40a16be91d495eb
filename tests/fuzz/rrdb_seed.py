"""Makes seeds/ncnn/rrdb_1block.bin: an RRDB network of one block and one channel as ncnn stores it,
its text, a zero byte and its weights, of which all are 1 and all biases 0.

    python3 rrdb_seed.py
"""

import pathlib
import struct

layers, weights = ["Input in 0 1 data"], b""
LEAKY = " 9=2 -23310=1,2.000000e-01"
RESIDUAL = " 0=1 -23301=2,0.2,1.0"
TWICE = " 0=1 1=2.0 2=2.0"


def layer(kind, inputs, params=""):
    name = f"b{len(layers)}"
    layers.append(f"{kind} {name} {len(inputs)} 1 {' '.join(inputs)} {name}{params}")
    return name


def conv(source, channels, outputs=1, activation=""):
    global weights
    count = 9 * channels * outputs
    halves = struct.pack("<I", 0x01306B47) + struct.pack("<e", 1.0) * count
    weights += halves + bytes(-len(halves) % 4) + bytes(4 * outputs)
    params = f" 0={outputs} 1=3 4=1 5=1 6={count}{activation}"
    return layer("Convolution", [source], params)


first = last = block = conv("data", 3)
for _ in range(3):
    dense = [last]
    for channels in range(1, 5):
        source = dense[0] if channels == 1 else layer("Concat", dense)
        dense.append(conv(source, channels, activation=LEAKY))
    out = conv(layer("Concat", dense), 5)
    last = layer("Eltwise", [out, last], RESIDUAL)
last = conv(layer("Eltwise", [last, block], RESIDUAL), 1)
last = layer("BinaryOp", [first, last])
for _ in range(2):
    last = conv(layer("Interp", [last], TWICE), 1, activation=LEAKY)
conv(conv(last, 1, activation=LEAKY), 1, outputs=3)

text = f"7767517\n{len(layers)} {len(layers)}\n" + "\n".join(layers) + "\n"
place = pathlib.Path(__file__).parent / "seeds/ncnn/rrdb_1block.bin"
place.write_bytes(text.encode() + b"\0" + weights)
