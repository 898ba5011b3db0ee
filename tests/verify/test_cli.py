from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.in_process import in_a_copy, tl2npu
from tests.verify.support import HEAD, MAIN, SCALE, SCRIPT
from tl2npu.migration import migrate_text
from tl2npu.options import Options

ROOT = Path(__file__).resolve().parents[2]
MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""
CALL = ("--args", "scale(rows=64)")


def call(*arguments: str, cwd: Path, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    run = in_a_copy if arguments[0] in ("run", "record") else tl2npu
    return run(*arguments, cwd=cwd, environment={"PYTHONPATH": str(ROOT), "PATH": ""}, fresh=fresh)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old.py").write_text(SCRIPT)
    (tmp_path / "new.py").write_text(MIGRATED)
    (tmp_path / "wrong.py").write_text(MIGRATED.replace("factor)", "factor + 1.0)"))
    (tmp_path / "broken.py").write_text("def f(:\n")
    return tmp_path


def test_run(folder: Path) -> None:
    done = call("run", "old.py", cwd=folder, fresh=True)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert done.stderr == "old.py: 1 launch, 0 hazards on the simulator (A2)\n"


def test_run_gives_the_scripts_exit_code_and_arguments(folder: Path) -> None:
    (folder / "exit.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[1]))\n")
    done = call("run", "--device", "A5", "exit.py", "7", "--format", "x", cwd=folder)
    assert (done.returncode, done.stdout) == (7, "['7', '--format', 'x']\n")


def test_run_finds_hazards_and_they_may_be_fatal(folder: Path) -> None:
    text = SCRIPT.replace("            T.copy(X[cid * 32 + vid * 16, 0], x)\n", "")
    text = text.replace("np.testing.assert_allclose(scale(64)(x), x * 0.5)", "scale(64)(x)")
    (folder / "unwritten.py").write_text(text)
    done = call("run", "unwritten.py", cwd=folder)
    assert done.returncode == 0
    assert "error: Uninitialised read at UB" in done.stderr
    assert call("run", "--hazards", "fatal", "unwritten.py", cwd=folder).returncode == 1
    assert "Uninitialised" not in call("run", "--hazards", "off", "unwritten.py", cwd=folder).stderr


def test_rows_that_are_never_written_are_told(folder: Path) -> None:
    """70 rows in blocks of 32: old and new leave the last six as they were, and agree in that."""
    text = SCRIPT.replace("np.arange(64 * 64, dtype=np.float32).reshape(64, 64)", "np.ones((70, 64), np.float32)")
    (folder / "tail.py").write_text(text.replace("np.testing.assert_allclose(scale(64)(x), x * 0.5)", "scale(70)(x)"))
    said = "Never written: 384 of 4,480 elements of Y, the first Y[64, 0] (others at tail.py:24)"
    done = call("run", "tail.py", cwd=folder)
    assert f"warning: {said}" in done.stderr
    assert done.stderr.endswith("tail.py: 1 launch, 0 hazards, 1 warning on the simulator (A2)\n")
    done = call("verify", "tail.py", cwd=folder)
    assert done.returncode == 0
    assert f"warning TL908 faulty-run: the old kernel: {said}" in done.stdout.replace(f"{folder}/", "")


def test_run_as_json(folder: Path) -> None:
    done = call("run", "--format", "json", "--report", "run.json", "old.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    report = json.loads((folder / "run.json").read_text())
    assert report["launches"][0].pop("seconds") > 0
    assert report == {
        "version": 1,
        "script": "old.py",
        "exit_code": 0,
        "backend": "sim",
        "device": "A2",
        "arithmetic": "precise",
        "launches": [
            {
                "kernel": "scale.main",
                "arguments": {"rows": "64", "factor": "0.5"},
                "tensors": {"X": "float32[64, 64]", "Y": "float32[64, 64]"},
            }
        ],
        "hazards": [],
    }


def test_verify_two_files(folder: Path) -> None:
    done = call("verify", "old.py", "new.py", *CALL, cwd=folder, fresh=True)
    assert done.returncode == 0
    assert done.stdout == (
        "old.py:16 scale.main: verified on the simulator: 1 launch, largest difference 0\n"
        "  note: inputs of scale.main (seed 0): X standard normal\n"
        "  note: scale.main: also on wide values, small whole numbers, the whole range, infinities, NaN, "
        "values far from 0, values far below 0\n"
        "verified: new.py against old.py on the simulator; 1 of 1 kernel agrees, 1 launch compared, "
        "largest difference 0\n"
    )


def test_verify_what_differs(folder: Path) -> None:
    done = call("verify", "old.py", "wrong.py", *CALL, cwd=folder)
    assert done.returncode == 1
    assert done.stdout.startswith("old.py:16 scale.main: failed\n  old.py:16:1 error TL907 changed-result: Y[0, 0] is ")
    said = (
        "failed: wrong.py against old.py on the simulator; 0 of 1 kernel agrees, 1 launch compared, largest difference "
    )
    assert done.stdout.split("\n")[-2].startswith(said)
    assert float(done.stdout.split()[-1]) > 1.0


def test_a_report_is_a_file_beside_what_is_shown(folder: Path) -> None:
    shown = call("verify", "old.py", "wrong.py", *CALL, cwd=folder)
    done = call("verify", "old.py", "wrong.py", *CALL, "--report", "found.json", cwd=folder)
    assert (done.returncode, done.stdout) == (shown.returncode, shown.stdout)
    assert json.loads((folder / "found.json").read_text())["ok"] is False


def test_verify_says_which_script_failed(folder: Path) -> None:
    """Every launch agrees, and the new script still asks for something else."""
    (folder / "asks.py").write_text(MIGRATED.replace("x * 0.5", "x * 0.25"))
    done = call("verify", "old.py", "asks.py", cwd=folder)
    assert done.returncode == 1
    said = "1 of 1 kernel agrees, 1 launch compared, largest difference 0; the new script failed"
    assert done.stdout.split("\n")[-2] == f"failed: asks.py against old.py on the simulator; {said}"
    (folder / "wants.py").write_text(SCRIPT.replace("x * 0.5", "x * 0.25"))
    done = call("verify", "wants.py", "new.py", cwd=folder)
    assert done.stdout.split("\n")[-2].startswith("not verified: ")
    assert done.stdout.split("\n")[-2].endswith("; the old script failed")


def test_verify_as_json(folder: Path) -> None:
    done = call("verify", "old.py", "wrong.py", *CALL, "--format", "json", "--seed", "3", cwd=folder)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["launches"][0].pop("max_error") > 1.0
    message = report["launches"][0]["problems"][0]["message"]
    (row,) = report["launches"][0].pop("tensors")
    assert (row["tensor"], row["shape"], row["unmet"]) == ("Y", [64, 64], "beyond the tolerance")
    assert (report.pop("reference"), report.pop("standard")) == (None, "tl2npu")
    assert report == {
        "version": 1,
        "old": "old.py",
        "new": "wrong.py",
        "ok": False,
        "error": None,
        "backend": "sim",
        "arithmetic": "precise",
        "kernels": [
            {
                "name": "scale.main",
                "cell": None,
                "line": 16,
                "status": "failed",
                "reason": message,
                "verified": None,
            }
        ],
        "launches": [
            {
                "kernel": "scale.main",
                "call": "scale(rows=64, factor=0.5)",
                "outputs": ["Y"],
                "dropped": [],
                "relaid": [],
                "unrounded": [],
                "problems": [{"code": "TL907", "message": message}],
            }
        ],
        "scripts": [],
        "diagnostics": report["diagnostics"],
        "notes": [
            "inputs of scale.main (seed 3): X standard normal",
            "scale.main: also on wide values, small whole numbers, the whole range, infinities, NaN, "
            "values far from 0, values far below 0",
        ],
    }
    assert [d["code"] for d in report["diagnostics"]] == ["TL907"]


def test_verify_one_file_migrates_it_in_memory(folder: Path) -> None:
    done = call("verify", "old.py", *CALL, "--format", "json", cwd=folder)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert (report["new"], report["ok"]) == (None, True)
    assert report["kernels"][0]["verified"] == {"backend": "sim", "calls": 1, "max_error": 0.0}
    assert (folder / "old.py").read_text() == SCRIPT


def test_a_file_that_is_in_developer_mode_says_that_nothing_was_migrated(folder: Path) -> None:
    done = call("verify", "new.py", *CALL, cwd=folder)
    assert done.returncode == 0
    assert "note: nothing was migrated: the file is compared with itself\n" in done.stdout


REFUSED = SCRIPT.replace("x * 0.5", "x * 0.25").replace("scale", "share").replace("T.tile.mul(", "T.call_extern(")


def test_a_refused_kernel_proves_nothing(folder: Path) -> None:
    """It would be compared with itself: beside a migrated kernel it is not counted, alone it fails the command."""
    (folder / "refused.py").write_text(REFUSED)
    done = call("verify", "refused.py", "--args", "share(rows=64, factor=0.5)", cwd=folder)
    assert done.returncode == 1
    assert "share.main: not migrated\n" in done.stdout
    assert " error TL" in done.stdout  # why it was refused
    assert "--args" not in done.stdout  # which was given
    assert "on the simulator; 1 not migrated, 0 launches compared" in done.stdout.split("\n")[-2]
    (folder / "both.py").write_text(SCRIPT + REFUSED)
    done = call("verify", "both.py", *CALL, cwd=folder)
    assert "1 of 1 migrated kernel agrees, 1 not migrated, 1 launch compared" in done.stdout.split("\n")[-2]
    assert done.returncode == 0


def test_what_there_is_nothing_of_is_said(folder: Path) -> None:
    (folder / "plain.py").write_text("x = 1\n")
    done = call("verify", "plain.py", cwd=folder)
    assert (done.returncode, "note: the file has no kernel\n" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("old.py", "broken.py"), "error: broken.py: "),
        (("broken.py",), "error: broken.py: "),
        (("old.py", "--args", "scale"), "is not a call of a factory"),
        (("old.py", "--shrink"), "--shrink goes with --args"),
        (("old.py", *CALL, "--input", "Z=1"), "no such parameter"),
        (("missing.py",), "does not exist"),
        (("old.py", "--args", "scael(rows=64)"), "there is no factory 'scael', did you mean 'scale'?"),
        (("old.py", "--args", "scael(rows=64)", "--backend", "compile"), "no factory 'scael', did you mean 'scale'?"),
        (("old.py", "--args", "nosuch(256, M=1)"), "nosuch(256, M=1): there is no factory 'nosuch'; the file has sca"),
        (("old.py", "--report", "x.html"), "--report x.html: this command writes text or .json, not html"),
        (("old.py", "new.py", "--args", "scale(row=64)"), "no parameter 'row'; it takes (rows, factor=0.5)"),
        (("old.py", "--case", "case.toml"), "there is no factory 'scael', did you mean 'scale'?"),
    ],
)
def test_what_cannot_be_used_is_2(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    """Said once, without advice to do what was done."""
    (folder / "case.toml").write_text('factory = "scael"\nargs = { rows = 64 }\n')
    done = call("verify", *arguments, cwd=folder)
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count(said) == 1
    assert "pass a call" not in done.stdout + done.stderr


EAGER = """
import tilelang
import tilelang.language as T


@tilelang.jit
def twice(A):
    N = T.const("N")
    M = T.dynamic("M")
    A: T.Tensor[[M, N], "float32"]
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
        a = T.alloc_fragment((32, N), "float32")
        T.copy(A[bx * 32, 0], a)
        for i, j in T.Parallel(32, N):
            a[i, j] = a[i, j] * 2.0
        T.copy(a, B[bx * 32, 0])
    return B
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--args", "twice(N=64, Q=5)"), "twice has no `Q`"),
        (("--args", "twice(N=64, M=5)"), "`M` is known at the launch only: use `--size M=5`"),
        (("--", "--m", "5"), "given as `--script-args '--m ...'`"),
    ],
)
def test_arguments_that_nothing_asks_for(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    (folder / "eager.py").write_text(EAGER)
    done = call("verify", "eager.py", *arguments, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


def test_migrate_verify(folder: Path) -> None:
    (folder / "k.py").write_text(SCRIPT)
    (folder / "lib.py").write_text(HEAD + SCALE)
    done = call("migrate", "--verify", "--format", "json", "k.py", cwd=folder)
    assert done.returncode == 0
    assert (folder / "k.py").read_text() == MIGRATED
    kernels = json.loads(done.stdout)["files"][0]["kernels"]
    assert kernels[0]["verified"] == {"backend": "sim", "calls": 1, "max_error": 0.0}
    done = call("migrate", "--verify", "lib.py", cwd=folder)
    assert done.returncode == 1
    assert "warning TL906 unverified-kernel: not verified: it was never launched" in done.stdout
    assert (folder / "lib.py").read_text() == MIGRATED.replace(MAIN, "")


def test_help_says_that_code_is_executed(folder: Path) -> None:
    for command in ("run", "verify", "migrate"):
        assert "EXECUTE" in call(command, "--help", cwd=folder).stdout


def test_the_verdict_on_one_kernel_of_two(folder: Path) -> None:
    """One is wrong, the other is not: `--kernel` says on which the verdict is."""
    other = SCALE.replace("scale", "other")
    (folder / "two.py").write_text(HEAD + SCALE + other + MAIN + "    other(64)(x)\n")
    new = migrate_text((folder / "two.py").read_text(), "two.py", Options()).new_text or ""
    head, tail = new.split("def other")
    (folder / "bad.py").write_text(head + "def other" + tail.replace("factor)", "factor + 1.0)"))
    done = call("verify", "two.py", "bad.py", cwd=folder)
    assert (done.returncode, "other.main: failed" in done.stdout) == (1, True)
    done = call("verify", "two.py", "bad.py", "--kernel", "scale", cwd=folder)
    assert (done.returncode, "other" in done.stdout.split("\n")[0]) == (0, False)
    assert "1 of 1 kernel agrees, 1 launch compared" in done.stdout
    assert call("verify", "two.py", "bad.py", "--kernel", "two.py::other", cwd=folder).returncode == 1
    done = call("verify", "two.py", "bad.py", "--kernel", "third", cwd=folder)
    assert done.returncode == 2
    assert "no kernel is called 'third'; the file has " in done.stderr


@pytest.mark.parametrize("command", ["verify", "run"])
def test_nothing_is_written_into_the_folder(folder: Path, command: str) -> None:
    (folder / "beside.py").write_text("ONE = 1\n")
    (folder / "script.py").write_text("from beside import ONE\n")
    call(command, "script.py", cwd=folder)
    assert not (folder / "__pycache__").exists()
