"""What ``tl2npu cost`` prints: a table of pipes for each kernel, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from tl2npu.costs import Estimate, Sides

_BAR = 30
_SHOWN = 5


def text(path: str, found: Sequence[Sides]) -> str:
    """For each kernel the fastest ways to call it, old and new."""
    if not found:
        return f"{path}: no kernel for an NPU, and none that was migrated\n"
    lines: list[str] = []
    for name in dict.fromkeys(_one(sides).kernel for sides in found):
        ways = sorted((sides for sides in found if _one(sides).kernel == name), key=_time)
        for sides in ways[:_SHOWN]:
            lines += [*_kernel(path, sides), ""]
        if len(ways) > _SHOWN:
            lines += [
                f"{name}: {len(ways) - _SHOWN} more ways to call it are slower, or do not fit (all: --format json)",
                "",
            ]
    return "\n".join(lines)


def as_json(found: Iterable[tuple[str, Sequence[Sides]]]) -> str:
    """One object: for each file its kernels, with everything that is known of them."""
    files = {
        path: [{"old": _fields(sides.old), "new": _fields(sides.new), "ratio": sides.ratio} for sides in several]
        for path, several in found
    }
    return json.dumps({"files": files}, indent=2) + "\n"


def _fields(estimate: Estimate | None) -> dict[str, object] | None:
    if estimate is None:
        return None
    derived = {"expected": estimate.expected, "bound": estimate.bound, "microseconds": estimate.microseconds}
    return {**asdict(estimate), "sizes": dict(estimate.sizes), **derived}


def _one(sides: Sides) -> Estimate:
    found = sides.new or sides.old
    assert found is not None
    return found


def _time(sides: Sides) -> tuple[bool, bool, float]:
    one = _one(sides)
    return not one.fits, one.microseconds is None, one.microseconds or one.expected


def _kernel(path: str, sides: Sides) -> list[str]:
    one = _one(sides)
    more = "" if one.is_sized else "; sizes that are not known count as one: give a call with --args, or --size"
    lines = [f"{path}:{one.line}: `{one.kernel}` on {one.device}{more}"]
    if one.sizes:
        lines.append("  " + ", ".join(f"{name}={value}" for name, value in one.sizes))
    pair = (sides.old, sides.new)
    same = len({(each.loads, each.expected) if each is not None else None for each in pair}) == 1
    for word, estimate in (("old and new", sides.new),) if same else (("old", sides.old), ("new", sides.new)):
        if estimate is not None:
            lines += _estimate(word, estimate)
    if sides.ratio is not None and not same:
        lines.append(f"  new / old: {sides.ratio:.2f}")
    return lines


def _estimate(word: str, one: Estimate) -> list[str]:
    most = max((load.cycles for load in one.loads), default=0.0)
    how = "pipes one after the other" if one.waits else "pipes at the same time"
    lines = [f"  {word}: {one.expected:,.0f} cycles a block ({how}), bound by {one.bound or 'nothing'}"]
    for load in one.loads:
        bar = "#" * max(1, round(_BAR * load.cycles / most))
        lines.append(f"    {load.pipe:<10}{load.cycles:>12,.0f}  {bar}")
    if one.waits and one.waiting:
        lines.append(f"    {'waiting':<10}{one.waiting:>12,.0f}  for the other core")
    other = one.overlapped if one.waits else one.serial
    lines.append(f"    {'at the same time' if one.waits else 'one after the other'}: {other:,.0f}")
    if one.microseconds is not None and one.blocks is not None:
        blocks = f"{one.blocks} block" + ("s" if one.blocks != 1 else "")
        lines.append(f"    {blocks} on {one.cores} cores: {one.microseconds:,.1f} us without the launch")
    full = [f"{name} {100 * need // size} %" for name, need, size in one.filled if need]
    full += [] if one.fits else ["does not fit"]
    vector = any(not load.of_cube for load in one.loads)
    full += ["two vector cores a block" if one.both_vector_cores else "one vector core a block"] if vector else []
    lines += [f"    {', '.join(full)}"] if full else []
    lines += [f"    assumed: {said}" for said in one.unknown]
    lines += [f"    {note.code} line {note.line}: {note.message}" for note in one.advice]
    return lines
