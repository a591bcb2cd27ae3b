"""torch.topk beside what topk_bench measured, in the same sizes, with the same rotation.

    topk_torch.py TOPK_JSON

Adds "torch_us" to each figure of the file.
"""
import json
import statistics
import sys

import torch

LAUNCHES, ROUNDS = 5, 5
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def main():
    with open(sys.argv[1]) as file:
        data = json.load(file)
    data["torch"] = torch.__version__
    random = [torch.randn(2**26, device="cuda") for _ in range(2)]
    for figure in data["figures"]:
        dtype, rows, columns, k = DTYPES[figure["dtype"]], figure["rows"], figure["columns"], figure["k"]
        sets = [x.view(dtype) if dtype == torch.float32 else x.to(dtype).repeat(2) for x in random]
        if figure["input"] == "rising":
            sets = [torch.arange(columns, device="cuda").to(dtype).repeat(rows) for _ in range(2)]
        sets = [x[:rows * columns].view(rows, columns) for x in sets]
        values = torch.empty(rows, k, dtype=dtype, device="cuda")
        indices = torch.empty(rows, k, dtype=torch.int64, device="cuda")
        times = []
        for index in range(-1, ROUNDS):
            start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            for i in range(LAUNCHES):
                torch.topk(sets[i % 2], k, dim=1, out=(values, indices))
            stop.record()
            stop.synchronize()
            if index >= 0:
                times.append(start.elapsed_time(stop) / LAUNCHES * 1e3)
        figure["torch_us"] = statistics.median(times)
    with open(sys.argv[1], "w") as file:
        json.dump(data, file, indent=2)
        file.write("\n")


main()
