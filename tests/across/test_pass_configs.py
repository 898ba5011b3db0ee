"""``pass_configs`` of another module: read, and extended in the file that compiles, never in the other one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.across.support import repository, result_of
from tests.passes.support import vector_file
from tl2npu.cli import cli

SHARED = """
import tilelang
from tilelang import PassConfigKey as Key

BASE = {"tl.ascend_auto_sync": True}
WHOLE = {**BASE, "tl.ascend_memory_planning": True, "tl.ascend_auto_cv_combine": True}
WHOLE_BY_NAME = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    Key.TL_ASCEND_MEMORY_PLANNING.value: True,
    Key.TL_ASCEND_AUTO_CV_COMBINE: True,
}
PART = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
PART_BY_NAME = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, Key.TL_ASCEND_MEMORY_PLANNING: True}
JOINED = PART_BY_NAME | BASE
OFF = {**PART, "tl.ascend_auto_cv_combine": False}
ALL_OFF = {"tl.ascend_auto_sync": False, "tl.ascend_auto_cv_combine": False}
UNREAD = {**PART, "tl.ascend_auto_cv_combine": choose()}


class Settings:
    PASSES = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}


def made():
    return dict(BASE)
"""
KERNEL = vector_file('a = T.alloc_ub((16, 64), "float32")\nT.copy(A[cid * 32 + vid * 16, 0], a)\nT.tile.exp(a, a)\n'
                     "T.copy(a, O[cid * 32 + vid * 16, 0])\n")  # fmt: skip
COMBINE = "tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True"


def file(root: Path, imports: str, value: str) -> Path:
    """A kernel that is compiled with ``pass_configs=value``."""
    start = KERNEL.index("pass_configs = {")
    text = KERNEL[:start] + KERNEL[KERNEL.index("@tilelang.jit") :]
    text = text.replace("pass_configs=pass_configs", f"pass_configs={value}")
    assert f"pass_configs={value}" in text
    text = text.replace("import tilelang.language as T\n", f"import tilelang.language as T\n{imports}\n")
    return repository(root, {"k.py": text, "shared.py": SHARED}) / "k.py"


@pytest.mark.parametrize(
    ("imports", "value", "expected"),
    [
        ("from shared import WHOLE", "WHOLE", "WHOLE"),
        ("from shared import WHOLE_BY_NAME as W", "W", "W"),
        ("import shared", "shared.WHOLE", "shared.WHOLE"),
        ("import shared", "{**shared.WHOLE}", "{**shared.WHOLE}"),
        ("from shared import *", "WHOLE", "WHOLE"),
        ("from shared import PART", "PART", '{**PART, "tl.ascend_auto_cv_combine": True}'),
        ("from shared import PART_BY_NAME", "PART_BY_NAME", f"{{\n    **PART_BY_NAME,\n    {COMBINE},\n}}"),
        ("import shared as s", "s.JOINED", '{**s.JOINED, "tl.ascend_auto_cv_combine": True}'),
        ("from shared import Settings", "Settings.PASSES", '{**Settings.PASSES, "tl.ascend_auto_cv_combine": True}'),
        ("import shared", "{**shared.PART}", f"{{**shared.PART, {COMBINE}}}"),
        (
            "from shared import ALL_OFF",
            "ALL_OFF",
            '{\n    **ALL_OFF,\n    "tl.ascend_auto_cv_combine": True,\n    "tl.ascend_auto_sync": True,\n'
            '    "tl.ascend_memory_planning": True,\n}',
        ),
        (
            "import shared",
            "shared.made()",
            f"{{\n    **shared.made(),\n    {COMBINE},\n    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,\n"
            "    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,\n}",
        ),
    ],
)
def test_what_is_missing_is_added_here(tmp_path: Path, imports: str, value: str, expected: str) -> None:
    path = file(tmp_path, imports, value)
    before = path.read_text()
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", str(tmp_path)])
    assert done.exit_code == 0, done.output
    new = path.read_text()
    assert "threads=2" in new
    assert f"pass_configs={expected})" in new
    assert imports in new
    head = new.split("def factory")[0]
    assert head == before.split("def factory")[0].replace(f"pass_configs={value})", f"pass_configs={expected})")
    assert (tmp_path / "shared.py").read_text() == SHARED.lstrip("\n")
    again = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", "--check", str(tmp_path)])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("imports", "value", "why"),
    [
        ("from shared import UNREAD", "UNREAD", "cannot read the value of TL_ASCEND_AUTO_CV_COMBINE"),
    ],
)
def test_what_was_decided_there_stands(tmp_path: Path, imports: str, value: str, why: str) -> None:
    path = file(tmp_path, imports, value)
    line = path.read_text()[: path.read_text().index("@tilelang.jit")].count("\n") + 1
    done = CliRunner().invoke(cli, ["migrate", "--no-cache", "-j", "1", "--check", str(path)])
    assert f"k.py:{line}:" in done.output
    assert "TL816" in done.output
    assert why in done.output


@pytest.mark.parametrize(("imports", "value"), [("from shared import OFF", "OFF"), ("import shared", "shared.OFF")])
def test_what_another_file_switches_off_is_switched_on_here(tmp_path: Path, imports: str, value: str) -> None:
    result = result_of(file(tmp_path, imports, value))
    assert f'pass_configs={{**{value}, "tl.ascend_auto_cv_combine": True}}' in (result.new_text or "")
    (note,) = [d for d in result.diagnostics if d.code == "TL925"]
    assert f"`TL_ASCEND_AUTO_CV_COMBINE` was False in `{value}`, which the file imports; wrote True" in note.message


@pytest.mark.parametrize(
    "change", ['WHOLE["tl.ascend_auto_sync"] = False', 'WHOLE.pop("tl.ascend_auto_sync")', "setup(WHOLE)"]
)
def test_what_may_change_is_spelled_out(tmp_path: Path, change: str) -> None:
    path = file(tmp_path, "from shared import WHOLE", "WHOLE")
    (tmp_path / "shared.py").write_text(SHARED + change + "\n")
    assert "    **WHOLE,\n" in (result_of(path).new_text or "")


def test_the_file_itself_changes_what_it_imports(tmp_path: Path) -> None:
    path = file(tmp_path, "from shared import PART", "PART")
    text = path.read_text()
    path.write_text(text.replace("@tilelang.jit", 'PART["tl.ascend_auto_cv_combine"] = True\n\n\n@tilelang.jit'))
    new = (result_of(path).new_text or "").split("@tilelang.jit")[1].split("def factory")[0]
    assert new.count("**PART") == 1
    assert "TL_ASCEND_AUTO_SYNC: True" in new
    assert "COMBINE" not in new
    path.write_text(text.replace("@tilelang.jit", 'PART["tl.ascend_auto_cv_combine"] = False\n\n\n@tilelang.jit'))
    result = result_of(path)
    assert "TL925" in [item.code for item in result.diagnostics]
    given = (result.new_text or "").split("@tilelang.jit")[1].split("def factory")[0]
    assert "TL_ASCEND_AUTO_CV_COMBINE: True" in given


def test_a_kernel_that_is_compiled_by_a_call(tmp_path: Path) -> None:
    path = file(tmp_path, "from shared import PART", "PART")
    text = path.read_text()
    start = text.index("@tilelang.jit")
    text = text[:start] + text[text.index("def factory") :]
    path.write_text(f"{text}\n\ndef build():\n    return tilelang.compile(factory(), out_idx=[1], pass_configs=PART)\n")
    new = result_of(path).new_text or ""
    assert 'pass_configs={\n        **PART,\n        "tl.ascend_auto_cv_combine": True,\n    })\n' in new
