from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result

from tests.test_counts import TRITON as TWICE
from tl2npu import __version__, checking, migration
from tl2npu.cli import cli, main
from tl2npu.cli.groups import GROUPS
from tl2npu.cli.output import patch_color
from tl2npu.extras import pip_command
from tl2npu.options import Options
from tl2npu.results import Diagnostic, FileResult, KernelResult
from tl2npu.source.text import SourceError

ROOT = Path(__file__).resolve().parent.parent
KERNEL = "import tilelang\n# prim_func\nold\n"
SEEN = Path("seen.txt")


def note(path: str, options: Options) -> None:
    """Files are worked on in processes of their own."""
    with SEEN.open("a") as log:
        log.write(f"{path} {options}\n")


def fake_migrate(text: str, path: str, options: Options, leave: object = None, together: bool = False) -> FileResult:
    """Stands in for the migration: the file says what happens to it."""
    note(path, options)
    if "crash" in text:
        raise SourceError("oops")
    if "syntax" in text:
        return FileResult(path, text, text, "line 1: syntax error: no")
    refused = "refuse" in text
    kernel = KernelResult("f", 2, "vid", "none" if refused else "developer", "refused" if refused else "migrated", "so")
    return FileResult(path, text, text if refused else text.replace("old", "new"), kernels=(kernel,))


def fake_check(text: str, path: str, options: Options) -> FileResult:
    note(path, options)
    severity = "error" if "bad" in text else "warning"
    return FileResult(path, text, text, diagnostics=(Diagnostic("TL801", "memory-capacity", severity, 2, "full"),))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(migration, "migrate_text", fake_migrate)
    monkeypatch.setattr(checking, "check_text", fake_check)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


