#!/usr/bin/env python3
"""Checks libraries of `heddle build --tvm-ffi` on a GPU: called from torch and from JAX by TVM-FFI, and timed beside the plain C call.

    heddle build softmax    --tvm-ffi --set dtype=bf16 --shape 4096x1024 --shape 32x128 -o built
    heddle build rms_norm   --tvm-ffi --set dtype=bf16 --shape 4096x1024 -o built
    heddle build sort_pairs --tvm-ffi --shape 1000000 -o built          # needs scratch memory
    pip install apache_tvm_ffi-*.whl jax_tvm_ffi-*.whl "jax[cuda13]"    # or jax[cuda12]; torch is expected to be there
    python3 tools/bench/tvm_ffi_check.py built/libsoftmax.so built/librms_norm.so built/libsort_pairs.so [--no-torch] [--no-jax]

Any of the three may be left out ('' in its place). One line a check: "ok", "FAILED" or "skipped", its name, and what was measured.
The exit status is the number of checks that failed.
"""
import argparse
import ctypes
import os
import shutil
import statistics
import tempfile
import threading
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import tvm_ffi  # noqa: E402

ROWS, COLUMNS, N = 4096, 1024, 1_000_000
SMALL = (32, 128)
EPS = 1e-6
failed = 0


def check(name):
    """Runs a function as a check at once; what it returns is printed."""
    def run(body):
        global failed
        try:
            said = body()
            print(f"ok      {name}{': ' + said if said else ''}", flush=True)
        except Skipped as why:
            print(f"skipped {name}: {why}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {name}: {type(error).__name__}: {' '.join(str(error).split())[:600]}", flush=True)
    return run


class Skipped(Exception):
    pass


