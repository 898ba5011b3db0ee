"""``tl2npu mcp``: tools for coding agents over the Model Context Protocol, on the standard streams (docs/mcp.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from tl2npu import __version__, api
from tl2npu.config import ConfigError, load_options
from tl2npu.options import Target, Threads
from tl2npu.report import verify as verify_report
from tl2npu.report.build import build
from tl2npu.report.errors import answer
from tl2npu.report.model import Run
from tl2npu.report.text import TextReport
from tl2npu.results import FileResult
from tl2npu.rules import RuleError, find_rule
from tl2npu.source.diff import unified_diff
from tl2npu.verify.calls import parse_call
from tl2npu.verify.command import verify_files
from tl2npu.verify.settings import Settings, UsageError

_INSTRUCTIONS = """Migrates TileLang GPU kernels, and Ascend kernels in Expert mode or in older styles, to Developer
mode for Ascend NPUs. Nothing writes files: `migrate` gives a patch for `git apply`. Apply it, then call `check` and
`verify` on the new file. Refused kernels have a numbered diagnostic (TL184): `explain` tells what to do."""
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_EXECUTES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)


def serve(root: Path) -> None:
    """Serve a client on the standard streams until it goes. The tools take files below ``root`` only."""
    server(root).run("stdio")


def server(root: Path) -> MCPServer:
    """The server with its tools."""
    top = root.resolve()

    def migrate(
        path: str, to: Target = "ascendc", threads: Threads = "auto", partial: bool = False, notes: bool = False
    ) -> str:
        """Migrate the kernels of a .py or .ipynb file: a unified diff that `git apply` takes, then the verdict on each
        kernel and the findings. Nothing is written and nothing is executed. `partial` puts `TODO(tl2npu)` comments in
        refused kernels, `notes` puts `NOTE(tl2npu)` comments in migrated ones, where a person should look."""
        file = _inside(top, path)
        given = {"target": to, "threads": threads, "partial": partial or None, "notes": notes or None}
        result = api.migrate(file, options=load_options(file, given))
        old, new = result.old_text or "", result.new_text or ""
        return unified_diff(old.encode(), new.encode(), result.path).decode() + _report(result, "migrate")

    def check(path: str) -> str:
        """Check the kernels of a file against the rules of Developer mode: findings with code, line and help. Nothing
        is executed."""
        file = _inside(top, path)
        return _report(api.check(file, options=load_options(file, {})), "check")

    def verify(
        old: str,
        new: str | None = None,
        calls: list[str] | str | None = None,
        shrink: bool = False,
        timeout: float = 0.0,
    ) -> str:
        """EXECUTES the code of the files, with the rights of this server. Runs the kernels of `old` and `new` (without
        `new`: of the migration of `old`) on the same inputs, on a simulator, and compares every tensor. `calls`, as
        "matmul(M=256, N=256, K=128)", launch kernels that no script launches; `shrink` makes their extents smaller.
        `timeout`: CPU seconds for each kernel, 0 for the default."""
        first = _inside(top, old)
        options = load_options(first, {"verify_timeout": timeout or None})
        settings = Settings(
            device=options.device,
            timeout=options.verify_timeout,
            shrink=shrink,
            check=options,
            fp8=options.fp8,
            calls=tuple(map(parse_call, [calls] if isinstance(calls, str) else calls or ())),
        )
        return verify_report.text(verify_files(first, None if new is None else _inside(top, new), settings, options))

    def explain(code: str) -> str:
        """Explain a rule, by its code (TL848) or its name: what it means, why, examples, and what to write instead. Or
        an error code of CANN (507015), or a message of compiler, runtime or device: cause, what to do, its rules."""
        try:
            rule = find_rule(code)
        except RuleError:
            if known := answer(code):
                return known
            raise
        return f"{rule.code} {rule.name} ({rule.group})\n\n{rule.text.strip()}\n"

    made = _Server("tl2npu", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    for tool in (migrate, check, verify, explain):
        hints = _EXECUTES if tool is verify else _READS
        made.tool(annotations=hints, structured_output=False)(_one_at_a_time(tool))
    return made


class _Server(MCPServer):
    """The SDK's, which answers arguments of a wrong type with several lines of its validator, with a line in place."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """As the SDK does it."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            wrong = getattr(error.__cause__, "errors", None)
            if wrong is None:
                raise
            told = dict.fromkeys(f"`{item['loc'][0]}`: {item['msg']}" for item in wrong() if item["loc"])
            raise ToolError(f"{name}: {'; '.join(told)}") from None


def _one_at_a_time(tool: Callable[..., str]) -> Callable[..., str]:
    """The tool for one thread at a time, as a migration is; bad input is an error with its one line."""

    @wraps(tool)
    def alone(*args: object, **kwargs: object) -> str:
        with _LOCK:
            try:
                return tool(*args, **kwargs)
            except (api.InputError, ConfigError, UsageError, RuleError) as error:
                raise ToolError(str(error)) from None

    return alone


_LOCK = Lock()


def _inside(root: Path, path: str) -> Path:
    """The file of a path relative to the root. Raises InputError for what is outside of it, links followed."""
    file = (root / path).resolve()
    if not file.is_relative_to(root):
        raise api.InputError(f"{path}: outside of the root {root}")
    if not file.is_file():
        raise api.InputError(f"{path}: no such file")
    return file


def _report(result: FileResult, task: Literal["migrate", "check"]) -> str:
    run = Run(__version__, task, written=False)
    return TextReport(changes=False).render(build(run, [result], diffs="none"))
