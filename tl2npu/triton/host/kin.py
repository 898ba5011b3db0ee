"""Whose element type a tensor has that the host makes of another one."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tl2npu.triton.host.torch_names import LIKE
from tl2npu.triton.host.values import HostValue, Tensor, Unknown


def type_of(node: ast.expr, env: Mapping[str, HostValue]) -> str:
    """The name of the tensor: ``q`` for ``torch.empty_like(q.view(-1))`` and ``torch.empty(n, dtype=q.dtype)``; empty
    where no text shows one. ``env``: what names are.
    """
    match node:
        case ast.Name(id=name):
            value = env.get(name)
            return getattr(value, "kin", "") or (name if isinstance(value, Tensor | Unknown) else "")
        case ast.Subscript(value=of) | ast.Attribute(value=of, attr="T" | "mT" | "data"):
            return type_of(of, env)
        case ast.Call(func=ast.Attribute(value=of, attr=name)):
            given = [*node.args, *(word.value for word in node.keywords)]
            types = [part.value for part in given if isinstance(part, ast.Attribute) and part.attr == "dtype"]
            return type_of([*types, *(node.args if name in LIKE else [of])][0], env)
    return ""