def expect_error(kind, text, function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        assert text in str(error), f"another error: {type(error).__name__}: {error}"
        assert kind is None or isinstance(error, kind), f"of another kind: {type(error).__name__}: {error}"
        return
    raise AssertionError(f"no error, and this was expected: {text}")


def fresh(path):
    """The module of a copy of a library, whose machine code nobody has loaded yet."""
    copy = os.path.join(tempfile.mkdtemp(), "copy.so")
    shutil.copy(path, copy)
    return tvm_ffi.load_module(copy)


def burst(function, synchronize, calls=200, bursts=40):
    """The host's time of a call in µs: the median of bursts that are shorter than the queue of launches."""
    times = []
    for _ in range(bursts):
        synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    synchronize()
    return statistics.median(times)


def with_torch(paths):
    import torch
    cuda, bf16 = torch.device("cuda:0"), torch.bfloat16
    torch.cuda.set_device(0)

    def tensors(shape=(ROWS, COLUMNS)):
        x = torch.randn(shape, device=cuda).to(bf16)
        return x, torch.empty_like(x)

    def softmax_of(x):
        return torch.softmax(x.float(), -1)

    def close(y, expected, bound=2 ** -7):
        torch.cuda.synchronize()
        # bf16: relative to the greatest that a row of it has.
        worst = ((y.float() - expected).abs().amax() / expected.abs().amax().clamp_min(1e-30)).item()
        assert worst <= bound, f"off by {worst:.3g} of the greatest element"
        return f"off by {worst:.2g} of the greatest element"

    if paths.softmax:
        module = tvm_ffi.load_module(paths.softmax)
        softmax = module.softmax

        @check("torch: softmax")
        def _():
            x, y = tensors()
            assert softmax(x, y) is None
            return close(y, softmax_of(x))

        @check("torch: softmax, tvm_ffi's tensors")
        def _():
            x, y = tensors()
            softmax(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
            return close(y, softmax_of(x))

        @check("torch: softmax, on the current stream")
        def _():
            x, y = tensors()
            source, stream = torch.randn_like(x), torch.cuda.Stream()
            x.zero_()
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # cycles: x is written late
                x.copy_(source)
                softmax(x, y)
                result = y.clone()
            stream.synchronize()
            return close(result, softmax_of(source))

        @check("torch: softmax, first called while a graph is captured")
        def _():
            first = fresh(paths.softmax).softmax
            x, y = tensors()
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                first(x, y)
            x.copy_(torch.randn_like(x))
            y.zero_()
            graph.replay()
            return close(y, softmax_of(x))

        @check("torch: softmax, a thread without a context")
        def _():
            x, y = tensors()
            torch.cuda.synchronize()
            a, b, errors = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y), []

            def call():
                try:
                    softmax(a, b)
                except Exception as error:
                    errors.append(error)
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
            if errors:
                raise errors[0]
            return close(y, softmax_of(x))

        @check("torch: softmax, tensors of another device than the current one")
        def _():
            if torch.cuda.device_count() < 2:
                raise Skipped("there is one GPU")
            x, y = (t.to("cuda:1") for t in tensors())
            torch.cuda.set_device(0)
            softmax(x, y)
            torch.cuda.synchronize(1)
            assert torch.cuda.current_device() == 0
            return close(y, softmax_of(x))

        @check("torch: softmax refuses")
        def _():
            x, y = tensors()
            expect_error(TypeError, "softmax: 1 argument is given, and 2 are expected: x: bfloat16[rows, columns], y: ", softmax, x)
            expect_error(TypeError, "argument 2, y, is a float, and a tensor is expected", softmax, x, 1.5)
            expect_error(TypeError, "argument 1, x, has elements of float32, and bfloat16 is expected", softmax, x.float(), y)
            expect_error(ValueError, "argument 1, x, is on cpu", softmax, x.cpu(), y)
            expect_error(ValueError, "argument 1, x, has the shape", softmax, x.view(-1), y)
            expect_error(ValueError, f"argument 2, y, has the shape [5, {COLUMNS}], and [rows, columns] is expected with rows={ROWS} by argument 1", softmax, x, y[:5])
            expect_error(ValueError, f"there is no code for rows=5, columns={COLUMNS}: it was built for", softmax, x[:5], y[:5])
            wide = torch.empty(ROWS, 2 * COLUMNS, device=cuda, dtype=bf16)
            expect_error(ValueError, "row-major without gaps", softmax, x, wide[:, :COLUMNS])
            expect_error(ValueError, "y shares memory with x", softmax, x, x)
            odd = torch.empty(ROWS * COLUMNS + 1, device=cuda, dtype=bf16)[1:].view(ROWS, COLUMNS)
            expect_error(ValueError, "multiple of 16 bytes", softmax, odd, y)
            softmax(x, y)  # and works again
            close(y, softmax_of(x))

        @check("torch: softmax of 32 x 128, a call's time on the host")
        def _():
            x, y = tensors(SMALL)
            softmax(x, y)
            close(y, softmax_of(x))
            plain = ctypes.CDLL(os.path.abspath(paths.softmax)).softmax
            plain.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_void_p, ctypes.c_size_t]
            stream = torch.cuda.current_stream().cuda_stream
            a, b = x.data_ptr(), y.data_ptr()
            assert plain(stream, a, b, *SMALL, None, 0) == 0
            tx, ty = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y)
            sync = torch.cuda.synchronize
            contenders = {"tvm_ffi of torch's tensors": lambda: softmax(x, y),
                          "tvm_ffi of its own tensors": lambda: softmax(tx, ty),
                          "plain by ctypes": lambda: plain(stream, a, b, *SMALL, None, 0),
                          "torch.softmax(out=)": lambda: torch.softmax(x, -1, out=y)}
            return ", ".join(f"{name} {burst(call, sync):.2f} µs" for name, call in contenders.items())

    if paths.rms_norm:
        rms_norm = tvm_ffi.load_module(paths.rms_norm).rms_norm

        @check("torch: rms_norm")
        def _():
            x, y = tensors()
            w = torch.randn(COLUMNS, device=cuda).to(bf16)
            rms_norm(x, w, y)
            f = x.float()
            return close(y, f * torch.rsqrt(f.square().mean(-1, keepdim=True) + EPS) * w.float())

    if paths.sort_pairs:
        module = tvm_ffi.load_module(paths.sort_pairs)

        def sorted_by(call):
            keys = torch.randn(N, device=cuda)
            values = torch.arange(N, device=cuda, dtype=torch.int32)
            out = torch.empty_like(keys), torch.empty_like(values)
            call(keys, values, *out)
            torch.cuda.synchronize()
            expected, places = torch.sort(keys, stable=True)
            assert torch.equal(out[0], expected) and torch.equal(out[1].long(), places), "wrongly sorted"

        bytes_needed = module.sort_pairs_workspace_bytes(N)

        @check("torch: sort_pairs, scratch memory of torch's allocator")
        def _():
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            sorted_by(module.sort_pairs)
            assert torch.cuda.memory_allocated() == before, "scratch memory was kept"
            return f"{bytes_needed} bytes"

        @check("torch: sort_pairs, a workspace that is passed, anywhere")
        def _():
            memory = torch.empty(bytes_needed + 13, device=cuda, dtype=torch.uint8)
            for begin in (0, 13):
                sorted_by(lambda *t: module.sort_pairs(*t, memory[begin:begin + bytes_needed]))
            expect_error(ValueError, "argument 5, workspace, has 100 bytes, and", sorted_by, lambda *t: module.sort_pairs(*t, memory[:100]))

        @check("torch: sort_pairs in a graph, its scratch memory too")
        def _():
            first = fresh(paths.sort_pairs).sort_pairs
            keys = torch.randn(N, device=cuda)
            values = torch.arange(N, device=cuda, dtype=torch.int32)
            out = torch.empty_like(keys), torch.empty_like(values)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                first(keys, values, *out)
            for _ in range(2):
                keys.copy_(torch.randn_like(keys))
                graph.replay()
                torch.cuda.synchronize()
                assert torch.equal(out[0], torch.sort(keys)[0]), "wrongly sorted"


