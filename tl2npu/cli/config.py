"""``tl2npu config``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tl2npu.cli.files import settings_of
from tl2npu.cli.options import STYLE

if TYPE_CHECKING:
    from tl2npu.config import Settings


@click.command(short_help="Show the effective settings and their sources.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--validate", is_flag=True, help="Only list what is wrong with the configuration.")
@STYLE
def config(paths: tuple[Path, ...], validate: bool, style: str) -> None:
    """Show the effective settings for PATHS (default: the working directory) and their sources.

    Exit codes: 0 valid, 2 not.
    """
    if validate:
        _validate(list(paths), style)
        return
    settings = settings_of(list(paths), {})
    if style == "json":
        click.echo(json.dumps(_object(settings), indent=2))
        return
    click.echo("# no pyproject.toml with a table [tool.tl2npu]" if settings.file is None else f"# {settings.file}")
    click.echo("[tool.tl2npu]")
    for key, value in settings.values().items():
        line = f"{key} = {_toml(value)}" if value is not None else f"# {key} is not set"
        click.echo(line if key in settings.origins else f"{line}  # default" if value is not None else line)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def _object(settings: Settings) -> dict[str, Any]:
    file = None if settings.file is None else settings.file.as_posix()
    return {
        "version": 1,
        "file": file,
        "settings": {
            key: {"value": value, "origin": settings.origins.get(key, "default")}
            for key, value in settings.values().items()
        },
    }


def _validate(paths: list[Path], style: str) -> None:
    """All problems, one line each."""
    from tl2npu.config import ConfigError, common_directory, find_table, read_table
    from tl2npu.project.cache_folder import CacheError, cache_directory

    start = common_directory(paths)
    file: Path | None = None
    problems: list[str] = []
    try:
        file, table = find_table(start)
        if file is not None:
            values, problems = read_table(file, table)
            cache_directory(start, file.parent / values["cache_dir"] if "cache_dir" in values else None, file)
    except (ConfigError, CacheError) as error:
        problems.append(str(error))
    if style == "json":
        shown = None if file is None else file.as_posix()
        click.echo(json.dumps({"version": 1, "file": shown, "problems": problems}, indent=2))
    else:
        for problem in problems:
            click.echo(problem, err=True)
        if not problems:
            click.echo("no pyproject.toml with a table [tool.tl2npu]" if file is None else f"{file}: valid")
    if problems:
        raise SystemExit(2)
