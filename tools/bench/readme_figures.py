"""Rewrites the tables of README.md between its <!-- figures --> marks from tools/bench/results/*.json.

    python3 tools/bench/readme_figures.py
"""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "..", "..", "README.md")


def load(name):
    path = os.path.join(HERE, "results", name + ".json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def row_sum_table(data):
    lines = [f"`row_sum` on an {data['gpu']} (driver {data['driver']}, ptxas {data['ptxas']}, {data['date']}), beside a",
             "device-to-device copy of as many bytes and `torch.sum(-1)` "
             f"(torch {data['figures'][0]['torch']}) in the same run:", "",
             "| Matrix | Heddle | GB/s | copy GB/s | of copy (aim 0.95) | torch | against torch (aim 1.00) |",
             "|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        lines.append(f"| {f['dtype']} {f['rows']}×{f['columns']} | {f['heddle_us']:.1f} µs | {f['heddle_gb_per_s']:.0f} "
                     f"| {f['copy_gb_per_s']:.0f} | {f['of_copy']:.2f} | {f['torch_us']:.1f} µs | {f['of_torch']:.2f}× |")
    return lines


def host_table(launch, compile_costs, interp, layout, compile_time):
    lines = ["| What | Figure | Aim |", "|---|---|---|"]
    if launch:
        lines.append(f"| one launch on the host, {launch['arguments']}, bursts of {launch['burst']} "
                     f"| {launch['heddle_launch_ns'] / 1e3:.2f} µs; {launch['heddle_above_bare_ns'] / 1e3:.2f} µs above "
                     "`cuLaunchKernelEx` | ≤ 0.3 µs above |")
        if "instructions_per_launch" in launch:
            lines.append(f"| instructions of one launch outside the driver | {launch['instructions_per_launch']} | |")
    if compile_costs:
        lines.append(f"| `row_sum` traced, optimised and printed as PTX | {compile_costs['to_ptx_us'] / 1e3:.2f} ms | ≤ 0.3 ms |")
        lines.append(f"| PTX to cubin besides ptxas itself | {compile_costs['above_ptxas_us'] / 1e3:.2f} ms | ≤ 3 ms |")
    if layout:
        for f in layout["figures"]:
            over = "" if 2 * f["call_us"] <= 1 else "; the host's pace decides, next is rows of plain integers"
            lines.append(f"| 2,000 {layout['what']}, {f['what']} | {2 * f['call_us']:.2f} ms | ≤ 1 ms{over} |")
    if interp:
        for f in interp["figures"]:
            lines.append(f"| interpreter, {f['what']} | {f['lane_ops_per_second'] / 1e9:.2f} billion lane-ops/s | {f['aim']} |")
    if compile_time:
        seconds = lambda name: f"{compile_time['seconds'][name]:.2f} s"
        lines.append(f"| g++ on a file that includes `<heddle/heddle.h>` alone | {seconds('heddle/heddle.h')}; "
                     f"`absl/status/statusor.h` alone {seconds('absl/status/statusor.h')}, `heddle/dsl/dsl.h` "
                     f"{seconds('heddle/dsl/dsl.h')} | ≤ 1 s |")
        lines.append(f"| g++ -O2 on the program above | {seconds('tests/downstream/main.cc')}; with `heddle.h` precompiled "
                     f"{seconds('tests/downstream/main.cc, heddle.h precompiled')} | ≤ 2 s |")
        lines.append(f"| g++ -O2 on `kernels/row_sum.cc`, for three element types | {seconds('kernels/row_sum.cc')} | |")
    return lines


def layout_kernels_table(data):
    lines = ["Kernels on layouts beside the same kernels written index by index, both by Heddle "
             f"({data['gpu']}, driver {data['driver']}, {data['date']}):", "",
             "| Program | Size | on layouts | by hand | ratio (aim 1.00) | GB/s | machine instructions | by hand |",
             "|---|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        lines.append(f"| {f['program']} | {f['size']} | {f['heddle_us']:.1f} µs | {f['by_hand_us']:.1f} µs | {f['ratio']:.3f} "
                     f"| {f['bytes'] / f['heddle_us'] / 1e3:.0f} | {f['instructions']} | {f['instructions_by_hand']} |")
    return lines


def learn_table(data):
    lines = ["The programs of `kernels/learn` beside twins in CUDA C++ by the same method, compiled with "
             f"`nvcc {data['flags']}`", f"({data['nvcc']}; {data['gpu']}, driver {data['driver']}, {data['date']}). "
             "Lines are lines of code: of ours, and of the", "kernels of the public program that it follows "
             "(`tools/bench/learn/originals.json`).", "",
             "| Program | Size | Lines, ours / original's | Heddle | nvcc | ours / nvcc's time |", "|---|---|---|---|---|---|"]
    for f in data["figures"]:
        lines.append(f"| `{f['program']}` | {f['size']} | {f['lines']} / {f['original_lines']} | {f['heddle_us']:.1f} µs "
                     f"| {f['nvcc_us']:.1f} µs | {f['ratio']:.2f} |")
    return lines


def main():
    lines = []
    row_sum = load("row_sum")
    if row_sum:
        lines += row_sum_table(row_sum) + [""]
    lines += host_table(load("launch"), load("compile"), load("interp"), load("layout"), load("compile_time"))
    learn = load("learn")
    if learn:
        lines += [""] + learn_table(learn)
    layout_kernels = load("layout_kernels")
    if layout_kernels:
        lines += [""] + layout_kernels_table(layout_kernels)
    with open(README) as file:
        text = file.read()
    body = "<!-- figures -->\n" + "\n".join(lines) + "\n<!-- /figures -->"
    text = re.sub(r"<!-- figures -->.*<!-- /figures -->", lambda _: body, text, flags=re.S)
    with open(README, "w") as file:
        file.write(text)


main()
