"""A kernel that is the same in both files is not proved; it is what the other files of a change are measured by."""

from __future__ import annotations

import pytest

from tests.verify.support import HEAD, MAIN, SCALE, SCRIPT, by_calls, by_script
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.report import verify as report
from tl2npu.verify.naming import same_functions
from tl2npu.verify.settings import Call

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""
OTHER = SCALE.replace("def scale(", "def other(")
BOTH = Call("scale", {"rows": 64}), Call("other", {"rows": 64})


def test_a_kernel_beside_a_changed_one() -> None:
    result = by_calls(HEAD + SCALE + OTHER, MIGRATED.replace(MAIN, "") + OTHER, *BOTH)
    assert result.ok
    assert [(k.name, k.status) for k in result.kernels] == [("scale.main", "verified"), ("other.main", "unchanged")]
    last = report.text(result).splitlines()[-1]
    assert "1 of 1 migrated kernel agrees, 1 unchanged, 2 launches compared" in last


def test_a_file_against_itself() -> None:
    result = by_script(SCRIPT, SCRIPT)
    assert result.ok  # it ran without a finding
    assert [(k.status, k.verified) for k in result.kernels] == [("unchanged", None)]
    last = report.text(result).splitlines()[-1]
    assert last.startswith("unchanged: new.py against old.py on the simulator; 1 unchanged, 1 launch compared")


def test_what_an_unchanged_kernel_does_wrong_counts() -> None:
    new = HEAD + OTHER + SCALE.replace("factor)", "factor + 1.0)").replace("def scale", "def scale")
    result = by_calls(HEAD + OTHER + SCALE, new, *BOTH)
    assert not result.ok
    assert sorted((k.name, k.status) for k in result.kernels) == [("other.main", "unchanged"), ("scale.main", "failed")]


SAME = {
    "a comment": ("def f(x):\n    return x\n", "def f(x):  # the same\n    return x\n", True),
    "a constant": ("A = 1\n\ndef f(x):\n    return x + A\n", "A = 2\n\ndef f(x):\n    return x + A\n", False),
    "a constant of another one": (
        "A = 1\nB = 2\n\ndef f(x):\n    return x + A\n",
        "A = 1\n\ndef f(x):\n    return x + A\n",
        True,
    ),
    "a macro of a macro": (
        "def h(x):\n    return x\n\ndef g(x):\n    return h(x)\n\ndef f(x):\n    return g(x)\n",
        "def h(x):\n    return -x\n\ndef g(x):\n    return h(x)\n\ndef f(x):\n    return g(x)\n",
        False,
    ),
    "a constant in a branch": (
        "if x:\n    A = 1\nelse:\n    A = 2\n\ndef f(x):\n    return x + A\n",
        "if x:\n    A = 1\nelse:\n    A = 3\n\ndef f(x):\n    return x + A\n",
        False,
    ),
    "a name that is new": ("def f(x):\n    return x + A\n", "A = 2\n\ndef f(x):\n    return x + A\n", False),
    "a kernel in a branch": (
        "if x:\n    def f(x):\n        return x\n",
        "if x:\n    def f(x):\n        return (x)\n",
        True,
    ),
}


@pytest.mark.parametrize(("old", "new", "same"), SAME.values(), ids=SAME)
def test_what_a_function_refers_to_belongs_to_it(old: str, new: str, same: bool) -> None:
    assert ("f" in same_functions(old, new)) is same
