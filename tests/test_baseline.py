"""What a repository has already does not count: baselines, ignores by file, `--exit-zero`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.in_process import tl2npu

ROOT = Path(__file__).resolve().parent.parent
FAULTY = (ROOT / "docs" / "debugging" / "scale_rows.py").read_text(encoding="utf-8")
FACTORY = FAULTY[FAULTY.index("@tilelang.jit") : FAULTY.index("    return main") + len("    return main\n")]
MIGRATES = (ROOT / "fixtures" / "workspace" / "gemm_relu" / "before.py").read_text(encoding="utf-8")
REFUSED = (ROOT / "fixtures" / "refused" / "grid_barrier" / "before.py").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.py").write_text(FAULTY)
    return tmp_path


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    done = tl2npu(*words, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_only_what_is_new_counts(folder: Path) -> None:
    assert run(folder, "check", "src")[0] == 1
    code, shown, _ = run(folder, "check", "--write-baseline", "known.json", "src")
    assert (code, "TL700" in shown) == (0, True)
    code, shown, told = run(folder, "check", "--baseline", "known.json", "src")
    assert (code, shown) == (0, "0 errors, 0 warnings; 1 kernel in 1 file\n")
    assert told.startswith("tl2npu: 1 known finding left out (")
    assert "gone" not in told

    place = folder / "src" / "k.py"
    place.write_text("# moved\n\n" + FAULTY)
    assert run(folder, "check", "--baseline", "known.json", "src")[0] == 0
    (folder / "sub").mkdir()
    assert run(folder, "check", "--baseline", "known.json", str(place))[0] == 0  # the same file by another path
    place.write_text(FAULTY + "\n\n" + FACTORY)  # the same fault once more: one is known
    code, shown, _ = run(folder, "check", "--baseline", "known.json", "src")
    assert (code, shown.count("error TL700")) == (1, 1)
    place.write_text(FAULTY.replace("x = T.alloc_shared((64, columns)", "x = T.alloc_shared((32, columns)"))
    code, shown, told = run(folder, "check", "--baseline", "known.json", "src")
    assert (code, shown.count("error TL700")) == (1, 1)
    assert "1 entries of it are gone" in told


def test_kernels_that_are_not_done(folder: Path) -> None:
    place = folder / "src" / "k.py"
    place.write_text(MIGRATES)
    (folder / "src" / "r.py").write_text(REFUSED)
    words = ("migrate", "--check", "--no-cache")
    assert run(folder, *words, "src")[0] == 1
    assert run(folder, *words, "--write-baseline", "known.json", "src")[0] == 0
    lines = json.loads((folder / "known.json").read_text())["files"]
    assert "kernel gemm_relu.main migrates" in lines["src/k.py"]
    assert any(line.startswith("TL309 ") for line in lines["src/r.py"])
    assert run(folder, *words, "--baseline", "known.json", "src")[0] == 0
    (folder / "src" / "new.py").write_text(MIGRATES)
    assert run(folder, *words, "--baseline", "known.json", "src")[0] == 1
    (folder / "src" / "new.py").unlink()
    (folder / "known.json").write_text(json.dumps({"version": 1, "files": {"src/k.py": lines["src/k.py"]}}))
    assert run(folder, *words, "--baseline", "known.json", "src")[0] == 1
    without = [line for line in lines["src/r.py"] if not line.startswith("TL309")]  # refused, for another reason
    lines["src/r.py"] = without
    (folder / "known.json").write_text(json.dumps({"version": 1, "files": lines}))
    code, shown, _ = run(folder, *words, "--baseline", "known.json", "src")
    assert (code, "error TL309" in shown) == (1, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read the baseline"),
        ("no json", "is not a baseline of tl2npu"),
        ("[]", "is not a baseline of tl2npu"),
        ('{"version": 1, "files": {"a": 3}}', "is not a baseline of tl2npu"),
        ('{"version": 2, "files": {}}', "is a baseline of version 2"),
    ],
)
def test_what_is_no_baseline(folder: Path, text: str | None, said: str) -> None:
    if text is not None:
        (folder / "known.json").write_text(text)
    code, _, told = run(folder, "check", "--baseline", "known.json", "src")
    assert (code, said in told) == (2, True)


def test_options_that_do_not_go_together(folder: Path) -> None:
    code, _, told = run(folder, "check", "--baseline", "a.json", "--write-baseline", "b.json", "src")
    assert (code, "does not go with --baseline" in told) == (2, True)


def test_exit_zero(folder: Path) -> None:
    code, shown, _ = run(folder, "check", "--exit-zero", "src")
    assert (code, "TL700" in shown) == (0, True)
    assert run(folder, "migrate", "--check", "--exit-zero", "src")[0] == 0
    assert run(folder, "check", "--exit-zero", "nosuch.py")[0] == 2


@pytest.mark.parametrize(
    ("pattern", "codes", "code"),
    [
        ("src/", "TL700", 0),
        ("*.py", "TL7", 0),
        ("src/k.py", "TL70", 0),
        ("/k.py", "TL700", 1),
        ("src/", "TL720", 1),
        ("tests/", "TL700", 1),
    ],
)
def test_ignores_by_file(folder: Path, pattern: str, codes: str, code: int) -> None:
    text = f'[tool.tl2npu.per-file-ignores]\n"{pattern}" = ["{codes}"]\n"other/" = ["TL9"]\n'
    (folder / "pyproject.toml").write_text(text)
    assert run(folder, "check", "src")[0] == code
    assert f'"{pattern}" = ["{codes}"]' in run(folder, "config")[1]


@pytest.mark.parametrize("value", ["3", '["TL700"]', '{ "src/" = "TL700" }', '{ "src/" = ["TLX"] }'])
def test_ignores_that_are_wrong(folder: Path, value: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.tl2npu]\nper-file-ignores = {value}\n")
    code, _, told = run(folder, "check", "src")
    assert (code, "per-file-ignores: " in told) == (2, True)


def test_the_baseline_of_a_project(folder: Path) -> None:
    """The key is relative to its file, wherever the run is."""
    run(folder, "check", "--write-baseline", "known.json", "src")
    (folder / "pyproject.toml").write_text('[tool.tl2npu]\nbaseline = "known.json"\n')
    assert run(folder, "check", "src")[0] == 0
    assert run(folder / "src", "check", "k.py")[0] == 0
    assert run(folder, "check", "--write-baseline", "other.json", "src")[0] == 0
