"""Edits of a tree by path copy: only the ancestors of edited nodes are rebuilt, everything else stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import libcst as cst

from tl2npu.source.blocks import HasLeadingLines, Lines, LineSlot, comment_line, join_lines, merge_lines, with_lines
from tl2npu.source.brackets import held, held_together
from tl2npu.source.index import Index
from tl2npu.source.sequences import EMPTY, Slot, Spliced, splice
from tl2npu.source.tree import IS_NODE, child_fields, walk

_OPTIONAL = frozenset({"orelse", "finalbody", "asname", "returns", "lower", "upper"})
_WITH_LINES = frozenset({"decorators", "handlers", "cases"})
_BRACKETS = {
    cst.List: ("lbracket", "rbracket"),
    cst.Dict: ("lbrace", "rbrace"),
    cst.Set: ("lbrace", "rbrace"),
    cst.Subscript: ("lbracket", "rbracket"),
    cst.With: ("lpar", "rpar"),
    cst.Tuple: ("lpar", "rpar"),
    cst.ImportFrom: ("lpar", "rpar"),
}
_MAY_BE_EMPTY = (cst.Call, cst.List, cst.Dict, cst.ClassDef)
_SEPARATE_PARAMS = ("posonly_params", "posonly_ind", "params", "star_arg", "kwonly_params", "star_kwarg")

Beside: TypeAlias = tuple[tuple[cst.CSTNode, ...], tuple[cst.CSTNode, ...]]
"""What is put above a node, and what below."""
_NOTHING: Beside = (), ()


class EditError(Exception):
    """Edits that contradict each other or would leave no valid program: a mistake of the caller."""


class Edits:
    """A set of edits of one tree, carried out together by :meth:`apply`; true if there are any.

    ``replace``, ``replace_many`` and ``remove`` take over the whole node: further edits inside it are an error.
    ``unwrap`` keeps the statements of the block, which may be edited as well. What is put beside a node, by
    ``replace_many`` with the node itself among the new ones, leaves it as it is: it may be edited in any other way, and
    more may be put beside it.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._new: dict[int, tuple[cst.CSTNode, ...]] = {}
        self._beside: dict[int, Beside] = {}
        self._unwrapped: set[int] = set()
        self._moved: set[int] = set()
        self._nodes: list[cst.CSTNode] = []

    def __bool__(self) -> bool:
        return bool(self._nodes)

    @property
    def nodes(self) -> tuple[cst.CSTNode, ...]:
        """The nodes that are edited, in the order in which they were named."""
        return tuple(self._nodes)

    @property
    def replacements(self) -> Iterator[tuple[cst.CSTNode, tuple[cst.CSTNode, ...]]]:
        """The nodes that are edited, each with what takes its place."""
        for node in self._nodes:
            above, below = self._beside.get(id(node), _NOTHING)
            yield node, (*above, *self._new.get(id(node), ()), *below)

    def keeps(self, node: cst.CSTNode) -> bool:
        """True if the node stays as it is, but for edits inside of it."""
        return id(node) not in self._new

    def removes(self, node: cst.CSTNode) -> bool:
        """True if the whole node goes."""
        return self._new.get(id(node)) == () and id(node) not in self._unwrapped

    def replace(self, node: cst.CSTNode, new_node: cst.CSTNode) -> None:
        """Put another node in the place of a node. Commas and the whitespace around an element stay as they were."""
        self._add(node, (new_node,))

    def replace_many(self, node: cst.CSTNode, new_nodes: Sequence[cst.CSTNode]) -> None:
        """Put several nodes in the place of one element of a sequence, or, if ``node`` is one of them, beside it.

        Of two calls for one node the first one's nodes come first. A statement may be given as a small statement or as
        its line, and replaced by either. Lines above it stay above the first new statement, unless one of the new ones
        still carries them.
        """
        place = next((number for number, new in enumerate(new_nodes) if new is node), None)
        if place is None or len(new_nodes) == 1:
            self._add(node, tuple(new_nodes))
            return
        parts = (new_nodes[:place], new_nodes[place + 1 :])
        before, after = (self._held(node, part) for part in parts)
        above, below = self._beside.get(id(node), _NOTHING)
        self._name(node)
        self._beside[id(node)] = (*above, *before), (*below, *after)

    def remove(self, node: cst.CSTNode) -> None:
        """Remove an element of a sequence or an optional part. Removing it twice is removing it once."""
        if self._new.get(id(node)) != ():
            self._add(node, ())

    def move(self, node: cst.CSTNode) -> None:
        """Remove a statement that stands in another edit: the lines above it go with it."""
        self.remove(node)
        self._moved.add(id(node))

    def unwrap(self, node: cst.BaseCompoundStatement) -> None:
        """Put the statements of a compound statement's block, with all their comments, in its place."""
        if getattr(node, "orelse", None) is not None or isinstance(node, (cst.Match, cst.Try, cst.TryStar)):
            raise EditError(f"cannot unwrap a {type(node).__name__} with several blocks")
        self._add(node, ())
        self._unwrapped.add(id(node))

    def apply(self, module: cst.Module) -> cst.Module:
        """The edited tree; ``module`` must be the one that the index was made of."""
        if module is not self._index.module:
            raise EditError("the edits belong to another tree")
        if not self:
            return module
        dirty: set[int] = set()
        for node in self._nodes:
            for above in self._index.ancestors(node):
                if id(above) in self._new and id(above) not in self._unwrapped:
                    raise EditError(
                        f"the edit of a {type(node).__name__} lies inside a {type(above).__name__}"
                        " that is replaced or removed"
                    )
                if id(above) in dirty:
                    break
                dirty.add(id(above))
        result = _Rebuild(self._index, self._new, self._beside, self._unwrapped, self._moved, dirty).module()
        assert type(result) is cst.Module
        return result

    def _add(self, node: cst.CSTNode, new: tuple[cst.CSTNode, ...]) -> None:
        if id(node) in self._new:
            raise EditError(f"two edits of the same {type(node).__name__}")
        self._name(node)
        self._new[id(node)] = self._held(node, new)

    def _held(self, node: cst.CSTNode, new: Sequence[cst.CSTNode]) -> tuple[cst.CSTNode, ...]:
        above = self._index.parent(node)
        return tuple(held_together(item, self._index, above) for item in new)

    def _name(self, node: cst.CSTNode) -> None:
        if node not in self._index:
            raise EditError(f"{type(node).__name__} is not a node of this tree")
        if id(node) not in self._new and id(node) not in self._beside:
            self._nodes.append(node)


