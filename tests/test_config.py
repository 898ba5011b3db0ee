from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tl2npu.checked import keys
from tl2npu.cli import cli
from tl2npu.config import ConfigError, common_directory, load_options, load_settings
from tl2npu.files import Patterns, Rules
from tl2npu.options import Options


def project(tmp_path: Path, text: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "sub").mkdir()
    return tmp_path / "sub"


def test_defaults(tmp_path: Path) -> None:
    assert load_options(project(tmp_path, "[tool.other]\nx = 1\n"), {}) == Options()
    assert Options().pass_config_policy == "needed"


def test_the_nearest_file_holds_and_the_command_line_wins(tmp_path: Path) -> None:
    sub = project(tmp_path, "[tool.tl2npu]\nthreads = 1\ndevice = 'A5'\nselect = ['TL8', 'TL201']\n")
    options = load_options(sub, {"device": "A3", "threads": None, "select": ()})
    assert options == Options(threads="1", device="A3", select=("TL8", "TL201"))
    (sub / "pyproject.toml").write_text("[tool.tl2npu]\npass-config-policy = 'four'\nmax_file_size = 10\n")
    assert load_options(sub, {}) == Options(pass_config_policy="four", max_file_size=10)


def test_the_language_to_write(tmp_path: Path) -> None:
    sub = project(tmp_path, "[tool.tl2npu]\nto = 'npuir'\ngrid2d = true\n")
    assert load_options(sub, {}) == Options(target="npuir", grid2d=True)
    assert load_options(sub, {"target": "ascendc"}) == Options(grid2d=True)


def test_codes_of_the_command_line_may_be_joined(tmp_path: Path) -> None:
    assert load_options(project(tmp_path, ""), {"ignore": ("TL201, TL202", "TL8")}).ignore == ("TL201", "TL202", "TL8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("thread = 1", "unknown key 'thread' in [tool.tl2npu], did you mean 'threads'?"),
        ("pass-config-polcy = 'four'", "did you mean 'pass-config-policy'?"),
        ("zzz = 1", "unknown key 'zzz' in [tool.tl2npu]"),
        ("threads = 3", "unknown value 3, use one of auto, 1, 2"),
        ("threads = true", "unknown value True"),
        ("to = 'npu'", "to: unknown value 'npu', did you mean 'npuir'?"),
        ("target = 'npuir'", "unknown key 'target'"),
        ("grid-2d = true", "did you mean 'grid2d'?"),
        ("device = 'A2X'", "did you mean 'A2'?"),
        ("ascend-version = '2020-01'", "ascend-version: unknown value '2020-01'"),
        ("select = 'TL201'", "must be a list of codes"),
        ("select = ['TL201X']", "no rule has the code 'TL201X', did you mean 'TL201'?"),
        ("max-file-size = 0", "number of bytes"),
        ("max-file-size = true", "number of bytes"),
        ("=", "not valid TOML"),
    ],
)
def test_wrong_settings(tmp_path: Path, line: str, message: str) -> None:
    sub = project(tmp_path, f"[tool.tl2npu]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_options(sub, {})
    assert message in str(caught.value)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_option_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--ascend-version: unknown value"):
        load_options(project(tmp_path, ""), {"ascend_version": "x"})


def test_common_directory(tmp_path: Path) -> None:
    for name in ("a/b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
    a = tmp_path / "a"
    assert common_directory([a / "b" / "x.py", a / "c"]) == a
    assert common_directory([a / "b" / "x.py"]) == a / "b"
    assert common_directory([]) == Path.cwd()


def test_every_setting_with_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sub = project(
        tmp_path,
        "[tool.tl2npu]\ninclude = ['kernels/**/*.py']\nexclude = ['old/']\nvendored = []\njobs = 3\ntimeout = 0\n"
        "cache = false\ncache-dir = 'c'\nallow-dirty = true\nexplain = true\nsubmodules = true\nforce-exclude = true\n",
    )
    monkeypatch.chdir(sub)
    settings = load_settings(sub, {"exclude": ("*_pb2.py",), "jobs": 5, "timeout": None, "device": "A3"})
    assert settings.rules == Rules(
        Patterns(("kernels/**/*.py",), tmp_path), Patterns(("*_pb2.py",), sub), (), submodules=True, force_exclude=True
    )
    assert (settings.jobs, settings.timeout, settings.cache, settings.cache_dir) == (5, 0.0, False, tmp_path / "c")
    assert (settings.allow_dirty, settings.explain, settings.options.device) == (True, True, "A3")
    assert settings.origins["jobs"] == settings.origins["exclude"] == settings.origins["device"] == "command line"
    assert settings.origins["timeout"] == str(tmp_path / "pyproject.toml")
    assert "threads" not in settings.origins
    assert set(settings.values()) == set(keys())


def test_a_file_without_the_table_does_not_hide_the_one_above(tmp_path: Path) -> None:
    sub = project(tmp_path, "[tool.tl2npu]\ndevice = 'A5'\n")
    (sub / "pyproject.toml").write_text("[project]\nname = 'part'\n")
    assert load_options(sub, {}).device == "A5"
    (sub / "pyproject.toml").write_text("[tool.tl2npu]\n")
    assert load_options(sub, {}).device == "A2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool]\ntl2npu = 3\n", "must be a table, not 3"),
        ("[tool.tl2npu]\ninclude = '*.py'\n", "must be a list of strings"),
        ("[tool.tl2npu]\ninclude = ['a', 'b***']\nexcude = []\n", "did you mean 'exclude'"),
        ("[tool.tl2npu]\njobs = -1\n", "whole number, 0 or more, not -1"),
        ("[tool.tl2npu]\ntimeout = 'x'\n", "number of seconds, 0 for no limit, not 'x'"),
        ("[tool.tl2npu]\ncache-dir = ''\n", "must be a directory"),
        ("[tool.tl2npu]\nverify = true\n", "unknown key 'verify'"),
        ("[tool.tl2npu]\njobs = -1\ncache = 1\nexplain = 2\n", "(and 2 more)"),
    ],
)
def test_wrong_settings_of_runs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_settings(project(tmp_path, text), {})


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = CliRunner().invoke
    assert call(cli, ["config", "--validate"]).output == "no pyproject.toml with a table [tool.tl2npu]\n"
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.tl2npu]\njobs = 3\nselect = ['TL8']\n")
    shown = call(cli, ["config"]).output
    assert "\njobs = 3\n" in shown
    assert '\nselect = ["TL8"]\n' in shown
    assert "\ncache = true  # default\n" in shown
    assert "\n# cache-dir is not set\n" in shown
    settings = json.loads(call(cli, ["config", "--format", "json"]).output)["settings"]
    assert settings["jobs"] == {"value": 3, "origin": str(file)}
    assert settings["cache"] == {"value": True, "origin": "default"}
    assert call(cli, ["config", "--validate"]).output == f"{file}: valid\n"
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "pyproject.toml").write_text(shown)  # what is shown can be used
    assert load_settings(copy, {}).values() == load_settings(tmp_path, {}).values()
    file.write_text("[tool.tl2npu]\njobs = -1\nselct = []\n")
    done = call(cli, ["config", "--validate"])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 2)
    assert "did you mean 'select'" in done.stderr
    assert len(json.loads(call(cli, ["config", "--validate", "--format", "json"]).output)["problems"]) == 2
    assert call(cli, ["config"]).exit_code == 2
