"""Heddle's operations as torch's own: with gradients, fake tensors, and in what torch.compile and CUDA graphs capture.

    import heddle.torch as ht
    y = ht.rms_norm(x, w, eps=1e-5)                # also torch.ops.heddle.rms_norm
    loss = ht.cross_entropy(ht.linear(y, weight, bias), target).mean()
    loss.backward()

Each takes CUDA tensors of f32, f16 or bf16 (linear: f16 and bf16, or f32 by way of tf32) with any leading modes, and returns contiguous
ones. Where torch's function has the same name it means the same, but for what a docstring says.
"""
import functools
import inspect
from typing import Optional

import torch
from torch import Tensor

from heddle.operation import operation

__all__ = ["add_rms_norm", "cross_entropy", "dropout", "embedding", "gelu", "layer_norm", "linear", "log_softmax", "relu", "rms_norm",
           "rotary", "silu", "softmax", "swiglu"]


def _like(x):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


_TENSORS = (Tensor, torch.nn.Parameter)
_transforms = torch._C._functorch.peek_interpreter_stack
_forward_mode = torch.autograd.forward_ad


def _refuse_tangents(arguments):
    """There are no derivatives of forward mode, which a custom operation would drop without a word."""
    if any(isinstance(x, Tensor) and _forward_mode.unpack_dual(x).tangent is not None for x in arguments):
        raise NotImplementedError("heddle.torch has no derivatives of forward mode; fix: use backward()")


def _is_traced(arguments):
    """Whether somebody looks at what is called: torch.compile, a mode, a transform such as vmap, a tensor that is none of memory."""
    return (torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0 or _transforms() is not None
            or torch._C._get_tracing_state() is not None
            or any(isinstance(x, Tensor) and type(x) not in _TENSORS for x in arguments))


class _Saved:
    """What a function of autograd is told; backward() finds it as saved_tensors and rest."""

    def __init__(self, saves):
        self.saves = saves

    def __call__(self, ctx, inputs, output):
        ctx.save_for_backward(*self.saves(inputs, output))
        ctx.rest = [x for x in inputs if x is not None and not isinstance(x, Tensor)]


def _custom(fake, saves=None, backward=None):
    """Makes of a function a custom operation, heddle::<its name>, and a function that calls it: by torch's dispatcher where somebody looks, and
    else without it, which costs several times as much as the launch.

    `fake` gives its outputs without their elements; `saves`, of the inputs and the output, what backward() reads."""
    def register(function):
        op = torch.library.custom_op(f"heddle::{function.__name__}", function, mutates_args=())
        op.register_fake(fake)
        if backward is not None:
            op.register_autograd(backward, setup_context=_Saved(saves))
        saved, names = _Saved(saves), list(inspect.signature(function).parameters)
        usual = {name: p.default for name, p in inspect.signature(function).parameters.items() if p.default is not p.empty}

        class Differentiable(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                output = function(*inputs)
                saved(ctx, inputs, output)
                return output

            @staticmethod
            def backward(ctx, *gradients):
                return backward(ctx, *gradients)

        @functools.wraps(function)
        def call(*arguments, **named):
            if not torch.compiler.is_compiling() and _forward_mode._current_level >= 0:
                _refuse_tangents([*arguments, *named.values()])
            if _is_traced(arguments) or (named and _is_traced(named.values())):
                return op(*arguments, **named)
            if named or len(arguments) < len(names):
                rest = names[len(arguments):]
                values = {**usual, **named}
                if any(name not in values for name in rest) or any(name not in rest for name in named):
                    return op(*arguments, **named)  # which says what is wrong
                arguments = (*arguments, *(values[name] for name in rest))
            if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in arguments):
                if backward is not None:
                    return Differentiable.apply(*arguments)
                return op(*arguments)
            return function(*arguments)
        call.op = op
        return call
    return register


# --- of rows ---

@_custom(lambda y, dy: _like(y))
def softmax_backward(y: Tensor, dy: Tensor) -> Tensor:
    return operation("softmax_backward")(y, dy)


@_custom(lambda x: _like(x), lambda inputs, y: [y], lambda ctx, dy: softmax_backward(*ctx.saved_tensors, dy.contiguous()))
def softmax(x: Tensor) -> Tensor:
    """Over the last mode."""
    return operation("softmax")(x)


