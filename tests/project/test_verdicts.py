"""What ``migrate --verify`` took back stays as it is in later runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.verify.support import HEAD, SCALE
from tl2npu.files import collect
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.project import Batch, Outcome, run
from tl2npu.project.cache import Cache
from tl2npu.project.one import Task
from tl2npu.project.verdicts import Leave, is_known, learn, recalled
from tl2npu.results import Diagnostic, FileResult, Verified

OTHER = SCALE.replace("def scale(", "def other(")
TEXT = HEAD + SCALE + OTHER
LINE = 1 + TEXT[: TEXT.index("    def main(")].count("\n")
WHY = {LINE: [Diagnostic("TL907", "changed-result", "error", 1, "Y[0] is 1 and 2", kernel="scale.main")]}


class InMemory(dict[str, FileResult]):
    """A shelf."""

    def get(self, key: str, text: str) -> FileResult | None:  # type: ignore[override]
        return dict.get(self, key)

    def put(self, key: str, result: FileResult) -> None:
        self[key] = result


def migrated(text: str, shelf: InMemory) -> FileResult:
    def migrate(leave: Leave) -> FileResult:
        return migrate_text(text, "kernel.py", Options(), leave)

    return recalled(shelf, migrate)[0]


SEEN = {
    "the same text": (TEXT, True),
    "a comment": (TEXT.replace("T.copy(X", "# load\n            T.copy(X", 1), True),
    "other lines in front": ("import os\n\n\n" + TEXT, True),
    "another kernel beside it": (HEAD + SCALE, True),
    "another operator": (TEXT.replace("T.tile.mul", "T.tile.add", 1), False),
    "another default": (TEXT.replace("factor=0.5", "factor=0.25", 1), False),
}


@pytest.mark.parametrize(("text", "known"), SEEN.values(), ids=SEEN)
def test_a_verdict_is_about_the_text_of_a_kernel(text: str, known: bool) -> None:
    shelf = InMemory()
    learn(shelf, migrate_text(TEXT, "kernel.py", Options()), WHY)
    result = migrated(text, shelf)
    first = result.kernels[0]
    assert (first.disposition == "refused") is known
    assert all(kernel.disposition == "migrated" for kernel in result.kernels[1:])
    if known:
        (found,) = [d for d in result.diagnostics if d.code == "TL907"]
        assert found.message == "an earlier `migrate --verify` took this kernel back: Y[0] is 1 and 2"
        assert (found.line, found.kernel) == (first.line, "scale.main")
        assert "`migrate --verify` again" in found.help
        assert text.split("def other")[0] == (result.new_text or "").split("def other")[0]


def test_another_new_text_was_not_judged() -> None:
    """As of another version of the tool, or with other options."""
    shelf = InMemory()
    result = migrate_text(TEXT, "kernel.py", Options())
    learn(shelf, replace(result, new_text=(result.new_text or "").replace("threads=2", "threads=1")), WHY)
    assert migrated(TEXT, shelf).kernels[0].disposition == "migrated"


def test_a_kernel_that_is_verified_later() -> None:
    shelf = InMemory()
    result = migrate_text(TEXT, "kernel.py", Options())
    learn(shelf, result, WHY)
    assert is_known(shelf, result)
    verified = replace(result.kernels[0], verified=Verified("sim", 1, 0.0))
    learn(shelf, replace(result, kernels=(verified, *result.kernels[1:])), {})
    assert not is_known(shelf, result)
    assert migrated(TEXT, shelf).kernels[0].disposition == "migrated"


SCRIPT = """

if __name__ == "__main__":
    kernel = scale(64)
    kernel(np.zeros((64, 64), np.float32))
    raise SystemExit(3 if kernel.kernel.launches[0].threads == 2 else 0)
"""


def outcomes(task: Task, cache: bool = True, **options: bool) -> list[Outcome]:
    chosen = Options(**options)  # type: ignore[arg-type]
    kept = Cache.of(Path(".tl2npu_cache"), task, chosen) if cache else None
    return list(run(collect([Path()]), task, chosen, Batch(1, cache=kept)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["kernel.py", "kernel.ipynb"])
def test_from_one_run_to_the_next(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of a run before it, which are cached, do not count any more."""
    monkeypatch.chdir(tmp_path)
    text = HEAD + SCALE + SCRIPT
    if name.endswith(".ipynb"):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
        book = {"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
        text = json.dumps(book)
    Path(name).write_text(text)

    def changed(task: Task, cache: bool = True, **options: bool) -> bool:
        (outcome,) = outcomes(task, cache, **options)
        code = (outcome.result.new_text or "").replace("TODO(tl2npu)", "")
        return "threads=2" in code

    assert changed("migrate")
    assert changed("migrate", partial=True)
    assert not changed("verify")
    assert not changed("migrate")
    assert not changed("migrate", partial=True)
    assert changed("migrate", cache=False)
    assert changed("migrate") is False
