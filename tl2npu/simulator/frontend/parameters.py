"""Parameters of kernels from their annotations: in the signature, or in the body of an eager function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.errors import TraceError
from tl2npu.simulator.frontend.builder import Builder
from tl2npu.simulator.frontend.types import DType, TensorSpec, dtype_name
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Site


@dataclass(eq=False)
class Undeclared:
    """A parameter before its declaration."""

    name: str


def parameter_of(name: str, annotation: Any, site: Site) -> Buffer | Var:
    """One parameter from its annotation."""
    if callable(annotation) and not isinstance(annotation, (DType, TensorSpec, type)) and hasattr(annotation, "spec"):
        annotation = annotation.spec
    if isinstance(annotation, TensorSpec):
        return Buffer(name, annotation.shape, annotation.dtype, "global", annotation.strides, line=site.line)
    if isinstance(annotation, Buffer):
        return Buffer(name, annotation.shape, annotation.dtype, "global", annotation.strides, line=site.line)
    try:
        return Var(name, dtype_name(annotation))
    except TypeError:
        raise TraceError(
            f"parameter {name} is annotated with {annotation!r}, not with a tensor or a type", site
        ) from None


def declare(name: str, previous: Any, annotation: Any) -> Any:
    """``A: T.Tensor(...)`` in the body of an eager function."""
    builder = Builder.current()
    if isinstance(annotation, (TensorSpec, Buffer)) and isinstance(previous, (int, float, str, tuple, list)):
        raise TraceError(_not_a_tensor(builder, name, previous, annotation))
    if not isinstance(previous, Undeclared):
        return previous
    file = next(iter(builder.files))
    param = parameter_of(name, annotation, Site(file, builder.here().line))
    builder.kernel.params.append(param)
    return param


def _not_a_tensor(builder: Builder, name: str, value: object, annotation: TensorSpec | Buffer) -> str:
    """How a kernel is called without tensors, where a number stands for one."""
    extents = dict.fromkeys(dim.name for dim in annotation.shape if isinstance(dim, Var))
    consts = builder.unsolved | builder.constants.keys()
    ordered = dict.fromkeys(size for size in (*extents, *sorted(consts)) if size in consts)
    sizes = ", ".join(f"{size}={builder.constants.get(size, '...')}" for size in ordered)
    how = f"leave tensors out and give the sizes by name, as in `{builder.kernel.name}({sizes})`"
    return f"`{name}` is a tensor, and the call gives {value!r} for it: {how if sizes else 'leave tensors out'}"
