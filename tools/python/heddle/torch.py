"""Heddle's operations as torch's own: with gradients, fake tensors, and in what torch.compile and CUDA graphs capture.

    import heddle.torch as ht
    y = ht.rms_norm(x, w, eps=1e-5)                # also torch.ops.heddle.rms_norm
    loss = ht.cross_entropy(ht.linear(y, weight, bias), target).mean()
    loss.backward()

Each takes CUDA tensors of f32, f16 or bf16 (linear: f16 and bf16, or f32 by way of tf32) with any leading modes, and returns contiguous
ones. Where torch's function has the same name it means the same, but for what a docstring says.
"""
from typing import Optional

import torch
from torch import Tensor

from heddle.operation import operation

__all__ = ["add_rms_norm", "cross_entropy", "dropout", "embedding", "gelu", "layer_norm", "linear", "log_softmax", "relu", "rms_norm",
           "rotary", "silu", "softmax", "swiglu"]


def _like(x):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _custom(fake):
    """Registers a function as heddle::<its name>; `fake` gives its outputs without their elements."""
    def register(function):
        op = torch.library.custom_op(f"heddle::{function.__name__}", function, mutates_args=())
        op.register_fake(fake)
        return op
    return register


def _gradient(op, saves, backward):
    """`saves`: of the inputs and the output, what backward() reads."""
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*saves(inputs, output))
        ctx.rest = [x for x in inputs if x is not None and not isinstance(x, Tensor)]
    op.register_autograd(backward, setup_context=setup)


# --- of rows ---

@_custom(lambda x: _like(x))
def softmax(x: Tensor) -> Tensor:
    """Over the last mode."""
    return operation("softmax")(x)


@_custom(lambda y, dy: _like(y))
def softmax_backward(y: Tensor, dy: Tensor) -> Tensor:
    return operation("softmax_backward")(y, dy)


_gradient(softmax, lambda inputs, y: [y], lambda context, dy: softmax_backward(*context.saved_tensors, dy.contiguous()))


@_custom(lambda x: _like(x))
def log_softmax(x: Tensor) -> Tensor:
    """Over the last mode."""
    return operation("log_softmax")(x)


@_custom(lambda y, dy: _like(y))
def log_softmax_backward(y: Tensor, dy: Tensor) -> Tensor:
    return operation("log_softmax_backward")(y, dy)


_gradient(log_softmax, lambda inputs, y: [y], lambda context, dy: log_softmax_backward(*context.saved_tensors, dy.contiguous()))


