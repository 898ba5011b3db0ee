"""The hooks of pre-commit and the action of GitHub: their command lines and scripts are executed as they stand."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.in_process import python
from tl2npu.cli.output import FORMATS

ROOT = Path(__file__).resolve().parent.parent
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}
KERNEL = (ROOT / "fixtures" / "workspace" / "gemm_leaky_relu" / "before.py").read_bytes()
HOSTILE = '\'; touch stolen; "$(touch stolen)" `touch stolen` * & | > stolen ${{ x }}'


def git(*arguments: str, place: Path) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=place, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Somebody's repository, with a kernel that is staged."""
    git("init", "-q", place=tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    git("add", ".", place=tmp_path)
    git("commit", "-qm", "first", place=tmp_path)
    (tmp_path / "a b.py").write_bytes(KERNEL)
    git("add", ".", place=tmp_path)
    return tmp_path


def hook(name: str, repository: Path) -> int:
    """What pre-commit runs: the entry, and the files behind it."""
    program, *words = shlex.split(HOOKS[name]["entry"])
    assert program == "tl2npu"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return python("-m", "tl2npu", *words, "a b.py", "a.py", cwd=repository, environment=environment).returncode


def test_hooks_are_what_pre_commit_takes() -> None:
    assert set(HOOKS) == {"tl2npu-check", "tl2npu", "tl2npu-lint"}
    for item in HOOKS.values():
        assert item["language"] == "python"
        assert item["types_or"] == ["python", "jupyter"]
        assert item["require_serial"] is True
        assert {"name", "description", "entry"} <= item.keys()


def test_hooks_do_what_they_say(repository: Path) -> None:
    kernel = repository / "a b.py"
    assert hook("tl2npu-check", repository) == 1
    assert kernel.read_bytes() == KERNEL
    assert hook("tl2npu", repository) == 0
    assert kernel.read_bytes() == (ROOT / "fixtures/workspace/gemm_leaky_relu/after.py").read_bytes()
    assert hook("tl2npu-check", repository) == 0
    assert hook("tl2npu-lint", repository) == 0
    kernel.write_bytes(kernel.read_bytes().replace(b"init=(t == 0)", b"init=False"))
    assert hook("tl2npu-lint", repository) == 1


# The action


def run(step: str, place: Path, inputs: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of the action as a runner executes it; expressions are the inputs."""
    values = {name: str(item.get("default", "")) for name, item in ACTION["inputs"].items()} | inputs
    given = {}
    for name, expression in STEPS[step]["env"].items():
        assert expression.startswith("${{ inputs.")
        given[name] = values[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
    own = {
        "RUNNER_TEMP": str(place / "temp"),
        "GITHUB_OUTPUT": str(place / "output"),
        "GITHUB_STEP_SUMMARY": str(place / "summary"),
        "GITHUB_ACTION_PATH": str(ROOT),
    }
    script = place / "script.sh"
    script.write_text(STEPS[step]["run"], encoding="utf-8")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    everything = os.environ | own | given | environment
    return subprocess.run(command, cwd=place, env=everything, capture_output=True, encoding="utf-8", check=False)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A program in the place of tl2npu that writes down what it is called with; its exit code is 1."""
    text = f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open('told', 'w'))\nsys.exit(1)\n"
    program(tmp_path / "temp" / "tl2npu" / "bin" / "tl2npu", text)
    return tmp_path


def calls(place: Path) -> list[str]:
    words: list[str] = json.loads((place / "told").read_text(encoding="utf-8"))
    return words


def test_inputs_never_are_part_of_a_script() -> None:
    assert STEPS.keys() == {"Install tl2npu", "Run tl2npu"}
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    used = json.dumps(ACTION["runs"])
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in used] == []


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, ["migrate", "--check", "--format", "github", "--", "."]),
        ({"command": "check", "format": "text"}, ["check", "--format", "text", "--", "."]),
        ({"paths": "a b\n\n  \r\n-c\r\n*"}, ["migrate", "--check", "--format", "github", "--", "a b", "-c", "*"]),
        ({"paths": ""}, ["migrate", "--check", "--format", "github", "--"]),
        ({"args": " --to  npuir\n-j 2 * "}, [*"migrate --check --format github --to npuir -j 2 *".split(), "--", "."]),
        ({"sarif": "a b.sarif"}, [*"migrate --check --format github --report".split(), "a b.sarif", "--", "."]),
        (
            {"paths": HOSTILE, "args": HOSTILE, "format": HOSTILE},
            ["migrate", "--check", "--format", HOSTILE, *HOSTILE.split(), "--", HOSTILE],
        ),
    ],
)
def test_what_the_action_calls(told: Path, inputs: dict[str, str], expected: list[str]) -> None:
    (told / "some file").touch()  # for the star
    done = run("Run tl2npu", told, inputs)
    assert (done.returncode, done.stderr) == (1, "")
    assert calls(told) == expected
    assert (told / "output").read_text(encoding="utf-8") == "exit-code=1\n"
    assert not (told / "stolen").exists()


