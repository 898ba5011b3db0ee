"""Each flag that is taken out of a working kernel is missed by ``check``, without running it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tl2npu.migration import check_text
from tl2npu.options import Options

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FLAG = re.compile(r"\s*\w+\.(set_flag|wait_flag|set_cross_flag|wait_cross_flag)\(.*\)")
KERNELS = [
    "expert/macro_signals",
    "expert/output_handover",
    "expert/vec_row_peak_flags",
    "mma/first_turn_counter",
    "mma/named_slots",
    "mma/resident_tiles",
    "mma/three_slabs",
    "mma/transposed_right",
]
_MOST = 6


def _errors(text: str) -> set[tuple[str, str]]:
    found = check_text(text, "kernel.py", Options()).diagnostics
    return {(item.code, item.message) for item in found if item.severity != "info"}


@pytest.mark.thorough
@pytest.mark.parametrize("group", ["cube", "expert", "mma", "refused", "vid", "workspace"])
def test_kernels_of_the_fixtures_are_in_order(group: str) -> None:
    """Every one of these runs on the simulator without a hazard."""
    for path in sorted((FIXTURES / group).glob("*/before.py")):
        found = [code for code, _ in _errors(path.read_text()) if "TL780" <= code <= "TL789"]
        assert found == [], path.parent.name


@pytest.mark.thorough
@pytest.mark.parametrize("name", KERNELS)
def test_dropped_flags(name: str) -> None:
    text = (FIXTURES / name / "before.py").read_text()
    lines, before = text.split("\n"), _errors(text)
    flags = [n for n, line in enumerate(lines) if FLAG.fullmatch(line)]
    assert flags
    for n in flags[:: -(-len(flags) // _MOST)]:
        indent = lines[n][: len(lines[n]) - len(lines[n].lstrip())]
        changed = "\n".join([*lines[:n], f"{indent}pass", *lines[n + 1 :]])
        assert _errors(changed) - before, f"line {n + 1}: {lines[n].strip()}"


ADVICE = re.compile(r"write `(T\.wait_flag\(.*?\))` before (this|the loop on line (\d+)): line \d+ sets that flag")


@pytest.mark.thorough
@pytest.mark.parametrize("name", KERNELS)
def test_the_wait_that_the_help_names_ends_the_finding(name: str) -> None:
    """Written where it says: with the event of the flag that is set, and as often."""
    lines = (FIXTURES / name / "before.py").read_text().split("\n")
    before = {code for code, _ in _errors("\n".join(lines))}
    for n in [n for n, line in enumerate(lines) if FLAG.fullmatch(line) and ".wait_flag(" in line]:
        short = [*lines[:n], *lines[n + 1 :]]
        found = check_text("\n".join(short), "kernel.py", Options()).diagnostics
        for item in found:
            advice = ADVICE.match(item.help) if item.code in ("TL780", "TL781") else None
            if advice is None:
                continue
            at = int(advice[3] or item.line) - 1
            indent = short[at][: len(short[at]) - len(short[at].lstrip())]
            call = lines[n].strip().partition(".")[0] + advice[1].removeprefix("T")
            mended = "\n".join([*short[:at], f"{indent}{call}", *short[at:]])
            left = {code for code, _ in _errors(mended)} - before  # a second slot is counted by another finding
            assert left <= {other.code for other in found} - {item.code}, f"line {n + 1}: {advice[0]}"


PAIR = re.compile(
    r"write `(?P<set>T\.set_flag\(.*?\))` behind (?P<behind>.*?line (\d+)) and `(?P<wait>T\.wait_flag\(.*?\))` before "
    r"(this|(?P<before>the .*? on line (\d+)))(; set it once more before the loop on line (?P<loop>\d+))?"
)


def _with(lines: list[str], line: int, help: str) -> list[str] | None:
    """What the help of a finding on this line says, written down; None where it says something else."""
    advice = PAIR.match(
        re.sub(r"(and `T.wait\S+ \S+ \S+`) between (.*) and (this|the loop)", r"behind \2 \1 before \3", help)
    )
    if advice is None:
        return None
    new: dict[int, list[str]] = {}

    ends = {n.lineno: n.end_lineno or 0 for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.stmt)}

    def add(call: str, at: int, behind: bool) -> None:
        indent = len(lines[at]) - len(lines[at].lstrip())
        new.setdefault(ends[at + 1] if behind else at, []).append(f"{' ' * indent}{call}")

    at = {name: int(re.findall(r"\d+", advice[name] or f"{line}")[-1]) - 1 for name in ("behind", "before")}
    add(advice["set"], at["behind"], True)
    add(advice["wait"], at["before"], False)
    if advice["loop"]:
        add(advice["set"], int(advice["loop"]) - 1, False)
        add(advice["wait"], int(advice["loop"]) - 1, True)
    return [row for n, old in enumerate([*lines, ""]) for row in (*new.get(n, ()), old)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*KERNELS, "mma/bias_epilogue"])
def test_the_flags_that_the_help_names_order_the_accesses(name: str) -> None:
    """All flags between two pipes are taken out; what the help says is written down until nothing is left to say."""
    lines = (FIXTURES / name / "before.py").read_text().replace("TL.", "T.").split("\n")
    text = "\n".join(lines)
    before, tried = _errors(text), 0
    for pipes in sorted(set(re.findall(r"T\.set_flag\((\S+, \S+),", text))):
        flag = re.compile(rf"T\.(set|wait)_flag\({re.escape(pipes)},.*\)")
        mended = [flag.sub("pass", row) for row in lines]
        seen: list[str] = []
        for _ in range(8):
            found = check_text("\n".join(mended), "kernel.py", Options()).diagnostics
            codes = [item for item in found if (item.code, item.message) not in before and item.severity != "info"]
            if not codes:
                break
            item = next((one for one in codes if one.code in ("TL780", "TL781")), None)
            assert item is not None, [*seen, *((one.code, one.line, one.message) for one in codes)]
            changed = _with(mended, item.line, item.help)
            if changed is None:  # a wait for a flag that is set
                break
            seen.append(f"{item.line}: {item.help}")
            mended, tried = changed, tried + 1
        else:
            raise AssertionError(seen)
    assert tried or name.startswith("expert")


SLOTS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scaled(rows):
    @T.prim_func
    def main(X: T.Tensor((rows * 64, 128), "float32"), Y: T.Tensor((rows * 64, 128), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            x = T.alloc_ub((2, 32, 128), "float32")
            with T.Scope("V"):
                T.set_flag("mte3", "mte2", 0)
                T.set_flag("mte3", "mte2", 1)
                T.wait_flag("mte3", "mte2", 0)
                T.copy(X[vid * 32, 0], x[0, :, :])
                T.set_flag("mte2", "v", 0)
                for i in T.serial(rows):
                    if i < rows - 1:
                        T.wait_flag("mte3", "mte2", (i + 1) % 2)
                        T.copy(X[(i + 1) * 64 + vid * 32, 0], x[(i + 1) % 2, :, :])  # loads
                        T.set_flag("mte2", "v", (i + 1) % 2)
                    T.wait_flag("mte2", "v", i % 2)  # loaded
                    T.tile.add(x[i % 2, :, :], x[i % 2, :, :], 1.0)  # adds
                    T.set_flag("v", "mte3", i % 2)
                    T.wait_flag("v", "mte3", i % 2)
                    T.copy(x[i % 2, :, :], Y[i * 64 + vid * 32, 0])
                    T.set_flag("mte3", "mte2", i % 2)
                T.wait_flag("mte3", "mte2", 0)
                T.wait_flag("mte3", "mte2", 1)

    return main


kernel = scaled(8)
"""


