"""Files that compile a kernel which this run has written for the NPU: they say what it needs, or an error says so."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path

from tl2npu.across.modules import display
from tl2npu.across.users import User, Users
from tl2npu.codes import finding
from tl2npu.imported import compiled_kernels, with_compiled
from tl2npu.options import Options
from tl2npu.project.one import Outcome, reported
from tl2npu.results import Diagnostic
from tl2npu.source.notebook import is_notebook
from tl2npu.source.text import SourceError, decode_source, read_bytes

_UNCOMPILED = "nothing in this file compiles the kernel"
_MAX_BYTES = 1024 * 1024


def may_be_compiled(outcome: Outcome) -> bool:
    """Whether other files may compile a kernel that was rewritten."""
    return outcome.result.error is None and bool(outcome.result.handed) and not outcome.result.cells


def alone_compiled(outcome: Outcome, options: Options) -> Outcome:
    """The outcome of a file alone, with what is wrong in others."""
    now = {0: outcome}
    if may_be_compiled(outcome):
        settle_compiling([0], now, {}, now.__getitem__, options)
    return now[0]


def settle_compiling(
    written: Sequence[int],
    outcomes: MutableMapping[int, Outcome],
    numbers: Mapping[Path, int],
    of: Callable[[int], Outcome],
    options: Options,
) -> list[set[int]]:
    """Bring the files up to date that compile kernels of the files ``written``; which files belong together.

    ``numbers``: the files of the run; ``of`` gives their outcomes, and ``outcomes`` takes the new ones.
    """
    texts = {
        Path(outcomes[number].result.path).absolute(): outcomes[number].result.new_text or "" for number in written
    }
    found: dict[Path, list[tuple[int, str, str, User]]] = {}
    for number in written:
        for kernel, handed in outcomes[number].result.handed:
            for user in _users(Path(outcomes[number].result.path).absolute(), handed):
                found.setdefault(user.path, []).append((number, kernel, handed, user))
    groups: list[set[int]] = []
    compiled: set[tuple[str, str]] = set()
    for path, uses in found.items():
        target = numbers.get(path.resolve())
        outcome = of(target) if target is not None else None
        unread = is_notebook(str(path)) or not all(use[3].names for use in uses)
        if target is None or outcome is None or outcome.source is None or outcome.skipped or unread:
            compiled |= _beside(path, uses, outcomes, texts, options)
            continue
        result, own = with_compiled(outcome.result, options, texts)
        compiled |= own
        if result.error is None and result != outcome.result:
            outcomes[target] = replace(outcome, result=reported(result, options))
            if result.new_text != outcome.result.new_text:
                groups.append({target, *(use[0] for use in uses)})
    for number in written:
        outcomes[number] = _without_uncompiled(outcomes[number], compiled, options)
    return groups


def _users(path: Path, name: str) -> Iterator[User]:
    """The files that use a function, or one of theirs that returns what it gives."""
    waiting, seen = [(path, name)], {(path, name)}
    while waiting:
        for user in Users(str(waiting[0][0])).of(waiting[0][1]):
            yield user
            for giver in _givers(user):
                if (user.path, giver) not in seen:
                    seen.add((user.path, giver))
                    waiting.append((user.path, giver))
        del waiting[0]


def _givers(user: User) -> Iterator[str]:
    """The functions of a file that return a call of what it uses."""
    text = _text(user.path) if user.names and not is_notebook(str(user.path)) else None
    for node in ast.parse(text).body if text is not None else ():
        for inner in ast.walk(node) if isinstance(node, ast.FunctionDef) else ():
            returned = inner.value if isinstance(inner, ast.Return) else None
            if isinstance(returned, ast.Call) and ast.unparse(returned.func) in user.names:
                assert isinstance(node, ast.FunctionDef)
                yield node.name


def _text(path: Path) -> str | None:
    try:
        text = decode_source(read_bytes(path, _MAX_BYTES), _MAX_BYTES).text
        ast.parse(text)
    except (OSError, SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text


def _beside(
    path: Path,
    uses: Sequence[tuple[int, str, str, User]],
    outcomes: MutableMapping[int, Outcome],
    texts: Mapping[Path, str],
    options: Options,
) -> frozenset[tuple[str, str]]:
    """Say in the file of a kernel what is wrong with one that is not changed; what that compiles."""
    text = None if is_notebook(str(path)) else _text(path)
    done = compiled_kernels(text, str(path), options, texts, edit=False) if text is not None else None
    for number, kernel, handed, user in {item[:2]: item for item in uses}.values():
        result = outcomes[number].result
        place = next(item.line for item in result.kernels if item.name == kernel)
        said: list[Diagnostic] = []
        if done is None or not user.names:
            why = f"line {user.line} of {user.shown} may compile `{handed}`, and is not read: set `pass_configs` there"
            said = [replace(finding("TL816", place, why, kernel), severity="warning")]
        for item in done.diagnostics if done is not None else ():
            if item.code == "TL816":
                why = f"line {item.line} of {display(path)}: {item.message}"
                own = finding("TL816", place, why, kernel)
                said.append(replace(own, severity=item.severity, help="migrate both files in one run"))
        if said:
            result = replace(result, diagnostics=(*result.diagnostics, *said))
            outcomes[number] = replace(outcomes[number], result=reported(result, options))
    return done.compiled if done is not None else frozenset()


def _without_uncompiled(outcome: Outcome, compiled: set[tuple[str, str]], options: Options) -> Outcome:
    """What is compiled in another file is not compiled nowhere."""
    result = outcome.result
    place = display(Path(result.path).absolute())
    names = {kernel for kernel, handed in result.handed if (place, handed) in compiled}
    left = tuple(
        item
        for item in result.diagnostics
        if not (item.code == "TL816" and item.kernel in names and item.message.startswith(_UNCOMPILED))
    )
    return replace(outcome, result=reported(replace(result, diagnostics=left), options)) if names else outcome
