"""The figures of gemm, which gemm_bench measures: aims with what was reached, a table of products, and a plot."""
import json
import math
import pathlib
import statistics

NAMES = {"heddle": "Heddle", "cublas": "cuBLAS", "cutlass": "CUTLASS", "triton": "Triton", "plain": "the plain product"}
COLOURS = {"heddle": "#1a7f37", "cublas": "#6e7781", "cutlass": "#bc4c00", "triton": "#8250df", "plain": "#54aeff"}
RESULTS = pathlib.Path(__file__).parent / "results"
CAUSES = RESULTS / "gemm_causes.json"
PROFILE = RESULTS / "gemm_profile.json"
BUILD = RESULTS / "cutlass_build.json"
# Aims that compare nothing with a peer: what is taken of Heddle's results, the least or the most of a group, the unit.
OWN = {"rate": (lambda r: r.get("tflop_per_s"), min, "≥ {:.0f} TFLOP/s", "{:.0f} TFLOP/s"),
       "to_ptx_ms": (lambda r: r.get("to_ptx_ms"), max, "≤ {:.0f} ms", "{:.1f} ms"),
       "of_ptxas": (lambda r: r["compile_ms"] / r["ptxas_ms"] if "ptxas_ms" in r else None, max, "≤ {:.2f}×",
                    "{:.2f}×")}


def microseconds(figure, contender):
    return figure.get("contenders", {}).get(contender, {}).get("us")


def sustained(figure, contender, what):
    """The median over the runs of seconds, or None."""
    runs = figure.get("contenders", {}).get(contender, {}).get("sustained", [])
    values = [run[what] for run in runs if what in run]
    return statistics.median(values) if values else None


def ratio(figure, against, statistic, group):
    """Theirs over ours, of time or energy: above 1 Heddle is ahead. None where one was not measured. Of several peers,
    "a|b", the fastest counts, and all must be there."""
    if "|" in against:
        each = [ratio(figure, one, statistic, group) for one in against.split("|")]
        return min(each) if None not in each else None
    if statistic == "joules":
        ours, theirs = (sustained(figure, who, "joules") for who in ("heddle", against))
    elif group == "sustained":
        ours, theirs = (sustained(figure, who, "us") for who in ("heddle", against))
    else:
        ours, theirs = microseconds(figure, "heddle"), microseconds(figure, against)
    return theirs / ours if ours and theirs else None


def own_aim(aim, of_group):
    """(aim, reached, how many were measured) of an aim without a peer."""
    take, worst, aim_text, text = OWN[aim["statistic"]]
    values = [v for f in of_group if (v := take(f.get("contenders", {}).get("heddle", {}))) is not None]
    return aim_text.format(aim["aim"]), text.format(worst(values)) if values else "–", len(values)


def peer_aim(aim, of_group):
    ratios = [r for f in of_group if (r := ratio(f, aim["against"], aim["statistic"], aim["group"]))]
    reached = "–"
    if ratios:
        value = statistics.geometric_mean(ratios) if aim["statistic"] == "geomean" else min(ratios)
        reached = f"{value:.2f}×"
    mean = ", geomean" if aim["statistic"] == "geomean" else ""
    peers = " and ".join(NAMES[name] for name in aim["against"].split("|"))
    return f"≥ {aim['aim']:.2f}× {peers}{mean}", reached, len(ratios)


def aim_of(data, aim):
    """What is wanted, what was reached, and of how many products that is."""
    of_group = [f for f in data["figures"] if aim["group"] in f["groups"]]
    return (own_aim if aim["statistic"] in OWN else peer_aim)(aim, of_group)


def aims_table(data, other=None):
    """The aims; beside what was reached on one GPU, what was on another one."""
    also = f" {other['gpu']} |" if other else ""
    lines = [f"| Case | Aim | Reached |{also} Measured |", "|---|---|---|---|" + ("---|" if other else "")]
    for aim in data["aims"]:
        wanted, reached, measured = aim_of(data, aim)
        there = f" {aim_of(other, aim)[1]} |" if other else ""
        lines.append(f"| {aim['case']} | {wanted} | {reached} |{there} {measured} of {aim['products']} |")
    return lines


def shape_name(figure):
    kind = f", {figure['variant']}" if figure["variant"] else ""
    groups = f"{figure['count']} groups of " if "rows" in figure else ""
    return f"{figure['dtype']} {figure['layout']}{kind} {groups}{figure['m']} × {figure['n']} × {figure['k']}"


def cause_lines():
    """What is short of its aim, why, and what was tried: written by hand, beside the figures."""
    lines = ["", "What is short of its aim, and why:", "", "| Cases | Cause | Tried | Next |", "|---|---|---|---|"]
    for row in json.loads(CAUSES.read_text()):
        lines.append("| " + " | ".join(row[key] for key in ("cases", "cause", "tried", "next")) + " |")
    return lines


def profile_lines():
    """What ncu counts of products, ours beside cuBLAS's: gemm_profile.py writes it."""
    data = json.loads(PROFILE.read_text())
    lines = ["", f"What ncu counts on an {data['gpu']} ({data['date']}, `tools/bench/gemm_profile.py`), where each kernel runs alone on empty "
             "caches: the share of the time that the tensor cores work, the throughput of L2 and of memory in % of what they can, and the clock:",
             "", "| Product | Kernel of | Time | Tensor cores | L2 | Memory | Clock |", "|---|---|---|---|---|---|---|"]
    for product in data["products"]:
        for contender in ("heddle", "cublas", "cutlass"):
            if contender not in product:
                continue
            figure = product[contender]
            lines.append(f"| {product['product']} | {NAMES[contender]} | {figure['us']:.0f} µs | {figure['tensor_percent']:.0f} % | "
                         f"{figure['l2_percent']:.0f} % | {figure['memory_percent']:.0f} % | {figure['mhz']:.0f} MHz |")
    return lines