def call(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def file(name: str = "k.py", text: str = KERNEL) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_in_place_is_the_default_and_the_report_goes_to_stdout() -> None:
    path = file()
    done = call("migrate", "k.py")
    assert done.exit_code == 0
    assert path.read_text() == KERNEL.replace("old", "new")
    assert Path("k.py.orig").read_text() == KERNEL
    assert done.stdout == "k.py:2 f: migrated -> developer (so)\n1 file changed; 1 kernel: 1 migrated\n"
    assert done.stderr == ""


def test_without_paths_it_is_the_working_directory() -> None:
    file("sub/k.py")
    assert "sub/k.py:2 f: migrated" in call("migrate").stdout


def test_diff_is_all_of_stdout_and_changes_no_file() -> None:
    path = file()
    done = call("migrate", "--diff", "k.py")
    assert done.exit_code == 0
    assert done.stdout == (
        "diff --git a/k.py b/k.py\n--- a/k.py\n+++ b/k.py\n@@ -1,3 +1,3 @@\n"
        " import tilelang\n # prim_func\n-old\n+new\n"
    )
    assert done.stderr.endswith("1 file would change; 1 kernel: 1 migrated\n")
    assert path.read_text() == KERNEL


def test_a_patch_of_a_file_elsewhere_has_no_dots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`git apply` takes no path with `..` in it."""
    file("one/k.py")
    Path("two").mkdir()
    monkeypatch.chdir(tmp_path / "two")
    where = (tmp_path / "one/k.py").resolve().relative_to("/").as_posix()
    assert f"--- a/{where}\n+++ b/{where}\n" in call("migrate", "--diff", "../one/k.py").stdout


def test_a_patch_is_coloured_for_eyes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR, as CI sets it, must not get into a file that `git apply` reads."""
    file()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in call("migrate", "--diff", "k.py").stdout
    assert "\x1b[31m-old\x1b[m\n" in call("migrate", "--diff", "--color", "always", "k.py").stdout
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    assert patch_color("auto")
    assert not patch_color("never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not patch_color("auto")


@pytest.mark.parametrize(
    ("text", "code"), [(KERNEL, 1), ("x = 1\n", 0), (KERNEL + "refuse", 1), (KERNEL + "syntax", 2)]
)
@pytest.mark.parametrize("diff", [False, True])
def test_check(text: str, code: int, diff: bool) -> None:
    path = file(text=text)
    done = call("migrate", "--check", "k.py", *["--diff"] * diff)
    assert done.exit_code == code
    assert path.read_text() == text
    assert ("+new" in done.stdout) == (diff and text == KERNEL)


@pytest.mark.parametrize(
    ("names", "code"),
    [(["good.py"], 0), (["refused.py"], 1), (["syntax.py"], 2), (["crash.py"], 2), (["no.py"], 2), (["."], 2)],
)
def test_exit_codes_without_check(names: list[str], code: int) -> None:
    for name in ("good", "refused", "syntax", "crash"):
        file(f"{name}.py", KERNEL + name.replace("refused", "refuse"))
    done = call("migrate", *names)
    assert done.exit_code == code
    if code == 2:
        assert ": error: " in done.stdout


def test_standard_input() -> None:
    done = call("migrate", "-", "--stdin-filename", "dir/k.py", stdin=KERNEL.replace("\n", "\r\n").encode())
    assert done.exit_code == 0
    assert done.stdout_bytes == KERNEL.replace("\n", "\r\n").replace("old", "new").encode()
    assert "dir/k.py:2 f: migrated" in done.stderr
    assert SEEN.read_text().startswith("dir/k.py ")
    assert (
        "--- a/dir/k.py" in call("migrate", "-", "--diff", "--stdin-filename", "dir/k.py", stdin=KERNEL.encode()).stdout
    )
    assert call("migrate", "-", stdin=b"x = 1\n").stdout == "x = 1\n"
    checked = call("migrate", "-", "--check", stdin=KERNEL.encode())
    assert (checked.exit_code, "<stdin>:2 f" in checked.stdout) == (1, True)
    broken = call("migrate", "-", stdin=b"\xff\n\n\xff")
    assert (broken.exit_code, broken.stdout) == (2, "")
    assert call("migrate", "-", "k.py").exit_code == 2


def test_output_to_a_file_and_to_a_directory() -> None:
    path = file("in/k.py")
    file("in/sub/other.py", "x = 1\n")
    assert call("migrate", "in/k.py", "-o", "out.py").exit_code == 0
    assert Path("out.py").read_text() == KERNEL.replace("old", "new")
    assert call("migrate", "in", "-o", "out").exit_code == 0
    assert Path("out/k.py").read_text() == KERNEL.replace("old", "new")
    assert Path("out/sub/other.py").read_text() == "x = 1\n"
    Path("there").mkdir()
    assert call("migrate", "in/k.py", "-o", "there").exit_code == 0
    assert Path("there/k.py").exists()
    assert path.read_text() == KERNEL
    for wrong in (
        ["in", "-o", "out.py"],
        ["in", "-o", "new.py"],
        ["in", "-o", "x", "--diff"],
        ["in", "-o", "x", "--check"],
    ):
        assert call("migrate", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("a/k.py b/k.py c/k.py", "a/k.py b/k.py c/k.py"),
        ("t/a/k.py t/a/m.py", "k.py m.py"),
        ("t/a/k.py ./t/../t/b/c/k.py t/k.py", "a/k.py b/c/k.py k.py"),
        ("a b", "a/k.py b/k.py"),
        ("a t/b", "a/k.py t/b/c/k.py"),
        ("a a/k.py", "k.py"),
        ("t", "a/k.py a/m.py b/c/k.py k.py"),
        ("t/a/k.py", "k.py"),
    ],
)
def test_output_of_several_paths_keeps_the_tree(given: str, written: str) -> None:
    for name in ("a/k.py", "b/k.py", "c/k.py", "t/k.py", "t/a/k.py", "t/a/m.py", "t/b/c/k.py"):
        file(name, KERNEL + f"# {name}\n")
    Path("out").mkdir()
    done = call("migrate", *given.split(), "-o", "out")
    assert done.exit_code == 0, done.output
    new = sorted(path.relative_to("out").as_posix() for path in Path("out").rglob("*.py"))
    assert " ".join(new) == written
    for name in new:
        assert Path("out", name).read_text().rstrip().endswith(f"{name}")


def test_dirty_files_need_allow_dirty() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    path = file()
    done = call("migrate", "k.py")
    assert done.exit_code == 2
    assert "k.py: error: file is not tracked by git (--allow-dirty overrides)" in done.stdout
    assert path.read_text() == KERNEL
    assert call("migrate", "k.py", "--allow-dirty").exit_code == 0
    assert "new" in path.read_text()
    assert not Path("k.py.orig").exists()


def test_options_reach_the_migration() -> None:
    file()
    Path("pyproject.toml").write_text("[tool.tl2npu]\npass-config-policy = 'four'\ndevice = 'A5'\n")
    flags = ["--check", "--device", "A3", "--threads", "1", "--ascend-version", "2026-09"]
    call("migrate", "k.py", *flags, "--select", "TL2,TL3", "--ignore", "TL201")
    wanted = Options(
        device="A3", threads="1", ascend_version="2026-09", select=("TL2", "TL3"), ignore=("TL201",),
        pass_config_policy="four",
    )  # fmt: skip
    assert SEEN.read_text() == f"k.py {wanted}\n"
    call("migrate", "k.py", "--check", "--pass-config-policy", "keep")
    assert SEEN.read_text().endswith(f"k.py {Options(device='A5', pass_config_policy='keep')}\n")
    call("migrate", "k.py", "--check", "--to", "npuir", "--grid2d", "--pass-config-policy", "keep", "--device", "A2")
    assert SEEN.read_text().endswith(f"k.py {Options(target='npuir', grid2d=True, pass_config_policy='keep')}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "A9"], "--device: unknown value 'A9'"),
        (["--ignore", "TX1"], "no rule has the code 'TX1'"),
        (["--threads", "3"], "Invalid value for '--threads'"),
        (["--to", "npu"], "Invalid value for '--to'"),
        (["--nonsense"], "No such option"),
        (["--report", "k.py/dir.json"], "cannot write"),
    ],
)
def test_usage_errors(arguments: list[str], message: str) -> None:
    file()
    done = call("migrate", "k.py", "--check", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_options_behind_a_script_are_its_own_and_an_error_is_no_rule() -> None:
    Path("s.py").write_text("import sys\nprint(sys.argv[1:])\n")
    done = call("run", "s.py", "--hazards=fatal", "--mine")
    assert (done.exit_code, done.stdout) == (0, "['--hazards=fatal', '--mine']\n")
    assert "note: --hazards stands behind the script" in done.stderr
    assert "--mine" not in done.stderr
    done = call("rule", "507015")
    assert done.exit_code == 2
    assert "`tl2npu rule --error 507015` says what is known" in done.stderr


def test_a_broken_configuration_is_a_usage_error() -> None:
    file()
    Path("pyproject.toml").write_text("[tool.tl2npu]\nthread = 1\n")
    done = call("migrate", "k.py")
    assert (done.exit_code, "did you mean 'threads'" in done.stderr) == (2, True)


def test_formats_and_report_file() -> None:
    file()
    data = json.loads(call("migrate", "k.py", "--check", "--format", "json").stdout)
    assert [(item["path"], item["changed"]) for item in data["files"]] == [("k.py", True)]
    diff = call("migrate", "k.py", "--diff", "--format", "json")
    assert json.loads(diff.stderr)["files"] == data["files"]
    assert (json.loads(diff.stderr)["run"]["exit_code"], data["run"]["exit_code"]) == (0, 1)
    assert diff.stdout.startswith("diff --git")
    done = call("migrate", "k.py", "--check", "--format", "json", "--report", "r.json")
    assert json.loads(Path("r.json").read_text()) == data
    assert done.stdout.endswith("1 file would change; 1 kernel: 1 migrated\n")
    call("migrate", "k.py", "--check", "--report", "r.txt", "-q")
    assert Path("r.txt").read_text() == done.stdout


def test_quiet_prints_errors_only() -> None:
    file()
    done = call("migrate", "k.py", "no.py", "-q")
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", "no.py: error: no such file\n")


GEMM_GELU = """import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def gemm_gelu(M, N, K, block_M, block_N, block_K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), "float16")
            b = T.alloc_shared((block_K, block_N), "float16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block_M, block_N):
                c[i, j] = 0.5 * c[i, j] * (1.0 + T.tanh(0.7978845608 * (c[i, j] + 0.044715 * c[i, j] * c[i, j])))
            T.copy(c, C[by * block_M, bx * block_N])

    return main


kernel = gemm_gelu(1024, 1024, 1024, 256, 128, 32)
"""


TRITON = TWICE.replace("1024", "65536")


def verdicts(name: str, *options: str) -> tuple[str, list[str], int, list[str], int]:
    """What migrate and check make of a file: the verdict, the errors of both, the exit codes."""
    done = call("migrate", name, "-o", "new.py", "--no-cache", "--report", "m.json", "--report", "m.html", *options)
    checked = call("check", "new.py", "--no-cache", "--report", "c.json")
    told, found = (json.loads(Path(f"{task}.json").read_text()) for task in "mc")
    errors, wrong = (
        sorted({item["code"] for item in report["files"][0]["diagnostics"] if item["severity"] == "error"})
        for report in (told, found)
    )
    (kernel,) = told["files"][0]["kernels"]
    assert kernel["errors"] == errors
    assert told["summary"]["with_errors"] == bool(errors)
    word = f"{kernel['disposition']} with errors" if errors else kernel["disposition"]
    assert f"{name}:{kernel['line']} {kernel['name']}: {word} -> " in done.stdout
    assert f"1 kernel: 1 {word}\n" in done.stdout
    assert f"</span> {word}</span>" in Path("m.html").read_text()
    return word, errors, done.exit_code, wrong, checked.exit_code


@pytest.mark.thorough
def test_one_kernel_has_one_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    file("big.py", GEMM_GELU)
    assert verdicts("big.py") == ("migrated with errors", ["TL801"], 1, ["TL801"], 1)
    assert "`tl2npu migrate --unsafe` writes the tiles that fit" in call("migrate", "--check", "big.py").stdout
    assert "`tl2npu migrate --unsafe` writes the tiles that fit" in call("check", "new.py").stdout
    file("written.py", Path("new.py").read_text())
    again = call("migrate", "--check", "written.py")
    assert (again.exit_code, " unchanged with errors (already in Developer mode)" in again.stdout) == (1, True)
    assert "0 files would change" in again.stdout
    assert verdicts("written.py", "--unsafe") == ("migrated", [], 0, [], 0)
    assert " unchanged (already in Developer mode)" in call("migrate", "--check", "--unsafe", "new.py").stdout
    assert verdicts("big.py", "--unsafe") == ("migrated", [], 0, [], 0)
    file("fits.py", GEMM_GELU.replace("256, 128, 32)", "64, 128, 32)"))
    assert verdicts("fits.py") == ("migrated", [], 0, [], 0)
    file("small.py", GEMM_GELU.replace("block_K):\n", "block_K=32):\n").replace("256, 128, 32)", "256, 128)"))
    assert verdicts("small.py") == ("migrated with errors", ["TL801"], 1, ["TL801"], 1)
    file("t.py", TRITON)
    assert verdicts("t.py") == ("migrated with errors", ["TL801"], 1, ["TL801"], 1)
    assert "  t.py:7:1 error TL801 " in call("migrate", "--check", "t.py", "-q").stdout
    assert verdicts("t.py", "--unsafe") == ("migrated", [], 0, [], 0)
    extra = "from tilelang.intrinsics import make_mma_swizzle_layout\nfrom tilelang.tools import cuda\n"
    file("host.py", extra + GEMM_GELU.replace("256, 128, 32)", "64, 128, 32)") + "print(cuda)\n")
    word, errors, code, wrong, checked = verdicts("host.py")
    assert (word, errors, code, checked) == ("migrated with errors", wrong, 1, 1)
    assert "TL734" in errors
    ignored = call("migrate", "--ignore", "TL801", "big.py", "-o", "x.py")
    assert (ignored.exit_code, "1 kernel: 1 migrated\n" in ignored.stdout) == (0, True)


@pytest.mark.thorough
def test_quiet_prints_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    file("big.py", GEMM_GELU)
    told = call("migrate", "--check", "big.py", "-q").stdout
    assert told.startswith("big.py:8 gemm_gelu.main: migrated with errors -> ")
    assert " error TL801 " in told
    assert "warning" not in told
    assert "info" not in told
    file("refused.py", GEMM_GELU.replace("T.clear(c)", "T.call_extern('handle', 'f', c)"))
    told = call("migrate", "--check", "refused.py", "-q").stdout
    assert told.startswith("refused.py:8 gemm_gelu.main: refused")
    assert " error TL" in told
    assert "1 kernel" not in told
    assert call("migrate", "-q", "big.py", "-o", "new.py").exit_code == 1
    checked = call("check", "new.py", "-q")
    assert (checked.exit_code, checked.stdout.count(" error TL801 ")) == (1, 1)
    assert call("migrate", "--diff", "refused.py", "-q").stdout == ""
    assert " error TL" in call("migrate", "--diff", "refused.py", "-q").stderr
    file("fits.py", GEMM_GELU.replace("256, 128, 32)", "64, 128, 32)"))
    assert call("migrate", "--check", "fits.py", "-q").output == ""


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    file()
    plain = call("migrate", "k.py", "--check").stdout
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = call("migrate", "k.py", "--check").stdout
    assert "\x1b" in coloured
    assert click.unstyle(coloured) == plain
    assert "\x1b" not in call("migrate", "k.py", "--diff").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert call("migrate", "k.py", "--check").stdout == plain


def test_check_command() -> None:
    file("bad.py", KERNEL + "bad")
    file("fine.py")
    done = call("check", "bad.py")
    assert done.exit_code == 1
    assert done.stdout == (
        "bad.py:2:1 error TL801 memory-capacity: full\n"
        "  2 | # prim_func\n    | ^^^^^^^^^^^\n"
        "1 error, 0 warnings; no kernels in 1 file\n"
    )
    assert call("check", "fine.py").exit_code == 0
    assert call("check", "bad.py", "--ignore", "TL801").exit_code == 0
    assert call("check", "-", stdin=(KERNEL + "bad").encode()).exit_code == 1
    assert call("check", "no.py").exit_code == 2
    assert call("check", "fine.py", "--target", "pto", "--no-cache").exit_code == 0
    assert "target='pto'" in SEEN.read_text().splitlines()[-1]
    assert call("check", "fine.py", "--target", "npuir").exit_code == 2


def test_rule_rules_and_devices() -> None:
    listed = call("rules").stdout.split("\n")
    assert any(line.startswith("TL210  gm-round-trip  ") for line in listed)
    page = call("rule", "tl210")
    assert page.exit_code == 0
    assert page.stdout.startswith("TL210 gm-round-trip (workspace-vid)\n\n## What it does")
    assert call("rule", "gm-round-trip").stdout == page.stdout
    wrong = call("rule", "gm-round-tripp")
    assert (wrong.exit_code, "did you mean 'gm-round-trip'" in wrong.stderr) == (2, True)
    assert call("devices").stdout.startswith("device")
    assert __version__ in call("--version").stdout


def test_skill() -> None:
    """What an agent reads begins with the front matter that its skills have, and lies where ``--path`` says."""
    printed = call("skill").stdout
    folder = Path(call("skill", "--path").stdout.rstrip("\n"))
    assert printed == (folder / "SKILL.md").read_text(encoding="utf-8")
    front, name, description, end = printed.splitlines()[:4]
    assert front == end == "---"
    assert name == f"name: {folder.name}"
    assert description.startswith("description: ")
    assert ": " not in description.removeprefix("description: ")  # YAML would take it for a key
    assert len(description) < 1024


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tl2npu", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_a_bug_of_the_tool_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tl2npu import files

    def broken(*arguments: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr(files, "collect", broken)
    assert run_main(monkeypatch, "migrate", "k.py") == 2
    assert capsys.readouterr().err == "tl2npu: internal error: KeyError: 'boom'\n"
    monkeypatch.setattr(sys, "argv", ["tl2npu", "migrate", "k.py", "--debug"])
    with pytest.raises(KeyError):
        main()


def test_an_internal_error_in_a_file_needs_debug_for_its_traceback() -> None:
    file(text=KERNEL + "crash")
    assert "k.py: error: internal error: SourceError: oops" in call("migrate", "k.py").stdout
    assert isinstance(call("migrate", "k.py", "--debug").exception, SourceError)


def test_a_closed_pipe_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "tl2npu", "rules"],
        stdout=write, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, text=True,
    )  # fmt: skip
    os.close(write)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == 1


