"""Speed over size as SVG: a panel for each operation and element type, a line for Heddle and each peer."""
import html
import math

COLOURS = {"heddle": "#0969da", "torch": "#cf222e", "torch.compile": "#bf8700", "triton": "#8250df", "cub": "#1a7f37"}
WIDTH, HEIGHT, LEFT, TOP, PANELS_A_ROW = 340, 200, 44, 44, 3


def panels(result):
    """Figures by operation, element type and the settings beside."""
    grouped = {}
    for figure in result["figures"]:
        settings = [value for name, value in figure["settings"].items() if name not in figure["sizes"]]
        grouped.setdefault(" ".join([figure["kernel"], *settings]), []).append(figure)
    return grouped


def varied(figures):
    """The dimension along the axis: the one that takes most values, and bytes where none varies."""
    names = figures[0]["sizes"]
    best = max(names, key=lambda name: len({figure["sizes"][name] for figure in figures}), default="")
    # Of rows and columns it is the columns that people choose.
    if "columns" in names and len({f["sizes"]["columns"] for f in figures}) == len({f["sizes"][best] for f in figures}):
        best = "columns"
    return best


def panel(name, figures, x0, y0):
    along = varied(figures)
    size = (lambda f: f["sizes"][along]) if along else (lambda f: f["bytes"])
    figures = sorted(figures, key=size)
    lines = {}
    for figure in figures:
        for who, times in figure["times"].items():
            if who != "copy":
                lines.setdefault(who, []).append((size(figure), figure["times"]["copy"]["p50_us"] / times["p50_us"]))
    low, high = math.log2(max(1, size(figures[0]))), math.log2(max(1, size(figures[-1])))
    most = max(1.05, *(y for points in lines.values() for _, y in points))
    plot_width, plot_height = WIDTH - LEFT - 16, HEIGHT - 60

    def place(point):
        x = 0.5 if high == low else (math.log2(max(1, point[0])) - low) / (high - low)
        return x0 + LEFT + plot_width * x, y0 + 24 + plot_height * (1 - point[1] / most)

    svg = [f'<text x="{x0 + LEFT}" y="{y0 + 14}" font-weight="600">{html.escape(name)}</text>']
    for mark in (0, 0.25, 0.5, 0.75, 1.0):
        _, y = place((1, mark))
        svg.append(f'<path d="M{x0 + LEFT} {y:.1f}h{plot_width}" stroke="#d0d7de"/>'
                   f'<text x="{x0 + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:g}</text>')
    for value in sorted({size(figures[0]), size(figures[-1])}):
        x, _ = place((value, 0))
        svg.append(f'<text x="{x:.1f}" y="{y0 + 24 + plot_height + 16}" text-anchor="middle">{value}</text>')
    svg.append(f'<text x="{x0 + LEFT + plot_width / 2}" y="{y0 + 24 + plot_height + 30}" text-anchor="middle">'
               f'{html.escape(along or "bytes")}</text>')
    for who, points in lines.items():
        placed = [place(point) for point in points]
        colour = COLOURS.get(who, "#57606a")
        svg.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y in placed) + '"/>')
        svg += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{html.escape(who)}, {html.escape(along)} {point[0]}: '
                f'{point[1]:.3f} of copy</title></circle>' for (x, y), point in zip(placed, points)]
    return svg


def plot(result):
    """The SVG: heights are parts of the speed of the driver's copy of as many bytes."""
    grouped = panels(result)
    across = min(PANELS_A_ROW, max(1, len(grouped)))
    down = -(-len(grouped) // across)
    names = list(dict.fromkeys(who for figure in result["figures"] for who in figure["times"] if who != "copy"))
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{across * WIDTH}" height="{TOP + down * HEIGHT}" '
           'font-family="system-ui, sans-serif" font-size="11" fill="#1f2328">', '<rect width="100%" height="100%" fill="#fff"/>']
    for i, who in enumerate(names):
        svg.append(f'<rect x="{LEFT + 110 * i}" y="10" width="10" height="10" fill="{COLOURS.get(who, "#57606a")}"/>'
                   f'<text x="{LEFT + 14 + 110 * i}" y="19">{html.escape(who)}</text>')
    svg.append(f'<text x="{LEFT}" y="36">speed over that of a copy of as many bytes; {html.escape(result["gpu"])}, {result["date"]}</text>')
    for i, (name, figures) in enumerate(grouped.items()):
        svg += panel(name, figures, i % across * WIDTH, TOP + i // across * HEIGHT)
    return "\n".join(svg + ["</svg>"]) + "\n"