@pytest.mark.parametrize(
    "inputs", [{"command": "run"}, {"command": HOSTILE}, {"sarif": "log.json"}, {"sarif": HOSTILE}]
)
def test_inputs_that_are_refused(told: Path, inputs: dict[str, str]) -> None:
    done = run("Run tl2npu", told, inputs)
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=tl2npu::the input ")
    assert not (told / "told").exists()
    assert not (told / "stolen").exists()


def test_a_run_of_the_action(repository: Path) -> None:
    text = f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec '{sys.executable}' -m tl2npu \"$@\"\n"
    program(repository / "temp" / "tl2npu" / "bin" / "tl2npu", text)
    done = run("Run tl2npu", repository, {"sarif": "log.sarif", "paths": "a b.py\na.py"}, GITHUB_ACTIONS="true")
    assert done.returncode == 1
    assert "::warning file=a b.py,line=19,title=tl2npu migrate::gemm_leaky.kernel can be migrated" in done.stdout
    assert "1 file would change; 1 kernel: 1 migrated" in (repository / "summary").read_text(encoding="utf-8")
    assert json.loads((repository / "log.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    first, opening, name, closing = (repository / "output").read_text(encoding="utf-8").splitlines()
    assert (first, name) == ("exit-code=1", "log.sarif")
    assert opening == f"sarif<<{closing}"


@pytest.mark.parametrize(
    ("version", "expected"), [("", str(ROOT)), ("0.1.0", "tl2npu==0.1.0"), ("1.2rc1", "tl2npu==1.2rc1")]
)
def test_what_the_action_installs(tmp_path: Path, version: str, expected: str) -> None:
    python = '#!/bin/sh\nmkdir -p "$3/bin"\ncp "$0" "$3/bin/python"\nfor word; do echo "$word"; done >>told\n'
    program(tmp_path / "bin" / "python", python)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run("Install tl2npu", tmp_path, {"version": version}, PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    words = (tmp_path / "told").read_text(encoding="utf-8").splitlines()
    assert words[:3] == ["-m", "venv", str(tmp_path / "temp" / "tl2npu")]
    assert words[3:] == ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", expected]


@pytest.mark.parametrize(
    "version", ["git+https://example.org/x", "1.0 other", "-r file", HOSTILE, "1.0\n--index-url x"]
)
def test_versions_that_are_none(tmp_path: Path, version: str) -> None:
    done = run("Install tl2npu", tmp_path, {"version": version})
    assert (done.returncode, done.stdout) == (2, "::error title=tl2npu::the input version is not a version\n")
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("step", STEPS)
def test_scripts_pass_shellcheck(step: str, tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck")
    script = tmp_path / "script.sh"
    script.write_text("#!/bin/bash\n" + STEPS[step]["run"], encoding="utf-8")
    done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_formats_that_are_named_exist() -> None:
    text: Any = ACTION["inputs"]["format"]["description"]
    named = [word for word in text.split("`") if word.isalpha()]
    assert named
    assert set(named) <= set(FORMATS)
