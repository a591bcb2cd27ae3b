"""Measures a problem by Heddle, by the driver's copy of as many bytes, and by peers, in turns."""
import array
import math
import random
import statistics
import struct
import time

from measure.peers import Missing
from measure.problem import Problem

BURST_US, MOST_LAUNCHES = 1000, 20
CHECKED = 2048       # elements at each of three places of an output that are compared with a peer's
TOLERANCE = 0.02     # of the largest: orders of sums and roundings differ
COARSE = 0.08        # of e4m3, whose greatest numbers are a fourteenth apart
OURS, COPY = "heddle", "copy"
# How many of the outputs are compared, by operation, or by operation and peer: of equal elements topk may tell any places,
# dropout draws numbers, and inputs that are changed in place are others by then. What torch's backward passes of norms are
# given of the forward one is made up.
COMPARED = {"topk": 1, "dropout": 0, "axpby": 0, "saxpy": 0, "embedding_backward": 0, ("rms_norm_backward", "torch"): 0,
            ("layer_norm_backward", "torch"): 0}
# Operations that only move elements: nothing is rounded.
EXACT = ("copy", "transpose", "sort", "sort_pairs", "embedding")


def _e4m3(byte):
    """Sign, four bits of exponent, three of mantissa; all ones are no number."""
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = math.nan if byte & 127 == 127 else (mantissa + 8 * (exponent > 0)) * 2.0 ** (max(exponent, 1) - 10)
    return -size if byte & 128 else size


E4M3 = [_e4m3(byte) for byte in range(256)]


def numbers(dtype, data):
    """Elements as numbers; of types that Python lacks the bytes."""
    code = {"f32": "f", "tf32": "f", "f64": "d", "i64": "q", "u64": "Q", "i32": "i", "u32": "I", "u8": "B", "i8": "b"}.get(dtype)
    if dtype == "f16":
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    if dtype == "e4m3":
        return [E4M3[byte] for byte in data]
    if dtype == "bf16":
        return list(array.array("f", b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))))
    return list(array.array(code, data)) if code else list(data)


def places(elements):
    """Where the elements lie that are compared: at the beginning, in the middle and at the end."""
    size = min(elements, CHECKED)
    return [(start, size) for start in (0, (elements - size) // 2, elements - size)]


def outputs(problem):
    """What lies in the first set's outputs."""
    problem.clock.synchronize()
    found = []
    for tensor, address in zip(problem.tensors, problem.sets[0]):
        if tensor.writes:
            size = tensor.bytes // max(1, tensor.elements)
            found.append([number for start, count in places(tensor.elements) for number in
                          numbers(tensor.dtype, problem.device.download(address + start * size, count * size))])
    return found


def poison(problem):
    """Fills what the first set's outputs hold, so that a peer which writes nothing shows."""
    for tensor, address in zip(problem.tensors, problem.sets[0]):
        if tensor.writes and not tensor.reads:
            for start, count in places(tensor.elements):
                size = tensor.bytes // max(1, tensor.elements)
                problem.device.upload(address + start * size, b"\x5b" * (count * size))


def returned(problem, result):
    """Likewise of what a peer returned: torch's tensors, or None where it wrote the outputs."""
    if result is None:
        return outputs(problem)
    problem.clock.synchronize()
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [[number for start, count in places(one.numel()) for number in one.flatten()[start:start + count].double().cpu().tolist()]
            for one in results]


def tolerances(problem):
    """Of the outputs, how far apart two may be, of the largest."""
    def tolerance(dtype):
        return 0 if problem.kernel in EXACT else COARSE if dtype == "e4m3" else TOLERANCE
    return [tolerance(tensor.dtype) for tensor in problem.tensors if tensor.writes]


def alike(ours, theirs, tolerance_of_each):
    """Whether all outputs are, but for roundings."""
    if len(ours) != len(theirs):
        return False
    for x, y, tolerance in zip(ours, theirs, tolerance_of_each):
        largest = max((abs(v) for v in x if math.isfinite(v)), default=0)
        if len(x) != len(y) or not all(a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * largest
                                       for a, b in zip(x, y)):
            return False
    return True


class Contender:
    """Something to time, with its times: microseconds of a launch, a burst each."""

    def __init__(self, name, launch):
        self.name, self.launch, self.times = name, launch, []

    def prepare(self, clock):
        """Runs it often enough that nothing is compiled any more, and sees how many launches a burst has."""
        for i in range(2):
            self.launch(i)
        clock.synchronize()
        start = time.perf_counter()
        self.launch(2)
        host_us = (time.perf_counter() - start) * 1e6
        clock.synchronize()
        us = clock.measure(self.launch, 2, host_us * 2)
        self.launches = max(1, min(MOST_LAUNCHES, int(BURST_US / max(us, 1e-3)) + 1))
        self.host_us = host_us * self.launches

    def burst(self, clock):
        self.times.append(clock.measure(self.launch, self.launches, self.host_us))

    def figures(self):
        times = sorted(self.times)
        p50 = statistics.median(times)
        low, high = times[len(times) // 10], times[-1 - len(times) // 10]
        return {"p50_us": p50, "p90_us": high, "spread": (high - low) / p50 if p50 else 0.0}


def contenders_of(problem, peers):
    """Heddle, the copy, and the peers that have the problem and solve it as Heddle does; why the others are left out; and whose
    results were not compared."""
    found, left_out, unchecked = [Contender(OURS, problem.launch), Contender(COPY, problem.copy)], {}, []
    problem.launch(0)
    expected = outputs(problem)
    for one in found:
        one.prepare(problem.clock)
    for name, peer in peers.items():
        try:
            launch = peer.prepare(problem)
            poison(problem)
            result = launch(0)
            compared = COMPARED.get((problem.kernel, name), COMPARED.get(problem.kernel, len(expected)))
            if compared and not alike(expected[:compared], returned(problem, result)[:compared], tolerances(problem)):
                left_out[name] = "its results differ from Heddle's"
                continue
            del result
            contender = Contender(name, launch)
            contender.prepare(problem.clock)
            found.append(contender)
            if not compared:
                unchecked.append(name)
        except Missing as why:
            left_out[name] = str(why)
        except Exception as error:  # of a size that a peer does not take, of its compiler, or of memory that is short
            left_out[name] = f"{type(error).__name__}: {str(error)[:200]}"
    return found, left_out, unchecked


def measure(device, clock, case, peers, rounds, seed=1):
    """The figures of a case. Contenders take turns, in an order that is drawn anew each round."""
    problem = Problem(device, clock, case)
    try:
        contenders, left_out, unchecked = contenders_of(problem, peers)
        order = random.Random(seed)
        for _ in range(rounds):
            order.shuffle(contenders)
            for one in contenders:
                one.burst(clock)
        times = {one.name: one.figures() for one in contenders}
        ours, copy = times[OURS]["p50_us"], times[COPY]["p50_us"]
        return {"kernel": case["kernel"], "settings": case["settings"], "shape": case["shape"], "sizes": problem.sizes, "bytes": problem.moved_bytes,
                "gb_s": problem.moved_bytes / ours * 1e-3 if ours else 0.0, "of_copy": copy / ours if ours else 0.0,
                "times": {name: times[name] for name in (OURS, COPY, *peers) if name in times},
                "versus": {name: times[name]["p50_us"] / ours for name in peers if name in times and ours},
                "left_out": left_out, "unchecked": unchecked}
    finally:
        contenders = []  # with what they keep of a peer's memory
        problem.close()
        for peer in peers.values():
            peer.close()
