from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tl2npu import checking, migration
from tl2npu.files import collect
from tl2npu.options import Options
from tl2npu.project import Batch, Outcome, batch, one, run, run_text, workers
from tl2npu.project.held import Held
from tl2npu.results import Diagnostic, FileResult
from tl2npu.sinks import Nowhere, Sink, ToFiles, ToPatch, ToPlace, deliver, exit_code

KERNEL = b"import tilelang\nprim_func\n"


def finish(outcomes: Iterable[Outcome], sink: Sink) -> list[FileResult]:
    """What becomes of the files that are sent to a sink."""
    return [item for item in deliver(outcomes, sink) if isinstance(item, FileResult)]


def fake(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
    """Stands in for the migration: the file says what happens to it."""
    if "crash" in text:
        raise ValueError("two\nlines")
    if "die" in text:
        os._exit(1)
    if "segfault" in text:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    if "killed" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "memory" in text:
        raise MemoryError
    if "deep" in text:
        return fake(text, path, options)
    if "pid" in text:
        return FileResult(path, text, str(os.getpid()))
    if "hang" in text:
        time.sleep(60)
    if "slow" in text:
        time.sleep(1)
    diagnostics = tuple(Diagnostic(code, "n", "error", 1, path) for code in ("TL201", "TL801"))
    return FileResult(path, text, text.replace("old", "new"), diagnostics=diagnostics)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(migration, "migrate_text", fake)
    monkeypatch.setattr(checking, "check_text", lambda text, path, options: FileResult(path, text, "checked"))
    monkeypatch.chdir(tmp_path)


def files(**contents: bytes) -> None:
    for name, data in contents.items():
        Path(f"{name}.py").write_bytes(data)


def outcomes(jobs: int = 1, options: Options | None = None, timeout: float | None = None) -> list[Outcome]:
    return list(run(collect([Path()]), "migrate", options or Options(), Batch(jobs, timeout)))


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_input_order_and_apart(jobs: int) -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"crash", c=KERNEL + b"#" * 9999 + b"old", d=b"x = 1\n", e=KERNEL + b"\xff")
    results = [outcome.result for outcome in outcomes(jobs)]
    assert [result.path for result in results] == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert [result.changed for result in results] == [True, False, True, False, False]
    assert results[1].error == "internal error: ValueError: two lines"
    assert results[4].error == "line 3: cannot decode as utf-8"
    assert (results[3].kernels, results[3].error) == ((), None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("die", "internal error: the process that worked on the file ended (exit code 1)"),
        ("segfault", "internal error: the process that worked on the file died (SIGSEGV)"),
        ("killed", "internal error: the process that worked on the file died (SIGKILL, out of memory?)"),
        ("deep", "nested too deeply: hundreds of nested `elif` or operators"),
        ("memory", "internal error: MemoryError: "),
        ("hang", "took longer than 0.3 seconds (--timeout)"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_brings_its_process_down_costs_only_itself(how: str, message: str, jobs: int) -> None:
    files(**{f"f{n}": KERNEL + (how.encode() if n % 3 == 1 else b"old") for n in range(9)})
    results = [outcome.result for outcome in outcomes(jobs, timeout=0.3 if how == "hang" else None)]
    assert [result.path for result in results] == [f"f{n}.py" for n in range(9)]
    assert [result.changed for result in results] == [n % 3 != 1 for n in range(9)]
    assert [result.error for result in results if result.error is not None] == [message] * 3


def test_a_file_that_waits_for_its_turn_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds on the clock that other processes have are not its own."""
    monkeypatch.setattr(workers, "cpu_seconds", lambda pid: time.monotonic() / 8)
    files(a=KERNEL + b"slow")
    (outcome,) = outcomes(timeout=0.3)
    assert outcome.result.error is None
    monkeypatch.setattr(workers, "cpu_seconds", lambda pid: time.monotonic())
    assert outcomes(timeout=0.3)[0].result.error == "took longer than 0.3 seconds (--timeout)"


def test_outcomes_come_while_others_are_still_in_work() -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"hang")
    begun = time.monotonic()
    with closing(run(collect([Path()]), "migrate", Options(), Batch(jobs=2))) as stream:
        assert next(stream).result.changed
    assert time.monotonic() - begun < 30
    assert not multiprocessing.active_children()


def test_processes_are_replaced_after_some_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they remember from file to file would grow without bound."""
    monkeypatch.setattr(workers, "_CALLS", 3)
    files(**{f"f{n}": KERNEL + b"pid" for n in range(10)})
    ids = [outcome.result.new_text for outcome in outcomes(1)]
    assert sorted(Counter(ids).values()) == [1, 3, 3, 3]
    assert not multiprocessing.active_children()


def test_the_largest_files_come_first_whatever_the_order_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[int] = []
    real = workers.Workers.answers

    def answers(self: workers.Workers, tasks: Iterable[tuple[int, Any]]) -> Any:
        tasks = list(tasks)
        order.extend(number for number, _ in tasks)
        return real(self, tasks)

    monkeypatch.setattr(workers.Workers, "answers", answers)
    files(a=KERNEL, b=KERNEL + b"#" * 999, c=b"x = 1\n", d=KERNEL + b"#" * 99)
    assert [outcome.result.path for outcome in outcomes(2)] == ["a.py", "b.py", "c.py", "d.py"]
    assert order == [1, 3, 0]


def test_held_results_go_to_a_file_when_they_get_too_many() -> None:
    held = Held(in_memory=10)
    for number in range(9):
        held.put(number, bytes([number]) * 4)
    assert [held.take(number) for number in (8, 0, 3, 0, 99)] == [b"\x08" * 4, b"\0" * 4, b"\3" * 4, None, None]
    held.put(20, b"late" * 2)
    assert [held.take(number) for number in (20, 1)] == [b"late" * 2, b"\1" * 4]
    held.close()


def test_debug_lets_exceptions_through() -> None:
    files(a=KERNEL + b"crash")
    with pytest.raises(ValueError, match="two"):
        list(run(collect([Path()]), "migrate", Options(), debug=True))


def test_missing_and_big_files_are_errors() -> None:
    files(big=KERNEL)
    found = collect([Path("no.py"), Path("big.py")])
    first, second = (o.result for o in run(found, "migrate", Options(max_file_size=3)))
    assert first.error == "no such file"
    assert "too big" in str(second.error)


def test_files_without_kernels_are_not_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one, "process", lambda *a: pytest.fail("worked on"))
    files(a=b"not python (\n", b=b"# @generated\n" + KERNEL)
    first, second = outcomes()
    assert first.result == FileResult("a.py", "not python (\n", "not python (\n")
    assert second.skipped is not None
    assert second.skipped.reason == "@generated"


def test_several_processes_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    real = batch.Workers
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(batch, "Workers", lambda count, *rest: used.append(count) or real(count, *rest))
    files(**{f"f{n}": KERNEL for n in range(7)})
    outcomes(jobs=0)
    outcomes(jobs=99)
    files(f7=KERNEL)
    outcomes(jobs=0)
    assert used == [1, 7, 3]


def test_select_and_ignore() -> None:
    files(a=KERNEL)

    def codes(**settings: tuple[str, ...]) -> list[str]:
        (outcome,) = outcomes(options=Options(**settings))  # type: ignore[arg-type]
        return [item.code for item in outcome.result.diagnostics]

    assert codes() == ["TL201", "TL801"]
    assert codes(select=("TL8",)) == ["TL801"]
    assert codes(ignore=("TL801",)) == ["TL201"]
    assert codes(select=("TL2", "TL8"), ignore=("TL2",)) == ["TL801"]


def test_check_calls_the_check() -> None:
    assert run_text(KERNEL, "<stdin>", "check", Options()).result.new_text == "checked"


def test_encodings_survive_in_place() -> None:
    old = b"# coding: latin-1\r\n" + KERNEL + b"'\xe4' old\r\n"
    files(a=old)
    finished = finish(outcomes(), ToFiles(allow_dirty=False))
    assert finished[0].error is None
    assert Path("a.py").read_bytes() == old.replace(b"old", b"new")
    assert Path("a.py.orig").read_bytes() == old


def test_a_file_that_cannot_be_written_is_an_error_and_the_others_go_on() -> None:
    files(a=KERNEL + b"old", b=KERNEL + b"old")
    Path("a.py").chmod(0o444)
    finished = finish(outcomes(), ToFiles(allow_dirty=False))
    assert [file.error for file in finished] == ["file is read-only", None]
    assert Path("b.py").read_bytes().endswith(b"new")
    assert [exit_code(file, "migrate", False) for file in finished] == [2, 0]


def test_patches_apply_whatever_the_working_directory_is() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    Path("sub dir").mkdir()
    contents = {Path("a.py"): b"# coding: latin-1\n" + KERNEL + b"'\xe4' old", Path("sub dir/b.py"): KERNEL + b"old"}
    root = Path.cwd()
    for start, place in ((Path(), Path()), (Path("sub dir"), Path(".."))):
        for name, data in contents.items():
            Path(name).write_bytes(data)
        os.chdir(start)
        with (root / "p.patch").open("wb") as stream:
            finish(run(collect([place]), "migrate", Options()), ToPatch(stream))
        os.chdir(root)
        subprocess.run(["git", "apply", "p.patch"], check=True)
        assert {name: name.read_bytes() for name in contents} == {
            name: data.replace(b"old", b"new") for name, data in contents.items()
        }


def test_output_directory_keeps_the_tree() -> None:
    Path("in/sub").mkdir(parents=True)
    for name, data in (("in/a.py", KERNEL + b"old"), ("in/sub/b.py", b"plain")):
        Path(name).write_bytes(data)
    finished = finish(run(collect([Path("in")]), "migrate", Options()), ToPlace(Path("out"), as_directory=True))
    assert [file.error for file in finished] == [None, None]
    assert Path("out/a.py").read_bytes() == KERNEL + b"new"
    assert Path("out/sub/b.py").read_bytes() == b"plain"
    assert Path("in/a.py").read_bytes() == KERNEL + b"old"


def test_outputs_never_meet_and_never_hit_an_input() -> None:
    for place in ("x", "y"):
        Path(place).mkdir()
        Path(place, "a.py").write_bytes(KERNEL)
    finished = finish(run(collect([Path("x"), Path("y")]), "migrate", Options()), ToPlace(Path("out"), True))
    assert [file.error for file in finished] == [None, "x/a.py is written to out/a.py already"]
    finished = finish(run(collect([Path("x/a.py")]), "migrate", Options()), ToPlace(Path("x/a.py"), False))
    assert "output is the input" in str(finished[0].error)


def test_new_text_that_the_encoding_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        migration, "migrate_text", lambda text, path, options, leave, together: FileResult(path, text, text + "\u2028")
    )
    files(a=b"# coding: latin-1\n" + KERNEL)
    assert "iso-8859-1" in str(finish(outcomes(), Nowhere())[0].error)
