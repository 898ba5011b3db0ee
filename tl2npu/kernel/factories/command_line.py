"""Options of a script's command line, as ``argparse`` gives them when the script is run without arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import libcst as cst

from tl2npu.source.literals import text_of

_PARSER = "argparse.ArgumentParser"
_PARSES = ("parse_args", "parse_known_args")
_FLAGS: Mapping[str, object] = MappingProxyType({"store_true": False, "store_false": True, "count": None})


@dataclass(frozen=True)
class CommandLine:
    """A parser, or what it parsed: ``values`` of the options by attribute name; None in it is Python's ``None``."""

    values: Mapping[str, object] = field(default_factory=dict)
    is_parsed: bool = False


def is_parser(resolved: str | None) -> bool:
    """Whether a call of that name makes a parser."""
    return resolved == _PARSER


def parsed(
    call: cst.Call, known: Mapping[str, object], value_of: Callable[[cst.BaseExpression], object]
) -> CommandLine | None:
    """What ``parser.parse_args()`` returns; None for every other call.

    An explicit list of arguments is not read: then nothing is known of the options. ``value_of``: the value of an
    expression; it may return anything for one that cannot be told, but not None.
    """
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return None
    parser = known.get(call.func.value.value)
    if not isinstance(parser, CommandLine) or parser.is_parsed or call.func.attr.value not in _PARSES:
        return None
    if any(value_of(arg.value) is not None for arg in call.args):
        return CommandLine(is_parsed=True)
    return CommandLine(parser.values, is_parsed=True)


def with_option(
    call: cst.Call, known: Mapping[str, object], value_of: Callable[[cst.BaseExpression], object]
) -> tuple[str, CommandLine] | None:
    """The parser's name, and the parser with the option of ``parser.add_argument(...)``; None for other calls."""
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
        return None
    name = call.func.value.value
    parser = known.get(name)
    if not isinstance(parser, CommandLine) or parser.is_parsed:
        return None
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    plain = [_text(arg.value) for arg in call.args if arg.keyword is None and not arg.star]
    if call.func.attr.value != "add_argument" or len(plain) + len(given) != len(call.args) or not all(plain):
        return name, CommandLine()  # set_defaults, groups, ...: nothing is known any more
    long = next((flag for flag in plain if flag.startswith("--")), plain[0] if plain else "")
    dest = _text(given["dest"]) if "dest" in given else long.lstrip("-").replace("-", "_")
    values = {key: value for key, value in parser.values.items() if key != dest}
    action = _text(given["action"]) if "action" in given else "store"
    required = "required" in given or not long.startswith("-")
    if dest and "default" in given:
        value = value_of(given["default"])
        if not isinstance(value, str) or "type" not in given or _is(given["type"], "str"):
            values[dest] = value
    elif dest and not required and (action == "store" or action in _FLAGS):
        values[dest] = _FLAGS.get(action)
    return name, CommandLine(values)


def _text(node: cst.BaseExpression) -> str:
    """A text that is written out; "" for everything else."""
    text = text_of(node) if isinstance(node, cst.SimpleString) else None
    return text if isinstance(text, str) else ""


def _is(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
