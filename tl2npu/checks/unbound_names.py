"""TL889: names that nothing binds: the parser stops at a variable that is not defined.

A rewrite that takes a loop away takes the names with it that the loop binds.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.bindings import assigned_names
from tl2npu.source.tree import names_in, nodes_of, remembered

_IMPORTS: tuple[type[cst.Import | cst.ImportFrom], ...] = (cst.Import, cst.ImportFrom)
_BINDING: tuple[type[cst.Param | cst.CompFor], ...] = (cst.Param, cst.CompFor)
_NAMED: tuple[type[cst.FunctionDef | cst.ClassDef], ...] = (cst.FunctionDef, cst.ClassDef)


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each name."""
    node, index = subject.kernel.node, subject.file.index
    if subject.file.names.star:
        return
    bound = set(dir(builtins))
    for around in (node, *index.ancestors(node)):
        if isinstance(around, cst.FunctionDef):
            bound |= {part.name.value for part in nodes_of(around.params, cst.Param)}
            bound |= _bound(around.body)
        elif isinstance(around, cst.Module):
            bound |= _bound(around)
    for part in nodes_of(node, *_BINDING):
        bound |= {part.name.value} if isinstance(part, cst.Param) else {name.value for name in names_in(part.target)}
    told: set[str] = set()
    for name in names_in(node.body):
        if name.value not in bound and name.value not in told and name.value != "vid":  # TL810 tells of vid
            told.add(name.value)
            yield Finding("TL889", name, f"`{name.value}` is bound nowhere")


def _bound(block: cst.BaseSuite | cst.Module) -> frozenset[str]:
    """What the statements of a block bind, imports too; functions and classes inside of it count by their names."""
    return frozenset[str]().union(*(_bound_by(statement) for statement in block.body))


@remembered
def _bound_by(statement: cst.BaseStatement | cst.BaseSmallStatement) -> frozenset[str]:
    """Remembered by node: every kernel of a file asks for its module, and edits keep what they do not touch."""
    found = set(assigned_names(statement))
    for imported in nodes_of(statement, *_IMPORTS):
        aliases = () if isinstance(imported.names, cst.ImportStar) else imported.names
        found |= {alias.evaluated_alias or alias.evaluated_name.split(".")[0] for alias in aliases}
    found |= {part.name.value for part in nodes_of(statement, *_NAMED)}
    return frozenset(found)
