#!/usr/bin/env python3
"""Records what CuTe's C++ gives for random layout expressions: recorded.txt.

    record.py CUTE_INCLUDE HEDDLE > recorded.txt

CUTE_INCLUDE is the folder with cute/ and cutlass/ (NVIDIA/cutlass, include/), HEDDLE the heddle
command; nvcc's headers are needed too. Every expression is written twice, as the calculator and as
C++ have it. Those that both sides agree on are recorded; the others are told on standard error,
to be judged by a reader, with who refused them:
  - CuTe's C++ goes on where a composition R of A and B is not A(B(c)) for each c; Heddle refuses.
  - A swizzle in front of a layout that it takes indices out of goes on there too; so does one that
    takes elements to different places that are to become one.
  - A coordinate layout of a single mode gives 2@0 there, (2) here.
  - Heddle leaves out a swizzle that changes nothing, pairs single modes in a product however deep
    they lie, and says 1 where CuTe has no common vector.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SEED = 20261122
COUNT = 1600
BATCH = 80  # expressions in a program

EXTENTS = [1, 2, 2, 3, 4, 4, 6, 8]
POWERS = [4, 8, 8, 16]
rng = random.Random(SEED)


# --- Tuples and layouts: nested Python tuples of numbers and '_' --------------------------------

def leaves(t):
    return [x for e in t for x in leaves(e)] if isinstance(t, tuple) else [t]


def like(profile, numbers):
    return tuple(like(e, numbers) for e in profile) if isinstance(profile, tuple) else next(numbers)


def size(t):
    product = 1
    for x in leaves(t):
        product *= x
    return product


def rank(t):
    return len(t) if isinstance(t, tuple) else 1


def shape(depth=2, extents=EXTENTS, most=3):
    if depth == 0 or rng.random() < (0.15 if depth == 2 else 0.55):
        return rng.choice(extents)
    return tuple(shape(depth - 1, extents, most) for _ in range(rng.randint(1, most)))


def compact(s, order=None, gaps=0.0):
    extents = leaves(s)
    order = order or rng.sample(range(len(extents)), len(extents))
    strides, step = [0] * len(extents), 1
    for i in order:
        if rng.random() < gaps:
            step *= rng.choice([2, 3, 4])
        strides[i] = step
        step *= extents[i]
    return s, like(s, iter(strides))


def layout(kinds=("order", "order", "gaps", "any", "zeros", "left"), s=None):
    s = s if s is not None else shape()
    kind = rng.choice(kinds)
    if kind == "any":
        strides = [rng.choice([0, 1, 2, 3, 4, 5, 8, 12, 16, 24, 32]) for _ in leaves(s)]
        return s, like(s, iter(strides))
    left = list(range(len(leaves(s))))
    made = compact(s, left if kind == "left" else None, 0.4 if kind == "gaps" else 0)
    if kind != "zeros":
        return made
    return s, like(s, iter(0 if rng.random() < 0.35 else d for d in leaves(made[1])))


# --- Expressions: (the calculator's, CuTe's) ----------------------------------------------------

def text(t):
    return "(" + ",".join(map(text, t)) + ")" if isinstance(t, tuple) else str(t)


def cute(t):
    if isinstance(t, tuple):
        return "make_tuple(" + ",".join(map(cute, t)) + ")"
    return "_" if t == "_" else f"Int<{t}>{{}}"


def of_tuple(t):
    return text(t), cute(t)


def of_layout(l):
    return f"{text(l[0])}:{text(l[1])}", f"make_layout({cute(l[0])},{cute(l[1])})"


def call(name, *arguments):
    return tuple(f"{name}({','.join(a[side] for a in arguments)})" for side in (0, 1))


def on_layout(calculator, cpp, l):
    """An operation with compile-time arguments: {} stands for the layout."""
    return calculator.format(of_layout(l)[0]), cpp.format(of_layout(l)[1])


def tiler(modes):
    parts = []
    for _ in range(rng.randint(1, modes)):
        kind = rng.random()
        if kind < 0.15:
            parts.append(("_", "_"))
        elif kind < 0.55:
            parts.append(of_tuple(rng.choice([1, 2, 3, 4, 8])))
        else:
            parts.append(of_layout(layout(("order", "gaps"), shape(1, [2, 2, 3, 4], 1))))
    return "<" + ",".join(p[0] for p in parts) + ">", "make_tile(" + ",".join(p[1] for p in parts) + ")"


def coordinate(s, free=0.0):
    if rng.random() < free:
        return "_"
    if isinstance(s, tuple) and rng.random() < 0.7:
        return tuple(coordinate(e, free) for e in s)
    return rng.randrange(size(s))


def swizzle():
    bits = rng.randint(1, 3)
    shift = (bits + rng.choice([0, 0, 1])) * rng.choice([1, 1, 1, -1])
    name = f"{bits},{rng.randint(0, 4)},{shift}"
    return f"S<{name}>", f"Swizzle<{name}>{{}}"


def swizzled():
    l = of_layout(layout(("left", "order"), shape(2, POWERS)))
    return call("composition", *rng.choice([(swizzle(), l), (swizzle(), l), (l, swizzle())]))


def forms(name):
    return rng.choice(["logical", "zipped", "tiled", "flat"]) + "_" + name


def unary():
    names = ["coalesce", "filter", "filter_zeros", "flatten", "right_inverse", "left_inverse",
             "nullspace", "complement", "size", "cosize", "rank", "depth", "make_layout_like",
             "make_fragment_like"]
    return call(rng.choice(names), of_layout(layout()))


def composed():
    right = layout(("order", "left", "gaps", "zeros", "any"), shape(2, [1, 2, 2, 3, 4, 8], 2))
    return call("composition", of_layout(layout()), of_layout(right))


def composed_by_mode():
    l = layout()
    return call("composition", of_layout(l), tiler(rank(l[0])))


def complemented():
    return call("complement", of_layout(layout()), of_tuple(rng.choice([1, 5, 8, 12, 36, 64, 128])))


def divided():
    l = layout()
    small = layout(("order",), shape(2, [1, 2, 2, 3, 4], 2))
    return call(forms("divide"), of_layout(l),
                tiler(rank(l[0])) if rng.random() < 0.6 else of_layout(small))


def multiplied():
    l = layout()
    return call(forms("product"), of_layout(l),
                tiler(rank(l[0])) if rng.random() < 0.3 else of_layout(layout()))


def modes_of(shapes):
    """One mode for each, or, of a single one, that itself."""
    return shapes[0] if len(shapes) == 1 and rng.random() < 0.5 else tuple(shapes)


def interleaved():
    modes = rng.randint(1, 3)
    pair = [modes_of([shape(1) for _ in range(modes)]) for _ in range(2)]
    return call(rng.choice(["blocked_product", "raked_product"]), *(of_layout(compact(s)) for s in pair))


def tiled_to_shape():
    modes = rng.randint(1, 3)
    block = [rng.choice([1, 2, 4]) for _ in range(modes)]
    whole = modes_of([x * rng.choice([1, 2, 3]) for x in block])
    arguments = [of_layout(compact(modes_of(block))), of_tuple(whole)]
    if isinstance(whole, tuple) and rng.random() < 0.4:
        arguments.append(of_tuple(tuple(rng.sample(range(modes), modes))))
    return call("tile_to_shape", *arguments)


def common():
    name = rng.choice(["max_common_vector", "max_common_layout"])
    return call(name, of_layout(layout()), of_layout(layout()))


def recast():
    name, n = rng.choice(["upcast", "downcast"]), rng.choice([2, 4])
    return on_layout(f"{name}({{}},{n})", f"{name}<{n}>({{}})",
                     layout(("order", "gaps", "zeros", "left")))


def modes():
    l = layout()
    begin = rng.randrange(rank(l[0]))
    end = rng.randint(begin + 1, rank(l[0]))
    return rng.choice([
        on_layout(f"group_modes({{}},{begin},{end})", f"group<{begin},{end}>({{}})", l),
        on_layout(f"get({{}},{begin})", f"layout<{begin}>({{}})", l),
        on_layout(f"select({{}},{begin},0)", f"select<{begin},0>({{}})", l),
        call("append", of_layout(l), of_layout(layout())),
        call("prepend", of_layout(l), of_layout(layout())),
    ])


def profile(s):
    if not isinstance(s, tuple) or rng.random() < 0.4:
        return 1
    return tuple(profile(e) for e in s[:rng.randint(1, len(s))])


def coalesced_by():
    l = layout()
    return call("coalesce", of_layout(l), of_tuple(profile(l[0])))


def index():
    l = layout()
    at = of_tuple(coordinate(l[0]))
    whole = of_layout(l)
    return rng.choice([
        (f"({whole[0]})({at[0]})", f"{whole[1]}({at[1]})"),
        call("idx2crd", at, of_tuple(l[0])),
        call("crd2idx", at, of_tuple(l[0]), of_tuple(l[1])),
    ])


def sliced():
    while True:
        l = layout()
        at = tuple(coordinate(e, 0.35) for e in l[0]) if isinstance(l[0], tuple) else "_"
        if rank(l[0]) > 1 and "_" in leaves(at):
            return call(rng.choice(["slice", "dice", "slice_and_offset"]), of_tuple(at), of_layout(l))


def arithmetic():
    a = shape()
    b = rng.choice([shape(1, [1, 2, 4]), like(a, iter(rng.choices([1, 2, 4], k=len(leaves(a)))))])
    return call(rng.choice(["shape_div", "ceil_div", "round_up"]), of_tuple(a), of_tuple(b))


def ordered():
    s = shape()
    order = like(s, iter(rng.sample(range(len(leaves(s))), len(leaves(s)))))
    return call(rng.choice(["make_ordered_layout", "compact_order"]), of_tuple(s), of_tuple(order))


def compared():
    a = shape()
    b = rng.choice([shape(), like(a, iter(rng.choices(EXTENTS, k=len(leaves(a))))), size(a)])
    name = rng.choice(["congruent", "weakly_congruent", "compatible"])
    ours, theirs = call(name, of_tuple(a), of_tuple(b))
    return "is_" + ours, f"int(bool({theirs}))"


def with_swizzle():
    a, n = swizzled(), rng.choice([2, 4])
    at = rng.randrange(4)
    return rng.choice([
        a, call("size", a), call("cosize", a), call("right_inverse", a), call("left_inverse", a),
        call(forms("divide"), a, tiler(1)), call("composition", a, tiler(1)),
        call("max_common_vector", a, of_layout(layout())),
        (f"upcast({a[0]},{n})", f"upcast<{n}>({a[1]})"),
        (f"downcast({a[0]},{n})", f"downcast<{n}>({a[1]})"),
        (f"({a[0]})({at})", f"{a[1]}(Int<{at}>{{}})"),
    ])


def with_basis():
    s = tuple(shape(1) for _ in range(rng.randint(1, 3)))
    a = call("make_identity_layout", of_tuple(s))
    at = of_tuple(coordinate(s))
    return rng.choice([
        a, call("flatten", a), call("coalesce", a), call("composition", a, tiler(len(s))),
        call(forms("divide"), a, tiler(len(s))), (f"({a[0]})({at[0]})", f"{a[1]}({at[1]})"),
    ])


def local():
    modes = rng.randint(1, 3)
    s = tuple(rng.choice([4, 8, 12, 16]) for _ in range(modes))
    whole = of_layout(compact(s))
    tensor = f"make_tensor(counting_iterator<int>(0),{whole[1]})"
    step = rng.random() < 0.5
    tile = tuple(rng.choice([1, 2, 4]) for _ in range(rng.randint(1, modes) + step))
    left_out = rng.randrange(len(tile)) if step else -1
    kept = tuple("_" if i == left_out else 1 for i in range(len(tile)))
    last = [text(kept), "make_tuple(" + ",".join("X{}" if k == "_" else "_1{}" for k in kept) + ")"]
    if rng.random() < 0.5:
        at = tuple(rng.choice(["_", 0]) for _ in tile)
        arguments = [whole, of_tuple(tile), of_tuple(at)]
        name = "local_tile"
    else:
        arguments = [whole, of_layout(compact(tile)), of_tuple(rng.randrange(size(tile)))]
        name = "local_partition"
    if step:
        arguments.append(last)
    ours = ",".join(a[0] for a in arguments)
    theirs = ",".join([tensor] + [a[1] for a in arguments[1:]])
    return f"{name}({ours})", f"{name}({theirs}).layout()"


KINDS = [unary, unary, composed, composed, composed_by_mode, complemented, divided, divided,
         multiplied, multiplied, interleaved, tiled_to_shape, common, recast, modes, coalesced_by,
         index, sliced, arithmetic, ordered, compared, with_swizzle, with_swizzle, with_basis, local]


# --- Both sides ---------------------------------------------------------------------------------

PRELUDE = """#include <cstdio>
#include <cute/tensor.hpp>
using namespace cute;
#define EXPRESSION(n, ...) \\
  static void f##n() { std::printf("%d\\t", n); print(__VA_ARGS__); std::printf("\\n"); }
