"""What the scripts that measure on a GPU share."""
import csv
import datetime
import io
import os
import shutil
import subprocess


def output(*command, env=None):
    """What a command prints; an error where it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


TWIN_FLAGS = ("-O3", "-arch=sm_90")


def machine(command, compiler="ptxas"):
    """The GPU, its driver and a compiler, and the date and command, for the head of a file of figures."""
    name, driver = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip().split(", ")
    release = [line for line in output(compiler, "--version").splitlines() if "release" in line]
    flags = {"flags": " ".join(TWIN_FLAGS)} if compiler == "nvcc" else {}
    return {"gpu": name, "driver": driver, compiler: release[0].split("release ")[1] if release else "", **flags,
            "date": datetime.date.today().isoformat(), "command": command}


def compile_twins(sources, folder):
    """Compiles CUDA sources to <folder>/<name>.cubin."""
    for source in sorted(sources):
        name = os.path.splitext(os.path.basename(source))[0]
        output("nvcc", *TWIN_FLAGS, "-cubin", source, "-o", os.path.join(folder, name + ".cubin"))


def profile(metrics, *command, options=()):
    """By kernel, in the order of the launches: its name and its metrics, by ncu; nothing without it. Clocks stay as they
    are."""
    if not shutil.which("ncu"):
        return []
    text = output("ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", ",".join(metrics), *options,
                  *command)
    kernels = {}
    for row in csv.DictReader(io.StringIO(text[text.index('"ID"'):])):
        _, values = kernels.setdefault(row["ID"], (row["Kernel Name"].split("(")[0], {}))
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(kernels.values())
