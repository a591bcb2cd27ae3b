"""How long a kernel's first call waits for its compilation, in a process that has compiled nothing: row_sum and the programs of
kernels/learn, by Heddle and by others.

    cold.py HEDDLE OUT [--rounds N] [--nvrtc LIBRARY] [--include FOLDER] [--gpu]
        HEDDLE: the program `heddle`; OUT: the file for the figures

Heddle: from the lambda to a cubin, with ptxas in the process (and what loading it takes) and as a program; nothing is taken from its cache.
nvrtc: from the twin's CUDA C++ (bench/learn) to a cubin, with what loading the library takes. nvcc: the same by the program. With --gpu
also the first call of the sum of a matrix's rows by Triton and by torch.compile, with empty caches; their imports are not counted.
Every figure is the median of N processes, which take turns in an order that is drawn anew each round.
"""
import argparse
import ctypes
import datetime
import glob
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ARCH = "sm_90a"
# The kernel, and its twin's file in bench/learn.
KERNELS = {"row_sum": None, "bitonic_sort": "bitonic_sort", "black_scholes": "black_scholes", "cluster_histogram": "cluster_histogram",
           "byte_histogram": "histogram", "mandelbrot": "mandelbrot", "monte_carlo_pi": "monte_carlo_pi", "nbody": "nbody", "saxpy": "saxpy",
           "lookback_scan": "scan", "spmv": "spmv", "stencil": "stencil", "padded_transpose": "transpose"}
ROW_SUM = """
extern "C" __global__ void row_sum(const float* x, float* y, long long columns, long long pitch) {
  __shared__ float of_warp[32];
  float sum = 0;
  const float4* row = reinterpret_cast<const float4*>(x + blockIdx.x * pitch);
  for (long long c = threadIdx.x; c < columns / 4; c += blockDim.x) { float4 v = row[c]; sum += (v.x + v.y) + (v.z + v.w); }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
  }
}
"""


def heddle_ms(program, kernel, assembler):
    """Of all kernels of an operation: all stages, and those that are Heddle's own."""
    env = {**os.environ, "HEDDLE_CACHE": "off", "HEDDLE_OPTIONS": f"--assembler={assembler}"}
    text = subprocess.run([program, "dump", kernel, "--stage", "cubin", "--json"], check=True, capture_output=True, text=True, env=env).stdout
    found = json.loads(text)
    times = [document["times_us"] for document in (found if isinstance(found, list) else [found])]
    whole = sum(t["trace"] + t["passes"] + t["emit"] + t["assemble"] for t in times)
    return whole / 1e3, (whole - sum(t["ptxas"] for t in times)) / 1e3


def nvrtc_ms(library, source, include):
    """In this process."""
    begin = time.perf_counter()
    nvrtc = ctypes.CDLL(library)
    program, text = ctypes.c_void_p(), open(source, "rb").read()
    options = [f"--gpu-architecture={ARCH}".encode(), b"--std=c++17", b"-lineinfo"] + [f"-I{folder}".encode() for folder in include]
    checks = [nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"twin.cu", 0, None, None),
              nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))]
    size = ctypes.c_size_t()
    checks.append(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    cubin = ctypes.create_string_buffer(max(size.value, 1))
    checks.append(nvrtc.nvrtcGetCUBIN(program, cubin))
    took = (time.perf_counter() - begin) * 1e3
    if any(checks):
        log_size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(log_size))
        log = ctypes.create_string_buffer(log_size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"cold.py: nvrtc: {checks}: {log.value.decode()[:2000]}")
    return took


def torch_ms(how):
    """The first call in this process."""
    import torch
    x = torch.ones(1024, 4096, device="cuda")
    y = torch.empty(1024, device="cuda")
    if how == "torch.compile":
        function = torch.compile(lambda x: x.sum(dim=1))
    else:
        sys.path.insert(0, HERE)
        from cold_triton import row_sum
        function = lambda x: row_sum(x, y)  # noqa: E731
    torch.cuda.synchronize()
    begin = time.perf_counter()
    function(x)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


def child(*arguments, env=None):
    text = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", *arguments], check=True, capture_output=True, text=True, env=env).stdout
    return float(text.splitlines()[-1])


def child_of_torch(how):
    with tempfile.TemporaryDirectory() as folder:
        return child("torch", how, env={**os.environ, "TRITON_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder + "/inductor"})


def nvcc_ms(source, folder):
    begin = time.perf_counter()
    subprocess.run(["nvcc", "-cubin", f"-arch={ARCH}", "-std=c++17", "-lineinfo", source, "-o", os.path.join(folder, "twin.cubin")], check=True, capture_output=True)
    return (time.perf_counter() - begin) * 1e3


def find_nvrtc():
    names = [*glob.glob("/usr/local/cuda*/lib64/libnvrtc.so*"), *glob.glob(os.path.join(sys.prefix, "lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so*")),
             *glob.glob("/usr/local/lib/python3*/*-packages/nvidia/*/lib/libnvrtc.so*")]
    return next((name for name in names if "builtins" not in name), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nvrtc", default=find_nvrtc())
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    include = options.include or ["/usr/local/cuda/include", "/usr/local/cuda/include/cccl"]
    heddle = os.path.abspath(options.heddle)
    with tempfile.TemporaryDirectory() as folder:
        sources = {kernel: os.path.join(HERE, "learn", f"{twin}.cu") for kernel, twin in KERNELS.items() if twin}
        sources["row_sum"] = os.path.join(folder, "row_sum.cu")
        with open(sources["row_sum"], "w") as file:
            file.write(ROW_SUM)
        contenders = {}
        for kernel, source in sources.items():
            for assembler in ("library", "ptxas"):
                contenders[kernel, assembler] = lambda k=kernel, a=assembler: heddle_ms(heddle, k, a)
            if options.nvrtc:
                contenders[kernel, "nvrtc"] = lambda s=source: child("nvrtc", options.nvrtc, s, *include)
            if shutil.which("nvcc"):
                contenders[kernel, "nvcc"] = lambda s=source: nvcc_ms(s, folder)
        if options.gpu:
            for how in ("torch.compile", "triton"):
                contenders["row_sum", how] = lambda h=how: child_of_torch(h)
        results = {contender: [] for contender in contenders}
        for _ in range(options.rounds):
            order = list(contenders)
            random.shuffle(order)
            for contender in order:
                results[contender].append(contenders[contender]())
    figures = []
    for kernel in KERNELS:
        row = {"kernel": kernel}
        for (of, who), times in results.items():
            if of != kernel:
                continue
            if who in ("library", "ptxas"):
                row[f"heddle_{who}_ms"] = statistics.median(time for time, _ in times)
                row[f"own_{who}_ms"] = statistics.median(own for _, own in times)
            else:
                row[f"{who}_ms"] = statistics.median(times)
        figures.append(row)
        print({key: round(value, 2) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    head = {"benchmark": "cold", "processor": processor, "rounds": options.rounds, "date": datetime.date.today().isoformat(),
            "command": "python3 tools/bench/cold.py HEDDLE OUT" + (" --gpu" if options.gpu else "")}
    with open(options.out, "w") as file:
        json.dump({**head, "figures": figures}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        what, *rest = sys.argv[2:]
        print(nvrtc_ms(rest[0], rest[1], rest[2:]) if what == "nvrtc" else torch_ms(rest[0]))
    else:
        main()
