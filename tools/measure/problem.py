"""A case to measure: its tensors in the device's memory, as many sets of them as no cache holds, and the call of Heddle."""
import array
import functools
import math
import random
import struct

# Bytes of an element.
SIZES = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "tf32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2,
         "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1}
# Tensors of numbers that stand for places, and of how many there are.
PLACES = {("cross_entropy", "target"): "columns", ("cross_entropy_backward", "target"): "columns",
          ("embedding", "ids"): "vocabulary", ("embedding_backward", "ids"): "vocabulary"}
# Where a call does not touch all of a tensor: the dimension that says how many rows of it, and how often.
TOUCHED = {("embedding", "table"): "n", ("embedding_backward", "dtable"): "n"}
MOST_SETS, BLOCK = 64, 1 << 18  # BLOCK: random elements, which are repeated


@functools.lru_cache(maxsize=64)
def random_block(dtype, below=None, seed=1):
    """Bytes of random elements: floats in [-1, 1], integers from 0 up to `below`, or of all their bits."""
    numbers = random.Random(seed)
    size = SIZES[dtype]
    if dtype in ("f64", "f32", "tf32"):
        return array.array("d" if size == 8 else "f", (numbers.uniform(-1, 1) for _ in range(BLOCK))).tobytes()
    if dtype == "f16":
        return struct.pack(f"<{BLOCK}e", *(numbers.uniform(-1, 1) for _ in range(BLOCK)))
    if dtype == "bf16":
        wide = random_block("f32", seed=seed)
        return b"".join(wide[i + 2:i + 4] for i in range(0, len(wide), 4))
    if dtype in ("e4m3", "e5m2"):  # of magnitude below 1
        most = 0x38 if dtype == "e4m3" else 0x3c
        return bytes(numbers.randrange(most) | numbers.randrange(2) << 7 for _ in range(BLOCK))
    if below is None:
        return numbers.randbytes(BLOCK * size)
    return array.array({8: "q", 4: "i", 2: "h", 1: "b"}[size], (numbers.randrange(below) for _ in range(BLOCK))).tobytes()


class Tensor:
    """What a call takes: name, element type, extents, whether it is read and written."""

    def __init__(self, kernel, described, sizes):
        self.name, self.dtype, self.extents = described["name"], described["dtype"], described["extents"]
        self.reads, self.writes = described["reads"], described["writes"]
        self.elements = math.prod(self.extents)
        self.bytes = self.elements * SIZES[self.dtype]
        place = PLACES.get((kernel, self.name))
        self.below = sizes[place] if place else None
        touched = TOUCHED.get((kernel, self.name))
        rows = sizes[touched] / self.extents[0] if touched and self.extents[0] else 1
        self.moved = int(self.bytes * rows * (self.reads + self.writes))


class Problem:
    """Allocates and fills the tensors, and compiles the call; close() gives everything back."""

    def __init__(self, device, clock, case, most_sets=MOST_SETS):
        self.device, self.clock, self.kernel = device, clock, case["kernel"]
        self.settings = case["settings"]
        texts = [f"{name}={value}" for name, value in self.settings.items()]
        described = device.library.tensors(self.kernel, texts, [f"{name}={n}" for name, n in case["sizes"].items()])
        self.sizes = described["sizes"]
        self.tensors = [Tensor(self.kernel, one, self.sizes) for one in described["tensors"]]
        self.moved_bytes = sum(tensor.moved for tensor in self.tensors)
        self.call = device.compile(self.kernel, texts, [(t.name, t.dtype, t.extents) for t in self.tensors])
        bytes_of_set = max(1, sum(tensor.bytes for tensor in self.tensors))
        count = 4 * device.info["l2_bytes"] // bytes_of_set + 1 if clock.flush_us else 1
        self.sets, self.copied, self.scratch = [], [], []
        try:
            for index in range(min(most_sets, max(2, count))):
                self.sets.append([self._of_tensor(tensor, index) for tensor in self.tensors])
                # What the copy of as many bytes moves.
                size = self.moved_bytes // 2
                self.copied.append((device.allocate(size), self._filled(size, random_block("u8"))))
        except Exception:
            self.close()
            raise
        self.pointers = [self.call.pointers(one) for one in self.sets]

    def _of_tensor(self, tensor, index):
        if not tensor.reads:
            return self.device.allocate(tensor.bytes)
        return self._filled(tensor.bytes, random_block(tensor.dtype, tensor.below, seed=index % 4))

    def _filled(self, size, block):
        """Memory that has the block again and again."""
        address = self.device.allocate(size)
        block = block[:size]
        self.device.upload(address, block)
        filled = len(block)
        while 0 < filled < size:
            part = min(filled, size - filled)
            self.clock.copy(address + filled, address, part)
            filled += part
        self.clock.synchronize()
        return address

    def allocate(self, size):
        """Memory that lasts as long as the problem."""
        self.scratch.append(self.device.allocate(size))
        return self.scratch[-1]

    def launch(self, i):
        """Heddle's call on set i."""
        self.call.launch(self.pointers[i % len(self.pointers)], self.clock.stream)

    def copy(self, i):
        """The driver's copy that moves as many bytes."""
        to, source = self.copied[i % len(self.copied)]
        self.clock.copy(to, source, self.moved_bytes // 2)

    def close(self):
        for addresses in [*self.sets, *self.copied, self.scratch]:
            for address in addresses:
                self.device.free(address)
        self.sets, self.copied, self.scratch = [], [], []
        self.call.release()
