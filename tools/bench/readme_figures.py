"""Writes the figures of tools/bench/results/*.json as tables: all of them in tools/bench/FIGURES.md, and a glance
between the <!-- figures --> marks of README.md.

    python3 tools/bench/readme_figures.py            writes both
    python3 tools/bench/readme_figures.py --check    fails where one of them says something else
"""
import json
import math
import os
import re
import sys

import gemm_figures
import product_figures

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "..", "..", "README.md")
FIGURES = os.path.join(HERE, "FIGURES.md")
GEMM_PLOT = os.path.join(HERE, "results", "gemm.svg")


def load(name):
    with open(os.path.join(HERE, "results", name + ".json")) as file:
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


def reduce_rows(data):
    """Reductions as a whole, for the glance."""
    figures = [f for f in data["figures"] if "of_read" in f]
    of_read = {along: [f["of_read"] for f in figures if f["along"] == along] for along in ("last", "first")}
    of_cub = [f["of_cub"] for f in figures if "of_cub" in f]
    node = next(f for f in data["figures"] if f["along"] == "graph" and f["columns"] == 65536)
    return [(f"`reduce` over rows and over columns of 256 MiB, {data['gpu']}: of the speed of a kernel that only reads (geometric means; least)",
             "; ".join(f"{geometric_mean(r):.2f}, {min(r):.2f}" for r in of_read.values()), "≥ 0.97"),
            ("the same, sums, how many times as fast as CUB (geometric mean; least)", f"{geometric_mean(of_cub):.1f}; {min(of_cub):.2f}", "≥ 1"),
            ("a sum of 64 Ki elements, a node of a graph", f"{node['heddle_us']:.2f} µs", "≤ 3.5 µs")]


def reduce_table(data):
    lines = [f"`reduce` of matrices of 256 MiB ({data['gpu']}, driver {data['driver']}, {data['date']}): the share of the speed of a kernel "
             "that only reads, in the same run, by the bytes that are read and written (aim 0.97), and how many times as fast as CUB's "
             "`DeviceReduce` and `DeviceSegmentedReduce` are (aim 1), which have sums of rows and of all alone, and a block a row: with more than "
             "600,000 rows they are left out.", "",
             "| Reduction | of each | Type | Matrix | Heddle | of reading | of CUB |", "|---|---|---|---|---|---|---|"]
    of = {"last": "row", "first": "column", "all": "matrix"}
    for f in data["figures"]:
        if f["along"] != "graph":
            cub = f"{f['of_cub']:.2f}" if "of_cub" in f else "–"
            lines.append(f"| {f['reduction']} | {of[f['along']]} | {f['dtype']} | {f['rows']} × {f['columns']} | {f['heddle_us']:.1f} µs "
                         f"| {f['of_read']:.2f} | {cub} |")
    nodes = [f"{f['columns']:,} of {f['dtype']} {f['heddle_us']:.2f} µs" for f in data["figures"] if f["along"] == "graph"]
    lines += ["", "A sum as one of a thousand nodes of a graph: " + ", ".join(nodes) + " (aim 3.5 µs for 65,536).", "",
              "What is missed: columns store a state for each stretch of rows and have them combined by a second launch (2 to 3 µs). Blocks of a cluster "
              "that combine their stretches, which this table had named as next, are faster where two of them for each column and for each multiprocessor are all that "
              "there are (bf16 8192 × 16384: 64.2 µs, otherwise 66.6), and slower elsewhere: with 8 or 16 blocks in a cluster multiprocessors stay empty (8192 × 8192 f32: "
              "67.6 and 69.9 µs, without 66.9; bf16 1040447 × 129: 99 and 108, without 76). What helps is fewer blocks: 4 for each multiprocessor in place of 32 "
              "(bf16 2097152 × 64: 0.94, before 0.86; variances of 8192 × 8192: 0.96, before 0.81), and half as many loads under way where the single rows that are left "
              "are many (bf16 1000 × 134217: 0.88, before 0.73; with 9 to 15 loads bf16 is slower than with 8 or 16). With 32 lanes beside each other, of a 128, more states "
              "are stored, with 8, rows are read in pieces of 128 bytes. Columns whose rows begin at odd places are taken as rows of several "
              "(one by one: 0.75 of bf16), whose states are as many again. Short odd rows are copied to shared memory, "
              "where each thread adds up one (bf16 of 31: 0.57 before). Those of 129 of bf16 are faster there (sum 72 µs, of lanes 83). "
              "The place of an extremum is looked for among the eight elements that have it (bf16 8192 × 16384 by rows: 62.6 µs; looked for among all, 79.6; one row of f32 "
              "is slower by 3 %). Next: rows of columns that begin at odd places, realigned in registers in place of folded.", ""]
    return lines


def maps_rows(data):
    """Maps and transposes as a whole, for the glance."""
    moved = lambda f: f["kernel"].split()[0] in ("transpose", "permute")
    rows = []
    for what, figures, aim in (("maps, casts, copies, dropout, rotary and embedding", [f for f in data["figures"] if not moved(f)], "≥ 1.00"),
                               ("transposes and permutations", [f for f in data["figures"] if moved(f)], "≥ 0.95")):
        of_copy, of_torch = [f["of_copy"] for f in figures], [f["torch_us"] / f["heddle_us"] for f in figures if "torch_us" in f]
        rows.append((f"{what}, {data['gpu']}: of the speed of the driver's copy (geometric mean; least)",
                     f"{geometric_mean(of_copy):.2f}; {min(of_copy):.2f}", aim))
        rows.append(("the same, how many times as fast as torch", f"{geometric_mean(of_torch):.2f}; {min(of_torch):.2f}", "≥ 1"))
    return rows


