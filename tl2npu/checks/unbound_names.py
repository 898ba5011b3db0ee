"""TL889: names that nothing binds: the parser stops at a variable that is not defined.

A rewrite that takes a loop away takes the names with it that the loop binds.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.kernel.bindings import assigned_names
from tl2npu.source.tree import names_in, walk


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each name."""
    node, index = subject.kernel.node, subject.file.index
    if subject.file.names.star:
        return
    bound = set(dir(builtins))
    for around in (node, *index.ancestors(node)):
        if isinstance(around, cst.FunctionDef):
            bound |= {part.name.value for part in walk(around.params) if isinstance(part, cst.Param)}
            bound |= _bound(around.body)
        elif isinstance(around, cst.Module):
            bound |= _bound(around)
    for part in walk(node):
        if type(part) is cst.Param:
            bound.add(part.name.value)
        elif type(part) is cst.CompFor:
            bound |= {name.value for name in names_in(part.target)}
    told: set[str] = set()
    for name in names_in(node.body):
        if name.value not in bound and name.value not in told and name.value != "vid":  # TL810 tells of vid
            told.add(name.value)
            yield Finding("TL889", name, f"`{name.value}` is bound nowhere")


def _bound(block: cst.BaseSuite | cst.Module) -> frozenset[str]:
    """What the statements of a block bind, imports too; functions and classes inside of it count by their names."""
    return frozenset[str]().union(*(_bound_by(statement) for statement in block.body))


@lru_cache(maxsize=2048)
def _bound_by(statement: cst.BaseStatement | cst.BaseSmallStatement) -> frozenset[str]:
    """Remembered by node: every kernel of a file asks for its module, and edits keep what they do not touch."""
    found = set(assigned_names(statement))
    for part in walk(statement):
        if type(part) is cst.ImportAlias:
            found.add(part.evaluated_alias or part.evaluated_name.split(".")[0])
        elif type(part) is cst.FunctionDef or type(part) is cst.ClassDef:
            found.add(part.name.value)
    return frozenset(found)