def with_jax(paths):
    import jax
    import jax.numpy as jnp
    import jax_tvm_ffi
    import numpy as np

    registered = [0]

    def register(function, **options):
        registered[0] += 1
        name = f"heddle_{registered[0]}"
        jax_tvm_ffi.register_ffi_target(name, function, ["args", "rets"], platform="gpu", **options)
        return name

    def like(*shapes):
        shapes = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes)
        return shapes[0] if len(shapes) == 1 else shapes

    def close(y, expected, bound=2 ** -7):
        y, expected = np.asarray(y, np.float32), np.asarray(expected, np.float32)
        worst = np.abs(y - expected).max() / max(np.abs(expected).max(), 1e-30)
        assert worst <= bound, f"off by {worst:.3g} of the greatest element"
        return f"off by {worst:.2g} of the greatest element"

    def values(shape, seed=0):
        return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(jnp.bfloat16)

    def softmax_of(x):
        return jax.nn.softmax(x.astype(jnp.float32), -1)

    if paths.softmax:
        module = tvm_ffi.load_module(paths.softmax)

        @check("jax: softmax, eager and under jit")
        def _():
            name = register(module.softmax)
            x = values((ROWS, COLUMNS))

            def call(x):
                return jax.ffi.ffi_call(name, like((x.shape, x.dtype)))(x)
            close(call(x), softmax_of(x))
            return close(jax.jit(call)(x), softmax_of(x))

        @check("jax: softmax between operations of XLA's, in CUDA graphs")
        def _():
            name = register(fresh(paths.softmax).softmax, allow_cuda_graph=True)

            @jax.jit
            def call(x):
                for _ in range(6):
                    x = jax.ffi.ffi_call(name, like((x.shape, x.dtype)))(x * 2 + 1)
                return x

            @jax.jit
            def expected(x):
                for _ in range(6):
                    x = softmax_of(x * 2 + 1).astype(x.dtype)
                return x
            for seed in range(4):
                x = values((ROWS, COLUMNS), seed)
                said = close(call(x), expected(x), 2 ** -5)
            return said

        @check("jax: softmax refuses")
        def _():
            name = register(module.softmax)

            def call(shape, dtype, result=None):
                x = jnp.zeros(shape, dtype)
                jax.block_until_ready(jax.ffi.ffi_call(name, like((result or shape, dtype)))(x))
            expect_error(None, "argument 1, x, has elements of float32, and bfloat16 is expected", call, (ROWS, COLUMNS), jnp.float32)
            expect_error(None, f"there is no code for rows=5, columns={COLUMNS}", call, (5, COLUMNS), jnp.bfloat16)
            expect_error(None, "with rows=5 by argument 1", call, (5, COLUMNS), jnp.bfloat16, (6, COLUMNS))

        @check("jax: softmax of 32 x 128, a call's time on the host")
        def _():
            name = register(module.softmax)
            x = values(SMALL)
            ours = jax.jit(lambda x: jax.ffi.ffi_call(name, like((x.shape, x.dtype)))(x))
            theirs = jax.jit(lambda x: jax.nn.softmax(x, -1))
            close(ours(x), softmax_of(x))
            theirs(x)
            last = [x]

            def timed(function):
                def call():
                    last[0] = function(x)
                return burst(call, lambda: jax.block_until_ready(last[0]))
            return f"heddle under jit {timed(ours):.2f} µs, jax.nn.softmax under jit {timed(theirs):.2f} µs"

    if paths.rms_norm:
        @check("jax: rms_norm")
        def _():
            name = register(tvm_ffi.load_module(paths.rms_norm).rms_norm)
            x, w = values((ROWS, COLUMNS)), values((COLUMNS,), 1)
            y = jax.jit(lambda x, w: jax.ffi.ffi_call(name, like((x.shape, x.dtype)))(x, w))(x, w)
            f = x.astype(jnp.float32)
            return close(y, f * jax.lax.rsqrt(jnp.mean(f * f, -1, keepdims=True) + EPS) * w.astype(jnp.float32))

    if paths.sort_pairs:
        module = tvm_ffi.load_module(paths.sort_pairs)
        bytes_needed = module.sort_pairs_workspace_bytes(N)
        shapes = [((N,), jnp.float32), ((N,), jnp.int32)]

        def sorted_by(name, workspace):
            keys, values = jax.random.normal(jax.random.key(3), (N,)), jnp.arange(N, dtype=jnp.int32)
            results = [*shapes, ((workspace,), jnp.uint8)] if workspace else shapes
            # Under jit, where buffers of results that nobody uses lie where XLA likes.
            out = jax.jit(lambda k, v: jax.ffi.ffi_call(name, like(*results))(k, v)[:2])(keys, values)
            order = jnp.argsort(keys, stable=True)
            assert bool((out[0] == keys[order]).all()) and bool((out[1] == order).all()), "wrongly sorted"

        @check("jax: sort_pairs, the workspace as one more result")
        def _():
            sorted_by(register(module.sort_pairs), bytes_needed)
            return f"{bytes_needed} bytes"

        @check("jax: sort_pairs, the workspace by use_last_output_for_alloc_workspace")
        def _():
            sorted_by(register(module.sort_pairs, use_last_output_for_alloc_workspace=True), bytes_needed)

        @check("jax: sort_pairs without a workspace says so")
        def _():
            expect_error(None, "it needs a workspace", sorted_by, register(module.sort_pairs), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("softmax", help="libsoftmax.so")
    parser.add_argument("rms_norm", nargs="?", default="", help="librms_norm.so")
    parser.add_argument("sort_pairs", nargs="?", default="", help="libsort_pairs.so")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-jax", action="store_true")
    paths = parser.parse_args()
    for part, wanted in ((with_torch, not paths.no_torch), (with_jax, not paths.no_jax)):
        if not wanted:
            continue
        try:
            part(paths)
        except ImportError as error:
            print(f"skipped {part.__name__}: {error}", flush=True)
    print(f"{failed} checks failed", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