def maps_table(data):
    lines = [f"Maps, casts, copies, transposes, dropout, rotary and embeddings ({data['gpu']}, driver {data['driver']}, {data['date']}): the share that they reach of the speed "
             "of a device-to-device copy by the driver in the same run, by the bytes that each has to read and write (aim 1.00, of transposes 0.95), "
             f"and how many times as fast as torch {data['torch']} they are (aim 1). \"Behind one\": input and output begin one element behind an "
             "aligned address; \"shifted\": the input alone; \"8191 of 8193\": rows of so many elements of a matrix with more columns.", "",
             "| Kernel | Heddle | of copy | of torch |", "|---|---|---|---|"]
    for f in data["figures"]:
        torch = f"{f['torch_us'] / f['heddle_us']:.2f}" if "torch_us" in f else "–"
        lines.append(f"| {f['kernel']} | {f['heddle_us']:.1f} µs | {f['of_copy']:.2f} | {torch} |")
    lines += ["", "What is missed: transposes of odd extents go through tiles whose rows begin where a sector of the output does, of words that are "
              "shifted in shared memory (before: 0.84 of f32, 0.77 of bf16, 0.46 of bytes, on an H100); bytes take 12 instructions an element. Next: "
              "four by four bytes turned round in registers. Rows of three bytes leave a "
              "quarter of the lanes idle. `rotary` of halves and `embedding` read what lies apart: two or four streams, and rows in random order. Tensors of 64 MiB (permutations of u8) take 50 µs, of which 3 are a launch's beginning and end.", ""]
    return lines


def scan_rows(data):
    """Scans as a whole, for the glance."""
    of_copy, of_cub = [f["of_copy"] for f in data["figures"]], [f["of_cub"] for f in data["figures"] if "of_cub" in f]
    return [(f"`scan` of matrices of 256 MiB, {data['gpu']}: of a copy's speed; how many times as fast as CUB (geometric means; least)",
             f"{geometric_mean(of_copy):.2f}, {min(of_copy):.2f}; {geometric_mean(of_cub):.2f}, {min(of_cub):.2f}", "≥ 1 × CUB")]


def scan_table(data):
    lines = [f"`scan` of the rows of matrices of 256 MiB ({data['gpu']}, driver {data['driver']}, {data['date']}): the share of the speed of a "
             "device-to-device copy in the same run, and how many times as fast as CUB's `DeviceScan` it is (aim 1), which takes several rows by key.", "",
             "| Type | Matrix | Heddle | of copy | of CUB |", "|---|---|---|---|---|"]
    for f in data["figures"]:
        cub = f"{f['of_cub']:.2f}" if "of_cub" in f else "–"
        lines.append(f"| {f['dtype']} | {f['rows']} × {f['columns']} | {f['heddle_us']:.1f} µs | {f['of_copy']:.2f} | {cub} |")
    lines += ["", "Rows of many blocks are as fast as a copy only up to 0.67 to 0.87: blocks wait for the sums in front of their tile. Timed on an H200, of one row of "
              "2^26 f32: tiles of 512 threads and 4 vectors 198 µs; without the ticket that began tiles in order, and with one test for a whole tile, 178; "
              "256 threads and 10 vectors 167, 12 vectors 170, 512 threads and 8 vectors 172. Persistent blocks that load their next tile before they wait "
              "take 214 to 288: a tile's sum is then told only when the block is done with the tile before. Next: 16-bit elements that stay "
              "packed (128 registers a thread hold them as floats), so that three blocks fit instead of two.", ""]
    return lines


def topk_rows(data):
    """Top-k as a whole, for the glance."""
    faster = [f["torch_us"] / f["heddle_us"] for f in data["figures"]]
    small = [f["of_read"] for f in data["figures"] if f["k"] <= 8 and f["columns"] >= 8191 and f["input"] == "random"]
    return [(f"`topk` of matrices of 256 MiB, {data['gpu']}: times as fast as `torch.topk` (geometric mean; least); k ≤ 8 of rows ≥ 8191, of the "
             "speed of reading alone (geometric mean)", f"{geometric_mean(faster):.1f}, {min(faster):.1f}; {geometric_mean(small):.2f}", "≥ 1")]


def topk_table(data):
    lines = [f"`topk` of the rows of matrices of 256 MiB ({data['gpu']}, driver {data['driver']}, {data['date']}; torch {data['torch']}): the share of "
             "the speed of a kernel that only reads, and how many times as fast as `torch.topk` it is (aim 1; the CUB of CUDA 13.0 has none). `rising` "
             "rows are sorted so that each tile has new ones.", "",
             "| Type | Matrix | k | Heddle | of reading | of torch |", "|---|---|---|---|---|---|"]
    for f in data["figures"]:
        rising = " rising" if f["input"] == "rising" else ""
        lines.append(f"| {f['dtype']} | {f['rows']} × {f['columns']}{rising} | {f['k']} | {f['heddle_us']:.1f} µs | {f['of_read']:.2f} | "
                     f"{f['torch_us'] / f['heddle_us']:.1f} |")
    return lines + ["", TOPK_CAUSES, ""]


TOPK_CAUSES = (
    "What is missed: k = 1024 of rows of 8192, and `rising` rows of bf16. There a tile of 1024 threads is kept whole, its k best are found by digits "
    "of ten bits, some six barriers each, and sorted in 55 steps, 15 of which have a barrier (all had one: 1.2 to 1.3 times as long); a block alone fills a multiprocessor. Tried: a sort of all that is "
    "kept instead of digits (2 to 3 times as long), bounds by groups of threads for these k too, sixteen elements a thread (half as fast: "
    "shared memory leaves half of the blocks). bf16 takes as many instructions an element as f32, and is half as fast by bytes. Short rows: a "
    "warp finds one after the other by a reduction of 64 bits each. Next: compare pairs of 16-bit elements at once; "
    "radix by key before the column, which 16-bit keys leave no digits for.")


def sort_rows(data):
    """Sorts and histograms as a whole, for the glance."""
    def beside(what, large):
        return [f["of_cub"] for f in data["figures"] if f["what"].startswith(what) and "of_cub" in f and (f["elements"] > 1 << 24) == large]
    parts = [(name, beside(what, True), beside(what, False))
             for name, what in (("`sort`", "sort"), ("`histogram`", "histogram"))]
    return [(f"{name} of 2^25 elements and more beside CUB, {data['gpu']}: speed (geometric mean; least), of fewer elements (geometric mean)",
             f"{geometric_mean(many):.2f}, {min(many):.2f}; {geometric_mean(few):.2f}", "≥ 1.00") for name, many, few in parts]


