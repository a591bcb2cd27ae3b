"""The report of `heddle bench`: one page that needs nothing else."""
import html

from measure.plot import plot

STYLE = """body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;color:#1f2328}
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #d0d7de}
th:first-child,td:first-child{text-align:left}.good{background:#dafbe1}.bad{background:#ffebe9}code{background:#f6f8fa}"""


def write_report(result, title):
    """The page as text."""
    peers = list(dict.fromkeys(name for figure in result["figures"] for name in [*figure["versus"], *figure["left_out"]]))
    rows = []
    for figure in result["figures"]:
        ours = figure["times"]["heddle"]
        cells = [html.escape(title(figure)), f"{ours['p50_us']:.2f}", f"{ours['p90_us']:.2f}", f"{100 * ours['spread']:.1f} %",
                 f"{figure['gb_s']:.0f}", f"{figure['of_copy']:.2f}"]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        for name in peers:
            ratio = figure["versus"].get(name)
            if ratio is None:
                row += f'<td title="{html.escape(figure["left_out"].get(name, ""))}">–</td>'
            else:
                row += f'<td class="{"good" if ratio >= 1 else "bad"}">{ratio:.2f}{"*" if name in figure["unchecked"] else ""}</td>'
        rows.append(f"<tr>{row}</tr>")
    heads = ["case", "p50, µs", "p90, µs", "spread", "GB/s", "of copy", *(f"× {name}" for name in peers)]
    versions = ", ".join(f"{name} {version}".strip() for name, version in result["peers"].items())
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>heddle bench</title><style>{STYLE}</style>
<h1>heddle bench</h1>
<p>{html.escape(result["gpu"])}, driver {html.escape(result["driver"])}, CUDA {html.escape(result["cuda"])}, {result["date"]}{html.escape("; " + versions if versions else "")}<br>
<code>{html.escape(result["command"])}</code></p>
<p>Times are of a launch, medians of bursts; the spread is from the 10th to the 90th percentile. Caches hold none of the data.
A peer's figure is its time over Heddle's: above 1 Heddle is faster. A dash says why when pointed at; results behind a * were not compared with Heddle's.</p>
<table><tr>{"".join(f"<th>{html.escape(one)}</th>" for one in heads)}</tr>
{chr(10).join(rows)}
</table>
{plot(result)}</html>
"""
