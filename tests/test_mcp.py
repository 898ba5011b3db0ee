"""``tl2npu mcp``, asked by the client of the protocol's own SDK."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.verify.support import SCRIPT
from tl2npu.extras import pip_command

ROOT = Path(__file__).resolve().parent.parent
with_sdk = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(SCRIPT)
    (folder / "broken.py").write_text("import tilelang\ndef f(:\n")
    (tmp_path / "secret.py").write_text("x = 1\n")
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    return folder


def talk(folder: Path, what: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start the server as a client does, and do something with the client."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    arguments = ["-m", "tl2npu", "mcp", "--root", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)

    async def session() -> Any:
        async with Client(stdio_client(server)) as client:
            return await what(client)

    return asyncio.run(asyncio.wait_for(session(), 300))


def answer(result: Any) -> str:
    return "".join(part.text for part in result.content)


@with_sdk
def test_the_tools_and_what_they_say_of_themselves(project: Path) -> None:
    async def ask(client: Any) -> Any:
        return await client.list_tools()

    tools = {tool.name: tool for tool in talk(project, ask).tools}
    assert set(tools) == {"migrate", "check", "verify", "explain"}
    assert "EXECUTES" in tools["verify"].description
    assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["verify"]
    assert all("EXECUTE" not in tool.description for name, tool in tools.items() if name != "verify")
    assert tools["migrate"].input_schema["required"] == ["path"]


@with_sdk
def test_a_kernel_is_migrated_checked_verified_and_explained(project: Path) -> None:
    async def ask(client: Any) -> list[str]:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("migrate", {"path": "k.py"}),
            ("migrate", {"path": "k.py", "threads": "1", "notes": True}),
            ("check", {"path": "k.py"}),
            ("verify", {"old": "k.py", "calls": ["scale(rows=64)"]}),
            ("verify", {"old": "k.py", "calls": "scale(rows=64)"}),
            ("explain", {"code": "TL848"}),
            ("explain", {"code": "507015"}),
        ]
        results = [await client.call_tool(name, given) for name, given in calls]
        assert not any(result.is_error for result in results)
        return [answer(result) for result in results]

    before = (project / "k.py").read_text()
    migrated, narrow, checked, verified, alone, explained, error = talk(project, ask)
    assert "+        with T.Kernel(rows // 32, threads=2, is_npu=True) as (cid):" in migrated
    assert "k.py:16 scale.main: migrated -> developer" in migrated
    patch = migrated[: migrated.index("k.py:16 ")]
    done = subprocess.run(["git", "apply", "--check", "-"], cwd=project, input=patch, text=True, check=False)
    assert done.returncode == 0
    assert "threads=1" in narrow
    assert "1 kernel" in checked
    assert verified.split("\n")[-2].startswith("verified: the migration of ")
    assert alone == verified
    assert explained.startswith("TL848 ")
    assert error.startswith("symptom: 507015 ")
    assert (project / "k.py").read_text() == before


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("migrate", {"path": "../secret.py"}, "../secret.py: outside of the root"),
    ("check", {"path": "link.py"}, "link.py: outside of the root"),
    ("verify", {"old": "k.py", "new": "/etc/hosts"}, "/etc/hosts: outside of the root"),
    ("check", {"path": "none.py"}, "none.py: no such file"),
    ("migrate", {"path": "broken.py"}, "broken.py: line 2: syntax error"),
    ("verify", {"old": "k.py", "calls": ["scael(rows=64)"]}, "there is no factory 'scael', did you mean 'scale'?"),
    ("verify", {"old": "k.py", "calls": ["scale"]}, "is not a call"),
    ("verify", {"old": "k.py", "timeout": -1.0}, "--verify-timeout: must be a number of seconds above 0"),
    ("explain", {"code": "TL999"}, "no rule 'TL999'"),
    ("verify", {"old": "k.py", "calls": "scale"}, "--args 'scale' is not a call of a factory"),
    ("verify", {"old": "k.py", "calls": 7}, "verify: `calls`: Input should be a valid "),
    ("migrate", {"path": "k.py", "threads": "3"}, "migrate: `threads`: Input should be 'auto', '1' or '2'"),
    ("check", {}, "check: `path`: Field required"),
]


@with_sdk
def test_bad_input_is_an_error_that_can_be_read(project: Path) -> None:
    async def ask(client: Any) -> Any:
        return [await client.call_tool(tool, given) for tool, given, _ in BAD]

    for result, (tool, given, said) in zip(talk(project, ask), BAD, strict=True):
        assert result.is_error, (tool, given)
        assert said in answer(result)
        assert "\n" not in answer(result)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else real(name, *rest)\n"
    )
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "tl2npu", "mcp"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, f"tl2npu mcp needs mcp: {pip_command('mcp')}\n")
