"""What the scripts that measure on a GPU share."""
import datetime
import os
import subprocess


def output(*command, env=None):
    """What a command prints; an error where it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout


def machine(command):
    """The GPU, its driver and ptxas, and the date and command, for the head of a file of figures."""
    name, driver = output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").strip().split(", ")
    ptxas = [line for line in output("ptxas", "--version").splitlines() if "release" in line]
    return {"gpu": name, "driver": driver, "ptxas": ptxas[0].split("release ")[1] if ptxas else "",
            "date": datetime.date.today().isoformat(), "command": command}


def compile_twins(sources, folder):
    """Compiles CUDA sources to <folder>/<name>.cubin."""
    for source in sorted(sources):
        name = os.path.splitext(os.path.basename(source))[0]
        output("nvcc", "-O3", "-arch=sm_90", "-cubin", source, "-o", os.path.join(folder, name + ".cubin"))
