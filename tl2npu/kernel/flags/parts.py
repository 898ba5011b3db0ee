"""The flags of a kernel, cut out of it with the loops and conditions around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from tl2npu.kernel.environment import Helper
from tl2npu.kernel.expressions import code
from tl2npu.kernel.flags.listed import singles
from tl2npu.kernel.flags.terms import Condition, Terms
from tl2npu.kernel.model import Branch, Inlined, Loop, Op, Opaque, ScopeBlock, Side, Stmt, Sync, children
from tl2npu.kernel.symbolic import Opaque as Apart
from tl2npu.kernel.symbolic import Sym, ceildiv, const
from tl2npu.source.tree import calls_in, nodes_of


class GiveUp(Exception):
    """Nothing can be said of this kernel, or of these pipes."""


@dataclass(frozen=True)
class Channel:
    """From which pipe to which, on which core (NONE: the kernel has no scopes)."""

    side: Side
    src: str
    dst: str


@dataclass(frozen=True, eq=False)
class Flag:
    stmt: Sync
    sign: int
    channel: Channel
    event: Sym | None
    key: Sym


@dataclass(frozen=True, eq=False)
class Repeat:
    name: str
    start: Sym | None
    step: Sym | None
    turns: Sym | None
    body: list[Part]
    depends: bool


@dataclass(frozen=True, eq=False)
class Choice:
    cond: Condition
    then: list[Part]
    orelse: list[Part]
    stmt: Branch


Part = Flag | Repeat | Choice


def parts_of(body: Sequence[Stmt], terms: Terms, side: Side) -> list[Part]:
    result: list[Part] = []
    for stmt in body:
        if isinstance(stmt, Sync):
            every = singles(stmt, terms.evaluator)
            if every is None:
                raise GiveUp
            result += [_flag(one, terms, side) for one in every if one.op.name in ("set_flag", "wait_flag")]
        elif isinstance(stmt, ScopeBlock):
            result += parts_of(stmt.body, terms, stmt.side)
        elif isinstance(stmt, Inlined):
            result += parts_of(stmt.body, terms, side)
        elif isinstance(stmt, Branch):
            then, orelse = parts_of(stmt.then, terms, side), parts_of(stmt.orelse, terms, side)
            if then or orelse:
                cond = terms.condition(stmt.cond.node, stmt.env)
                result.append(Choice(cond, then, orelse, stmt))
        elif isinstance(stmt, Loop):
            result += _repeat(stmt, parts_of(stmt.body, terms, side), terms)
        elif isinstance(stmt, Opaque):
            no_flags_in(stmt)
        elif isinstance(stmt, Op) and stmt.op.name == "loop_break":
            raise GiveUp
        else:
            assert not children(stmt)
    return result


def _flag(stmt: Sync, terms: Terms, side: Side) -> Flag:
    pipes: list[str] = []
    for name in ("src", "dst"):
        arg = stmt.args.get(name)
        text = terms.evaluator.static(arg.node, stmt.env) if arg is not None else None
        if not isinstance(text, str):
            raise GiveUp
        pipes.append(text.upper().removeprefix("PIPE_"))
    event = stmt.args.get("eventId")
    if event is None:
        raise GiveUp
    sign = 1 if stmt.op.name == "set_flag" else -1
    return Flag(stmt, sign, Channel(side, pipes[0], pipes[1]), terms.term(event.sym), event.sym)


def _repeat(stmt: Loop, body: list[Part], terms: Terms) -> list[Part]:
    if not body:
        return []
    if stmt.kind in ("while", "persistent") or not stmt.ranges:
        return [Repeat("", None, None, None, body, False)]
    for item in reversed(stmt.ranges):
        (name,) = item.var.variables()
        step = item.step if item.step is not None else const(1)
        try:
            turns = terms.term(ceildiv(item.extent, step))
        except ZeroDivisionError:
            turns = None
        depends = any(name in term.variables() for term in terms_in(body))
        body = [Repeat(name, terms.term(item.start), terms.term(step), turns, body, depends)]
    return body


def no_flags_in(stmt: Opaque) -> None:
    """Raises :class:`GiveUp` where a statement that is not understood may set a flag, or leave a loop."""
    text = code(stmt.node)
    if "flag" in text or isinstance(stmt.node, (cst.Break, cst.Continue, cst.Return)):
        raise GiveUp
    if isinstance(stmt.node, cst.Expr) and isinstance(stmt.node.value, cst.Call):
        raise GiveUp
    if nodes_of(stmt.node, cst.Break, cst.Continue, cst.Return):
        raise GiveUp
    for call in calls_in(stmt.node):
        helper = stmt.env.lookup(call.func.value) if isinstance(call.func, cst.Name) else None
        if isinstance(helper, Helper) and "flag" in code(helper.node):
            raise GiveUp


def flags_in(parts: Sequence[Part]) -> Iterator[Flag]:
    for part in parts:
        if isinstance(part, Flag):
            yield part
        elif isinstance(part, Repeat):
            yield from flags_in(part.body)
        else:
            yield from flags_in(part.then)
            yield from flags_in(part.orelse)


def repeats_in(parts: Sequence[Part]) -> Iterator[Repeat]:
    for part in parts:
        if isinstance(part, Repeat):
            yield part
            yield from repeats_in(part.body)
        elif isinstance(part, Choice):
            yield from repeats_in((*part.then, *part.orelse))


def may_turn_twice(part: Repeat) -> bool:
    return part.turns is not None and (part.turns.constant is None or part.turns.constant > 1)


def terms_in(parts: Sequence[Part]) -> Iterator[Sym]:
    """Every term that the count depends on."""
    for part in parts:
        if isinstance(part, Flag):
            if part.event is not None:
                yield part.event
        elif isinstance(part, Repeat):
            yield from (term for term in (part.turns,) if term is not None)
            if part.depends:
                yield from (term for term in (part.start, part.step) if term is not None)
            yield from terms_in(part.body)
        else:
            yield from part.cond.terms()
            yield from terms_in(part.then)
            yield from terms_in(part.orelse)


def conditions_in(parts: Sequence[Part]) -> Iterator[Sym]:
    for part in parts:
        if isinstance(part, Repeat):
            yield from conditions_in(part.body)
        elif isinstance(part, Choice):
            yield from part.cond.terms()
            yield from conditions_in((*part.then, *part.orelse))


def with_plain_turns(parts: Sequence[Part], used: Counter[str], terms: Terms) -> list[Part]:
    """Loops whose turns are all alike, and as many as nothing else depends on, turn by a number of their own."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Repeat):
            part = replace(part, body=with_plain_turns(part.body, used, terms))
            names = part.turns.variables() if part.turns is not None else frozenset()
            if names and not part.depends and all(name in terms.free and used[name] == 1 for name in names):
                part = replace(part, turns=terms.some_turns(f"turns {id(part)}"))
        elif isinstance(part, Choice):
            then, orelse = (with_plain_turns(arm, used, terms) for arm in (part.then, part.orelse))
            part = replace(part, then=then, orelse=orelse)
        result.append(part)
    return result


