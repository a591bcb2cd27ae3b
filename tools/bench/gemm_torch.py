"""gemm beside cuBLAS (torch.mm) in bursts, the two in an order that changes each round. Prints JSON.

    gemm_torch.py GEMM_BENCH > results/gemm.json

Each round runs gemm_bench on a shape, as a process, and torch as gemm_bench measures gemm: eight products after
the GPU has been idle for a while, inputs that are random in [-1, 1] and take turns. A figure is the median of
the rounds.
"""
import json
import random
import statistics
import subprocess
import sys
import time

import torch

BURST, BURSTS, IDLE, ROUNDS = 8, 7, 0.25, 3
SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (16384, 16384, 16384), (4096, 4096, 1024),
          (4096, 28672, 4096), (4096, 4096, 14336), (512, 4096, 4096), (128, 4096, 4096)]


def by_torch(m, n, k):
    l2 = torch.cuda.get_device_properties(0).L2_cache_size

    def matrices(rows, columns):
        count = max(2, 4 * l2 // (rows * columns * 2) + 1)
        return [(torch.rand(rows, columns, device="cuda") * 2 - 1).to(torch.bfloat16) for _ in range(count)]

    a, b, d = matrices(m, k), matrices(n, k), matrices(m, n)
    times = []
    for burst in range(-1, BURSTS):
        torch.cuda.synchronize()
        time.sleep(IDLE)
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for i in range(BURST):
            torch.mm(a[i % len(a)], b[i % len(b)].t(), out=d[i % len(d)])
        stop.record()
        stop.synchronize()
        if burst >= 0:
            times.append(start.elapsed_time(stop) / BURST)
    return statistics.median(times) * 1e3


def by_heddle(m, n, k):
    ran = subprocess.run([sys.argv[1], str(m), str(n), str(k)], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)


def main():
    figures = []
    for m, n, k in SHAPES:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            for side in random.sample(["heddle", "torch"], 2):
                if side == "torch":
                    theirs.append(by_torch(m, n, k))
                    torch.cuda.empty_cache()
                else:
                    page = by_heddle(m, n, k)
                    ours.append(page["figures"][0]["heddle_us"])
        us, cublas_us = statistics.median(ours), statistics.median(theirs)
        operations = 2 * m * n * k
        figures.append({"dtype": "bf16", "m": m, "n": n, "k": k, "heddle_us": us,
                        "heddle_tflop_per_s": operations / us * 1e-6, "torch": torch.__version__,
                        "cublas_us": cublas_us, "cublas_tflop_per_s": operations / cublas_us * 1e-6,
                        "of_cublas": cublas_us / us})
    page.update({"command": "gemm_torch.py gemm_bench", "figures": figures})
    print(json.dumps(page, indent=2))


main()
