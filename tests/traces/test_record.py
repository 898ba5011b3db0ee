"""``tl2npu record`` on the simulator, and ``tl2npu verify --reference`` with what it wrote."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.in_process import in_a_copy, tl2npu
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.traces import reading

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads(Path(reading.__file__).with_name("schema.json").read_text())
KERNELS = """import sys

import ml_dtypes
import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scale(rows, factor=2.0, dtype="bfloat16"):
    @T.prim_func
    def main(
        X: T.Tensor((rows, 64), dtype),
        Y: T.Tensor((rows, 64), dtype),
        Z: T.Tensor((rows,), "float32"),
        s: T.float32,
    ):
        with T.Kernel(T.ceildiv(rows, 16), threads=128) as bx:
            x = T.alloc_fragment((16, 64), dtype)
            r = T.alloc_fragment((16,), "float32")
            T.copy(X[bx * 16, 0], x)
            for i, j in T.Parallel(16, 64):
                x[i, j] = x[i, j] * factor
            T.copy(x, Y[bx * 16, 0])
            T.copy(Z[bx * 16], r)
            for i in T.Parallel(16):
                r[i] = r[i] + s
            T.copy(r, Z[bx * 16])

    return main


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    kernel = scale(rows)
    for turn in range(6):
        x = np.random.standard_normal((rows, 64)).astype(ml_dtypes.bfloat16)
        z = np.ones(rows, np.float32)
        y = kernel(x, z, 0.5)
        np.testing.assert_array_equal(y, x * ml_dtypes.bfloat16(2.0))