def test_shards_meet_in_one_report() -> None:
    names = [f"d/f{number}.py" for number in range(5)]
    for name in names:
        file(name)
    file("d/vendor/x.py")
    for number in (1, 2):
        done = call("migrate", "d", "--check", "--shard", f"{number}/2", "--report", f"{number}.json")
        assert done.exit_code == 1
    parts = [json.loads(Path(f"{number}.json").read_text()) for number in (1, 2)]
    assert sorted(len(part["files"]) + len(part["skipped"]) for part in parts) == [3, 3]
    assert call("report", "merge", "1.json", "2.json", "-o", "whole.json").exit_code == 1
    whole = json.loads(Path("whole.json").read_text())
    assert [item["path"] for item in whole["files"]] == names
    assert [item["path"] for item in whole["skipped"]] == ["d/vendor"]
    for wrong in ("0/2", "3/2", "1", "a/b", "1/0", "-1/2"):
        assert call("migrate", "d", "--shard", wrong).exit_code == 2
    assert call("check", "-", "--shard", "1/2").exit_code == 2


def test_a_bar_only_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    from tl2npu.cli import files

    told: list[int] = []
    monkeypatch.setattr(click, "progressbar", lambda **given: nullcontext(SimpleNamespace(update=told.append)))
    with files._bar(3, wanted=True) as progress:
        assert progress is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with files._bar(3, wanted=False) as progress:
        assert progress is None
    with files._bar(3, wanted=True) as progress:
        assert progress is not None
        progress(2)
    assert told == [2]


