"""``tl2npu check --compare``: what differs between devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.checks.support import PLAIN, source
from tl2npu.cli import cli

BOTH = "T.copy(A[0, 0], x)\nT.copy(A[0, 0], y)\nT.tile.add(x, x, y)\nT.copy(x, O[0, 0])\n"


def kernel(rows: int, dtype: str = "float32") -> str:
    """Two tiles of ``rows`` times 256 bytes, if of float32, that are live together."""
    tiles = "".join(f'{name} = T.alloc_ub(({rows}, 64), "{dtype}")\n' for name in "xy")
    params = f'A: T.Tensor((256, 64), "{dtype}"), O: T.Tensor((256, 64), "{dtype}")'
    return source(tiles + BOTH, launch=PLAIN, params=params, keys=("AUTO_SYNC",))


def compared(folder: Path, text: str, *options: str) -> tuple[int, str]:
    (folder / "k.py").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli, ["check", "--no-cache", "-j", "1", *options, str(folder / "k.py")])
    return done.exit_code, done.output.replace(f"{folder}/", "")


def test_a_kernel_that_fits_one_device(tmp_path: Path) -> None:
    code, text = compared(tmp_path, kernel(400), "--compare", "A2,A3,A5")
    assert code == 1
    assert text.splitlines() == [
        "k.py:6 factory.main: errors on A2, A3, none on A5",
        "  A2, A3  line 7: error TL801 memory-capacity: UB holds 196608 bytes, the kernel needs 204800 (`x`: 102400)",
        "1 of 1 kernel differs between A2, A3, A5",
    ]


@pytest.mark.parametrize("rows", [300, 380])  # at most 194,560 bytes
def test_a_kernel_that_fits_all(tmp_path: Path, rows: int) -> None:
    assert compared(tmp_path, kernel(rows), "--compare", "A2,A5") == (
        0,
        "0 of 1 kernel differ between A2, A5\n",
    )


def test_errors_on_all_that_are_not_the_same(tmp_path: Path) -> None:
    code, text = compared(tmp_path, kernel(600), "--compare", "A5,A2")
    assert (code, text.splitlines()[0]) == (1, "k.py:6 factory.main: errors on all, but not the same")
    assert [line.split()[0] for line in text.splitlines()[1:-1]] == ["A5", "A2"]
    assert "262144" in text
    assert "196608" in text


def test_an_instruction_of_one_device(tmp_path: Path) -> None:
    code, text = compared(tmp_path, kernel(64, "int8"), "--compare", "A3,A5")
    assert (code, text.splitlines()[1][:10], "error TL710" in text) == (1, "  A3  line", True)


def test_the_same_devices_do_not_differ(tmp_path: Path) -> None:
    assert compared(tmp_path, kernel(64, "int8"), "--compare", "A2,A3")[0] == 0


def test_as_json(tmp_path: Path) -> None:
    code, text = compared(tmp_path, kernel(400), "--compare", "A2, A5", "--format", "json")
    found = json.loads(text)
    assert (code, found["task"], found["devices"]) == (1, "compare", ["A2", "A5"])
    (one,) = found["kernels"]
    assert (one["kernel"], one["line"], one["errors"]) == ("factory.main", 6, {"A2": 1, "A5": 0})
    assert [(item["code"], item["devices"]) for item in one["findings"]] == [("TL801", ["A2"])]
    assert found["summary"] == {"kernels": 1, "differ": 1}


def test_a_file_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "devices.json"
    compared(tmp_path, kernel(400), "--compare", "A2,A5", "--report", str(place))
    assert json.loads(place.read_text(encoding="utf-8"))["summary"]["differ"] == 1


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    code, text = compared(tmp_path, "import tilelang.language as T\n\n@T.prim_func\ndef f(:\n", "--compare", "A2,A5")
    assert (code, "k.py: error: " in text) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--compare", "A2"), "two devices or more"),
        (("--compare", "A2,A2"), "two devices or more"),
        (("--compare", "A2,B1"), "no device 'B1'"),
        (("--compare", "A2,A5", "--format", "html"), "text or JSON"),
        (("--compare", "A2,A5", "--report", "x.html"), "writes text or .json, not html"),
    ],
)
def test_what_cannot_be_compared(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    code, text = compared(tmp_path, kernel(64), *options)
    assert (code, said in text) == (2, True)