def only(parts: Sequence[Part], channel: Channel) -> list[Part]:
    """The flags of one channel with the loops and conditions that they stand in."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Flag):
            if part.channel == channel:
                result.append(part)
        elif isinstance(part, Repeat):
            body = only(part.body, channel)
            if body:
                depends = any(part.name in term.variables() for term in terms_in(body))
                result.append(Repeat(part.name, part.start, part.step, part.turns, body, depends))
        else:
            then, orelse = only(part.then, channel), only(part.orelse, channel)
            if then or orelse:
                result.append(Choice(part.cond, then, orelse, part.stmt))
    return result


def single_turns(parts: Sequence[Part]) -> Iterator[tuple[Choice, str, int]]:
    """Conditions that name one turn of a loop that may be shorter: ``if kk == 3``."""
    for part in parts:
        if isinstance(part, Repeat):
            yield from single_turns(part.body)
        elif isinstance(part, Choice):
            atoms = [atom for monomial, _ in part.cond.term.terms for atom in monomial] if part.cond.term else []
            if len(atoms) == 1 and isinstance(atoms[0], Apart) and atoms[0].head == "Equal" and not part.orelse:
                sides = [arg for arg in atoms[0].args if arg.constant is None]
                turns = [arg.constant for arg in atoms[0].args if arg.constant is not None]
                if len(sides) == len(turns) == 1 and turns[0] and turns[0] > 0 and _is_name(sides[0]):
                    yield part, str(sides[0]).partition("@")[0], turns[0]
            yield from single_turns(part.then)
            yield from single_turns(part.orelse)


def _is_name(sym: Sym) -> bool:
    return len(sym.variables()) == 1 and str(sym) in sym.variables() and not str(sym).startswith("=")
