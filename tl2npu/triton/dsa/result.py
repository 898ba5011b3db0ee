"""A file with kernels for ``tle.gpu`` as a file with kernels for ``tle.dsa``, in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from tl2npu.codes import finding
from tl2npu.dialects.triton.tle import tle_name
from tl2npu.options import Options
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult
from tl2npu.source.notebook import is_notebook
from tl2npu.triton.dsa.function import Function
from tl2npu.triton.dsa.rewrite import Rewrite, uses_gpu
from tl2npu.triton.host.rewrite import Splice, spliced
from tl2npu.triton.host.source import TritonFile, parse
from tl2npu.triton.refused import Refused

_PACKAGE = "triton.experimental.tle"
_DEVICE = re.compile(r"cuda(:\d+)?")
_SAME_IN_NPU = frozenset(
    {"Event", "Stream", "current_device", "current_stream", "device", "device_count", "empty_cache", "is_available"}
    | {"manual_seed", "set_device", "stream", "synchronize"}
)
_TAKE_DEVICE = frozenset({"device", "to", "set_default_device", "Generator"})


def migrate_to_dsa(
    text: str, path: str, options: Options, leave_lines: Mapping[int, Sequence[Diagnostic]] = MappingProxyType({})
) -> FileResult:
    """Rewrite every kernel of a file that uses ``tle.gpu`` and can be rewritten; the others stay.

    ``leave_lines``: line of a kernel's ``def`` -> why it stays. Never raises for bad input.
    """
    try:
        file, tree = parse(text), ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return FileResult(path, text, text, f"line {getattr(error, 'lineno', 1)}: {error}")
    return _Work(text, path, options, file, tree, leave_lines).result()


@dataclass
class _Work:
    text: str
    path: str
    options: Options
    file: TritonFile
    tree: ast.Module
    leave: Mapping[int, Sequence[Diagnostic]]
    refused: dict[str, Diagnostic] = field(default_factory=dict)

    def result(self) -> FileResult:
        aliases = self.file.source.aliases
        functions = {
            node.name: Function(self.text, node, aliases)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef) and node.name in self.file.jitted
        }
        using = {name for name, function in functions.items() if uses_gpu(function)}
        kernels = {name: self.closure(name, functions) & using for name in self.file.kernels if name in functions}
        language = self.alias("triton.language")
        package = self.package(functions, using)
        for _ in range(2):
            self.refused = {}
            rewrites = {name: self.tried(functions[name], package, language) for name in sorted(using)}
            self.settle(kernels, rewrites)
            good = [found for found in rewrites.values() if found is not None]
            imports = self.imports(package, {place for found in good for place in found.handled})
            if imports is not None:
                break
            package = f"{package}_dsa"  # kernels that stay need the name as it is
        verdicts = [self.verdict(name, uses) for name, uses in kernels.items()]
        changed = [kernel for kernel in verdicts if kernel.rewritten]
        new = self.text
        if changed:
            edits = [*(item for found in good for item in found.splices), *(imports or ())]
            new = spliced(self.text, edits if self.refused else [*edits, *devices(self.tree)])
        diagnostics = sorted(self.refused.values(), key=lambda item: (item.line, item.code))
        changes = tuple(
            Change("TL594", kernel.line, f"`{kernel.name}` uses `tle.dsa`", kernel.name, "safe") for kernel in changed
        )
        return FileResult(self.path, self.text, new, None, tuple(verdicts), tuple(diagnostics), changes)

    def tried(self, function: Function, package: str, language: str | None) -> Rewrite | None:
        """The changes of a function; None where it cannot be rewritten."""
        name = function.node.name
        try:
            if language is None:
                raise function.refuse(function.node, "`triton.language` has no name in this file")
            return Rewrite(function, package, language)
        except Refused as refused:
            self.refused[name] = finding(refused.code, refused.line, refused.message, name)
            return None

    def settle(self, kernels: Mapping[str, set[str]], rewrites: dict[str, Rewrite | None]) -> None:
        """Kernels that nobody tries stay, and with each kernel that stays what it calls, and who else calls that."""
        for name, uses in kernels.items():
            line = self.file.kernels[name].lineno
            why = [*self.leave.get(line, ())]
            if not self.options.selects(self.path, name):
                why.append(finding("TL594", line, "not selected", name))
            elif is_notebook(self.path):
                why.append(finding("TL595", line, "Triton kernels in notebooks are not rewritten", name))
            if why and uses:
                self.refused[name] = why[0]
                rewrites.update(dict.fromkeys(uses))
        while True:
            failing = {name for name, uses in kernels.items() if any(rewrites[item] is None for item in uses)}
            more = {item for name in failing for item in kernels[name] if rewrites[item] is not None}
            for name in failing:
                cause = next((self.refused[i] for i in sorted(kernels[name]) if i in self.refused), None)
                other = cause or finding("TL595", self.file.kernels[name].lineno, "it shares a function", name)
                self.refused.setdefault(name, other)
            if not more:
                return
            rewrites.update(dict.fromkeys(more))

    def verdict(self, name: str, uses: set[str]) -> KernelResult:
        """What became of a kernel."""
        line = self.file.kernels[name].lineno
        if not uses:
            return KernelResult(name, line, "triton", "none", "unchanged", "without `tle.gpu`", ())
        if name in self.refused:
            found = self.refused[name]
            return KernelResult(name, line, "triton", "none", "refused", found.message, (found.code,))
        return KernelResult(name, line, "triton", "tle-dsa", "migrated", "", ("TL594",))

    def closure(self, name: str, functions: Mapping[str, Function]) -> set[str]:
        """A function and those that it calls."""
        found, waiting = {name}, [name]
        while waiting:
            for item in ast.walk(functions[waiting.pop()].node):
                if isinstance(item, ast.Name) and item.id in functions and item.id not in found:
                    found.add(item.id)
                    waiting.append(item.id)
        return found

    # imports ------------------------------------------------------------------------------------------------------

    def alias(self, path: str) -> str | None:
        """The name by which the file imports a module."""
        return next((name for name, full in self.file.source.aliases.items() if full == path), None)

    def bindings(self) -> Iterator[tuple[ast.stmt, str, str]]:
        """Imports of TLE at the top of the file: statement, name, and what it is."""
        for stmt in self.tree.body:
            if isinstance(stmt, (ast.Import, ast.ImportFrom)):
                for item in stmt.names:
                    name = item.asname or (item.name if isinstance(stmt, ast.ImportFrom) else item.name.split(".")[0])
                    full = self.file.source.aliases.get(name, "")
                    if tle_name(full) is not None:
                        yield stmt, name, full

    def package(self, functions: Mapping[str, Function], using: set[str]) -> str:
        """The name of the package in the new text: one that means it already, or only what goes."""
        known = [(name, full) for _, name, full in self.bindings()]
        root = next((name for name, full in known if full == _PACKAGE), None)
        if root is not None:
            return root
        inside = {id(node) for name in using for node in ast.walk(functions[name].node)}
        outside = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and id(node) not in inside}
        taken = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        for name, full in known:
            if full.split(".")[-1] != name and name not in outside:
                return name
        return "tle" if "tle" not in taken else "tle_dsa"

    def imports(self, package: str, handled: set[tuple[int, int]]) -> list[Splice] | None:
        """The package imported, and imports that nothing needs any more gone; None if its name means something else."""
        bindings = list(self.bindings())
        left = {
            node.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and (node.lineno, node.col_offset) not in handled
        }
        present = any((name, full) == (package, _PACKAGE) for _, name, full in bindings)
        if package in left and not present:
            return None
        edits: list[Splice] = []
        for stmt in {id(stmt): stmt for stmt, _, _ in bindings}.values():
            names = {name for other, name, _ in bindings if other is stmt}
            assert isinstance(stmt, (ast.Import, ast.ImportFrom))
            if not names & left and len(names) == len(stmt.names) and not (present and package in names):
                edits.append(Splice((stmt.lineno, 0), ((stmt.end_lineno or stmt.lineno) + 1, 0), ""))
        if not present and bindings:
            first = (bindings[0][0].lineno, 0)
            edits.append(Splice(first, first, f"import {_PACKAGE} as {package}\n"))
        return edits


def devices(tree: ast.Module) -> Iterator[Splice]:
    """``npu`` for ``cuda``: as a device that is given to torch, and in methods and modules of torch."""
    given = {
        id(node)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for node in (
            *(word.value for word in call.keywords if "device" in (word.arg or "")),
            *(call.args if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKE_DEVICE else ()),
        )
    }
    given |= {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "device" in ast.unparse(node.targets[0]).lower()
    }
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    moved = {
        id(owner)
        for node in ast.walk(tree)
        for owner in (node.value if isinstance(node, ast.Attribute) and node.attr in _SAME_IN_NPU else node,)
        if isinstance(owner, ast.Attribute) and owner.attr == "cuda"
        if id(owner) in calls or (owner is not node and ast.unparse(owner.value) == "torch")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) in given and _DEVICE.fullmatch(str(node.value)):
            place = node.lineno, node.col_offset + 1  # behind the quote
            yield Splice(place, (place[0], place[1] + 4), "npu")
        elif isinstance(node, ast.Attribute) and (id(node) in moved or _asks_for_cuda(node, calls)):
            assert node.end_col_offset is not None
            end = node.end_lineno or node.lineno
            yield Splice((end, node.end_col_offset - 4), (end, node.end_col_offset), "npu")


def _asks_for_cuda(node: ast.Attribute, calls: Container[int]) -> bool:
    """True for ``x.is_cuda`` of a tensor: a property that nothing sets or calls."""
    return node.attr == "is_cuda" and isinstance(node.ctx, ast.Load) and id(node) not in calls
