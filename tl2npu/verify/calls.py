"""Reads the calls that a user gives: ``--args 'matmul(M=256, N=256)'``, a ``case.toml``, ``--input NAME=EXPR``."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tl2npu.verify.settings import Call, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_NAMED = 8  # factories in a message


def parse_call(text: str) -> Call:
    """``factory(name=value, ...)`` with literal values. Raises UsageError for anything else.

    Positional arguments are allowed and kept under their numbers (``"0"``, ``"1"``), as the factory is not known here.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise UsageError(f"--args {text!r} is not a call: write for example 'matmul(M=256, N=256)'") from None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise UsageError(f"--args {text!r} is not a call of a factory: write for example 'matmul(M=256, N=256)'")
    arguments: dict[str, Any] = {}
    for number, node in enumerate(tree.args):
        arguments[str(number)] = _literal(node, text)
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise UsageError(f"--args {text!r}: ** cannot be used")
        arguments[keyword.arg] = _literal(keyword.value, text)
    return Call(tree.func.id, arguments)


def option_of(call: Call) -> str | None:
    """``--args`` with a call, as a shell takes it; None where the arguments cannot be written as literals."""
    text = str(call)
    try:
        written = parse_call(text).arguments == call.arguments
    except UsageError:
        return None
    return f'--args "{text}"' if written and not set(text) & set('"$`\\') else None


def known(call: Call, text: str) -> None:
    """Raises UsageError if nothing in a file can be the factory of a call, as it does not have the name."""
    names: set[str] = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
    if not names & {call.factory, "*"}:
        own = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        raise UsageError(f"{call}: {no_factory(call.factory, names, own)}")


def no_factory(name: str, names: Iterable[str], own: Sequence[str]) -> str:
    """That there is no factory of a name, and which one may be meant: a similar one, else those of the file."""
    close = get_close_matches(name, list(names), n=1)
    if close:
        return f"there is no factory {name!r}, did you mean {close[0]!r}?"
    more = ", ..." if len(own) > _NAMED else ""
    return f"there is no factory {name!r}" + (f"; the file has {', '.join(own[:_NAMED])}{more}" if own else "")


def misfit(call: Call, signature: inspect.Signature) -> str:
    """Why a factory does not take the arguments of a call; empty if it does."""
    kwargs = {name: value for name, value in call.arguments.items() if not name.isdigit()}
    try:
        signature.bind(*[value for name, value in call.arguments.items() if name.isdigit()], **kwargs)
    except TypeError as error:
        unknown = [name for name in kwargs if name not in signature.parameters]
        why = f"no parameter {unknown[0]!r}" if unknown else str(error)
        return f"{call.factory} does not take these arguments: {why}; it takes {signature}"
    return ""


def _literal(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError):
        raise UsageError(f"--args {text!r}: {ast.unparse(node)} is not a literal") from None


def read_case(path: Path) -> Call:
    """The call in a ``case.toml``: its keys ``factory`` (a name) and ``args`` (a table), and if it has them ``inputs``
    (parameter name -> expression) and ``symbols`` (symbolic extent -> number). Other keys are not looked at.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    factory, arguments = data.get("factory"), data.get("args")
    if not isinstance(factory, str) or not isinstance(arguments, dict):
        raise UsageError(f"{path}: it needs the keys `factory` (a string) and `args` (a table)")
    inputs, symbols = data.get("inputs", {}), data.get("symbols", {})
    if not isinstance(inputs, dict) or not all(isinstance(value, str) for value in inputs.values()):
        raise UsageError(f"{path}: `inputs` must be a table of strings")
    if not isinstance(symbols, dict) or not all(isinstance(value, int) and value > 0 for value in symbols.values()):
        raise UsageError(f"{path}: `symbols` must be a table of positive numbers")
    return Call(factory, arguments, inputs, symbols)


def parse_assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """``NAME=TEXT`` options as a dict."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip():
            raise UsageError(f"{option} {text!r}: write it as NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def parse_symbols(texts: Sequence[str]) -> dict[str, int]:
    """``NAME=NUMBER`` options: values of symbolic extents."""
    found: dict[str, int] = {}
    for name, value in parse_assignments(texts, "--size").items():
        if not value.isdigit() or int(value) < 1:
            raise UsageError(f"--size {name}={value}: the size must be a positive number")
        found[name] = int(value)
    return found