def sort_table(data):
    lines = [f"`sort`, `sort_pairs` (with places of i32) and `histogram` beside CUB's DeviceRadixSort and DeviceHistogram ({data['gpu']}, driver "
             f"{data['driver']}, {data['date']}); how many times as fast, aim 1. The results are compared: of sorts they have the same bits.", "",
             "| What | Type | Elements | Input | Heddle | of CUB |", "|---|---|---|---|---|---|"]
    for f in data["figures"]:
        of_cub = f"{f['of_cub']:.2f}" if "of_cub" in f else ""
        lines.append(f"| {f['what']} | {f['dtype']} | {f['elements']} | {f['input']} | {f['heddle_us']:.1f} µs | {of_cub} |")
    return lines + ["", SORT_CAUSES, ""]


SORT_CAUSES = (
    "A pass counts a tile's digits before it ranks its elements, so that the tiles behind it learn of them soon. 32 of its instructions an element find the "
    "lanes of a warp that have the same digit, by a ballot for each of its bits; `match.any` is one instruction, and the sort with it takes 1.5 times as "
    "long on random keys. On an H100, of 2^26 u32: ranked first and counted then 1430 µs; counted first 1355 (22 elements of a thread), 1290 (26), 1245 (30), "
    "1248 (32: spilled). Of pairs of 8 bytes: two blocks of 384 threads a multiprocessor and 20 elements 2814 µs with what was spilled, which device memory "
    "had to write too, 2530 without; one block of 512 and 23 2330, 26 2278; of 768 and 20 2290. What is missed: pairs of few different values (0.93), whose "
    "runs CUB writes together, and pairs of 12 bytes (0.95): a block of 512 threads and 14 to 20 elements takes the same time, one of 384 and 20 one "
    "percent less. Next: two tiles under way in a block, so that one's elements leave while the other's are ranked.")


BENCH_PEERS = ("torch", "torch.compile", "triton", "cub")


def bench_by_kernel(data, by_type):
    """Of each operation, or of each of its element types: cases, the least and the most of a copy's speed, and peers' geometric
    means."""
    groups = {}
    for f in data["figures"]:
        beside = [f["settings"][name] for name in ("op", "dim") if f["settings"].get(name) not in (None, "sum", "last")]
        kernel, dtype = " ".join([f["kernel"], *beside]), f["settings"].get("dtype", "")
        groups.setdefault((kernel, dtype if by_type else ""), []).append(f)
    for (kernel, _), figures in groups.items():
        types = ", ".join(dict.fromkeys(f["settings"].get("dtype", "") for f in figures))
        of_copy = [f["of_copy"] for f in figures]
        peers = []
        for name in BENCH_PEERS:
            ratios = [f["versus"][name] for f in figures if name in f["versus"]]
            peers.append(f"{geometric_mean(ratios):.2f}" if ratios else "")
        between = f"{min(of_copy):.2f}" if len(of_copy) == 1 else f"{min(of_copy):.2f} to {max(of_copy):.2f}"
        yield f"| `{kernel}` | {types} | {len(figures)} | {between} | {' | '.join(peers)} |".replace("|  |", "| |").replace("|  |", "| |")


def bench_head(data):
    versions = ", ".join(f"{name} {version}".strip() for name, version in data["peers"].items() if name != "torch.compile")
    return (f"`heddle bench --suite full --against {','.join(data['peers'])}` in one run on an {data['gpu']} (driver {data['driver']}, {data['date']}; "
            f"{versions}): {len(data['figures'])} cases of 256 MiB and more, few of them smaller")


def bench_table(data, by_type=False):
    means = [f"{name} {geometric_mean([f['versus'][name] for f in data['figures'] if name in f['versus']]):.2f}" for name in BENCH_PEERS]
    return [f"{bench_head(data)}. The speed is that of the driver's copy of as many bytes; the peers' figures are their times over Heddle's, "
            f"geometric means over the cases that a peer has. Over all cases: {', '.join(means)}.", "",
            "| Operation | Type | Cases | of copy | × torch | × torch.compile | × Triton | × CUB |", "|---|---|---|---|---|---|---|---|",
            *bench_by_kernel(data, by_type)]


def bench_more_table(data):
    """Of operations that the suite's run had not yet."""
    return ["", f"In runs of their own, on an {data['gpu']} ({data['date']}):", "",
            "| Operation | Type | Cases | of copy | × torch | × torch.compile | × Triton | × CUB |", "|---|---|---|---|---|---|---|---|",
            *bench_by_kernel(data, by_type=True), "",
            "A row of 2^26 is many blocks': with a flag beside each sum `segmented_scan` takes 80 registers a thread of f32 and 173 of bf16, `scan` 64 "
            "and 128, and fewer blocks fit. Next: smaller tiles, and the flags of a vector as bits of one word.", "",
            "`heddle tune` measured 20 to 65 ways to deal out rows (softmax bf16 8192 x 8192 and 512 x 262144, f32 131072 x 1023; rms_norm bf16 "
            "32768 x 4096; rms_norm_quantized bf16 16384 x 8192; NVIDIA H100, 2026-11-28): the model's choice takes 1.000 to 1.006 times what the "
            "fastest does."]


def bench_details(data):
    """The drawing, and the cases that a peer is faster in."""
    slower = [(min(f["versus"].values()), f) for f in data["figures"] if f["versus"] and min(f["versus"].values()) < 0.98]
    lines = bench_table(data, by_type=True) + ["", "![speed over size](results/bench.svg)", "", "Cases in which a peer is more than 2 % faster:", "",
                                 "| Case | Heddle | of copy | the fastest peer |", "|---|---|---|---|"]
    for ratio, f in sorted(slower, key=lambda item: item[0]):
        name = min(f["versus"], key=f["versus"].get)
        beside = " ".join(f["settings"][key] for key in ("op", "dim") if f["settings"].get(key) not in (None, "sum", "last"))
        what = " ".join(filter(None, [f["kernel"], f["settings"].get("dtype", ""), f["shape"], beside]))
        lines.append(f"| {what} | {f['times']['heddle']['p50_us']:.1f} µs | {f['of_copy']:.2f} | {name}, {ratio:.2f} of our time |")
    return lines


