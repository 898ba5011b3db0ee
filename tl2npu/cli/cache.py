"""``tl2npu cache``."""

from __future__ import annotations

from pathlib import Path

import click

from tl2npu.cli.files import settings_of


@click.group()
def cache() -> None:
    """The remembered results of earlier runs."""


@cache.command("dir")
def directory() -> None:
    """Print where the cache of the working directory lies."""
    place = _place()
    if place is None:
        raise click.UsageError("no project here: a cache needs a pyproject.toml, a git repository or cache-dir")
    click.echo(place)


@cache.command()
def clear() -> None:
    """Remove the cache of the working directory."""
    from tl2npu.project.cache import clear as cleared

    place = _place()
    try:
        freed = 0 if place is None else cleared(place)
    except OSError as error:
        raise click.ClickException(f"cannot remove {place}: {error.strerror or error}") from None
    click.echo(f"{freed:,} bytes removed")


def _place() -> Path | None:
    from tl2npu.project.cache import cache_directory

    settings = settings_of([], {})
    return cache_directory(Path.cwd(), settings.cache_dir, settings.file)
