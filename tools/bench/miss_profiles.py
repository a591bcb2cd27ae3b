"""What the profiler says of the cases that miss their aims.

    miss_profiles.py HEDDLE OUT [--only TEXT]
        HEDDLE: the command; OUT: folder for miss_profiles.json, whose other cases are kept

Each case is one `heddle profile`; of its launches, the one that takes most time is kept. Kernels run alone, on empty caches."""
import argparse
import json
import os
import subprocess
import tempfile

from gpu_machine import machine

# Kernel, settings, shape; the aim it misses stands in the tables.
CASES = [
    ("layer_norm", "", "1024x262144"),
    ("layer_norm", "dtype=bf16", "2048x131071"),
    ("rms_norm", "dtype=bf16", "2048x131071"),
    ("layer_norm_backward", "", "1024x262144"),
    ("layer_norm_backward", "dtype=bf16", "2048x131072"),
    ("rms_norm_backward", "dtype=bf16", "2048x131072"),
    ("reduce", "dtype=bf16 dim=first", "1000x134217"),
    ("reduce", "dtype=bf16 dim=first", "1040447x129"),
    ("reduce", "dtype=bf16 dim=first", "100x1342177"),
    ("reduce", "dtype=bf16 op=argmax", "1040447x129"),
    ("transpose", "dtype=u8", "16383x16385"),
    ("segmented_scan", "", "1x67108864"),
    ("topk", "dtype=bf16 k=1024", "8192x8192"),
    ("sort_pairs", "dtype=i64 value=i32", "67108864"),
]
KEPT = ("duration_ns", "dram_percent", "l2_percent", "l1_percent", "issue_percent", "occupancy_percent", "registers", "grid", "block")


def profile(heddle, kernel, settings, shape):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        words = [word for setting in settings.split() for word in ("--set", setting)]
        ran = subprocess.run([heddle, "profile", kernel, *words, "--shape", shape, "--json", path], capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"{kernel} {settings} {shape}: {ran.stdout}{ran.stderr}")
        with open(path) as file:
            return json.load(file)["launches"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("out")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    path = os.path.join(options.out, "miss_profiles.json")
    chosen = [case for case in CASES if options.only in " ".join(case)]
    figures = []
    if os.path.exists(path):
        with open(path) as file:
            figures = [row for row in json.load(file)["figures"] if (row["kernel"], row["settings"], row["shape"]) not in chosen]
    for kernel, settings, shape in chosen:
        launches = profile(options.heddle, kernel, settings, shape)
        longest = max(launches, key=lambda launch: launch["metrics"].get("duration_ns", 0))
        stalls = sorted(longest["stalls"].items(), key=lambda stall: -stall[1])
        total = max(1, sum(count for _, count in stalls))
        figures.append({"kernel": kernel, "settings": settings, "shape": shape, "launches": len(launches),
                        "all_ns": sum(launch["metrics"].get("duration_ns", 0) for launch in launches),
                        **{name: longest["metrics"].get(name, 0) for name in KEPT}, "bound": longest["bound"],
                        "stalls": {what: round(count / total, 3) for what, count in stalls[:3]}})
        print(figures[-1], flush=True)
        with open(path, "w") as file:
            json.dump({**machine("python3 tools/bench/miss_profiles.py HEDDLE OUT"), "benchmark": "miss_profiles", "figures": figures}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