def axpby_table(data):
    lines = [f"`axpby` on an {data['gpu']} (driver {data['driver']}, {data['date']}), beside a device-to-device copy of as many",
             "bytes in the same run. Arguments that are not aligned start one element past an aligned address, both of them:", "",
             "| Elements | beta | Heddle | GB/s | copy GB/s | of copy |",
             "|---|---|---|---|---|---|"]
    for f in data["figures"]:
        where = ", not aligned" if f["offset"] else ""
        lines.append(f"| {f['dtype']} {f['n']}{where} | {f['beta']:g} | {f['heddle_us']:.1f} µs "
                     f"| {f['heddle_gb_per_s']:.0f} | {f['copy_gb_per_s']:.0f} | {f['of_copy']:.2f} |")
    return lines


# Rows of (what, figure, aim). The glance shows some of them.
def launch_rows(data):
    above = (f"{data['heddle_launch_ns'] / 1e3:.2f} µs; {data['heddle_above_bare_ns'] / 1e3:.2f} µs above "
             "`cuLaunchKernelEx`")
    return [(f"one launch on the host, {data['arguments']}, bursts of {data['burst']}", above, "≤ 0.1 µs above"),
            ("the same of 8 tensors, beside `cuLaunchKernelEx` alone", f"{data['eight_tensors']['of_bare']:.2f} x", "≤ 1.05 x"),
            ("the first of them with a number that differs each time, so that nothing is remembered of the launch before",
             f"{data['changing_arguments']['heddle_above_bare_ns'] / 1e3:.2f} µs above `cuLaunchKernelEx`", ""),
            ("instructions of one launch outside the driver", f"{data['instructions_per_launch']}, 388 of them the stand-in driver's", "≤ 600")]


def graph_rows(data):
    rows = []
    for f in data["figures"][1:]:
        rows.append((f"a graph of {f['nodes']} kernels: its launch on the host, its time on the GPU; those of {f['nodes']} launches",
                     f"{f['graph_launch_ns'] / 1e3:.1f}, {f['graph_device_us']:.1f} µs; {f['kernel_launches_ns'] / 1e3:.1f}, {f['kernels_device_us']:.1f} µs", ""))
    return rows + [("another launch in the place of a graph's node", f"{data['set_kernel_ns'] / 1e3:.1f} µs", "")]


def compile_rows(data):
    return [("`row_sum` traced, optimised and printed as PTX", f"{data['to_ptx_us'] / 1e3:.2f} ms", "≤ 0.19 ms"),
            ("`tv_add` likewise", f"{data['tv_add_to_ptx_us'] / 1e3:.2f} ms", "≤ 1 ms"),
            ("`row_sum` from PTX to cubin, of which not ptxas itself: the program; the library", f"{(data['ptxas_us'] + data['above_ptxas_us']) / 1e3:.1f}, "
             f"{data['above_ptxas_us'] / 1e3:.2f} ms; {(data['library_us'] + data['above_library_us']) / 1e3:.1f}, {data['above_library_us'] / 1e3:.2f} ms", "≤ 3 ms"),
            ("`row_sum` to cubin in a second process, by the cache on disk: traced; recalled (`--recall=use`)",
             f"{data['second_process_us'] / 1e3:.2f}, {data['recalled_us'] / 1e3:.2f} ms", "≤ 0.3 ms")]


def warm_rows(data):
    return [(f"{data['kernels']} kernels by `compile_all()` in a process of their own, on {data['cores']} cores: cold, over the assembler's own time; "
             "from the disk, traced; recalled",
             f"{data['cold_ms'] * data['cores'] / data['assembler_ms']:.2f}; {data['traced_ms']:.0f} ms; {data['recalled_ms']:.0f} ms", "≤ 1.1; ≤ 100 ms")]


def layout_rows(data):
    return [(f"2,000 {data['what']}, {f['what']}", f"{2 * f['call_us']:.2f} ms", "≤ 1 ms") for f in data["figures"]]


def interp_rows(data):
    return [(f"interpreter, {f['what']}", f"{f['lane_ops_per_second'] / 1e9:.2f} billion lane-ops/s", f["aim"])
            for f in data["figures"]] + [
                ("interpreter, `gemm` of f16, 1024³, all checks", f"{data['gemm_seconds']:.2f} s", "≤ 3 s")]


def pipeline_rows(data):
    return [(f"all passes, for each op of 1,000, 10,000 and 100,000: {f['what']}",
             ", ".join(f"{us:.2f}" for us in f["us_per_op"]) + " µs", "≤ 1 µs") for f in data["figures"]]


def compile_time_rows(data):
    seconds = lambda name: f"{data['seconds'][name]:.2f} s"
    return [("g++ on a file that includes `<heddle/heddle.h>` alone",
             f"{seconds('heddle/heddle.h')}; `heddle/dsl/dsl.h` alone {seconds('heddle/dsl/dsl.h')}, `<string>`, `<vector>` "
             f"and `<memory>` alone {seconds('string vector memory')}", "≤ 0.8 s"),
            ("g++ -O2 on README's program",
             f"{seconds('tests/downstream/main.cc')}; with `heddle.h` precompiled "
             f"{seconds('tests/downstream/main.cc, heddle.h precompiled')}", "≤ 2 s"),
            ("g++ -O2 on `kernels/row_sum.cc`, for three element types", seconds("kernels/row_sum.cc"), "≤ 1.5 s")]


COMPILE_CAUSES = [
    "What compiling misses its aims by. `row_sum`: 22 passes run over 150 ops; uniformity takes 12 % of all instructions, verification 11 %, no",
    "other function more than 2 %. Tried: uniformity that is asked only where it decides, operations that are recorded once. Next: uniformity",
    "that passes hand on, which is found twice today. `tv_add`: it places 48 elements one by one, by 54,000 instructions each. Tried: operations",
    "that are recorded once where they were three times, numbers of layouts found by a hash, bounds of sums without expansion where all terms",
    "grow (2.5 ms before). Next: what the elements of a copy have in common computed once for all of them."]


