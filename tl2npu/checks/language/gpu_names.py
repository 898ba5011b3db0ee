"""TL791, TL897: names of no TileLang, and of GPU TileLang only; its dtype objects used as values.

Such a file fails when it is imported or compiled. Source: the name space of tile-ai/tilelang-ascend at 95acbd7f, where
``T.float16`` is a function that converts and ``T.clear`` does not exist.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

import libcst as cst

from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import ascend, gpu, npuir
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.style import called
from tl2npu.source.names import LANGUAGE
from tl2npu.source.tree import children, nodes_of, remembered

_SPACES = frozenset(part for name in ascend.OPERATORS if "." in name for part in [name.partition(".")[0]])


def check(subject: Subject) -> Iterator[Finding]:
    """The first use of each such name in the kernel and in the factory around it."""
    located = subject.located
    seen: set[str] = set()
    for node in own_names(subject, located.factory.node if located.factory is not None else located.node):
        short = subject.file.names.operator(node)
        if not short or short in seen:
            continue
        if ascend.lookup(LANGUAGE + short) is None and short in gpu.OPERATORS:
            seen.add(short)
            is_type = short in ITEM_SIZE and not _called(subject, node)
            help = f'write the element type as "{short}"' if is_type else ascend.advice(short)
            yield Finding("TL897", node, f"T.{short} does not exist in Ascend TileLang", help=help)
        elif _is_unknown(short):
            seen.add(short)
            yield Finding("TL791", node, f"T.{short} does not exist{ascend.similar(short, 'does')}")
        elif short in ITEM_SIZE and not _called(subject, node):
            seen.add(short)
            yield Finding(
                "TL897", node, f'T.{short} is a function in Ascend TileLang; write the element type as "{short}"'
            )


def _is_unknown(short: str) -> bool:
    """A name directly in the language or in ``T.tile`` that no dialect has."""
    space, _, last = short.rpartition(".")
    if space not in ("", "tile") or not last or last.startswith("_") or short in _SPACES:
        return False
    return short not in ascend.OPERATORS and short not in gpu.OPERATORS and short not in npuir.OPERATORS


def own_names(subject: Subject, root: cst.CSTNode) -> Iterator[cst.Name | cst.Attribute]:
    """The names below a factory, without other kernels and their macros and without annotations (``n: T.int32``)."""
    others = {id(item.node) for item in subject.file.located if item.node is not subject.located.node}
    own = {id(node) for node in called(subject.located.node, subject.file.names)}
    others |= {id(node) for node in nodes_of(root, cst.FunctionDef) if _is_macro(subject, node) and id(node) not in own}
    return _names_below(root, others)


def _names_below(root: cst.CSTNode, others: Container[int] = ()) -> Iterator[cst.Name | cst.Attribute]:
    stack = [root]
    while stack:
        node = stack.pop()
        if type(node) is cst.Name or type(node) is cst.Attribute:
            yield node
        elif type(node) is cst.SimpleStatementLine:
            yield from _names_of_line(node)
        elif type(node) is cst.Param:  # its name and keywords of calls are no names of the module
            stack += [part for part in (node.default, node.annotation) if part is not None and not _plain(part)]
        elif type(node) is cst.Arg:
            stack.append(node.value)
        else:
            stack += [child for child in reversed(children(node)) if id(child) not in others and not _plain(child)]


@remembered
def _names_of_line(line: cst.CSTNode) -> tuple[cst.Name | cst.Attribute, ...]:
    return tuple(name for small in children(line) for name in _names_below(small))


def _is_macro(subject: Subject, node: cst.FunctionDef) -> bool:
    return any(subject.file.names.resolve(item.decorator) == LANGUAGE + "macro" for item in node.decorators)


def _plain(node: cst.CSTNode) -> bool:
    return type(node) is cst.Annotation and not isinstance(node.annotation, (cst.Call, cst.Subscript))


def _called(subject: Subject, node: cst.CSTNode) -> bool:
    parent = subject.file.index.parent(node)
    return isinstance(parent, cst.Call) and parent.func is node
