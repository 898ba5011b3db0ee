"""Dicts, classes and instances of the file itself whose parts its code names: they are read like imported ones."""

from __future__ import annotations

import ast

import libcst as cst

from tl2npu.source.index import Index

_HOLDERS = (ast.Dict, ast.Call)


def own_roots(index: Index) -> dict[str, cst.CSTNode]:
    """The statements of the module that bind a name of which ``name.part`` or ``name["part"]`` is read, by name."""
    candidates: set[str] = set()
    for statement in index.python.body:
        if isinstance(statement, ast.ClassDef):
            candidates.add(statement.name)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, _HOLDERS):
            candidates |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.value, _HOLDERS):
            candidates |= {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    if not candidates:
        return {}
    read = {
        node.value.id
        for node in ast.walk(index.python)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name)
    }
    wanted = candidates & read
    found: dict[str, cst.CSTNode] = {}
    for line in index.module.body if wanted else ():
        if isinstance(line, cst.ClassDef):
            found |= {line.name.value: line} if line.name.value in wanted else {}
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            targets = [t.target for t in small.targets] if isinstance(small, cst.Assign) else []
            targets += [small.target] if isinstance(small, cst.AnnAssign) else []
            found |= {t.value: small for t in targets if isinstance(t, cst.Name) and t.value in wanted}
    return found
