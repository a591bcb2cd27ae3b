"""Peers of Heddle's operations, in this process: torch and what torch.compile makes of its functions, kernels written in
Triton, and CUB. A peer's prepare(problem) is a function that enqueues the problem on set i, or a Missing error."""
import collections
import ctypes
import importlib
import os


class Missing(Exception):
    """The peer is not there, or lacks the operation."""


class Torch:
    """torch's own functions."""

    def __init__(self, device_name):
        try:
            self.torch = importlib.import_module("torch")
        except (ImportError, OSError) as error:
            raise Missing(f"torch cannot be imported ({error}); fix: install it for the Python that runs this") from error
        self.device = device_name
        self.functions = importlib.import_module("measure.torch_functions").FUNCTIONS
        self.version = self.torch.__version__

    def view(self, tensor, address):
        """The memory of a tensor as torch's."""
        torch = self.torch
        types = {"f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16,
                 "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8,
                 "i8": torch.int8, "e4m3": torch.float8_e4m3fn}
        if tensor.dtype not in types:
            raise Missing(f"torch has no elements of type {tensor.dtype}")

        class Memory:
            __cuda_array_interface__ = {"shape": (tensor.bytes,), "typestr": "|u1", "data": (address, False), "version": 3}

        return torch.as_tensor(Memory(), device=self.device).view(types[tensor.dtype]).view(tensor.extents)

    def views(self, problem):
        return [{t.name: self.view(t, address) for t, address in zip(problem.tensors, one)} for one in problem.sets]

    def function(self, problem):
        if problem.kernel not in self.functions:
            raise Missing(f"torch has no {problem.kernel}")
        return self.functions[problem.kernel](problem.settings, problem.sizes)

    def prepare(self, problem):
        return self.on_stream(problem, self.function(problem))

    def on_stream(self, problem, function):
        """A call of function(tensors by name). What it returns stays for as many calls as there are sets, so that its memory
        takes turns too."""
        views = self.views(problem)
        stream = self.torch.cuda.ExternalStream(problem.clock.stream.value, device=self.device)
        kept = collections.deque(maxlen=len(views))

        def call(i):
            with self.torch.cuda.stream(stream), self.torch.no_grad():
                kept.append(function(**views[i % len(views)]))
                return kept[-1]
        return call

    def close(self):
        """Behind a problem: gives back what it keeps of the memory."""
        self.torch.cuda.empty_cache()


class Compiled(Torch):
    """What torch.compile makes of the formulas of torch's functions."""

    def function(self, problem):
        functions = importlib.import_module("measure.torch_functions")
        formula = {**functions.FUNCTIONS, **functions.FORMULAS}.get(problem.kernel)
        if formula is None:
            raise Missing(f"there is no formula of {problem.kernel}")
        self.torch._dynamo.reset()
        return self.torch.compile(formula(problem.settings, problem.sizes), dynamic=False)


class Triton(Torch):
    """Kernels written in Triton (triton_kernels.py), on torch's tensors."""

    def __init__(self, device_name):
        super().__init__(device_name)
        try:
            self.kernels = importlib.import_module("measure.triton_kernels").KERNELS
        except (ImportError, OSError) as error:
            raise Missing(f"triton cannot be imported ({error}); fix: install it for the Python that runs this") from error
        self.version = importlib.import_module("triton").__version__

    def function(self, problem):
        if problem.kernel not in self.kernels:
            raise Missing(f"there is no kernel of {problem.kernel} in Triton here")
        return self.kernels[problem.kernel](problem.settings, problem.sizes)


class Cub:
    """CUB's device-wide functions, compiled into peer_cub.so (tools/bench/peers/cub.cu)."""

    TYPES = {"u32": 0, "i32": 1, "f32": 2, "bf16": 3, "i64": 4}

    def __init__(self, _):
        path = os.environ.get("HEDDLE_PEER_CUB", "")
        if not path:
            raise Missing("HEDDLE_PEER_CUB is not set; fix: compile tools/bench/peers/cub.cu as it says, and set it to the library")
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise Missing(f"{path} cannot be loaded: {error}") from error
        self.version = ""

    def close(self):
        """It keeps nothing."""

    def arguments(self, problem):
        """The function's name, and of a set its arguments up to the scratch memory."""
        kernel, settings, sizes = problem.kernel, problem.settings, problem.sizes
        dtype = settings.get("dtype", "f32")
        pointer, number = ctypes.c_void_p, ctypes.c_longlong
        if kernel in ("reduce", "row_sum") and settings.get("op", "sum") == "sum" and settings.get("dim", "last") == "last" \
                and dtype in ("f32", "bf16"):
            return "cub_sum", lambda x, y: (int(dtype == "bf16"), pointer(x), pointer(y), number(sizes["rows"]), number(sizes["columns"]))
        if kernel == "scan" and settings.get("kind") == "inclusive" and dtype in ("f32", "i32"):
            return "cub_scan", lambda x, y: (int(dtype == "i32"), pointer(x), pointer(y), number(sizes["rows"]), number(sizes["columns"]))
        if kernel == "sort" and settings.get("order") == "ascending" and dtype in self.TYPES:
            return "cub_sort", lambda x, y: (self.TYPES[dtype], pointer(x), pointer(y), None, None, number(sizes["n"]))
        if kernel == "sort_pairs" and settings.get("order") == "ascending" and settings.get("value") == "i32" \
                and dtype in self.TYPES:
            return "cub_sort", lambda k, v, sk, sv: (self.TYPES[dtype], pointer(k), pointer(sk), pointer(v), pointer(sv), number(sizes["n"]))
        if kernel == "histogram" and dtype in ("f32", "i32", "u8"):
            return "cub_histogram", lambda x, counts: (
                {"f32": 0, "i32": 1, "u8": 2}[dtype], pointer(x), pointer(counts), int(sizes["bins"]),
                ctypes.c_double(float(settings["lower"])), ctypes.c_double(float(settings["upper"])), number(sizes["n"]))
        raise Missing(f"CUB's library here has no {kernel} with these settings")

    def prepare(self, problem):
        name, arguments = self.arguments(problem)
        function = getattr(self.library, name)
        size = ctypes.c_size_t()
        if function(*arguments(*problem.sets[0]), None, ctypes.byref(size), problem.clock.stream):
            raise Missing(f"{name} failed")
        memory = ctypes.c_void_p(problem.allocate(size.value))
        calls = [arguments(*one) for one in problem.sets]

        def call(i):
            if function(*calls[i % len(calls)], memory, ctypes.byref(size), problem.clock.stream):
                raise RuntimeError(f"{name} failed")
        return call


# By the names that --against takes.
PEERS = {"torch": Torch, "torch.compile": Compiled, "triton": Triton, "cub": Cub}
