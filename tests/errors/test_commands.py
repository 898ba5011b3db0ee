"""``tl2npu rule --error`` and ``tl2npu explain-log``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.errors.test_log import DEVICE
from tl2npu.cli import cli


def call(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def test_a_code() -> None:
    done = call("rule", "--error", "107000")
    assert done.exit_code == 0
    assert done.stdout.startswith("cause: 107000 (runtime)\n")
    assert "65,535" in done.stdout
    assert "  rules:  TL817 too-many-blocks, TL881 symbolic-grid\n" in done.stdout
    assert "tile-ai/tilelang-ascend#666" in done.stdout


def test_a_symptom_says_that_it_is_one() -> None:
    done = call("rule", "--error", "507015")
    assert done.stdout.endswith("Nothing here says why it happened. The cause stands beside it in the log: "
                                "`tl2npu explain-log FILE`.\n")  # fmt: skip


def test_words_are_told_from_messages() -> None:
    one, several = (call("rule", "--error", words).stdout for words in ("vec instruction align", "aicore exception"))
    assert one.startswith("The message with these words:\n\ncause: ub-")
    assert several.startswith("Messages with these words, the closest first:\n")


def test_what_is_unknown() -> None:
    for done in (call("rule", "--error", "zebra"), call("explain-log", "-", stdin="all is well\n")):
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("nothing ")


def test_usage() -> None:
    for arguments in (["rule"], ["rule", "TL801", "--error", "x"], ["explain-log"], ["explain-log", "no-such-file"]):
        assert call(*arguments).exit_code == 2


def test_a_log(tmp_path: Path) -> None:
    file = tmp_path / "plog.log"
    file.write_text(DEVICE, encoding="utf-8")
    done = call("explain-log", str(file))
    assert done.exit_code == 0
    assert done.stdout.startswith("line 5, 2 lines: cause: ub-out-of-bounds (AI core)\n")
    assert "  bits:   62 of the error registers\n" in done.stdout
    assert "\nline 1: symptom: 507035 (runtime): vector core exception\n" in done.stdout
    assert call("explain-log", "-", stdin=DEVICE).stdout == done.stdout


def test_a_log_of_symptoms() -> None:
    done = call("explain-log", "-", stdin="x\nerror code is 507035\n")
    assert done.stdout.startswith("line 2: symptom: 507035 (runtime)\n")
    assert done.stdout.endswith("The cause stands in another log, or above.\n")


def test_json() -> None:
    told = json.loads(call("explain-log", "-", "--format", "json", stdin=DEVICE).stdout)
    assert set(told) == {"version", "found", "similar", "skipped"}
    first = told["found"][0]
    assert (first["key"], first["kind"], first["layer"], first["line"], first["count"], first["bits"]) == (
        "ub-out-of-bounds", "cause", "AI core", 5, 2, [62]
    )  # fmt: skip
    assert first["rules"][0] == {"code": "TL801", "name": "memory-capacity"}
    assert json.loads(call("rule", "--error", "v_thread", "--format", "json").stdout)["similar"][0]["rules"]
    nothing = call("explain-log", "-", "--format", "json", stdin="")
    assert (nothing.exit_code, json.loads(nothing.stdout)["found"]) == (1, [])


@pytest.mark.parametrize("arguments", [["rule", "--error", "507015"], ["explain-log", "-"]])
def test_neither_parser_nor_simulator_is_imported(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom tl2npu.cli import cli\n"
        f"try: cli({arguments!r})\n"
        "except SystemExit: pass\n"
        "assert not {'libcst', 'black', 'numpy'} & set(sys.modules)\nprint('quick')"
    )
    done = subprocess.run([sys.executable, "-c", code], input="error code is 507015", capture_output=True, text=True)
    assert done.stdout.endswith("quick\n"), done.stderr


def test_a_directory_of_logs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plog-2.log").write_text("507015\n")
    (tmp_path / "plog-1.log").write_text("nothing\n")
    result = call("explain-log", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{tmp_path / 'run' / 'plog-2.log'}:\nline 1: symptom: 507015")
    known = json.loads(call("explain-log", "--format", "json", str(tmp_path)).stdout)["logs"]
    assert list(known) == [str(tmp_path / "plog-1.log"), str(tmp_path / "run" / "plog-2.log")]


def test_a_directory_without_logs(tmp_path: Path) -> None:
    assert call("explain-log", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize("text", ["507046: x", "507015: aicore timeout", "507035 507046"])
def test_codes_between_words(text: str) -> None:
    result = call("rule", "--error", text)
    assert result.exit_code == 0
    assert all(f"symptom: {code} (" in result.stdout for code in re.findall(r"\d{6}", text))


def test_what_check_says_of_a_slice_as_operand() -> None:
    assert "TL744" in call("rule", "--error", "has no attribute access_ptr").stdout


def test_the_note_of_tvm_is_no_exception_of_torch_npu() -> None:
    result = call("rule", "--error", "note: run with `TVM_BACKTRACE=1` environment variable to display a backtrace.")
    assert "torch_npu" not in result.stdout
