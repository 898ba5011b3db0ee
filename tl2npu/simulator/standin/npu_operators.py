"""Operators of torch_npu that scripts use as a reference, where torch itself says what they compute.

Every other name of the NPU's own library is refused when it is asked for.
"""

from __future__ import annotations

from typing import Any


def npu_swiglu(x: Any, dim: int = -1) -> Any:
    """``silu(a) * b`` for the two halves of ``x`` along ``dim``, computed in fp32."""
    import torch

    left, right = torch.chunk(x.float(), 2, dim)
    return (torch.nn.functional.silu(left) * right).to(x.dtype)


def npu_swiglu_backward(grad: Any, x: Any, dim: int = -1) -> Any:
    """The gradient of ``npu_swiglu`` by ``x``. A gradient with more elements than the result is taken as memory."""
    shape = list(x.shape)
    shape[dim] //= 2
    if list(grad.shape) != shape:
        count = x.numel() // 2
        grad = grad.reshape(-1)[:count].reshape(shape)
    return _gradient(lambda value: npu_swiglu(value, dim), grad, x)


def npu_gelu(x: Any, *, approximate: str = "none") -> Any:
    """``torch.nn.functional.gelu``."""
    import torch

    return torch.nn.functional.gelu(x.float(), approximate=approximate).to(x.dtype)


def npu_gelu_backward(grad: Any, x: Any, *, approximate: str = "none") -> Any:
    """The gradient of ``npu_gelu`` by ``x``."""
    return _gradient(lambda value: npu_gelu(value, approximate=approximate), grad, x)


def npu_rotary_mul(x: Any, cos: Any, sin: Any, rotary_mode: str = "half") -> Any:
    """``x * cos + rotate(x) * sin``; ``half`` rotates halves, ``interleave`` neighbours."""
    import torch

    value = x.float()
    if rotary_mode == "half":
        first, second = torch.chunk(value, 2, -1)
        rotated = torch.cat((-second, first), -1)
    elif rotary_mode == "interleave":
        rotated = torch.stack((-value[..., 1::2], value[..., ::2]), -1).flatten(-2)
    else:
        raise ValueError(f"rotary_mode {rotary_mode!r}")
    return (value * cos.float() + rotated * sin.float()).to(x.dtype)


def npu_rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> Any:
    """RMS norm over the axes of ``gamma``: the result and the reciprocal of the root mean square."""
    import torch

    axes = tuple(range(-gamma.dim(), 0))
    value = x.float()
    reciprocal = torch.rsqrt(value.square().mean(axes, keepdim=True) + epsilon)
    return (value * reciprocal * gamma.float()).to(x.dtype), reciprocal


def _gradient(function: Any, grad: Any, x: Any) -> Any:
    import torch

    with torch.enable_grad():
        value = x.detach().float().requires_grad_()
        (result,) = torch.autograd.grad(function(value), value, grad.float())
    return result.to(x.dtype)


KNOWN = {
    f.__name__: f for f in (npu_swiglu, npu_swiglu_backward, npu_gelu, npu_gelu_backward, npu_rotary_mul, npu_rms_norm)
}
