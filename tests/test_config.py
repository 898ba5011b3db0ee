from __future__ import annotations

from pathlib import Path

import pytest

from tl2npu.config import ConfigError, common_directory, load_options
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
