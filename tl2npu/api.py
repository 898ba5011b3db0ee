"""For Python programs: ``from tl2npu import migrate, check``. Documented in docs/api.md."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

from tl2npu.checked import CHECKS, ConfigError
from tl2npu.config import load_options
from tl2npu.files import skip_reason
from tl2npu.options import Options
from tl2npu.project.one import Task, display, process
from tl2npu.results import Change, Diagnostic, FileResult, KernelResult
from tl2npu.source.text import SourceError, read_source

__all__ = ["Change", "Diagnostic", "FileResult", "InputError", "KernelResult", "Options", "check", "migrate"]

_PATH = re.compile(r"\S+\.(?:py|ipynb)")


class InputError(ValueError):
    """A file that cannot be read, a text that is no Python, a notebook that is none, or an option with a wrong value.

    ``str()`` is one line for the user.
    """


def migrate(
    source: str | os.PathLike[str], *, filename: str | os.PathLike[str] | None = None, options: Options | None = None
) -> FileResult:
    """Migrate the kernels of one file; nothing is written and nothing of it is executed.

    ``source``: the text as a ``str``, or the file as a ``pathlib.Path``. ``filename``: what a text is called. It tells
    notebooks (``.ipynb``) and where modules of the repository are looked for, and need not exist. ``options``: by
    default what the nearest ``pyproject.toml`` says.

    ``new_text`` of the result is the whole new file, equal to ``old_text`` where nothing changes. A kernel that is
    refused is not an error: it has a verdict in ``kernels`` and a reason in ``diagnostics``. Raises InputError.
    """
    return _result("migrate", source, filename, options)


def check(
    source: str | os.PathLike[str], *, filename: str | os.PathLike[str] | None = None, options: Options | None = None
) -> FileResult:
    """Check the kernels of one file against the rules of Developer mode; the findings are in ``diagnostics``.

    Parameters and errors are those of :func:`migrate`. Each finding of severity ``error`` is one that the compiler
    rejects or gets wrong.
    """
    return _result("check", source, filename, options)


def _result(
    task: Task, source: str | os.PathLike[str], filename: str | os.PathLike[str] | None, options: Options | None
) -> FileResult:
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"the source must be a text or a path, not {type(source).__name__}")
    if isinstance(source, str) and _PATH.fullmatch(source):
        raise InputError(f"{source!r} is taken for a text, not for a file: give pathlib.Path({source!r})")
    if not isinstance(source, str) and filename is not None:
        raise TypeError("filename goes with a text: a path has its own name")
    path = Path("<text>" if filename is None else filename) if isinstance(source, str) else Path(source)
    name = display(path)
    try:
        chosen = load_options(path.absolute(), {}) if options is None else _checked(options)
        text = source if isinstance(source, str) else read_source(path, chosen.max_file_size).text
    except ConfigError as error:
        raise InputError(str(error)) from None
    except SourceError as error:
        raise InputError(f"{name}: {error}") from None
    if skip_reason(text.encode("utf-8", "replace")) is not None:
        return FileResult(name, text, text)
    result = process(task, text, name, chosen, debug=False)
    if result.error is not None:
        raise InputError(f"{name}: {result.error}")
    return result


def _checked(options: Options) -> Options:
    """Options whose values are of the right kind. Raises ConfigError."""
    if not isinstance(options, Options):
        raise TypeError(f"options must be tl2npu.Options, not {type(options).__name__}")
    for item in fields(options):
        if item.name in CHECKS:
            CHECKS[item.name](getattr(options, item.name), item.name)
    return options