@_custom(lambda y, dy: _like(y))
def log_softmax_backward(y: Tensor, dy: Tensor) -> Tensor:
    return operation("log_softmax_backward")(y, dy)


@_custom(lambda x: _like(x), lambda inputs, y: [y], lambda ctx, dy: log_softmax_backward(*ctx.saved_tensors, dy.contiguous()))
def log_softmax(x: Tensor) -> Tensor:
    """Over the last mode."""
    return operation("log_softmax")(x)


@_custom(lambda x, w, eps=1e-6: _like(x), lambda inputs, y: inputs[:2],
         lambda ctx, dy: (*rms_norm_backward(*ctx.saved_tensors, dy.contiguous(), *ctx.rest), None))
def rms_norm(x: Tensor, w: Tensor, eps: float = 1e-6) -> Tensor:
    """Of the last mode, times w."""
    return operation("rms_norm")(x, w, eps=eps)


@_custom(lambda x, w, dy, eps: (_like(x), _like(w)))
def rms_norm_backward(x: Tensor, w: Tensor, dy: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return operation("rms_norm_backward")(x, w, dy, eps=eps)


def _add_rms_norm_backward(ctx, dy, dsum):
    total, w = ctx.saved_tensors
    dx, dw = rms_norm_backward(total, w, dy.contiguous(), *ctx.rest)
    dx = dx + dsum
    return dx, dx, dw, None


@_custom(lambda x, residual, w, eps=1e-6: (_like(x), _like(x)), lambda inputs, outputs: [outputs[1], inputs[2]], _add_rms_norm_backward)
def add_rms_norm(x: Tensor, residual: Tensor, w: Tensor, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    """rms_norm(x + residual), and the sum."""
    return operation("add_rms_norm")(x, residual, w, eps=eps)


@_custom(lambda x, w, b, eps=1e-5: _like(x), lambda inputs, y: inputs[:2],
         lambda ctx, dy: (*layer_norm_backward(*ctx.saved_tensors, dy.contiguous(), *ctx.rest), None))
def layer_norm(x: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    """Of the last mode, times w, plus b."""
    return operation("layer_norm")(x, w, b, eps=eps)


@_custom(lambda x, w, dy, eps: (_like(x), _like(w), _like(w)))
def layer_norm_backward(x: Tensor, w: Tensor, dy: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    return operation("layer_norm_backward")(x, w, dy, eps=eps)


@_custom(lambda x, target, dloss: _like(x))
def cross_entropy_backward(x: Tensor, target: Tensor, dloss: Tensor) -> Tensor:
    return operation("cross_entropy_backward")(x, target, dloss)


@_custom(lambda x, target: torch.empty(target.shape, dtype=torch.float32, device=x.device), lambda inputs, loss: inputs,
         lambda ctx, dloss: (cross_entropy_backward(*ctx.saved_tensors, dloss.contiguous()), None))
def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """The loss of each row, in f32 (reduction="none"); 0 where the target is negative."""
    return operation("cross_entropy")(x, target)


# --- of elements ---

def _elementwise(name):
    """A function of one tensor, whose gradient is an operation of x and dy."""
    def forward(x: Tensor) -> Tensor:
        return operation(name)(x.contiguous())

    def backward(x: Tensor, dy: Tensor) -> Tensor:
        return operation(name + "_backward")(x.contiguous(), dy)

    forward.__name__, backward.__name__ = name, name + "_backward"
    gradient = _custom(lambda x, dy: _like(x))(backward)
    return _custom(lambda x: _like(x), lambda inputs, y: inputs, lambda ctx, dy: gradient(*ctx.saved_tensors, dy.contiguous()))(forward), gradient


relu, relu_backward = _elementwise("relu")
gelu, gelu_backward = _elementwise("gelu")
silu, silu_backward = _elementwise("silu")


def _swiglu_backward(ctx, dy):
    gate, up = ctx.saved_tensors
    dy = dy.contiguous()
    return silu_backward(gate, dy * up), swiglu(gate, dy)


@_custom(lambda gate, up: _like(gate), lambda inputs, y: inputs, _swiglu_backward)
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) up."""
    return operation("swiglu")(gate.contiguous(), up.contiguous())


@_custom(lambda x, p, seed: _like(x), lambda inputs, y: [], lambda ctx, dy: (dropout(dy.contiguous(), *ctx.rest), None, None))
def dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """Each element 0 with probability p, else over 1 - p; the same for the same seed."""
    return operation("dropout")(x.contiguous(), p=p, seed=seed)


@_custom(lambda dy, cosine, sine: _like(dy))
def rotary_backward(dy: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    return operation("rotary_backward")(dy, cosine, sine)


def _rotary_backward(ctx, dy):
    if any(ctx.needs_input_grad[1:]):
        raise NotImplementedError("rotary has no gradients of cosine and sine; fix: detach() them")
    return rotary_backward(dy.contiguous(), *ctx.saved_tensors), None, None


@_custom(lambda x, cosine, sine: _like(x), lambda inputs, y: inputs[1:], _rotary_backward)
def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """x: tokens, heads, elements; elements i and i + half turn together, by angles of the token."""
    return operation("rotary")(x, cosine, sine)


# --- tables and products ---

@_custom(lambda ids, dy, rows: torch.empty((rows, dy.shape[-1]), dtype=torch.float32, device=dy.device))
def embedding_backward(ids: Tensor, dy: Tensor, rows: int) -> Tensor:
    dtable = torch.zeros((rows, dy.shape[-1]), dtype=torch.float32, device=dy.device)
    operation("embedding_backward")(ids.reshape(-1), dy.reshape(-1, dy.shape[-1]), dtable=dtable)
    return dtable


def _embedding_backward(ctx, dy):
    ids, rows = ctx.saved_tensors
    return embedding_backward(ids, dy.contiguous(), rows.shape[0]).to(dy.dtype), None


@_custom(lambda table, ids: torch.empty((*ids.shape, table.shape[1]), dtype=table.dtype, device=table.device),
         # The number of rows alone: the table itself may change before the gradient is asked for.
         lambda inputs, y: [inputs[1], inputs[1].new_empty((inputs[0].shape[0], 0))], _embedding_backward)
def embedding(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of the table by their numbers."""
    return operation("embedding")(table, ids.reshape(-1)).reshape(*ids.shape, table.shape[1])


@_custom(lambda a, b, layout, bias=None: torch.empty(
    (a.shape[0] if layout[0] == "t" else a.shape[1], b.shape[0] if layout[1] == "n" else b.shape[1]), dtype=a.dtype, device=a.device))
def matmul(a: Tensor, b: Tensor, layout: str, bias: Optional[Tensor] = None) -> Tensor:
    """The product of matrices, summed in f32. Of `layout` the first letter is a's (t: m x k, n: k x m), the second b's (n: n x k, t: k x n)."""
    settings = {"layout": layout, **({"dtype": "tf32"} if a.dtype == torch.float32 else {})}
    if bias is not None:
        return operation("gemm")(a, b, bias=bias.float(), epilogue="bias", **settings)
    return operation("gemm")(a, b, **settings)


def _product(a, b, layout):
    """matmul; tensor cores read f32 in one layout alone."""
    if a.dtype == torch.float32:
        a, b = a if layout[0] == "t" else a.t(), b if layout[1] == "n" else b.t()
        layout = "tn"
    return matmul(a.contiguous(), b.contiguous(), layout)


def _linear_backward(ctx, dy):
    x, weight, *bias = ctx.saved_tensors
    rows, d = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dx = _product(d, weight, "tt").reshape(x.shape) if ctx.needs_input_grad[0] else None
    dweight = _product(d, rows, "nt") if ctx.needs_input_grad[1] else None
    dbias = d.sum(0, dtype=torch.float32).to(bias[0].dtype) if bias else None
    return dx, dweight, dbias


@_custom(lambda x, weight, bias=None: torch.empty((*x.shape[:-1], weight.shape[0]), dtype=x.dtype, device=x.device),
         lambda inputs, y: [x for x in inputs if x is not None], _linear_backward)
def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """x times the transpose of weight (outputs x inputs), plus bias."""
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    return matmul(rows, weight.contiguous(), "tn", bias).reshape(*x.shape[:-1], weight.shape[0])