"""


def ask_cute(include, expressions):
    """What each is worth by its number; those that do not compile are left out."""
    live = dict(enumerate(expressions))
    cuda = "/usr/local/cuda/include"
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "ask.cc"), Path(folder, "ask")
        compiler = ["g++", "-std=c++17", "-O0", "-w", "-ftemplate-backtrace-limit=0", f"-I{include}",
                    f"-I{cuda}", f"-I{cuda}/cccl", source, "-o", program]
        while live:
            lines = {PRELUDE.count("\n") + 1 + i: n for i, n in enumerate(live)}
            source.write_text(
                PRELUDE + "".join(f"EXPRESSION({n}, {e})\n" for n, e in live.items()) +
                "int main() { " + " ".join(f"f{n}();" for n in live) + " }\n")
            done = subprocess.run(compiler, capture_output=True, text=True)
            if done.returncode == 0:
                told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
                return dict((int(n), w) for n, w in (l.split("\t") for l in told.splitlines()))
            named = re.findall(r"ask\.cc:(\d+):", done.stderr)
            refused = {lines[int(n)] for n in named if int(n) in lines}
            if not refused:
                sys.exit(done.stderr)
            live = {n: e for n, e in live.items() if n not in refused}
    return {}


def as_heddle_prints(printed):
    return re.sub(r"_(-?\d)", r"\1", printed).replace("Sw<", "S<")


def version(include):
    header = Path(include, "cutlass/version.h").read_text()
    return ".".join(re.findall(r"define CUTLASS_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def main():
    include, heddle = sys.argv[1:]
    made = {}
    while len(made) < COUNT:
        made.update([rng.choice(KINDS)()])
    expressions = list(made.items())
    ours = subprocess.run([heddle, "layout", "--batch"], capture_output=True, text=True, check=True,
                          input="".join(e[0] + "\n" for e in expressions)).stdout.splitlines()
    firsts = range(0, COUNT, BATCH)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = pool.map(
            lambda first: ask_cute(include, [e[1] for e in expressions[first:first + BATCH]]), firsts)
        theirs = {first + n: as_heddle_prints(w)
                  for first, batch in zip(firsts, batches) for n, w in batch.items()}
    print(f"# What CuTe's C++ of CUTLASS {version(include)} gives for random layouts;")
    print("# written by record.py.")
    for n, (expression, _) in enumerate(expressions):
        refused = ours[n].startswith("error")
        if n not in theirs:
            if not refused:
                print(f"CuTe refuses {expression}; Heddle: {ours[n]}", file=sys.stderr)
        elif ours[n] == theirs[n]:
            print(f"{expression} = {ours[n]}")
        else:
            print(f"{expression}: CuTe {theirs[n]}; Heddle {ours[n]}", file=sys.stderr)


if __name__ == "__main__":
    main()