def compile_lines(data):
    """How long kernels took to compile, and those of peers."""
    ours = [r for f in data["figures"] if "ptxas_ms" in (r := f.get("contenders", {}).get("heddle", {}))]
    slowest = max(ours, key=lambda r: r["compile_ms"], default=None)
    lines = [f"Heddle's slowest cold compile: {slowest['compile_ms']:.0f} ms, of which ptxas takes {slowest['ptxas_ms']:.0f} ms "
             f"and all before it {slowest['to_ptx_ms']:.1f} ms."] if slowest else []
    build = json.loads(BUILD.read_text())
    seconds = [s for name, s in build["processor_seconds"].items() if "SM90" in name]
    lines.append(f"nvcc {build['nvcc']} takes {min(seconds):.0f} to {max(seconds):.0f} s of processor time for a kernel of CUTLASS's for "
                 f"sm_90a ({build['processor']}, `tools/bench/peers/build_cutlass.sh`).")
    return ["", *lines] if lines else []


def products_table(data):
    peers = [name for name in data["contenders"] if name not in ("heddle", "plain")]
    lines = ["| Product | Heddle | TFLOP/s |" + "".join(f" {NAMES[p]} TFLOP/s | of {NAMES[p]} |" for p in peers),
             "|---|---|---|" + "---|---|" * len(peers)]
    for figure in data["figures"]:
        results = figure.get("contenders", {})
        ours = results.get("heddle", {})
        row = [shape_name(figure)]
        row += [f"{ours['us']:.1f} µs", f"{ours['tflop_per_s']:.0f}"] if "us" in ours else ["–", "–"]
        for peer in peers:
            theirs = results.get(peer, {})
            of_peer = ratio(figure, peer, "min", "")
            row += [f"{theirs['tflop_per_s']:.0f}" if "us" in theirs else "–", f"{of_peer:.2f}" if of_peer else "–"]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def why_missing(figure):
    """Why Heddle has no figure of a product; None where it has one."""
    ours = figure.get("contenders", {}).get("heddle", {})
    if "us" in ours:
        return None
    faults = "; ".join(f"{name}: {why}" for name, why in ours.get("faults", {}).items())
    return figure.get("skipped") or figure.get("left_out") or ours.get("skipped") or faults or None


def tables(data, other=None):
    peers = [f"{NAMES[name]} ({version})" for name, version in data["contenders"].items() if name not in ("heddle", "plain")]
    beside = ", ".join(peers[:-1]) + (" and " if len(peers) > 1 else "") + "".join(peers[-1:])
    head = [f"`gemm` on an {data['gpu']} (driver {data['driver']}, {data['date']}), in bursts of {data['burst']} after "
            f"{data['idle_ms']} ms without work,", f"in turns with {beside}; medians of {data['rounds']} rounds. A ratio "
            "is their time over ours. `tools/bench/gemm/shapes.def` has", "the products, the aims and the letters of the "
            "layouts; `tools/bench/results/gemm.json` the rounds, clocks and power."]
    if other:
        earlier = sum("date" in f for f in other["figures"])
        head.append(f"They are of one build; those of the {other['gpu']} ({other['date']}, `gemm_h100.json`) are of an earlier one"
                    + (f", but for {earlier} of an earlier run by the configuration that is chosen now." if earlier else "."))
    head.append("")
    skipped = sorted({f"{shape_name(f)}: {why}" for f in data["figures"] if (why := why_missing(f))})
    missing = ["", "Not measured yet:", ""] + [f"- {line}" for line in skipped] if skipped else []
    return (head + aims_table(data, other) + cause_lines() + profile_lines() + compile_lines(data) + ["", "![TFLOP/s by product](results/gemm.svg)", ""] + products_table(data) + missing)


def plot(data):
    """TFLOP/s of each contender over the products, as bars below each other."""
    figures = [f for f in data["figures"] if any("us" in r for r in f.get("contenders", {}).values())]
    names = [name for name in data["contenders"] if name != "plain"]
    bar, gap, left, width = 7, 8, 310, 520
    top = 34
    step = bar * len(names) + gap
    rates = [r["tflop_per_s"] for f in figures for name, r in f["contenders"].items() if name in names and "us" in r]
    most = math.ceil(max(rates, default=100) / 100) * 100
    height = top + step * len(figures) + 24
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" '
           'font-family="sans-serif" font-size="11">', f'<rect width="100%" height="100%" fill="#ffffff"/>']
    for i, name in enumerate(names):
        svg.append(f'<rect x="{left + 110 * i}" y="8" width="10" height="10" fill="{COLOURS[name]}"/>'
                   f'<text x="{left + 110 * i + 15}" y="17">{NAMES[name]}</text>')
    for rate in range(0, most + 1, 100):
        x = left + width * rate / most
        svg.append(f'<path d="M{x:.1f} {top - 6}V{height - 22}" stroke="#d0d7de"/>'
                   f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{rate}</text>')
    svg.append(f'<text x="{left + width + 16}" y="{height - 8}">TFLOP/s</text>')
    for i, figure in enumerate(figures):
        y = top + step * i
        svg.append(f'<text x="{left - 6}" y="{y + bar * len(names) / 2 + 4:.1f}" text-anchor="end">{shape_name(figure)}</text>')
        for j, name in enumerate(names):
            rate = figure["contenders"].get(name, {}).get("tflop_per_s")
            if rate:
                svg.append(f'<rect x="{left}" y="{y + bar * j}" width="{width * rate / most:.1f}" height="{bar - 1}" '
                           f'fill="{COLOURS[name]}"/>')
    return "\n".join(svg + ["</svg>"]) + "\n"
