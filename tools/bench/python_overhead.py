"""What a call from Python costs the host: softmax of a small matrix by Heddle's package, as torch's operation, by torch and by Triton.

    HEDDLE_LIBRARY=libheddle.so PYTHONPATH=tools/python python3 python_overhead.py OUT

Microseconds of a call, the medians of bursts of 500 that take turns in an order that is drawn anew each round; the GPU is faster than the host."""
import json
import random
import statistics
import sys
import time

import torch

import heddle
import heddle.torch as ht
from gpu_machine import machine
from python_triton import softmax as triton_softmax

ROUNDS, BURST = 21, 500


def main():
    x = torch.randn(32, 128, device="cuda")
    y = torch.empty_like(x)
    calls = {"heddle": lambda: heddle.softmax(x), "heddle, into a tensor": lambda: heddle.softmax(x, y=y), "heddle.torch": lambda: ht.softmax(x),
             "torch": lambda: torch.softmax(x, -1), "triton": lambda: triton_softmax(x)}
    times = {name: [] for name in calls}
    expected = torch.softmax(x, -1)
    for name, call in calls.items():
        result = call()
        assert torch.allclose(y if isinstance(result, tuple) else result, expected, atol=1e-6), name
    for _ in range(ROUNDS):
        order = list(calls)
        random.shuffle(order)
        for name in order:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(BURST):
                calls[name]()
            times[name].append((time.perf_counter() - begin) / BURST * 1e6)
    figures = [{"call": name, "us": statistics.median(samples), "us_least": min(samples)} for name, samples in times.items()]
    for figure in figures:
        print(figure)
    with open(sys.argv[1], "w") as file:
        json.dump({**machine("python3 tools/bench/python_overhead.py OUT"), "benchmark": "python_overhead", "torch": torch.__version__, "figures": figures}, file, indent=1)
        file.write("\n")


main()