"""
NEW = migrate_text(KERNELS, "old.py", Options()).new_text or ""


def call(*arguments: str, cwd: Path, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    run = in_a_copy if arguments[0] in ("run", "record") else tl2npu
    return run(*arguments, cwd=cwd, environment={"PYTHONPATH": str(ROOT), "PATH": ""}, fresh=fresh)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces")
    (path / "old.py").write_text(KERNELS)
    (path / "new.py").write_text(NEW)
    done = call("record", "old.py", "-o", "trace", "--on", "sim", "--", "48", cwd=path, fresh=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "4 launches recorded in trace"), done.stderr
    return path


def test_the_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "trace" / "manifest.json").read_text())
    jsonschema.validate(manifest, SCHEMA)
    assert manifest["script"]["arguments"] == ["48"]
    assert manifest["device"]["kind"] == "simulator"
    first = manifest["launches"][0]
    assert (first["kernel"], first["factory"]) == ("scale.main", "scale")
    assert first["arguments"] == {"rows": 48, "factor": 2.0, "dtype": "bfloat16"}
    assert (first["scalars"], first["given"], first["returned"]) == ({"s": 0.5}, ["X", "Z", "s"], ["Y"])
    assert [(t["name"], t["stored"], t["role"]) for t in first["tensors"]] == [
        ("X", "uint16", "in"),
        ("Y", "uint16", "out"),
        ("Z", "float32", "inout"),
    ]
    assert manifest["left_out"] == [
        {"kernel": "scale.main", "why": "more than 4 launches with the same arguments and shapes", "launches": 2}
    ]


@pytest.mark.parametrize("files", [("new.py",), ("old.py",), ("old.py", "new.py")])
def test_verified(folder: Path, files: tuple[str, ...]) -> None:
    done = call("verify", *files, "--reference", "trace", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    what = "the migration of old.py" if files == ("old.py",) else "new.py"
    assert f"verified: {what} against the trace trace (tl2npu simulator, A2) on the simulator" in done.stdout
    assert "4 launches compared" in done.stdout


def changed(folder: Path, name: str, *pairs: tuple[str, str]) -> str:
    text = NEW
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    (folder / name).write_text(text)
    return name


WRONG = {
    "values": [("* factor", "* (factor + 0.5)")],
    "a tensor that was passed": [("+ s", "+ s * 2")],
    "order of parameters": [
        ('        Z: T.Tensor((rows,), "float32"),\n        s: T.float32,\n', "        s: T.float32,\n"),
        ("        X: T.Tensor", '        Z: T.Tensor((rows,), "float32"),\n        X: T.Tensor'),
        ("out_idx=[1]", "out_idx=[2]"),
    ],
    "no output": [("out_idx=[1]", "out_idx=None")],
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_kernels_fail(folder: Path, how: str) -> None:
    done = call("verify", changed(folder, "wrong.py", *WRONG[how]), "--reference", "trace", cwd=folder)
    assert done.returncode == 1
    assert "error TL907 changed-result" in done.stdout, done.stdout


def test_a_kernel_that_is_not_there(folder: Path) -> None:
    done = call("verify", changed(folder, "other.py", ("scale", "scaled")), "--reference", "trace", cwd=folder)
    assert done.returncode == 1
    assert "warning TL906" in done.stdout
    assert "has no factory 'scale'" in done.stdout


def test_a_note_where_the_text_is_another(folder: Path) -> None:
    (folder / "later.py").write_text(KERNELS.replace("2.0, dtype", "2.0,  dtype"))
    done = call("verify", "later.py", "new.py", "--reference", "trace", cwd=folder)
    assert done.returncode == 0
    assert "the trace was recorded with another version of scale" in done.stdout


def test_golden_and_standards_of_a_trace(folder: Path) -> None:
    for options in (("--golden", "fp64"), ("--standard", "cann-mere"), ("--standard", "msprobe", "--csv", "x.csv")):
        assert call("verify", "old.py", "new.py", "--reference", "trace", *options, cwd=folder).returncode == 0
    assert (folder / "x.csv").read_text().splitlines()[0].startswith("NPU Name,Bench Name,")
    done = call("verify", "new.py", "--reference", "trace", "--golden", "fp64", cwd=folder)
    assert (done.returncode, "--golden fp64 needs the old file" in done.stderr) == (2, True)


def test_json(folder: Path) -> None:
    done = call("verify", "new.py", "--reference", "trace", "--format", "json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["reference"] == "the trace trace (tl2npu simulator, A2)"
    assert found["standard"] == "tl2npu"
    assert [row["tensor"] for row in found["launches"][0]["tensors"]] == ["Y", "Z"]


def test_unusable_traces_are_one_error(folder: Path) -> None:
    (folder / "empty").mkdir(exist_ok=True)
    done = call("verify", "new.py", "--reference", "empty", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "error: empty is not a trace: it has no manifest.json\n")
    shutil.copytree(folder / "trace", folder / "damaged", dirs_exist_ok=True)
    (folder / "damaged" / "00001.npz").unlink()
    done = call("verify", "new.py", "--reference", "damaged", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "error: damaged/00001.npz is missing\n")


def test_options_that_do_not_go_together(folder: Path) -> None:
    for options in (["--args", "scale(rows=16)"], ["--arithmetic", "algebraic"]):
        done = call("verify", "new.py", "--reference", "trace", *options, cwd=folder)
        assert done.returncode == 2, options
    assert call("verify", "new.py", "--standard", "msprobe", "--rtol", "1", cwd=folder).returncode == 2
    assert call("record", "old.py", "-o", "trace", cwd=folder).returncode == 2, "the folder is not empty"
    assert call("record", "old.py", "-o", "y", "--on", "sim", "--python", "x", cwd=folder).returncode == 2
    assert call("record", "old.py", "-o", "y", "--max-bytes", "many", cwd=folder).returncode == 2
    assert call("record", "old.py", "-o", "y", "--python", "./nothing", cwd=folder).returncode == 2


def test_the_scripts_exit_code_and_the_bound(folder: Path) -> None:
    (folder / "exit.py").write_text(KERNELS + "    sys.exit(7)\n")
    done = call("record", "exit.py", "-o", "seven", "--on", "sim", "--max-bytes", "2K", cwd=folder)
    assert done.returncode == 7
    assert "its inputs exceed --max-bytes; shapes and hashes are recorded" in done.stderr
    done = call("verify", "new.py", "--reference", "seven", cwd=folder)
    assert done.returncode == 1
    assert "a launch was recorded without its inputs" in done.stdout
    (folder / "none.py").write_text("print('nothing')\n")
    done = call("record", "none.py", "-o", "none", "--on", "sim", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "nothing\n")


def test_sampled_outputs_are_compared_where_they_were_kept(folder: Path) -> None:
    kept = call("record", "old.py", "-o", "sampled", "--on", "sim", "--max-bytes", "20K", "--", "80", cwd=folder)
    assert kept.returncode == 0, kept.stderr
    row = json.loads((folder / "sampled" / "manifest.json").read_text())["launches"][0]["tensors"][1]
    assert row["after"]["sampled"] == 4096
    good = call("verify", "new.py", "--reference", "sampled", "--format", "json", cwd=folder)
    first = json.loads(good.stdout)["launches"][0]
    assert first["problems"] == []
    changed(folder, "wrong.py", ("* factor", "* (factor + 0.5)"))
    assert call("verify", "wrong.py", "--reference", "sampled", cwd=folder).returncode == 1
