"""Heddle's operations in torch. FUNCTIONS: by operation, a function of its settings and sizes that gives a function of the
tensors by name, which returns the outputs in the operation's order. FORMULAS: where torch has a kernel of its own that
torch.compile would call, the same in plain operators."""
import torch
import torch.nn.functional as F


def _number(settings, name):
    return float(settings[name])


def _always(function):
    return lambda settings, sizes: function


def _reduce(settings, sizes):
    op, dim = settings["op"], {"last": -1, "first": 0, "all": None}[settings["dim"]]
    along = {} if dim is None else {"dim": dim}
    return {
        "sum": lambda x, y: x.sum(**along, dtype=torch.float32),
        "mean": lambda x, y: x.mean(**along, dtype=torch.float32),
        "product": lambda x, y: x.prod(**along, dtype=torch.float32),
        "max": lambda x, y: x.amax(**along),
        "min": lambda x, y: x.amin(**along),
        "norm2": lambda x, y: torch.linalg.vector_norm(x, **along, dtype=torch.float32),
        "var": lambda x, y: torch.var(x, **along, correction=0),
        "argmax": lambda x, y: x.argmax(**along),
        "argmin": lambda x, y: x.argmin(**along),
    }[op]


def _rms_norm(settings, sizes):
    eps = _number(settings, "eps")
    return lambda x, w, y: F.rms_norm(x, w.shape, w, eps)


def _layer_norm(settings, sizes):
    eps = _number(settings, "eps")
    return lambda x, w, b, y: F.layer_norm(x, w.shape, w, b, eps)


def _add_rms_norm(settings, sizes):
    eps = _number(settings, "eps")

    def function(x, residual, w, y, sum):
        total = x + residual
        return F.rms_norm(total, w.shape, w, eps), total
    return function


def _add_layer_norm(settings, sizes):
    eps = _number(settings, "eps")

    def function(x, residual, w, b, y, sum):
        total = x + residual
        return F.layer_norm(total, w.shape, w, b, eps), total
    return function


def _quantized(norm):
    peak = norm.abs().amax(-1).clamp(min=2.0 ** -100)
    return (norm * (448 / peak).unsqueeze(-1)).to(torch.float8_e4m3fn), peak / 448


def _rms_norm_quantized(settings, sizes):
    eps = _number(settings, "eps")
    return lambda x, w, y, scales: _quantized(F.rms_norm(x.float(), w.shape, w.float(), eps))


def _layer_norm_quantized(settings, sizes):
    eps = _number(settings, "eps")
    return lambda x, w, b, y, scales: _quantized(F.layer_norm(x.float(), w.shape, w.float(), b.float(), eps))


def _add_rms_norm_quantized(settings, sizes):
    eps = _number(settings, "eps")

    def function(x, residual, w, y, scales, sum):
        total = x + residual
        return *_quantized(F.rms_norm(total.float(), w.shape, w.float(), eps)), total
    return function


def _rms_norm_backward(settings, sizes):
    scale = torch.rand(sizes["rows"], 1, device="cuda")  # saved by the forward pass; Heddle's finds it again
    return lambda x, w, dy, dx, dw: torch.ops.aten._fused_rms_norm_backward(dy, x, w.shape, scale, w, [True, True])


def _layer_norm_backward(settings, sizes):
    scale = torch.rand(sizes["rows"], 1, device="cuda")
    return lambda x, w, dy, dx, dw, db: torch.ops.aten.native_layer_norm_backward(
        dy, x, w.shape, scale, scale, w, w, [True, True, True])


def _rms_norm_backward_formula(settings, sizes):
    eps = _number(settings, "eps")

    def function(x, w, dy, dx, dw):
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
        s, normed = w.float() * dy.float(), x.float() * scale
        return (scale * (s - normed * (s * normed).mean(-1, keepdim=True))).to(x.dtype), (dy * normed).sum(0).to(x.dtype)
    return function


def _layer_norm_backward_formula(settings, sizes):
    eps = _number(settings, "eps")

    def function(x, w, dy, dx, dw, db):
        variance, mean = torch.var_mean(x.float(), -1, correction=0, keepdim=True)
        scale = torch.rsqrt(variance + eps)
        s, normed = w.float() * dy.float(), (x.float() - mean) * scale
        to_x = scale * (s - s.mean(-1, keepdim=True) - normed * (s * normed).mean(-1, keepdim=True))
        return to_x.to(x.dtype), (dy * normed).sum(0).to(x.dtype), dy.float().sum(0).to(x.dtype)
    return function


def _cross_entropy(x, target, loss):
    return F.cross_entropy(x, target.long(), reduction="none")


def _cross_entropy_backward(x, target, dloss, dx):
    weights = torch.softmax(x, -1)
    return weights.scatter_add_(-1, target.long()[:, None], weights.new_full((len(target), 1), -1)) * dloss[:, None].to(x.dtype)