class _Rebuild:
    """One application of edits."""

    def __init__(
        self,
        index: Index,
        new: dict[int, tuple[cst.CSTNode, ...]],
        beside: dict[int, Beside],
        unwrapped: set[int],
        moved: set[int],
        dirty: set[int],
    ) -> None:
        self.index = index
        self.new = new
        self.beside = beside
        self.unwrapped = unwrapped
        self.moved = moved
        self.dirty = dirty
        self.used: set[int] = set()
        self.stays: set[int] = set()
        """What elements became that are only edited inside, or not at all."""

    def module(self) -> cst.CSTNode:
        module = self.index.module
        if id(module) in self.new:
            return self.single(module, "module")
        return self.rebuilt(module)

    def touched(self, node: cst.CSTNode) -> bool:
        return id(node) in self.new or id(node) in self.beside or id(node) in self.dirty

    def results(self, node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        """What takes the place of an element that is not a statement."""
        if id(node) in self.new:
            return self.around(node, map(self.own, self.new[id(node)]))
        if type(node) is cst.SimpleStatementLine and id(node) in self.dirty:
            return self.around(node, self.line(node))
        same = self.rebuilt(node)
        self.stays.add(id(same))
        return self.around(node, (same,))

    def around(self, node: cst.CSTNode, middle: Iterable[Any]) -> tuple[Any, ...]:
        """What became of a node, with what is put beside it."""
        above, below = self.beside.get(id(node), _NOTHING)
        return (*map(self.own, above), *middle, *map(self.own, below))

    def single(self, node: cst.CSTNode, name: str) -> cst.CSTNode:
        results = self.results(node)
        if len(results) != 1:
            raise EditError(f"the field {name} needs exactly one node, not {len(results)}")
        return results[0]

    def rebuilt(self, node: cst.CSTNode) -> cst.CSTNode:
        """The node with edited descendants; the very node if it has none."""
        if id(node) not in self.dirty:
            return node
        changes: dict[str, Any] = {}
        for name in child_fields(type(node)):
            value = getattr(node, name)
            if IS_NODE[type(value)]:
                if type(value) is cst.Parameters and self.touched(value) and id(value) not in self.new:
                    changes |= self.parameters(node, value)
                elif self.touched(value):
                    optional = name in _OPTIONAL and type(value) is not cst.If
                    gone = optional and self.new.get(id(value)) == ()
                    changes[name] = None if gone else self.single(value, name)
            elif type(value) in (tuple, list) and any(self.touched(item) for item in value):
                changes |= self.sequence(node, name, value)
        return held(node.with_changes(**changes))

    def sequence(self, node: cst.CSTNode, name: str, items: Sequence[cst.CSTNode]) -> dict[str, Any]:
        if name == "body" and isinstance(node, (cst.Module, cst.IndentedBlock)):
            body, footer = self.block(items, node.footer)
            if type(node) is cst.IndentedBlock and not body:
                body, footer = [cst.SimpleStatementLine([cst.Pass()], leading_lines=_comments(footer))], ()
            emptied = type(node) is cst.Module and not (body or footer or node.header)
            return {"body": body, "footer": footer, **({"has_trailing_newline": False} if emptied else {})}
        if type(node) is cst.SimpleStatementSuite:
            return {"body": self.small_statements(node.body) or [cst.Pass()]}
        if name in _WITH_LINES:
            slots = [LineSlot(_lined(item), tuple(_lined(new) for new in self.results(item))) for item in items]
            if name != "decorators":
                return {name: merge_lines(slots, ())[0]}
            assert isinstance(node, (cst.FunctionDef, cst.ClassDef))
            found, lines = merge_lines(slots, node.lines_after_decorators)
            return {name: found, "lines_after_decorators": lines}
        changes = self.between_commas(node, name, [Slot(item, self.results(item)) for item in items])
        if not changes[name] and not isinstance(node, _MAY_BE_EMPTY):
            raise EditError(f"the field {name} of a {type(node).__name__} cannot be empty")
        return changes

    # -- statements -------------------------------------------------------------------------------------------------

    def block(
        self, items: Sequence[cst.CSTNode], footer: Sequence[cst.EmptyLine]
    ) -> tuple[list[HasLeadingLines], Lines]:
        return merge_lines([self.statement(item) for item in items], footer, captions=False)

    def statement(self, node: cst.CSTNode) -> LineSlot:
        old = _lined(node)
        if not self.touched(node):
            return LineSlot(old, (old,))
        if id(node) in self.unwrapped:
            block = self.unwrapped_block(old, node)
            return replace(block, new=tuple(line for new in self.around(node, block.new) for line in _as_lines(new)))
        inside = node.body if type(node) is cst.SimpleStatementLine else ()
        if id(node) in self.moved or (len(inside) == 1 and id(inside[0]) in self.moved):
            rest = self.results(node if id(node) in self.moved else inside[0])
            return LineSlot(with_lines(old, ()), tuple(line for new in rest for line in _as_lines(new)))
        if id(node) in self.new or id(node) in self.beside:
            return LineSlot(old, tuple(line for new in self.results(node) for line in _as_lines(new)))
        if type(node) is cst.SimpleStatementLine and id(node) in self.dirty:
            return LineSlot(old, self.line(node))
        return LineSlot(old, (_lined(self.rebuilt(node)),))

    def line(self, node: cst.SimpleStatementLine) -> tuple[HasLeadingLines, ...]:
        """What becomes of a line with edited small statements: a line like it, several, or none."""
        replaced = [self.results(small) for small in node.body]
        flat = [new for results in replaced for new in results]
        if not flat:
            return ()
        together = len(node.body) > 1 and all(isinstance(new, cst.BaseSmallStatement) for new in flat)
        if together or (len(flat) == 1 and isinstance(flat[0], cst.BaseSmallStatement)):
            return (node.with_changes(body=_joined(node.body, flat)),)
        lines = [line for new in flat for line in _as_lines(new)]
        if node.trailing_whitespace.comment is not None:
            place = next((number for number, new in enumerate(flat) if id(new) in self.stays), 0)
            first = lines[place]
            if type(first) is cst.SimpleStatementLine:
                lines[place] = first.with_changes(trailing_whitespace=node.trailing_whitespace)
            else:
                lines[place] = with_lines(
                    first, join_lines(comment_line(node.trailing_whitespace), first.leading_lines)
                )
        if not any(line is kept for new in lines for line in new.leading_lines for kept in node.leading_lines):
            lines[0] = with_lines(lines[0], join_lines(node.leading_lines, lines[0].leading_lines))
        return tuple(lines)

    def unwrapped_block(self, old: HasLeadingLines, node: cst.CSTNode) -> LineSlot:
        suite = node.body  # type: ignore[attr-defined]
        if type(suite) is cst.SimpleStatementSuite:
            small = self.small_statements(suite.body)
            lines = cst.SimpleStatementLine(small, old.leading_lines, suite.trailing_whitespace)
            return LineSlot(old, (lines,) if small else ())
        assert type(suite) is cst.IndentedBlock
        body, footer = self.block(suite.body, suite.footer)
        above = join_lines(tuple(old.leading_lines), comment_line(suite.header))
        if not body:
            return LineSlot(old, (), join_lines(comment_line(suite.header), footer))
        body[0] = with_lines(body[0], join_lines(above, body[0].leading_lines))
        return LineSlot(old, tuple(body), footer)

    def small_statements(self, items: Sequence[cst.BaseSmallStatement]) -> list[cst.BaseSmallStatement]:
        flat = [new for item in items for new in self.results(item)]
        if not all(isinstance(new, cst.BaseSmallStatement) for new in flat):
            raise EditError("a statement behind a colon can only become small statements")
        return _joined(items, flat)

    # -- elements between commas ------------------------------------------------------------------------------------

    def between_commas(self, node: cst.CSTNode, name: str, slots: list[Slot]) -> dict[str, Any]:
        if not hasattr(slots[0].old, "comma") or type(node) is cst.ClassDef:
            return {name: [new for slot in slots for new in slot.new]}
        if all(self.keeps_comma(slot) for slot in slots):
            return {name: [slot.new[0] for slot in slots]}
        if type(node) is cst.Call:
            done = splice(slots, node.whitespace_before_args)
            return {name: done.elements, "whitespace_before_args": done.start}
        fields = _BRACKETS.get(type(node))
        opening, closing = (getattr(node, field, None) for field in fields) if fields else (None, None)
        left = opening[-1] if isinstance(opening, (tuple, list)) and opening else opening
        right = closing[0] if isinstance(closing, (tuple, list)) and closing else closing
        if not isinstance(left, cst.CSTNode) or not isinstance(right, cst.CSTNode) or fields is None:
            return {name: splice(slots).elements}
        own_end = isinstance(node, (cst.Subscript, cst.ImportFrom)) and isinstance(_comma(slots[-1].old), cst.Comma)
        end = None if own_end else right.whitespace_before  # type: ignore[attr-defined]
        done = splice(slots, left.whitespace_after, end)  # type: ignore[attr-defined]
        new_left = left.with_changes(whitespace_after=done.start)
        new_right = right if own_end and done.elements else right.with_changes(whitespace_before=done.end)
        return {
            name: done.elements,
            fields[0]: [*opening[:-1], new_left] if isinstance(opening, (tuple, list)) else new_left,
            fields[1]: [new_right, *closing[1:]] if isinstance(closing, (tuple, list)) else new_right,
        }

    def keeps_comma(self, slot: Slot) -> bool:
        return id(slot.old) not in self.new and len(slot.new) == 1

    def parameters(self, node: cst.CSTNode, params: cst.Parameters) -> dict[str, Any]:
        """Parameters are one sequence in text but six fields in the tree."""
        slots: list[tuple[str, Slot]] = []
        for name in _SEPARATE_PARAMS:
            value = getattr(params, name)
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(item, cst.CSTNode):
                    slots.append((name, Slot(item, self.results(item))))
        slots = _without_bare_markers(slots)
        own = [slot for _, slot in slots]
        if all(self.keeps_comma(slot) for slot in own):
            done = Spliced(tuple(slot.new[0] for slot in own), EMPTY, EMPTY)
            start = {}
        else:
            before = node.whitespace_before_params if type(node) is cst.FunctionDef else EMPTY
            done = splice(own, before)
            start = {"whitespace_before_params": done.start} if type(node) is cst.FunctionDef else {}
        fields: dict[str, Any] = {name: [] for name in _SEPARATE_PARAMS}
        elements = iter(done.elements)
        for name, slot in slots:
            fields[name] += [next(elements) for _ in slot.new]
        for name in ("posonly_ind", "star_arg", "star_kwarg"):
            absent = None if name == "star_kwarg" else cst.MaybeSentinel.DEFAULT
            fields[name] = fields[name][0] if fields[name] else absent
        return {"params": params.with_changes(**fields), **start}

    # -- inserted nodes ---------------------------------------------------------------------------------------------

    def own(self, new: cst.CSTNode) -> cst.CSTNode:
        """The node to insert, with copies of those parts that stand in the tree already.

        A node may stand in a tree only once, or it would have two parents.
        """
        if new in self.index:
            if self.lives(new) or any(id(part) in self.used for part in walk(new)):
                return new.deep_clone()
            self.used.update(id(part) for part in walk(new))
            return new
        if id(new) in self.used:
            return new.deep_clone()
        self.used.add(id(new))
        changes: dict[str, Any] = {}
        for name in child_fields(type(new)):
            value = getattr(new, name)
            if IS_NODE[type(value)]:
                copy = self.own(value)
                if copy is not value:
                    changes[name] = copy
            elif type(value) is tuple or type(value) is list:
                copies = [self.own(item) for item in value]
                if any(a is not b for a, b in zip(copies, value, strict=True)):
                    changes[name] = copies
        return new.with_changes(**changes) if changes else new

    def lives(self, node: cst.CSTNode) -> bool:
        """True if a node of the tree stays where it is."""
        for above in (node, *self.index.ancestors(node)):
            if id(above) in self.new and id(above) not in self.unwrapped:
                return False
        return True


def _lined(node: cst.CSTNode) -> HasLeadingLines:
    if not hasattr(node, "leading_lines"):
        raise EditError(f"a {type(node).__name__} cannot stand among statements")
    return node


def _as_lines(node: cst.CSTNode) -> tuple[HasLeadingLines, ...]:
    if isinstance(node, cst.BaseSmallStatement):
        return (cst.SimpleStatementLine([node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]),)
    return (_lined(node),)


def _joined(old: Sequence[cst.BaseSmallStatement], new: Iterable[cst.CSTNode]) -> list[cst.BaseSmallStatement]:
    """Small statements on one line; the last is followed by what followed the last before."""
    result = [item for item in new if isinstance(item, cst.BaseSmallStatement)]
    if result and result[-1].semicolon is not old[-1].semicolon:
        result[-1] = result[-1].with_changes(semicolon=old[-1].semicolon)
    return result


def _comments(lines: Sequence[cst.EmptyLine]) -> Lines:
    return tuple(line for line in lines if line.comment is not None)


def _comma(node: cst.CSTNode) -> object:
    return getattr(node, "comma", None)


def _without_bare_markers(slots: list[tuple[str, Slot]]) -> list[tuple[str, Slot]]:
    """A lone ``*`` or ``/`` goes when the parameters that it separated are gone."""
    present = {name for name, slot in slots if slot.new}
    result = []
    for name, slot in slots:
        lone_star = type(slot.old) is cst.ParamStar and "kwonly_params" not in present
        lone_slash = type(slot.old) is cst.ParamSlash and "posonly_params" not in present
        result.append((name, Slot(slot.old, ()) if lone_star or lone_slash else slot))
    return result
