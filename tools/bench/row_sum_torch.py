"""torch.sum(-1) as row_sum_bench measures row_sum: same sizes, same rotation of inputs, events.

    row_sum_torch.py DTYPE ROWS COLUMNS      one line of JSON
"""
import json
import statistics
import sys

import torch

LAUNCHES, ROUNDS = 20, 15
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def main():
    name, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dtype = DTYPES[name]
    size = rows * columns * torch.empty((), dtype=dtype).element_size()
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    matrices = max(2, 4 * l2 // size + 1)
    inputs = [(torch.rand(rows, columns, device="cuda") * 2 - 1).to(dtype) for _ in range(matrices)]
    times = []
    for index in range(-2, ROUNDS):
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for i in range(LAUNCHES):
            torch.sum(inputs[i % matrices], -1)
        stop.record()
        stop.synchronize()
        if index >= 0:
            times.append(start.elapsed_time(stop) / LAUNCHES)
    ms = statistics.median(times)
    print(json.dumps({"dtype": name, "rows": rows, "columns": columns, "torch": torch.__version__,
                      "torch_us": ms * 1e3, "torch_gb_per_s": size / ms * 1e-6}))


main()
