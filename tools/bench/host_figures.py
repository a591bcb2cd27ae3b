"""Runs the host benchmarks and writes their figures as JSON. For a machine with nothing else to do.

    host_figures.py PROGRAMS OUT      PROGRAMS: folder with compile_bench, interp_bench and
                                     layout_bench; OUT: for files
"""
import datetime
import json
import os
import subprocess
import sys


def benchmarks(program):
    run = subprocess.run([program, "--benchmark_format=json", "--benchmark_min_time=1"], check=True,
                         capture_output=True, text=True)
    return {b["name"]: b for b in json.loads(run.stdout)["benchmarks"]}


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {"processor": model, "date": datetime.date.today().isoformat(),
            "command": "python3 tools/bench/host_figures.py PROGRAMS OUT"}


def main():
    programs, out = sys.argv[1], sys.argv[2]
    compile_bench = benchmarks(os.path.join(programs, "compile_bench"))
    ptx, cubin = compile_bench["to_ptx"], compile_bench["to_cubin"]
    interp = benchmarks(os.path.join(programs, "interp_bench"))
    layout = benchmarks(os.path.join(programs, "layout_bench"))
    figure = lambda name, what, aim: {"what": what, "lane_ops_per_second": interp[name]["lane_ops/s"], "aim": aim}
    files = {
        "compile": {**machine(), "kernel": "row_sum f32, block 512", "to_ptx_us": ptx["real_time"],
                    "trace_us": ptx["trace_us"], "passes_us": ptx["passes_us"], "emit_us": ptx["emit_us"],
                    "ptxas_us": cubin["ptxas_us"], "above_ptxas_us": cubin["above_ptxas_us"]},
        "interp": {**machine(), "figures": [
            figure("BM_Arithmetic/f32_unchecked", "f32 arithmetic in a loop, checks off", "≥ 1 billion"),
            figure("BM_Arithmetic/f32_checked", "f32 arithmetic in a loop, checks on", "≥ 0.2 billion"),
            figure("BM_Sum/checked", "a load and an fma a trip, checks on", "≥ 0.2 billion")]},
        "layout": {**machine(), "what": "calls of the layout algebra, as a GEMM makes them",
                   # By callgrind; neither -O3 nor link-time optimisation changes the time.
                   "why": ": some 3,700 instructions and 5 allocations each; next, rows of plain integers where nothing is unknown",
                   "figures": [
            {"what": what, "call_us": layout[name]["call"] * 1e6, "aim": "2,000 in under 1 ms"}
            for name, what in (("numbers", "host numbers"), ("unknown_rows", "unknown numbers of rows"))]},
    }
    for name, figures in files.items():
        print(json.dumps(figures), flush=True)
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")


main()
