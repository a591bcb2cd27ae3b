"""Runs the host benchmarks and writes their figures as JSON. For a machine with nothing else to do.

    host_figures.py PROGRAMS OUT      PROGRAMS: folder with compile_bench, warm_bench, pipeline_bench,
                                     interp_bench and layout_bench, or some of them; OUT: for files
"""
import datetime
import json
import os
import subprocess
import sys


def compile_figures(benchmarks):
    ptx, cubin, library = benchmarks["to_ptx"], benchmarks["to_cubin"], benchmarks["to_cubin_library"]
    return {"kernel": "row_sum f32, block 512", "to_ptx_us": ptx["real_time"], "trace_us": ptx["trace_us"],
            "passes_us": ptx["passes_us"], "emit_us": ptx["emit_us"], "ptxas_us": cubin["ptxas_us"],
            "above_ptxas_us": cubin["above_ptxas_us"], "library_us": library["ptxas_us"], "above_library_us": library["above_ptxas_us"],
            "second_process_us": benchmarks["second_process/manual_time"]["real_time"],
            "recalled_us": benchmarks["second_process_recalled/manual_time"]["real_time"], "tv_add_to_ptx_us": benchmarks["tv_add_to_ptx"]["real_time"]}


def interp_figures(benchmarks):
    figure = lambda name, what, aim: {"what": what, "lane_ops_per_second": benchmarks[name]["lane_ops/s"], "aim": aim}
    return {"figures": [
        figure("BM_Arithmetic/f32_unchecked", "f32 arithmetic in a loop, checks off", "≥ 1 billion"),
        figure("BM_Arithmetic/f32_checked", "f32 arithmetic in a loop, checks on", "≥ 0.2 billion"),
        figure("BM_Sum/checked", "a load and an fma a trip, checks on", "≥ 0.2 billion")],
        "gemm_seconds": benchmarks["BM_Gemm/1024"]["real_time"]}


def layout_figures(benchmarks):
    return {"what": "calls of the layout algebra, as a GEMM makes them", "figures": [
        {"what": what, "call_us": benchmarks[name]["call"] * 1e6}
        for name, what in (("numbers", "host numbers"), ("unknown_rows", "unknown numbers of rows"))]}


def pipeline_figures(benchmarks):
    """Microseconds for each op of kernels of 1,000, 10,000 and 100,000."""
    kinds = (("BM_StraightLine", "a straight line"), ("BM_Nested", "nested loops and ifs"),
             ("BM_Accesses", "accesses to one array"))
    us = lambda b: b["cpu_time"] * 1e3 / b["ops"]
    return {"figures": [{"what": what, "us_per_op": [us(benchmarks[f"{name}/{ops}"]) for ops in (1000, 10000, 100000)]}
                        for name, what in kinds]}


def warm_figures(benchmarks):
    ms = lambda name: benchmarks[f"{name}/manual_time"]["real_time"]
    return {"kernels": 300, "cores": len(os.sched_getaffinity(0)), "cold_ms": ms("cold"), "assembler_ms": benchmarks["cold/manual_time"]["assembler_ms"],
            "traced_ms": ms("traced"), "recalled_ms": ms("recalled")}


FIGURES = {"compile": compile_figures, "warm": warm_figures, "pipeline": pipeline_figures, "interp": interp_figures, "layout": layout_figures}


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {"processor": model, "date": datetime.date.today().isoformat(),
            "command": "python3 tools/bench/host_figures.py PROGRAMS OUT"}


def main():
    programs, out = sys.argv[1], sys.argv[2]
    for name, figures_of in FIGURES.items():
        program = os.path.join(programs, name + "_bench")
        if not os.path.exists(program):
            continue
        run = subprocess.run([program, "--benchmark_format=json", "--benchmark_min_time=1"], check=True,
                             capture_output=True, text=True)
        benchmarks = {b["name"]: b for b in json.loads(run.stdout)["benchmarks"]}
        figures = {**machine(), **figures_of(benchmarks)}
        print(json.dumps(figures), flush=True)
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")


main()
