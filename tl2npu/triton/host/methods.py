"""Methods: which of their first parameters no call gives."""

from __future__ import annotations

import ast
from collections.abc import Mapping

_CONTEXT = ("forward", "backward", "vjp", "jvp")
"""Methods of ``torch.autograd.Function`` that get the context from ``apply``."""


def bound(function: ast.FunctionDef, owner: str, *, instance: bool) -> int:
    """How many first parameters Python gives by itself: the class, or the instance where there is one.

    ``owner``: the class that the function stands in, empty for a plain function, whatever its parameters are called.
    """
    decorators = {ast.unparse(node) for node in function.decorator_list}
    if not owner or "staticmethod" in decorators:
        return 0
    return int("classmethod" in decorators or instance or function.name == "__init__")


def applied(function: ast.FunctionDef, owner: str, functions: Mapping[str, ast.FunctionDef]) -> int:
    """The same for a method of ``torch.autograd.Function`` that autograd calls: the context comes behind the class.

    ``forward`` of a class with ``setup_context`` gets none.
    """
    apart = function.name == "forward" and f"{owner}.setup_context" in functions
    return bound(function, owner, instance=False) + (function.name in _CONTEXT and not apart)
