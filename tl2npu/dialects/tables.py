"""Reads the tables of operators: one line for each signature, under headings that say what its operators share.

A heading is ``[kind word word] file # note``. Words: a core, ``none`` if there is none; ``expert``, or ``nowhere`` for
names that must not remain; ``each`` and ``row`` as ``elementwise`` and ``row_independent`` of :class:`Operator`;
``axis=dim``, ``memory=ub``; ``plain``: what has no mark below is a number, whatever its name.

A line is ``name name@function: signature = meaning ~ deviation # note``; it goes on in lines with a margin.
``function`` is what the file calls the operator, where that is not its own name or its long one, ``npuir_...``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar, cast

from tl2npu.dialects.catalogue import DEVELOPER, EXPERT, Core, Kind, Mask, Operator, Param, ParamKind, Role

Meaning = TypeVar("Meaning")

BOTH_MODES = frozenset({EXPERT, DEVELOPER})
EXPERT_ONLY = frozenset({EXPERT})
NO_MODE: frozenset[str] = frozenset()

_MARKS = {"<": Role.READ, ">": Role.WRITE, "+": Role.ACCUMULATE, "~": Role.READ_WRITE, "?": Role.READ}
_MODES = {"expert": EXPERT_ONLY, "nowhere": NO_MODE}
_CORES = {core.value.replace(" ", "-"): core for core in Core}
_BY_NAME = """
count: count actual_num num repeat repeat_time repeat_times repeatTime repeatTimes repeattimes dump_size nelems
mode: dtype scope buffer_type op op_tl mode selMode casttype ReduceOrder CacheLine DcciDst reduce_type pipe name thread
    prelude source ret_type attr_key format_str msg round_mode cmp_mod reduce_mode index_mode
shape: shape strides axis_separators real_shape annotations order stage sync group domain address_map fmap layout_map
    padding_map attrs shape_info sumParams GatherMaskParams size permutation low high
flag: enable_relu transpose transpose_A transpose_B policy clear_accum axis repeat_mode reduceMode dim clear reverse
    is_cpu is_npu pipeline private check_well_formed hygienic in_loop dims a_transpose b_transpose round hex
"""



def _whole_lines(text: str) -> list[str]:
    """The lines of a text; one with a margin goes on with the line above."""
    whole: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith(" "):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


def _roles() -> Iterator[tuple[str, Role]]:
    for line in _whole_lines(_BY_NAME):
        role, _, names = line.partition(":")
        yield from ((name, Role(role)) for name in names.split())


ROLES: Mapping[str, Role] = MappingProxyType(dict(_roles()))
"""What a parameter that is no buffer holds, by its name; a number or an expression where nothing is said."""


@dataclass(frozen=True)
class Signature:
    """The parameters of an operator, and the names that its variadic one stands for."""

    params: tuple[Param, ...]
    extras: tuple[str, ...] = ()


def signature(text: str, roles: Mapping[str, Role] = ROLES) -> Signature:
    """Reads ``"<src >dst[r] dim/scalar=0 * annotations=None"``.

    ``<`` a buffer that is read, ``?`` a buffer or a number that is read, ``>`` written, ``+`` updated, ``~`` both read
    and written; in brackets how the compiler's passes see it. ``/role`` where the name says another one. ``*name`` is
    variadic, in brackets the names that it stands for; what stands behind it or a lone ``*`` takes keywords only.
    ``...`` stands for a default that is no constant.
    """
    found: list[Param] = []
    extras: tuple[str, ...] = ()
    kind: ParamKind = "positional"
    for word in text.split():
        head, _, default = word.partition("=")
        head, _, brackets = head.rstrip("]").partition("[")
        star, head = head.startswith("*"), head.removeprefix("*")
        name, _, role = head.lstrip("<>+~?").partition("/")
        held = Role(role) if role else _MARKS.get(head[:1]) or roles.get(name, Role.SCALAR)
        if star:
            kind = "keyword"
            extras = tuple(brackets.split(",")) if brackets else extras
            found += [Param(name, held, None, "variadic")] if name else []
        else:
            seen = cast(Mask, brackets)
            found.append(Param(name, held, default or None, kind, head.startswith("?"), seen))
    return Signature(tuple(found), extras)


@dataclass(frozen=True)
class _Heading:
    """What the operators below a heading share."""

    kind: Kind
    file: str
    note: str
    words: tuple[str, ...]
    options: Mapping[str, str]

    def word(self, meanings: Mapping[str, Meaning], otherwise: Meaning) -> Meaning:
        """What the word of a kind stands for."""
        return next((meanings[word] for word in self.words if word in meanings), otherwise)


def _heading(line: str) -> _Heading:
    words, _, rest = line[1:].partition("]")
    file, _, note = rest.partition("#")
    kind, *others = words.split()
    options = dict(word.split("=") for word in others if "=" in word)
    return _Heading(Kind(kind), file.strip(), note.strip(), tuple(others), options)


def table(text: str, modes: frozenset[str] = BOTH_MODES, roles: Mapping[str, Role] = ROLES) -> tuple[Operator, ...]:
    """The operators of a table; ``modes`` are those of a heading that names none."""
    return tuple(row for heading, line in _lines(text) for row in _rows(heading, line, modes, roles))


def _lines(text: str) -> Iterator[tuple[_Heading, str]]:
    """The lines of a table, each whole and with its heading."""
    heading: _Heading | None = None
    for line in _whole_lines(text):
        if line.startswith("["):
            heading = _heading(line)
        elif heading is not None:
            yield heading, line


def _rows(heading: _Heading, line: str, modes: frozenset[str], roles: Mapping[str, Role]) -> Iterator[Operator]:
    head, _, own = line.partition("#")
    listed, _, rest = head.partition(":")
    arguments, _, formula = rest.partition(" = ")
    meaning, _, deviation = formula.partition(" ~ ")
    read = signature(arguments, {} if "plain" in heading.words else roles)
    names = [word.partition("@") for word in listed.split()]
    long = next((name for name, _, _ in names if name.startswith("npuir_")), "")
    for name, _, function in names:
        yield Operator(
            name,
            heading.kind,
            read.params,
            heading.word(_CORES, Core.NONE),
            heading.word(_MODES, modes),
            f"{heading.file}:{function or long or name.removeprefix('tile.')}",
            memory=heading.options.get("memory"),
            elementwise="each" in heading.words,
            row_independent="each" in heading.words or "row" in heading.words,
            note="; ".join(filter(None, (own.strip(), heading.note))),
            axis=heading.options.get("axis"),
            extras=read.extras,
            meaning=meaning.strip(),
            deviation=deviation.strip(),
        )


@dataclass(frozen=True)
class Section:
    """A part of the page of a dialect: what is to be known of its operators, and these."""

    prose: str
    operators: tuple[Operator, ...]


def sections(text: str) -> Mapping[str, Section]:
    """The sections of a text by their titles: each ``## title``, prose, and the table from its first heading on."""
    found: dict[str, Section] = {}
    for part in text.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        prose, bracket, rows = rest.partition("\n[")
        found[title] = Section(prose.strip(), table(bracket + rows))
    return MappingProxyType(found)
