"""TL124: what a kernel that stays for the GPU needs when its file is imported, written so that an NPU can import it.

Nothing of it changes on a GPU. A key of ``pass_configs`` becomes the string that it equals (``PassConfigKey`` is a
string enumeration: ``tilelang/transform/pass_config.py``), and so does an element type that is the default of a
parameter. An annotation of a parameter is quoted (``get_type_hints`` of ``tilelang/language/eager/builder.py``
evaluates it). A module that the NPU lacks is imported by the functions that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tl2npu.dialects.pass_configs import string_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import is_prim_func
from tl2npu.passes.writing.numbers import BITS
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import mentioned, nodes_of

Said = list[tuple[cst.CSTNode, str]]


def mend(
    index: Index, missing: Sequence[cst.CSTNode], users: Callable[[str], Sequence[object]]
) -> tuple[cst.Module, Said]:
    """The module without what stops its import, as far as that is possible; (node, what was done) of each.

    ``missing``: the imports and attributes that an NPU cannot evaluate; ``users``: the other files that take a
    name from this one.
    """
    names, edits, said = Names(index), Edits(index), Said()
    for node in missing:
        annotation = index.enclosing(node, cst.Annotation)
        if type(node) is cst.Attribute and annotation is not None:
            text = code(annotation.annotation)
            if all(edit is not annotation.annotation for edit in edits.nodes) and not {'"', "\n"} & set(text):
                edits.replace(annotation.annotation, cst.SimpleString(f'"{text}"'))
                said.append((node, f"quoted the annotation `{text}`: Ascend TileLang cannot evaluate it"))
        elif type(node) is cst.Attribute and (key := _string(index, names, node)) is not None:
            edits.replace(node, cst.SimpleString(f'"{key}"'))
            said.append((node, f'`{code(node)}` -> `"{key}"`: Ascend TileLang has no such member'))
        elif isinstance(node, cst.Import | cst.ImportFrom) and (places := _places(index, names, node, users)):
            line = cst.ensure_type(index.parent(node), cst.SimpleStatementLine)
            edits.remove(line)
            for user in places:
                first = user.body.body[int(user.get_docstring(clean=False) is not None)]
                edits.replace_many(first, [line.with_changes(leading_lines=()), first])
            where = ", ".join(f"`{user.name.value}`" for user in places)
            said.append((node, f"moved `{code(node)}` into {where}: the NPU has no such module"))
    return (edits.apply(index.module), said) if edits else (index.module, said)


def _string(index: Index, names: Names, node: cst.Attribute) -> str | None:
    """The string that a key of ``pass_configs`` equals, or an element type of which nothing but its name is used."""
    key, param = string_of(names.resolve(node) or ""), index.parent(node)
    if key is not None or type(param) is not cst.Param or node.attr.value not in BITS:
        return key
    body = getattr(index.enclosing(param, cst.FunctionDef), "body", param)
    read = (item.value for item in nodes_of(body, cst.Attribute) if isinstance(item, cst.Attribute))
    return None if param.name.value in map(code, read) else node.attr.value


def _places(
    index: Index, names: Names, node: cst.Import | cst.ImportFrom, users: Callable[[str], Sequence[object]]
) -> list[cst.FunctionDef]:
    """The functions whose bodies hold all uses of what an import binds; none if something else needs it as well."""
    line = index.parent(node)
    if isinstance(node.names, cst.ImportStar) or index.parent(line) is not index.module or len(line.body) != 1:  # type: ignore[union-attr, arg-type]
        return []
    bound = {(alias.evaluated_alias or alias.evaluated_name).split(".")[0] for alias in node.names}
    found: list[cst.FunctionDef] = []
    for statement in index.module.body:
        inside = isinstance(statement, cst.FunctionDef) and bound & mentioned(statement.body)
        parts = (statement.params, *statement.decorators) if isinstance(statement, cst.FunctionDef) else (statement,)
        if statement is not line and any(bound & mentioned(part) for part in parts):
            return []
        if inside and isinstance(statement, cst.FunctionDef):
            found.append(statement)
    plain = all(isinstance(f.body, cst.IndentedBlock) and not is_prim_func(f, names) for f in found)
    return found if plain and all(names.is_of_module(name) and not users(name) for name in bound) else []
