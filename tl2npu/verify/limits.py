"""What ``tl2npu check`` finds in the new kernels.

Results on the simulator prove nothing about a kernel that the compiler does not take, or takes for something else: each
error of ``check`` is a failure of the kernel that it is in.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tl2npu.cells import Places
from tl2npu.dialects.limits import AUTHORS_OWN
from tl2npu.migration import check_text
from tl2npu.options import Options
from tl2npu.results import Diagnostic
from tl2npu.verified import Comparison
from tl2npu.verify.loading import Source
from tl2npu.verify.naming import Place, texts

_KERNEL = ("", "_kernel", "_factory")  # what is behind the name of an eager kernel where a factory takes its place


@dataclass(frozen=True)
class Limits:
    """``broken`` are the findings that fail kernels, each on the line of the old kernel and under its name;
    ``notes`` what was found and does not count, with the reason."""

    broken: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


def limits_of(
    old: Source, new: Source, options: Options, places: Mapping[str, Place], comparisons: Sequence[Comparison]
) -> Limits:
    """Check the new file and tell each error by the old kernel that it belongs to; None in ``kernel`` if to none.

    Does not count: what the author has silenced, what the same text had before, and limits of Expert mode too that the
    old kernel breaks in the same words.
    """
    calls = tuple(_without_lost(call, old.text, new.text) for call in options.calls)
    found = check_text(new.text, new.path, replace(options, calls=calls))
    errors = [item for item in found.diagnostics if item.severity == "error"]
    silenced = [item for item in _unsilenced(new, options) if item not in errors] if "tl2npu:" in new.text else []
    if not errors and not silenced:
        return Limits()
    now = texts(new.text)
    same = {name for name, text in texts(old.text).items() if now.get(name) == text}
    before = [item for item in check_text(old.text, old.path, options).diagnostics if item.severity == "error"]
    known = {(item.kernel, item.code, item.message) for item in before}
    broken: list[Diagnostic] = []
    notes: list[str] = []
    for item in errors:
        text = f"{new.shown} {_told(item, new)}"
        owner = owner_of(item.kernel or "", places, comparisons)
        if item.kernel in same and (item.kernel, item.code, item.message) in known:
            notes.append(f"{item.kernel}: {text} (unchanged from the old kernel)")
        elif item.code in AUTHORS_OWN and (item.kernel, item.code, item.message) in known:
            notes.append(f"{item.kernel}: {text} (as in the old kernel)")
        else:
            line = places[owner].line if owner is not None else 1
            broken.append(replace(item, line=line, column=1, end_line=None, message=text, kernel=owner))
    notes += [f"{item.kernel}: {item.code} is silenced: {new.shown} {_told(item, new)}" for item in silenced]
    return Limits(tuple(broken), tuple(notes))


def _without_lost(call: str, old: str, new: str) -> str:
    """A call of a factory of the old text as the new text takes it: without parameters that the factory has lost."""
    made = ast.parse(call, mode="eval").body
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return call
    before, after = (_parameters(text, made.func.id) for text in (old, new))
    if before is None or after is None or before == after or len(made.args) > len(before):
        return call
    given = dict(zip(before, made.args, strict=False)) | {word.arg: word.value for word in made.keywords if word.arg}
    return f"{made.func.id}({', '.join(f'{n}={ast.unparse(v)}' for n, v in given.items() if n in after)})"


def _parameters(text: str, name: str) -> list[str] | None:
    """Of the function of this name; None for none, or for one that takes any."""
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name)
    args = next((node.args for node in found), None)
    if args is None or args.vararg or args.kwarg:
        return None
    return [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def reasons(comparison: Comparison, new: Source, options: Options) -> str:
    """The limits that the new kernels of a comparison break, silenced ones too: a silenced one may be the reason."""
    found = [item for item in _unsilenced(new, options) if item.kernel in comparison.by]
    return "; ".join(f"{item.code} {_told(item, new)}" for item in found)


def _unsilenced(new: Source, options: Options) -> list[Diagnostic]:
    text = new.text.replace("tl2npu: ignore", "tl2npu: silenced")
    return [item for item in check_text(text, new.path, options).diagnostics if item.severity == "error"]


def _told(item: Diagnostic, new: Source) -> str:
    text = f"line {item.line}: {item.message}"
    return text if new.book is None else Places(new.book, new.path).told(text, None)


def owner_of(name: str, places: Mapping[str, Place], comparisons: Sequence[Comparison]) -> str | None:
    """The old kernel in whose place a new one stands: as it was compared, or by its name and that of its factory."""
    if name in places:
        return name
    compared = [comparison.kernel for comparison in comparisons if name in comparison.by]
    factory = name.split(".")[0]
    alike = [place for place in places for end in _KERNEL if f"{place.split('.')[0].rstrip('_')}{end}" == factory]
    return next(iter([*compared, *alike]), None)
