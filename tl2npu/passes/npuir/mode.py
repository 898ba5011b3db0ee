"""TL403: ``os.environ["TILELANG_ASCEND_MODE"]``: without it the compiler takes kernels for Expert mode."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.results import KernelResult
from tl2npu.source.bound import only_imports
from tl2npu.source.tree import is_docstring, nodes_of

VARIABLE = "TILELANG_ASCEND_MODE"
_LINE = f'os.environ["{VARIABLE}"] = "Developer"'


def of_file(module: cst.Module, kernels: Sequence[KernelResult]) -> tuple[cst.Module, cst.CSTNode | None]:
    """The module with the variable set behind its imports, if a kernel became one for AscendNPU IR; the new line.

    It holds for whoever imports the module. A file that sets the variable anywhere is left as it is.
    """
    if not any(kernel.rewritten and kernel.target == "npuir" for kernel in kernels) or _is_set(module):
        return module, None
    body = list(module.body)
    place = _behind_imports(body)
    line = cst.ensure_type(cst.parse_statement(_LINE + "\n"), cst.SimpleStatementLine)
    new: list[cst.BaseStatement] = [line.with_changes(leading_lines=[cst.EmptyLine(indent=False)])]
    if not any(_imports_os(statement) for statement in body[:place]):
        first = next((n for n, s in enumerate(body) if only_imports(s) and not _is_future(s)), place)
        os_line = cst.ensure_type(cst.parse_statement("import os\n"), cst.SimpleStatementLine)
        if first < place:
            above = cst.ensure_type(body[first], cst.SimpleStatementLine)
            body[first] = above.with_changes(leading_lines=())
            os_line = os_line.with_changes(leading_lines=above.leading_lines)
        body.insert(first, os_line)
        place += 1
    return module.with_changes(body=[*body[:place], *new, *body[place:]]), line


def _is_set(module: cst.Module) -> bool:
    return any(node.evaluated_value == VARIABLE for node in nodes_of(module, cst.SimpleString))


def _behind_imports(body: Sequence[cst.BaseStatement]) -> int:
    """The number of the statement behind the imports at the top."""
    place = 0
    for number, statement in enumerate(body):
        if only_imports(statement):
            place = number + 1
        elif not is_docstring(statement):
            break
    return place


def _is_future(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(small, cst.ImportFrom) and isinstance(small.module, cst.Name) and small.module.value == "__future__"
        for small in statement.body
    )


def _imports_os(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(small, cst.Import)
        and any(
            isinstance(alias.name, cst.Name) and alias.name.value == "os" and alias.asname is None
            for alias in small.names
        )
        for small in statement.body
    )