def _rotary(settings, sizes, sign=1, names=("x", "y")):
    source, _ = names
    half = sizes["half"]

    def function(cosine, sine, **tensors):
        x = tensors[source]
        c, s = cosine[:, None, :], sine[:, None, :] * sign
        if settings["pairs"] == "halves":
            a, b = x[..., :half].float(), x[..., half:2 * half].float()
            return torch.cat((a * c - b * s, b * c + a * s, x[..., 2 * half:].float()), -1).to(x.dtype)
        a, b = x[..., :2 * half:2].float(), x[..., 1:2 * half:2].float()
        turned = torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2)
        return torch.cat((turned, x[..., 2 * half:].float()), -1).to(x.dtype)
    return function


def _sort(settings, sizes):
    descending = settings["order"] == "descending"
    return lambda x, y: torch.sort(x, stable=True, descending=descending)[0]


def _sort_pairs(settings, sizes):
    descending = settings["order"] == "descending"

    def function(keys, values, sorted_keys, sorted_values):
        ordered, places = torch.sort(keys, stable=True, descending=descending)
        return ordered, values[places]
    return function


def _scan(settings, sizes):
    if settings["kind"] == "inclusive":
        return lambda x, y: torch.cumsum(x, -1, dtype=x.dtype)
    return lambda x, y: torch.cumsum(x, -1, dtype=x.dtype) - x


def _topk(settings, sizes):
    k, largest = int(settings["k"]), settings["which"] == "greatest"
    return lambda x, values, indices: torch.topk(x, k, -1, largest)


def _histogram(settings, sizes):
    bins, lower, upper = sizes["bins"], _number(settings, "lower"), _number(settings, "upper")
    return lambda x, counts: torch.histc(x, bins, lower, upper)


def _gemm(settings, sizes):
    if settings["epilogue"] != "none" or float(settings["beta"]) != 0 or float(settings["alpha"]) != 1 \
            or settings["dtype"] not in ("f16", "bf16") or settings["out"] != settings["dtype"]:
        return lambda **_: (_ for _ in ()).throw(NotImplementedError("torch multiplies without an epilogue here"))
    first, second = settings["layout"]

    def function(a, b, d):
        return torch.matmul(a if first == "t" else a.t(), b.t() if second == "n" else b)
    return function


def _dropout(settings, sizes):
    p = _number(settings, "p")
    return lambda x, y: F.dropout(x, p)


def _axpby(settings, sizes):
    alpha, beta = _number(settings, "alpha"), _number(settings, "beta")
    return lambda x, y: y.mul_(beta).add_(x, alpha=alpha)


def _saxpy(settings, sizes):
    a = _number(settings, "a")
    return lambda x, y: y.add_(x, alpha=a)


FUNCTIONS = {
    "copy": _always(lambda x, y: y.copy_(x)),
    "cast": _always(lambda x, y: y.copy_(x)),
    "transpose": _always(lambda x, y: y.copy_(x.t())),
    "add": _always(lambda a, b, y: torch.add(a, b, out=y)),
    "multiply": _always(lambda a, b, y: torch.mul(a, b, out=y)),
    "relu": _always(lambda x, y: torch.relu(x)),
    "gelu": _always(lambda x, y: F.gelu(x)),
    "silu": _always(lambda x, y: F.silu(x)),
    "swiglu": _always(lambda gate, up, y: F.silu(gate) * up),
    "relu_backward": _always(lambda x, dy, dx: torch.ops.aten.threshold_backward(dy, x, 0)),
    "silu_backward": _always(lambda x, dy, dx: torch.ops.aten.silu_backward(dy, x)),
    "gelu_backward": _always(lambda x, dy, dx: torch.ops.aten.gelu_backward(dy, x)),
    "axpby": _axpby,
    "saxpy": _saxpy,
    "reduce": _reduce,
    "row_sum": _always(lambda x, y: x.sum(-1, dtype=torch.float32)),
    "softmax": _always(lambda x, y: torch.softmax(x, -1)),
    "log_softmax": _always(lambda x, y: torch.log_softmax(x, -1)),
    "softmax_backward": _always(lambda y, dy, dx: torch._softmax_backward_data(dy, y, -1, y.dtype)),
    "log_softmax_backward": _always(lambda y, dy, dx: torch._log_softmax_backward_data(dy, y, -1, y.dtype)),
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "add_rms_norm": _add_rms_norm,
    "add_layer_norm": _add_layer_norm,
    "rms_norm_quantized": _rms_norm_quantized,
    "layer_norm_quantized": _layer_norm_quantized,
    "add_rms_norm_quantized": _add_rms_norm_quantized,
    "rms_norm_backward": _rms_norm_backward,
    "layer_norm_backward": _layer_norm_backward,
    "cross_entropy": _always(_cross_entropy),
    "cross_entropy_backward": _always(_cross_entropy_backward),
    "scan": _scan,
    "sort": _sort,
    "sort_pairs": _sort_pairs,
    "topk": _topk,
    "histogram": _histogram,
    "embedding": _always(lambda table, ids, y: F.embedding(ids, table)),
    "embedding_backward": _always(lambda ids, dy, dtable: dtable.index_add_(0, ids, dy.float())),
    "rotary": _rotary,
    "rotary_backward": lambda settings, sizes: _rotary(settings, sizes, -1, ("dy", "dx")),
    "dropout": _dropout,
    "gemm": _gemm,
}
FORMULAS = {"rms_norm_backward": _rms_norm_backward_formula, "layer_norm_backward": _layer_norm_backward_formula}
