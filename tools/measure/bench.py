"""What `heddle bench` starts: measures cases beside peers, and prints, draws and writes the figures.

    python3 bench.py REQUEST

REQUEST is a file of JSON: {"library": libheddle.so, "device": "cuda:0", "cases": [{"kernel", "settings", "shape", "sizes"}, …], "against": [peers],
"rounds": 15, "command": what was typed, "json": FILE, "plot": FILE, "report": FOLDER}; files that are "" are not written.
Exit: 0, 1 where something failed, 2 where a peer that was asked for is not there."""
import datetime
import json
import os
import sys

# The folder's modules are those of a package: so they hide none of others that have their names.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(sys.path[0], "python"))
from heddle.library import HeddleError, Library  # noqa: E402
from measure.clocks import clock_of  # noqa: E402
from measure.files import fail, make_folder, read_request, write  # noqa: E402
from measure.measure import measure  # noqa: E402
from measure.page import write_report  # noqa: E402
from measure.peers import PEERS, Missing  # noqa: E402
from measure.plot import plot  # noqa: E402


def title(figure):
    """softmax bf16 8192x8192, and the settings that are no element type."""
    settings = figure["settings"]
    rest = [f"{name}={value}" for name, value in settings.items() if name != "dtype"]
    return " ".join(filter(None, [figure["kernel"], settings.get("dtype", ""), figure["shape"], *rest]))


def line(figure):
    """What is printed of a figure."""
    ours = figure["times"]["heddle"]
    text = f"{title(figure):48} {ours['p50_us']:10.2f} us  p90 {ours['p90_us']:10.2f}  {figure['gb_s']:7.1f} GB/s" \
           f"  {figure['of_copy']:5.2f} of copy"
    return text + "".join(f"  {name} {ratio:.2f}x" for name, ratio in figure["versus"].items())


def driver_version():
    try:
        with open("/sys/module/nvidia/version") as file:
            return file.readline().strip()
    except OSError:
        return ""


def head(device, request, peers):
    version = device.info["driver_version"]
    return {"gpu": device.info["name"], "driver": driver_version(),
            "cuda": f"{version // 1000}.{version % 1000 // 10}" if version else "",
            "date": datetime.date.today().isoformat(), "command": request["command"], "benchmark": "bench",
            "peers": {name: peer.version for name, peer in peers.items()}}


def write_all(request, result):
    """The files that were asked for."""
    if request["json"]:
        write(request["json"], json.dumps(result, indent=1) + "\n")
    if request["plot"]:
        write(request["plot"], plot(result))
    if request["report"]:
        make_folder(request["report"])
        write(os.path.join(request["report"], "index.html"), write_report(result, title))


def open_peers(names, device_name):
    peers = {}
    for name in names:
        try:
            peers[name] = PEERS[name](device_name)
        except Missing as why:
            fail(f"--against {name}: {why}", 2)
    return peers


def main():
    request = read_request()
    if request["report"]:
        make_folder(request["report"])
    try:
        library = Library(request["library"])
    except OSError as error:
        fail(f"{request['library']} cannot be loaded: {error}")
    device = library.open(request["device"])
    clock = clock_of(device, request["device"])
    peers = open_peers(request["against"], request["device"])
    result, shown = {**head(device, request, peers), "figures": []}, sys.stderr.isatty()
    figures = result["figures"]
    for index, case in enumerate(request["cases"]):
        if shown:
            print(f"\r[{index + 1}/{len(request['cases'])}] {case['kernel']}\x1b[K", end="", file=sys.stderr, flush=True)
        try:
            figures.append(measure(device, clock, case, peers, request["rounds"], index))
        except HeddleError as error:
            fail(f"{case['kernel']}: {error}")
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        print(line(figures[-1]), flush=True)
        for name, why in figures[-1]["left_out"].items():
            print(f"  without {name}: {why}", flush=True)
        if figures[-1]["unchecked"]:
            print(f"  not compared with Heddle's results: {', '.join(figures[-1]['unchecked'])}", flush=True)
        write_all(request, result)  # a run that is stopped leaves what it has


try:
    main()
except (HeddleError, RuntimeError) as error:  # the driver's too
    fail(error)
except KeyboardInterrupt:
    fail("stopped", 130)
