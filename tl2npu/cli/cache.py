"""``tl2npu cache``."""

from __future__ import annotations

from pathlib import Path

import click

from tl2npu.cli.files import cache_place, settings_of


@click.group()
def cache() -> None:
    """Manage the result cache."""


@cache.command("dir")
def directory() -> None:
    """Print the cache directory of the working directory."""
    place = _place()
    if place is None:
        raise click.UsageError("no project here: a cache needs a pyproject.toml, a git repository or cache-dir")
    click.echo(place)


@cache.command()
def clear() -> None:
    """Remove the cache of the working directory; files that are not tl2npu's stay."""
    from tl2npu.project.cache_folder import NAME, CacheError
    from tl2npu.project.cache_folder import clear as cleared

    place = _place() or Path(NAME)  # what is in its place is said
    try:
        freed = cleared(place)
    except CacheError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot remove {place}: {error.strerror or error}") from None
    click.echo(f"{freed:,} bytes removed" + (f"; other files in {place} stay" if place.exists() else ""))


def _place() -> Path | None:
    return cache_place(Path.cwd(), settings_of([], {}))