def learn_rows(data):
    """How the programs compare as a whole, for the glance."""
    ratios = [f["ratio"] for f in data["figures"]]
    return [(f"{len(ratios)} programs of `kernels/learn`, their time over that of twins in CUDA C++",
             f"{min(ratios):.2f} to {max(ratios):.2f}", "")]


def cold_rows(data):
    rows = data["figures"]
    ratio = geometric_mean([row["heddle_library_ms"] / row["nvrtc_ms"] for row in rows])
    least, most = min(row["heddle_library_ms"] for row in rows), max(row["heddle_library_ms"] for row in rows)
    return [(f"a kernel from lambda to cubin in a fresh process, {len(rows)} kernels (`row_sum`, `kernels/learn`): over NVRTC's time for their twins "
             "(geometric mean); ms", f"{ratio:.2f}; {least:.1f} to {most:.1f}", "≤ 0.5")]


def cold_table(data):
    others = [key[:-3] for key in ("nvrtc_ms", "nvcc_ms", "torch.compile_ms", "triton_ms") if any(key in row for row in data["figures"])]
    lines = [f"From source to a cubin in a process that has compiled nothing, ms, medians of {data['rounds']} processes on {data['processor']} ({data['date']}). Heddle's: "
             "with ptxas in the process and as a program; in brackets what is not ptxas (aim: 1 ms). NVRTC's and nvcc's: of CUDA C++ twins (aim: half of NVRTC's time). "
             "torch.compile's and Triton's: the first call, without their imports.",
             "", "| Kernel | Heddle, library | Heddle, program | " + " | ".join(others) + " |", "|---" * (3 + len(others)) + "|"]
    for row in data["figures"]:
        told = [f"{row['heddle_library_ms']:.1f} ({row['own_library_ms']:.1f})", f"{row['heddle_ptxas_ms']:.1f} ({row['own_ptxas_ms']:.1f})"]
        told += [f"{row[key + '_ms']:.0f}" if key + "_ms" in row else "" for key in others]
        lines.append(f"| `{row['kernel']}` | " + " | ".join(told) + " |")
    return lines


def python_rows(data):
    us = {figure["call"]: figure["us"] for figure in data["figures"]}
    return [(f"a call from Python, `softmax` of 32 x 128, {data['gpu']} (torch {data['torch']}), of the host's time, µs: `heddle.softmax`, into a tensor that is "
             "there, `heddle.torch.softmax`; torch, Triton",
             f"{us['heddle']:.1f}, {us['heddle, into a tensor']:.1f}, {us['heddle.torch']:.1f}; {us['torch']:.1f}, {us['triton']:.1f}", "≤ torch; ≤ 0.5 × Triton")]


def tvm_ffi_rows(data):
    us = data["figures"]
    return [(f"a call of an exported `softmax` of 32 x 128 through TVM-FFI, {data['gpu']} (torch {data['torch']}, jax {data['jax']}), of the host's time, µs: of torch's "
             "tensors, `torch.softmax(out=)`; in JAX under jit, `jax.nn.softmax`",
             f"{us['tvm_ffi_torch_tensors']:.1f}, {us['torch_softmax_out']:.1f}; {us['jax_jit_heddle']:.1f}, {us['jax_jit_softmax']:.1f}", "≤ torch, ≤ JAX")]


def rows_table(rows):
    return ["| What | Figure | Aim |", "|---|---|---|"] + [f"| {what} | {figure} | {aim} |".replace("|  |", "| |") for what, figure, aim in rows]


def layout_kernels_table(data):
    lines = ["Kernels on layouts beside the same kernels written index by index, both by Heddle "
             f"({data['gpu']}, driver {data['driver']}, {data['date']}):", "",
             "| Program | Size | on layouts | by hand | ratio (aim 1.00) | GB/s | machine instructions | by hand |",
             "|---|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        lines.append(f"| {f['program']} | {f['size']} | {f['heddle_us']:.1f} µs | {f['by_hand_us']:.1f} µs | {f['ratio']:.3f} "
                     f"| {f['bytes'] / f['heddle_us'] / 1e3:.0f} | {f['instructions']} | {f['instructions_by_hand']} |")
    return lines


def counts(figure):
    """The cells of a pair's instructions and registers, ours and nvcc's, where the profiler counted them."""
    return [f"{figure[key]:g}" if key in figure else ""
            for key in ("heddle_instructions", "nvcc_instructions", "heddle_registers", "nvcc_registers")]


def learn_table(data):
    lines = ["The programs of `kernels/learn` beside twins in CUDA C++ that use the same method, compiled with "
             f"`nvcc {data['flags']}`", f"({data['nvcc']}; {data['gpu']}, driver {data['driver']}, {data['date']}). "
             "Lines are lines of code: of ours, and of the", "kernels of the public program that ours follows "
             "(`tools/bench/learn/originals.json`). Instructions are those that a thread executes", "for an element, or of `nbody` for a pair of "
             "bodies, by the profiler.", "",
             "| Program | Size | Lines, ours / original's | Heddle | nvcc | ours / nvcc's time | instructions | nvcc's | registers | nvcc's |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        lines.append(f"| `{f['program']}` | {f['size']} | {f['lines']} / {f['original_lines']} | {f['heddle_us']:.1f} µs "
                     f"| {f['nvcc_us']:.1f} µs | {f['ratio']:.2f} | {' | '.join(counts(f))} |".replace("|  |", "| |").replace("|  |", "| |"))
    return lines


def twins_rows(tables):
    """All kernels beside their twins, for the glance."""
    ratios = [f["ratio"] for data in tables for f in data["figures"] if "nvcc_us" in f]
    return [(f"{len(ratios)} kernels of the library, `kernels/learn` and public suites, their time over that of twins in CUDA C++ (`nvcc -O3`): geometric "
             "mean; above 1.03", f"{geometric_mean(ratios):.2f}; {sum(ratio > 1.03 for ratio in ratios)}", "≤ 0.97; none")]


