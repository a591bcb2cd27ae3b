"""torch's maps, casts, copies, transposes, dropout, rotary embeddings and embeddings beside what maps_bench measured, in the same sizes, with the same rotation.

    maps_torch.py MAPS_JSON

Adds "torch_us" to each figure of the file for which torch has an operation; what torch.compile makes of rotary embeddings,
which torch has not, is torch's there.
"""
import json
import re
import statistics
import sys

import torch
import torch.nn.functional as F

LAUNCHES, ROUNDS = 20, 9
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "u8": torch.uint8}


@torch.compile(dynamic=False)
def rotary(x, cosine, sine, halves):
    a, b = x.chunk(2, dim=-1) if halves else (x[..., 0::2], x[..., 1::2])
    c, s = cosine[:, None, :], sine[:, None, :]
    turned = ((a * c - b * s).to(x.dtype), (b * c + a * s).to(x.dtype))
    return torch.cat(turned, dim=-1) if halves else torch.stack(turned, dim=-1).flatten(-2)


class Memory:
    """Two sets of two inputs and an output, of 1 GiB each."""

    def __init__(self):
        self.sets = [[torch.rand(2**28, device="cuda") for _ in range(3)] for _ in range(2)]

    def of(self, dtype):
        return [[tensor.view(dtype) for tensor in one] for one in self.sets]


def calls(title):
    """call(a, b, y) on the flat memories, or None."""
    match = re.fullmatch(r"(.*) (f32|bf16|u8)(?: (\S+))?", title)
    name, dtype, shape = match[1], DTYPES[match[2]], match[3]
    size = dtype.itemsize
    n, columns = 2**28 // size, 8192
    rows = n // columns
    matrix = lambda x: x[:n].view(rows, columns)
    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    if shape:
        extents = [int(e) for e in shape.split("x")]
        order = [1, 0] if name == "transpose" else [int(d) for d in name.split()[1]]
        count = 1
        for extent in extents:
            count *= extent
        return dtype, lambda a, b, y: y[:count].view([extents[d] for d in order]).copy_(a[:count].view(extents).permute(order))
    if name.startswith("rotary"):
        tokens = n // 32 // 128
        angles = torch.rand(2, tokens, 64, device="cuda")
        return dtype, lambda a, b, y: rotary(a[:n].view(tokens, 32, 128), angles[0], angles[1], name == "rotary halves")
    if name.startswith("embedding"):
        width = int(name.split()[-1])
        ids = torch.randperm(n // width, device="cuda")
        return dtype, lambda a, b, y: torch.index_select(a[:n].view(-1, width), 0, ids, out=y[:n].view(-1, width))
    table = {
        "dropout": lambda a, b, y: F.dropout(a[:n], 0.1),
        "copy": lambda a, b, y: y[:n].copy_(a[:n]),
        "copy behind one": lambda a, b, y: y[1:n + 1].copy_(a[1:n + 1]),
        "copy shifted": lambda a, b, y: y[:n].copy_(a[1:n + 1]),
        "copy 8191 of 8193": lambda a, b, y: y[:rows * 8193].view(rows, 8193)[:, :8191].copy_(a[:rows * 8193].view(rows, 8193)[:, :8191]),
        "cast": lambda a, b, y: y.view(other)[:n].copy_(a[:n]),
        "fill": lambda a, b, y: y[:n].fill_(1),
        "add": lambda a, b, y: torch.add(a[:n], b[:n], out=y[:n]),
        "add a row": lambda a, b, y: torch.add(matrix(a), b[:columns], out=matrix(y)),
        "add a column": lambda a, b, y: torch.add(matrix(a), b[:rows, None], out=matrix(y)),
        "add the transpose": lambda a, b, y: torch.add(a[:2**26].view(8192, 8192), b[:2**26].view(8192, 8192).t(),
                                                       out=y[:2**26].view(8192, 8192)),
        "multiply by a number": lambda a, b, y: torch.mul(a[:n], 0.5, out=y[:n]),
        "relu": lambda a, b, y: torch.clamp_min(a[:n], 0, out=y[:n]),
        "silu": lambda a, b, y: torch.ops.aten.silu.out(a[:n], out=y[:n]),
        "gelu": lambda a, b, y: torch.ops.aten.gelu.out(a[:n], out=y[:n]),
        "swiglu": lambda a, b, y: F.silu(a[:n]).mul_(b[:n]),
    }
    return dtype, table.get(name)


def main():
    memory = Memory()
    with open(sys.argv[1]) as file:
        data = json.load(file)
    data["torch"] = torch.__version__
    for figure in data["figures"]:
        dtype, call = calls(figure["kernel"])
        if call is None:
            continue
        sets, times = memory.of(dtype), []
        for index in range(-2, ROUNDS):
            start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            for i in range(LAUNCHES):
                call(*sets[i % 2])
            stop.record()
            stop.synchronize()
            if index >= 0:
                times.append(start.elapsed_time(stop) / LAUNCHES * 1e3)
        figure["torch_us"] = statistics.median(times)
    with open(sys.argv[1], "w") as file:
        json.dump(data, file, indent=2)
        file.write("\n")


main()
