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
    bound |= {part.name.value for part in walk(node) if isinstance(part, cst.Param)}
    bound |= {name.value for part in walk(node) if isinstance(part, cst.CompFor) for name in names_in(part.target)}
    told: set[str] = set()
    for name in names_in(node.body):
        if name.value not in bound and name.value not in told and name.value != "vid":  # TL810 tells of vid
            told.add(name.value)
            yield Finding("TL889", name, f"`{name.value}` is bound nowhere")


@lru_cache(maxsize=1024)
def _bound(block: cst.BaseSuite | cst.Module) -> frozenset[str]:
    """What the statements of a block bind, imports too; functions and classes inside of it count by their names.

    Remembered by node: every kernel of a file asks for its module.
    """
    found: set[str] = set()
    for statement in block.body:
        found |= assigned_names(statement)
    for part in walk(block):
        if isinstance(part, cst.ImportAlias):
            name = part.evaluated_alias or part.evaluated_name.split(".")[0]
            found.add(name)
        elif isinstance(part, (cst.FunctionDef, cst.ClassDef)):
            found.add(part.name.value)
    return frozenset(found)
