"""The page of `heddle profile`: kernels with their units, and source lines coloured by samples."""
import html
import os

STYLE = """body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;color:#1f2328}
table{border-collapse:collapse;width:100%;margin:.5rem 0 2rem}th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid #d0d7de}
td.text,th.text{text-align:left}td.source{font-family:ui-monospace,monospace;text-align:left;white-space:pre}
.bar{background:#eaeef2;width:16rem;height:.8rem;display:inline-block}.bar i{background:#0969da;height:100%;display:block}"""
UNITS = [("dram_percent", "device memory"), ("l2_percent", "L2"), ("l1_percent", "L1 and shared memory"), ("issue_percent", "issue")]


def kernel(launch):
    metrics = launch["metrics"]
    units = "".join(f'<tr><td class="text">{name}<td><span class="bar"><i style="width:{min(100, metrics.get(key, 0)):.0f}%"></i></span>'
                    f'<td>{metrics.get(key, 0):.0f} %</tr>' for key, name in UNITS)
    text = (f'<h2>{html.escape(launch["kernel"])}: {metrics.get("duration_ns", 0) / 1e3:.2f} µs</h2><p>{html.escape(launch["bound"])}.'
            f' {metrics.get("grid", 0):.0f} blocks of {metrics.get("block", 0):.0f} threads, {metrics.get("registers", 0):.0f} registers,'
            f' occupancy {metrics.get("occupancy_percent", 0):.0f} % of {metrics.get("occupancy_limit_percent", 0):.0f} %.</p>'
            f'<table style="width:auto">{units}</table>')
    if launch["lines"] is None:
        return text
    most = max([line["samples"] for line in launch["lines"]] + [1])
    total = max(1, sum(line["samples"] for line in launch["lines"]))
    rows = ""
    for line in sorted(launch["lines"], key=lambda one: (one["file"], one["line"])):
        stalls = ", ".join(f"{what} {n}" for what, n in line["stalls"].items() if what != "nothing")
        shade = line["samples"] / most
        rows += (f'<tr title="{html.escape(stalls)}" style="background:rgba(9,105,218,{0.35 * shade:.2f})">'
                 f'<td class="text">{html.escape(os.path.basename(line["file"]))}:{line["line"]}<td class="source">{html.escape(line["source"])}'
                 f'<td>{100 * line["samples"] / total:.1f} %<td>{line["instructions"]}<td>{line["sectors"]}<td>{line["excessive_sectors"]}'
                 f'<td>{line["bank_conflicts"]}<td class="text">{html.escape(next((w for w in line["stalls"] if w != "nothing"), ""))}</tr>')
    return text + ('<table><tr><th class="text">line<th class="text">source<th>samples<th>instructions<th>sectors<th>too many'
                   '<th>bank conflicts<th class="text">waits for</tr>' + rows + "</table>")


def page(result):
    """The page as text; it needs nothing else."""
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(result["kernel"])}</title><style>{STYLE}</style>'
            f'<h1>{html.escape(result["kernel"])} {html.escape(result["shape"])}</h1><p><code>{html.escape(result["command"])}</code>, '
            f'{result["date"]}. Point at a line to see what its warps waited for.</p>'
            + "".join(kernel(launch) for launch in result["launches"]) + "</html>\n")
