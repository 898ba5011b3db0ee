"""What the kernels of a file import from other modules of its repository: device functions, constants, other names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tl2npu.across.symbols import Constant, Definition, External, Function, Symbols
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.values import Value


@dataclass
class Elsewhere:
    """``file``: where the text stands that imports. ``read``: the source of another module, and its device functions.

    ``found``: by their names in the file, the device functions; ``constants`` and ``aliases`` are those of
    :class:`Source`.
    """

    file: Path
    symbols: Symbols
    read: Callable[[Path, str], tuple[Source, dict[str, ast.FunctionDef]] | None]
    found: dict[str, tuple[ast.FunctionDef, Source]] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def look(self, names: Iterable[str]) -> None:
        """Look for what the module binds to names by its imports, and to nothing else."""
        for name in sorted(names):
            self._take(name, self.symbols.defined(self.file, name))

    def _take(self, name: str, found: Definition | None) -> None:
        if isinstance(found, Constant):
            value = found.value
            if value is None or isinstance(value, (bool, int, float, str)):
                self.constants[name] = value
        elif isinstance(found, External) and found.dotted.startswith("triton."):
            self.aliases[name] = found.dotted
        elif isinstance(found, Function) and found.module.path != self.file:
            other = self.read(found.module.path, found.module.text)
            if other is not None and found.node.name in other[1]:
                self.found[name] = other[1][found.node.name], other[0]