def test_commands_are_told_in_whole_sentences_and_guessed() -> None:
    told = call("--help").stdout.partition("Commands:")[2]
    assert "..." not in told
    assert all(line.endswith(".") for line in told.split("\n") if line)
    assert "No such command 'migrat'. Did you mean 'migrate'?" in call("migrat").stderr
    assert call("nothing-like-it").stderr.endswith("No such command 'nothing-like-it'.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    script = call("completion", shell).stdout
    assert "_TL2NPU_COMPLETE" in script
    assert "tl2npu" in script
    assert call("completion", "tcsh").exit_code == 2


def test_what_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from tl2npu.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "_TL2NPU_COMPLETE": "bash_complete"}
    for words, wanted in (
        ("tl2npu mi", "migrate"),
        ("tl2npu migrate --verify-", "--verify-timeout"),
        ("tl2npu rule TL21", "TL210"),
        ("tl2npu rule gm-", "gm-round-trip"),
    ):
        given = {**environment, "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
        assert f"plain,{wanted}" in done.stdout.split()


def test_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    done = call("migrate", ".", "--watch")
    assert (done.exit_code, done.stderr.split("Error: ")[1]) == (
        2,
        f"--watch needs the package watchfiles: {pip_command('watch')}\n",
    )
    file("a.py"), file("b.py"), file("vendor/c.py")

    def changes(*paths: Path, raise_interrupt: bool) -> Iterator[set[tuple[int, str]]]:
        assert (paths, raise_interrupt) == ((Path(),), True)
        SEEN.unlink()
        for name in ("b.py", "vendor/c.py", "none.txt"):
            yield {(1, str(Path(name).absolute()))}
        file("new.py", "x = 1\n")
        yield {(1, str(Path("new.py").absolute())), (2, str(Path("gone.py").absolute()))}
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "watchfiles", SimpleNamespace(watch=changes))
    done = call("migrate", "--watch", "--check")
    assert done.exit_code == 130
    assert SEEN.read_text().split()[0] == "b.py"
    assert SEEN.read_text().count("\n") == 1
    assert done.stderr == "tl2npu: watching, Ctrl-C ends\ntl2npu: interrupted\n"
    assert done.stdout.count("would change") == 3
    assert call("migrate", "-", "--watch").exit_code == 2
    assert call("migrate", "a.py", "--watch", "-o", "x").exit_code == 2


@pytest.mark.parametrize("name", ["migrate", "check", "verify"])
def test_the_help_is_in_groups(name: str) -> None:
    """Every option once, in no list that is longer than a screen, and no name in the table that nothing has."""
    shown = call(name, "--help").stdout
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [one.opts[-1] for one in command.params if isinstance(one, click.Option)]
    lists = shown[min(shown.index(f"\n{title}:\n") for title in GROUPS if f"\n{title}:\n" in shown) :]
    listed = re.findall(r"^  (?:-\w, )?(?:--size, )?(--[\w-]+)", lists, flags=re.M)
    assert sorted(listed) == sorted([*options, "--help"])
    groups = [shown[shown.index(f"\n{title}:\n") :].split("\n\n")[0] for title in GROUPS if f"\n{title}:\n" in shown]
    assert len(groups) >= 4
    assert max(text.count("\n  -") for text in groups) <= 15
    commands = [cli.get_command(click.Context(cli), other) for other in ("migrate", "check", "verify")]
    known = {parameter.name for one in commands if one is not None for parameter in one.params}
    assert {word for words in GROUPS.values() for word in words.split()} - known == {"help"}