@_custom(lambda x, w, eps: _like(x))
def rms_norm(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    """Of the last mode, times w."""
    return operation("rms_norm")(x, w, eps=eps)


@_custom(lambda x, w, dy, eps: (_like(x), _like(w)))
def rms_norm_backward(x: Tensor, w: Tensor, dy: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return operation("rms_norm_backward")(x, w, dy, eps=eps)


_gradient(rms_norm, lambda inputs, y: inputs[:2],
          lambda context, dy: (*rms_norm_backward(*context.saved_tensors, dy.contiguous(), *context.rest), None))


@_custom(lambda x, residual, w, eps: (_like(x), _like(x)))
def add_rms_norm(x: Tensor, residual: Tensor, w: Tensor, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    """rms_norm(x + residual), and the sum."""
    return operation("add_rms_norm")(x, residual, w, eps=eps)


def _add_rms_norm_backward(context, dy, dsum):
    total, w = context.saved_tensors
    dx, dw = rms_norm_backward(total, w, dy.contiguous(), *context.rest)
    dx = dx + dsum
    return dx, dx, dw, None


_gradient(add_rms_norm, lambda inputs, outputs: [outputs[1], inputs[2]], _add_rms_norm_backward)


@_custom(lambda x, w, b, eps: _like(x))
def layer_norm(x: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    """Of the last mode, times w, plus b."""
    return operation("layer_norm")(x, w, b, eps=eps)


@_custom(lambda x, w, dy, eps: (_like(x), _like(w), _like(w)))
def layer_norm_backward(x: Tensor, w: Tensor, dy: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    return operation("layer_norm_backward")(x, w, dy, eps=eps)


_gradient(layer_norm, lambda inputs, y: inputs[:2],
          lambda context, dy: (*layer_norm_backward(*context.saved_tensors, dy.contiguous(), *context.rest), None))


@_custom(lambda x, target: torch.empty(target.shape, dtype=torch.float32, device=x.device))
def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """The loss of each row, in f32 (reduction="none"); 0 where the target is negative."""
    return operation("cross_entropy")(x, target)


@_custom(lambda x, target, dloss: _like(x))
def cross_entropy_backward(x: Tensor, target: Tensor, dloss: Tensor) -> Tensor:
    return operation("cross_entropy_backward")(x, target, dloss)


_gradient(cross_entropy, lambda inputs, loss: inputs,
          lambda context, dloss: (cross_entropy_backward(*context.saved_tensors, dloss.contiguous()), None))


# --- of elements ---

def _elementwise(name):
    """A function of one tensor, whose gradient is an operation of x and dy."""
    def forward(x: Tensor) -> Tensor:
        return operation(name)(x.contiguous())

    def backward(x: Tensor, dy: Tensor) -> Tensor:
        return operation(name + "_backward")(x.contiguous(), dy)

    forward.__name__, backward.__name__ = name, name + "_backward"
    forward_op, backward_op = _custom(lambda x: _like(x))(forward), _custom(lambda x, dy: _like(x))(backward)
    _gradient(forward_op, lambda inputs, y: inputs, lambda context, dy: backward_op(*context.saved_tensors, dy.contiguous()))
    return forward_op, backward_op


relu, relu_backward = _elementwise("relu")
gelu, gelu_backward = _elementwise("gelu")
silu, silu_backward = _elementwise("silu")


@_custom(lambda gate, up: _like(gate))
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) up."""
    return operation("swiglu")(gate.contiguous(), up.contiguous())


def _swiglu_backward(context, dy):
    gate, up = context.saved_tensors
    dy = dy.contiguous()
    return silu_backward(gate, dy * up), swiglu(gate, dy)


_gradient(swiglu, lambda inputs, y: inputs, _swiglu_backward)


@_custom(lambda x, p, seed: _like(x))
def dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """Each element 0 with probability p, else over 1 - p; the same for the same seed."""
    return operation("dropout")(x.contiguous(), p=p, seed=seed)


_gradient(dropout, lambda inputs, y: [], lambda context, dy: (dropout(dy.contiguous(), *context.rest), None, None))


@_custom(lambda x, cosine, sine: _like(x))
def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """x: tokens, heads, elements; elements i and i + half turn together, by angles of the token."""
    return operation("rotary")(x, cosine, sine)


@_custom(lambda dy, cosine, sine: _like(dy))
def rotary_backward(dy: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    return operation("rotary_backward")(dy, cosine, sine)


_gradient(rotary, lambda inputs, y: inputs[1:], lambda context, dy: (rotary_backward(dy.contiguous(), *context.saved_tensors), None, None))


# --- tables and products ---

@_custom(lambda table, ids: torch.empty((*ids.shape, table.shape[1]), dtype=table.dtype, device=table.device))
def embedding(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of the table by their numbers."""
    return operation("embedding")(table, ids.reshape(-1)).reshape(*ids.shape, table.shape[1])


@_custom(lambda ids, dy, rows: torch.empty((rows, dy.shape[-1]), dtype=torch.float32, device=dy.device))
def embedding_backward(ids: Tensor, dy: Tensor, rows: int) -> Tensor:
    dtable = torch.zeros((rows, dy.shape[-1]), dtype=torch.float32, device=dy.device)
    operation("embedding_backward")(ids.reshape(-1), dy.reshape(-1, dy.shape[-1]), dtable=dtable)
    return dtable


def _embedding_backward(context, dy):
    table, ids = context.saved_tensors
    return embedding_backward(ids, dy.contiguous(), table.shape[0]).to(table.dtype), None


_gradient(embedding, lambda inputs, y: inputs, _embedding_backward)


@_custom(lambda a, b, layout, bias: torch.empty(
    (a.shape[0] if layout[0] == "t" else a.shape[1], b.shape[0] if layout[1] == "n" else b.shape[1]), dtype=a.dtype, device=a.device))
def matmul(a: Tensor, b: Tensor, layout: str, bias: Optional[Tensor] = None) -> Tensor:
    """The product of matrices, summed in f32. Of `layout` the first letter is a's (t: m x k, n: k x m), the second b's (n: n x k, t: k x n)."""
    settings = {"layout": layout, **({"dtype": "tf32"} if a.dtype == torch.float32 else {})}
    if bias is not None:
        return operation("gemm")(a, b, bias=bias.float(), epilogue="bias", **settings)
    return operation("gemm")(a, b, **settings)


@_custom(lambda x, weight, bias: torch.empty((*x.shape[:-1], weight.shape[0]), dtype=x.dtype, device=x.device))
def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x times the transpose of weight (outputs x inputs), plus bias."""
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    return matmul(rows, weight.contiguous(), "tn", bias).reshape(*x.shape[:-1], weight.shape[0])


def _linear_backward(context, dy):
    x, weight, *bias = context.saved_tensors
    rows, d = x.reshape(-1, x.shape[-1]).contiguous(), dy.reshape(-1, dy.shape[-1]).contiguous()
    dx = matmul(d, weight.contiguous(), "tt").reshape(x.shape) if context.needs_input_grad[0] else None
    dweight = matmul(d, rows, "nt") if context.needs_input_grad[1] else None
    dbias = d.sum(0, dtype=torch.float32).to(bias[0].dtype) if bias else None
    return dx, dweight, dbias


_gradient(linear, lambda inputs, y: [x for x in inputs if x is not None], _linear_backward)
