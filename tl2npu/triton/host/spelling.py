"""Sizes as text of the host code at a launch."""

from __future__ import annotations

import ast

from tl2npu.kernel.symbolic import Sym, Var
from tl2npu.tile.write.integers import integer
from tl2npu.triton.host.binding import Binding
from tl2npu.triton.host.values import Int, Unknown
from tl2npu.triton.refused import Refused


class Spelling:
    """Writes sizes of a kernel as the host code can compute them where it launches."""

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.host_names = {new: old for old, new in binding.names.items()}

    def size(self, name: str) -> str:
        """The text of one size. Raises ``Refused`` where the host code has no text for it any more."""
        binding = self.binding
        argument = binding.arguments.get(name)
        if argument is not None and not any(f"{part}.stride(" in argument for part in binding.loose):
            return argument
        if argument is None and name in binding.spec.numbers:  # of the configuration that autotuning begins with
            return repr(binding.spec.numbers[name])
        host = binding.site.scope
        old = self.host_names.get(name, name)
        for key, value in binding.site.env.items():
            if isinstance(value, Int) and str(value.value) == old and key.isidentifier():
                return key
        text = host.texts.get(old)
        if text is not None:
            kept, host.env = host.env, dict(binding.site.env)
            try:
                again = host.eval(ast.parse(text, mode="eval").body)
            finally:
                host.env = kept
            if isinstance(again, Unknown):
                again = Int(host.name(again.text))
            if isinstance(again, Int) and str(again.value) == old:
                return text
        raise Refused("TL511", binding.site.call.lineno, f"the launch does not know `{old}` any more")

    def expression(self, value: Sym) -> str:
        """The text of an expression of sizes."""
        names: dict[str, str] = {}
        for atom in value.atoms():
            if isinstance(atom, Var):
                text = self.size(atom.name)
                names[atom.name] = (
                    text if text.replace(".", "").replace("_", "").isalnum() or _closed(text) else f"({text})"
                )
        return (
            integer(value, names)
            .replace("T.ceildiv(", "tilelang.cdiv(")
            .replace("T.min(", "min(")
            .replace("T.max(", "max(")
        )


def _closed(text: str) -> bool:
    return isinstance(
        ast.parse(text, mode="eval").body, (ast.Call, ast.Subscript, ast.Attribute, ast.Name, ast.Constant)
    )
