"""What became of the kernels between two reports, and the badge."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.in_process import tl2npu
from tests.report.support import RUN
from tl2npu.report.build import build
from tl2npu.report.json import render
from tl2npu.report.model import Report
from tl2npu.report.progress import badge, compared
from tl2npu.results import Disposition, FileResult, KernelResult


def kernel(name: str, disposition: Disposition, errors: tuple[str, ...] = ()) -> KernelResult:
    done = disposition == "migrated"
    source, target = ("developer" if disposition == "unchanged" else "gpu"), ("developer" if done else "none")
    return KernelResult(name, 1, source, target, disposition, "", errors=errors)


def report(*kernels: KernelResult) -> Report:
    return build(RUN, [FileResult("k.py", "a\n", "b\n", None, kernels)])


def test_the_outcomes_of_two_runs() -> None:
    old = report(kernel("a", "refused"), kernel("b", "migrated"), kernel("c", "migrated"), kernel("c", "refused"))
    new = report(kernel("a", "migrated"), kernel("b", "unchanged"), kernel("c", "migrated"), kernel("d", "refused"))
    text, worse = compared(old, new)
    assert not worse
    assert text.splitlines() == [
        "outcome                 before     now",
        "migrated                     2       2",
        "refused                      2       1",
        "unchanged                    0       1",
        "ready for an NPU             2       3",
        "k.py a: refused -> migrated",
        "k.py b: migrated -> unchanged",
        "k.py c: refused -> no such kernel",
        "k.py d: no such kernel -> refused",
    ]


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        (kernel("a", "migrated"), kernel("a", "refused"), True),
        (kernel("a", "unchanged"), kernel("a", "unchanged", ("TL700",)), True),
        (kernel("a", "migrated", ("TL801",)), kernel("a", "refused"), False),
        (kernel("a", "refused"), kernel("a", "refused"), False),
        (kernel("a", "migrated"), kernel("b", "refused"), False),
    ],
)
def test_what_is_worse(old: KernelResult, new: KernelResult, worse: bool, tmp_path: Path) -> None:
    for name, item in (("old", old), ("new", new)):
        (tmp_path / f"{name}.json").write_text(render(report(item)), encoding="utf-8")
    done = tl2npu("report", "compare", "old.json", "new.json", cwd=tmp_path)
    assert done.returncode == int(worse)
    assert done.stdout == compared(report(old), report(new))[0]


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ((kernel("a", "migrated"), kernel("b", "refused")), "1 of 2"),
        ((kernel("a", "unchanged"),), "1 of 1"),
        ((kernel("a", "migrated", ("TL801",)),), "0 of 1"),
        ((), "0 of 0"),
    ],
)
def test_the_badge(kernels: tuple[KernelResult, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(render(report(*kernels)), encoding="utf-8")
    assert tl2npu("report", "badge", "r.json", "-o", "b.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "b.json").read_text())["message"] == said
    picture = ElementTree.fromstring(badge(report(*kernels), svg=True))
    assert [text.text for text in picture.iter() if text.text] == [f"Ascend kernels: {said}", "Ascend kernels", said]