def plain_rows(data):
    """How plain kernels compare as a whole, for the glance."""
    ratios = [f["ratio"] for f in data["figures"] if "nvcc_us" in f]
    return [(f"{len(ratios)} kernels without a word of speed, their time over that of twins by nvcc -O3 (geometric mean; least to most)",
             f"{geometric_mean(ratios):.2f}; {min(ratios):.2f} to {max(ratios):.2f}", "≤ 0.97; ≤ 1.03")]


def pairs_table(data, what):
    """Kernels beside their twins by nvcc: what pair_figures.py writes."""
    lines = [f"{what}, beside twins in CUDA C++ of the same algorithm, compiled with `nvcc {data['flags']}` "
             f"({data['nvcc']}; {data['gpu']}, driver {data['driver']}, {data['date']}). The aim is at most 1.03 each. "
             "Instructions are those that a thread executes for an element, by the profiler; where a side launches several kernels, their "
             "instructions together, and the most registers.", "",
             "| Kernel | Size | Heddle | peer | ours / peer's time | instructions | nvcc's | registers | nvcc's |",
             "|---|---|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        peer = f"{f['copy_us']:.1f} µs (copy)" if "copy_us" in f else f"{f['nvcc_us']:.1f} µs"
        lines.append(f"| `{f['program']}` | {f['size']} | {f['heddle_us']:.1f} µs | {peer} | {f['ratio']:.2f} | {' | '.join(counts(f))} |"
                     .replace("|  |", "| |").replace("|  |", "| |"))
    return lines


def plain_table(data):
    lines = pairs_table(data, "Kernels written without any word of speed (`tools/bench/plain`: no vectors, no unrolling, no launch-time arithmetic)")
    return lines + ["", "`scale_rows by 1` misses the aim by its blocks, each of which has a row: written by hand in CUDA C++, with vectors and four loads "
                    "at once, the same takes 207.9, 193.6 and 185.7 µs of 1023 × 65537, 8193 × 8191 and 8192 × 8192 where the driver copies in "
                    "183.3, 182.7 and 181.0 (`tools/bench/peers/row_copies.cu`, H100, 2026-11-27); eight loads at once and 512 threads were tried there. "
                    "Next: a pass that deals out rows anew, which changes the grid.", "",
                    "Where a kernel has more instructions than nvcc's, and is as fast, they are those of addresses (`codegen/PTXAS.md`): `walsh` computes eight "
                    "of them from four offsets by three instructions each. Those of `fft`, which is faster, and of `hash_insert` were not looked into. "
                    "`linear_search`, of 5 µs, differs from run to run: 0.98 and 1.06 in two of one day."]


def library_table(data):
    mean = geometric_mean([f["ratio"] for f in data["figures"]])
    return pairs_table(data, "Kernels of the library (`tools/bench/library`; `gemm`'s twins are CUTLASS's, below)") + [
        "", f"The geometric mean of the times is {mean:.3f}: most move bytes as fast as memory does, so that neither can be ahead. Ours take more "
        "instructions where they serve any extents, and the twins those of the benchmark alone (`add_row`, `copy_…`, `embedding`). None is "
        "above 1.03. What brought some there: the mean of a row first, and its three other sums in one reduction (`layer_norm_backward`, 1.11 before; "
        "one barrier less a reduction alone changed nothing); registers for six blocks a multiprocessor (`topk`, 1.09 before); numbers of threads that have "
        "32 bits and are divided by multipliers (`dropout`, 1.06 before)."]


COLLECTIVE_ROUNDS = 10000


def collectives_rows(data):
    """Collectives as a whole, for the glance."""
    ratios = [f["ratio"] for f in data["figures"]]
    return [(f"collectives of warps, blocks and clusters, {data['gpu']}: their time over that of cooperative groups' and CUB's (geometric mean; most)",
             f"{geometric_mean(ratios):.2f}; {max(ratios):.2f}", "≤ 1.00")]


def collectives_table(data):
    lines = [f"Collectives of warps, of blocks of 256 threads and of clusters of 8 such blocks ({data['gpu']}, driver {data['driver']}, {data['date']}; "
             f"`tools/bench/collectives`), beside cooperative groups (warps), CUB (blocks, whose reductions are handed to every thread, as ours are) and a "
             "cluster's sum by hand: the time of one, where each takes what the one before gave. The aim is at most 1.00.", "",
             "| Collective | Heddle | peer | ours / peer's time | registers | peer's |", "|---|---|---|---|---|---|"]
    for f in data["figures"]:
        each = [f"{f[side] * 1e3 / COLLECTIVE_ROUNDS:.1f} ns" for side in ("heddle_us", "nvcc_us")]
        lines.append(f"| `{f['program']}` | {each[0]} | {each[1]} | {f['ratio']:.2f} | {f.get('heddle_registers', '')} | {f.get('nvcc_registers', '')} |")
    return lines + ["", "A round is a loop's trip too, and an fma or a sum: of `warp_sum_i32`, one `redux` on both sides, these are a third.", ""]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def row_kernels(data):
    """The figures of kernels of rows, by kernel and type."""
    kernels = {}
    for f in data["figures"]:
        kernels.setdefault((f["kernel"], f["dtype"]), []).append(f)
    return kernels


def row_kernels_rows(data):
    """Kernels of rows as a whole, for the glance."""
    figures = data["figures"]
    of_copy = [f["of_copy"] for f in figures]
    return [(f"softmax, norms, cross-entropy of rows of 256 to 262,144 elements, {data['gpu']}: of a copy's speed (geometric mean; least)",
             f"{geometric_mean(of_copy):.2f}; {min(of_copy):.2f}", "≥ 0.96")]


def row_kernels_table(data):
    kernels = row_kernels(data)
    columns = [f["columns"] for f in next(iter(kernels.values()))]
    lines = ["Kernels of rows on a matrix of 256 MiB, by the elements of a row: the share that they reach of the speed of a device-to-device "
             f"copy in the same run, by the bytes that each has to read and write ({data['gpu']}, driver {data['driver']}, {data['date']}; "
             "the aim is 0.96, 0.93 for backward passes).", "",
             "| Kernel | Type | " + " | ".join(f"{n}" for n in columns) + " |", "|---|---|" + "---|" * len(columns)]
    for (kernel, dtype), figures in kernels.items():
        lines.append(f"| `{kernel}` | {dtype} | " + " | ".join(f"{f['of_copy']:.2f}" for f in figures) + " |")
    lines += ["", "Misses, with causes that no profile has confirmed: rows of 262,144 of f32 have two or three blocks of 64 KiB a multiprocessor, so that a "
              "block's way through the reduction is hidden less; norms then read their weights from L2 once a row. Norms of rows that begin at "
              "odd places take rows in turn that begin equally far behind aligned places, and so keep their weights in registers, where that was "
              "faster (layer_norm of bf16 32,771: 0.54 before); of 131,071 a cluster has 64 rows at most and waits 2 to 3 µs for each, and elsewhere "
              "weights are loaded one by one. Where launches store more than L2 holds, loads have the eviction "
              "priority evict_last (kernels/l2.h): 1 to 5 % faster than without in the same run, and the reason that torch.compile's norms were ahead; half of the loads give "
              "half of it, evict_last in L1 alone nothing; evict_first of loads or of stores is 1 to 5 % slower, of both no different. Which vectors lie in every row wherever it begins is known when kernels are traced, "
              "so that most loads of odd rows ask nothing (layer_norm of bf16 1,023: 0.91 before, cross_entropy_backward 0.94). The layer_norm of bf16 1,023 is in this run with more such vectors "
              "than now (0.90; as it is now 0.98, in a run of its own). Next: weights in a copy for each place that a row "
              "can begin at. "
              "Backward, norms read rows once, "
              "from registers or from shared memory of up to 16 blocks; rows of 262,144 still twice. A turn of a large cluster takes 2 to 3 µs from a row's "
              "arrival to its gradient, which two to four blocks of a multiprocessor hide in part; `layer_norm` keeps two sums of each column, so that "
              "fewer blocks have registers. A block of few rows waits for the first and the last ones: of 131,072 bf16 a cluster has 64. Tried: clusters "
              "of 4 and 8 (slower for all rows), 8 and 32 elements a thread, no fence in front of the next bulk copy (no difference), a cluster barrier "
              "a row instead of places for four turns (bf16 of 16,384: 269 µs instead of 218). Next: values of a row received two rows later. "
              "Peers get the rows' means and scales, which ours finds again; they are in the table of `heddle bench`.", ""]
    return lines


def passes_table(data):
    kernels = len(data["us"])
    rounds = "one round" if data["rounds"] == 1 else f"median of {data['rounds']} rounds"
    lines = [f"The time of {kernels} kernels without one pass of the optimiser over their time with all "
             f"({data['gpu']}, driver {data['driver']}, {data['date']}, {rounds}). Only ratios that are "
             "further than 2 % from 1 are shown, or than three rounds differ by, the largest first; for a pass that O3 does not run, the "
             "time with it.", "",
             "| Pass | kernels whose time it changes | time without it |", "|---|---|---|"]
    for f in data["figures"]:
        ratios = sorted(f["ratios"].items(), key=lambda item: -abs(item[1] - 1))
        told = [f"{kernel} {ratio:.{2 if abs(ratio - 1) > 0.02 else 3}f}" for kernel, ratio in ratios[:5]] + (["…"] if len(ratios) > 5 else [])
        if "rounds" in f:
            told[-1] += f" (median of {f['rounds']} rounds)"
        if f["left_out"]:
            told += [f"{kernel} cannot run: {why}" for kernel, why in f["left_out"].items()]
        if "gpu" in f:
            told[-1] += f" ({f['gpu']})"
        with_it = "" if f["in_O3"] else " (time with it)"
        lines.append(f"| `{f['pass']}`{with_it} | {len(ratios) + len(f['left_out'])} | {'; '.join(told) or 'none told apart'} |")
    return lines


def pass_sizes_table(data):
    lines = [f"The instructions of {data['kernels']} of the library's kernels without one pass over those with all, as they stand in the program "
             f"(`tools/bench/pass_sizes.py`, {data['date']}). Only ratios further than 2 % from 1 are counted: a pass that copies loops makes "
             "programs larger.", "",
             "| Pass | kernels that are larger without it | smaller | the most and the least |", "|---|---|---|---|"]
    for f in data["figures"]:
        ratios = sorted(f["ratios"].items(), key=lambda item: -item[1])
        larger = [ratio for _, ratio in ratios if ratio > 1]
        ends = dict([ratios[0], ratios[-1]]) if ratios else {}
        told = [f"{kernel.replace('dtype=', '')} {ratio:.2f}" for kernel, ratio in ends.items()]
        if f["cannot_be_compiled"]:
            told.append("cannot be compiled: " + ", ".join(f["cannot_be_compiled"]))
        lines.append(f"| `{f['pass']}` | {len(larger)} | {len(ratios) - len(larger)} | {'; '.join(told) or 'none'} |")
    return lines


def passes_without_evidence(times, sizes):
    """A sentence on passes that make no kernel faster or smaller in either table."""
    shown = {f["pass"] for data in (times, sizes) for f in data["figures"] if any(ratio > 1 for ratio in f["ratios"].values())}
    missing = [f"`{f['pass']}`" for f in sizes["figures"] if f["pass"] not in shown]
    return ["Neither table shows a kernel that is slower or larger without " + " or ".join(missing) + "."] if missing else []


def sanitizers_table(data):
    where = sorted({(f.get("gpu", data["gpu"]), f.get("date", data["date"])) for f in data["figures"]})
    lines = [f"Tests of the GPU that ran under the tools of compute-sanitizer ({'; '.join(', '.join(one) for one in where)}, driver {data['driver']}, "
             "`tools/bench/sanitizers.py`), how many of them the tool ended the program in, and how many have findings: faults, or what "
             "CONTRIBUTING.md explains.", "",
             "| Tests | Tool | passed | stopped | with faults | with explained findings |", "|---|---|---|---|---|---|"]
    return lines + [f"| {f['suite']} | `{f['tool']}` | {f['tests']} | {f.get('stopped', 0)} | {len(f['faults'])} | {len(f['explained'])} |"
                    + ("" if f["ended"] and not f["failed"] else " not all ended |") for f in data["figures"]]


def miss_profiles_table(data):
    lines = [f"What ncu says of cases above that miss their aims ({data['gpu']}, driver {data['driver']}, {data['date']}, "
             "`tools/bench/miss_profiles.py`), of the launch that takes most of the time, which runs alone on empty caches: what of each unit's "
             "peak is reached, and what warps wait for.", "",
             "| Case | launches, µs | this one | memory | L2 | L1 | issue | occupancy | warps wait for |", "|---|---|---|---|---|---|---|---|---|"]
    for f in data["figures"]:
        waits = ", ".join(f"{what} {100 * part:.0f} %" for what, part in f["stalls"].items())
        lines.append(f"| `{f['kernel']}` {f['settings']} {f['shape'].replace('x', ' × ')} | {f['launches']}, {f['all_ns'] / 1e3:.1f} | "
                     f"{f['duration_ns'] / 1e3:.1f} µs | " + " | ".join(f"{f[name]:.0f} %" for name in
                     ("dram_percent", "l2_percent", "l1_percent", "issue_percent", "occupancy_percent")) + f" | {waits} |")
    return lines


def math_cost_table(data):
    lines = ["Functions of float beside CUDA's of the same precision "
             f"(`nvcc -O3`; {data['gpu']}, driver {data['driver']}, {data['date']}): time of a loop that sums their values, and "
             "instructions that a value takes, where the profiler counted them. The aim is at most CUDA's.", "",
             "| Function | ours / CUDA's time | instructions | CUDA's |", "|---|---|---|---|"]
    for f in data["figures"]:
        counts = [f"{f[side]:g}" if side in f else "" for side in ("heddle_instructions", "cuda_instructions")]
        lines.append(f"| `{f['program']}` | {f['ratio']:.2f} | {counts[0]} | {counts[1]} |".replace("|  |", "| |"))
    return lines


def product_section():
    """The ladder of products, once it has been measured."""
    if not os.path.exists(os.path.join(HERE, "results", "product.json")):
        return []
    return [["## The ladder of products"], product_figures.table(load("product"))]


def paragraphs(*tables):
    return "\n\n".join("\n".join(table) for table in tables)


def all_figures():
    head = ["# Figures", "",
            "Figures of GPUs are medians; those of compiling C++ are the least processor time of five runs.",
            "`tools/bench/results` has the data behind the tables, with machine, versions and date.",
            "`tools/bench/readme_figures.py` wrote this page."]
    host = (launch_rows(load("launch")) + graph_rows(load("graph")) + compile_rows(load("compile")) + warm_rows(load("warm")) + layout_rows(load("layout"))
            + python_rows(load("python_overhead")) + tvm_ffi_rows(load("tvm_ffi")) + pipeline_rows(load("pipeline")) + interp_rows(load("interp")) + compile_time_rows(load("compile_time")))
    return paragraphs(head, ["## The library beside its peers"], bench_details(load("bench")), bench_more_table(load("bench_more")), ["## Row sums"], row_sum_table(load("row_sum")),
                      ["## Reductions"], reduce_table(load("reduce")), ["## Scans"], scan_table(load("scan")), ["## The greatest of rows"], topk_table(load("topk")), ["## Sorts and histograms"], sort_table(load("sort")), ["## Maps and copies"], maps_table(load("maps")), ["## Kernels of rows"], row_kernels_table(load("rows")), ["## Profiles of what misses its aims"], miss_profiles_table(load("miss_profiles")), ["## Scaled sums of vectors"], axpby_table(load("axpby")),
                      ["## Matrix products"], gemm_figures.tables(load("gemm"), load("gemm_h100")), *product_section(), ["## The host"], rows_table(host), COMPILE_CAUSES, ["## Cold compilations"], cold_table(load("cold")),
                      ["## Beside CUDA C++"], learn_table(load("learn")), ["## Plain kernels"], plain_table(load("plain")),
                      ["## The library's kernels"], library_table(load("library")), ["## Collectives"], collectives_table(load("collectives")), ["## Kernels on layouts"],
                      layout_kernels_table(load("layout_kernels")), ["## What the passes are worth"],
                      passes_table(load("passes")), pass_sizes_table(load("pass_sizes")),
                      passes_without_evidence(load("passes"), load("pass_sizes")), ["## Mathematical functions"],
                      math_cost_table(load("math_cost")), ["## Sanitizers"], sanitizers_table(load("sanitizers"))) + "\n"


def glance():
    rows = (launch_rows(load("launch"))[:1] + compile_rows(load("compile"))[:1] + cold_rows(load("cold")) + warm_rows(load("warm")) + python_rows(load("python_overhead")) + learn_rows(load("learn"))
            + plain_rows(load("plain")) + twins_rows([load("library"), load("learn"), load("plain")]) + reduce_rows(load("reduce")) + scan_rows(load("scan")) + topk_rows(load("topk")) + sort_rows(load("sort")) + collectives_rows(load("collectives")) + maps_rows(load("maps")) + row_kernels_rows(load("rows"))
            + interp_rows(load("interp"))[-2:-1] + compile_time_rows(load("compile_time"))[1:2])
    return paragraphs(bench_table(load("bench")), rows_table(rows))


def main():
    with open(README) as file:
        readme = file.read()
    body = f"<!-- figures -->\n{glance()}\n<!-- /figures -->"
    pages = {README: re.sub(r"<!-- figures -->.*<!-- /figures -->", lambda _: body, readme, flags=re.S),
             FIGURES: all_figures(), GEMM_PLOT: gemm_figures.plot(load("gemm"))}
    if sys.argv[1:] == ["--check"]:
        for path, text in pages.items():
            with open(path) as file:
                if file.read() != text:
                    print(f"{os.path.relpath(path)} is not what tools/bench/results says; "
                          "fix: python3 tools/bench/readme_figures.py")
                    return 1
        return 0
    for path, text in pages.items():
        with open(path, "w") as file:
            file.write(text)
    return 0


sys.exit(main())