def _first(text: str) -> tuple[str, str]:
    found = check_text(text, "kernel.py", Options()).diagnostics
    return next(((item.code, item.help) for item in found if item.code in ("TL780", "TL781")), ("", ""))


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_missing_wait_for_one_of_several_slots_names_the_slot() -> None:
    assert _first(SLOTS) == ("", "")
    wait = '                    T.wait_flag("mte2", "v", i % 2)  # loaded\n'
    text = SLOTS.replace(wait, "")
    code, help = _first(text)
    lines = " and ".join(str(_line(text, f'T.set_flag("mte2", "v", {event}')) for event in ("0", "(i + 1)"))
    wanted = f'write `T.wait_flag("mte2", "v", i % 2)` before this: lines {lines} set that flag, and a wait is missing'
    assert (code, help) == ("TL780", wanted)


def test_another_slot_than_the_one_that_is_waited_for() -> None:
    text = SLOTS.replace(
        "T.tile.add(x[i % 2, :, :], x[i % 2, :, :], 1.0)", "T.tile.add(x[i % 2, :, :], x[(i + 1) % 2, :, :], 1.0)"
    )
    line = _line(text, "# loaded")
    assert _first(text) == (
        "TL780",
        f"line {line} waits for slot `i % 2`: read that one, `x[i % 2, ...]`, or wait for this one",
    )


def test_a_write_under_a_condition_is_waited_for_behind_it() -> None:
    """As often as it is waited for, whether the condition holds or not."""
    set_, wait = (
        '                        T.set_flag("mte2", "v", (i + 1) % 2)\n',
        'T.wait_flag("mte2", "v", i % 2)  # loaded',
    )
    first = 'T.set_flag("mte2", "v", 0)'
    both = f'{first}\n                T.wait_flag("mte2", "v", 0)'
    text = SLOTS.replace(set_, "").replace(wait, "pass").replace(first, both)
    code, help = _first(text)
    assert code == "TL780"
    assert f"behind the `if` on line {_line(text, 'if i < rows')} and" in help
