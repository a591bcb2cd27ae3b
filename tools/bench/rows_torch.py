"""torch's kernels of rows beside what rows_bench measured, in the same sizes, with the same rotation of inputs.

    rows_torch.py ROWS_JSON [--compile] [--only REGEX] [--budget SECONDS]

Adds "torch_us" to each figure of the file, and "compiled_us" (torch.compile) with --compile; written after each.
"""
import argparse
import json
import re
import statistics
import time

import torch
import torch.nn.functional as F

LAUNCHES, ROUNDS = 20, 9
SCALES = {}  # of as many rows
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def rms_norm_backward(x, w, _, g):
    scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
    s, normed = w.float() * g.float(), x.float() * scale
    return (scale * (s - normed * (s * normed).mean(-1, keepdim=True))).to(x.dtype), (g * normed).sum(0).to(x.dtype)


def layer_norm_backward(x, w, _, g):
    variance, mean = torch.var_mean(x.float(), -1, correction=0, keepdim=True)
    scale = torch.rsqrt(variance + 1e-5)
    s, normed = w.float() * g.float(), (x.float() - mean) * scale
    dx = scale * (s - s.mean(-1, keepdim=True) - normed * (s * normed).mean(-1, keepdim=True))
    return dx.to(x.dtype), (g * normed).sum(0).to(x.dtype), g.float().sum(0).to(x.dtype)


# What torch.compile gets where torch has a kernel of its own.
FORMULAS = {"rms_norm_backward": rms_norm_backward, "layer_norm_backward": layer_norm_backward}
KERNELS = {
    "softmax": lambda x, w, t, g: torch.softmax(x, -1),
    "log_softmax": lambda x, w, t, g: torch.log_softmax(x, -1),
    "softmax_backward": lambda x, w, t, g: torch._softmax_backward_data(g, x, -1, x.dtype),
    "log_softmax_backward": lambda x, w, t, g: torch._log_softmax_backward_data(g, x, -1, x.dtype),
    "rms_norm": lambda x, w, t, g: F.rms_norm(x, w.shape, w, 1e-6),
    "layer_norm": lambda x, w, t, g: F.layer_norm(x, w.shape, w, w, 1e-5),
    "cross_entropy_backward": lambda x, w, t, g: torch.softmax(x, -1).scatter_add_(-1, t[:, None], t.new_full(
        (len(t), 1), -1, dtype=x.dtype)),
    "add_rms_norm": lambda x, w, t, g: (lambda s: (s, F.rms_norm(s, w.shape, w, 1e-6)))(x + g),
    # Of saved means and scales, which ours finds again.
    "rms_norm_backward": lambda x, w, t, g: torch.ops.aten._fused_rms_norm_backward(g, x, w.shape, SCALES[len(x)], w, [True, True]),
    "layer_norm_backward": lambda x, w, t, g: torch.ops.aten.native_layer_norm_backward(
        g, x, w.shape, SCALES[len(x)], SCALES[len(x)], w, w, [True, True, True]),
    "cross_entropy": lambda x, w, t, g: F.cross_entropy(x, t, reduction="none"),
}


def microseconds(call, sets):
    times = []
    for index in range(-2, ROUNDS):
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for i in range(LAUNCHES):
            call(*sets[i % len(sets)])
        stop.record()
        stop.synchronize()
        if index >= 0:
            times.append(start.elapsed_time(stop) / LAUNCHES * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--only", default="", help="regular expression of what is measured, as rows_bench's")
    parser.add_argument("--budget", type=float, default=1e9)
    args = parser.parse_args()
    with open(args.file) as file:
        data = json.load(file)
    data["torch"] = torch.__version__
    began = time.time()
    only = re.compile(args.only)
    for figure in data["figures"]:
        if time.time() - began > args.budget:
            break
        if not only.search(f"{figure['kernel']} {figure['dtype']} {figure['columns']}"):
            continue
        dtype, rows, columns = DTYPES[figure["dtype"]], figure["rows"], figure["columns"]
        gradient = torch.rand(rows, columns, device="cuda").to(dtype)
        sets = [((torch.rand(rows, columns, device="cuda") * 2 - 1).to(dtype), torch.rand(columns, device="cuda").to(dtype),
                 torch.randint(columns, (rows,), device="cuda"), gradient) for _ in range(2)]
        SCALES[rows] = torch.rand(rows, 1, device="cuda")
        kernel = KERNELS[figure["kernel"]]
        try:
            figure["torch_us"] = microseconds(kernel, sets)
        except RuntimeError as error:  # what torch's kernel does not take
            figure["torch_error"] = str(error)[:200]
        if args.compile:
            torch._dynamo.reset()
            try:
                compiled = torch.compile(FORMULAS.get(figure["kernel"], kernel), dynamic=False)
                compiled(*sets[0])
                figure["compiled_us"] = microseconds(compiled, sets)
            except Exception as error:  # what the compiler makes of a size it does not take
                figure["compiled_error"] = str(error)[:200]
        with open(args.file, "w") as file:
            json.dump(data, file, indent=1)
            file.write("\n")


main()
