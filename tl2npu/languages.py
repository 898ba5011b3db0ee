"""Which path the text of a file takes: TileLang, or Triton before that. What reads Triton is imported for it only, and
what migrates is not imported for a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tl2npu import checking, own_operators
from tl2npu.files import may_have_kernels
from tl2npu.options import Options
from tl2npu.results import Diagnostic, FileResult
from tl2npu.source.text import is_python
from tl2npu.source.triton_imports import is_triton, may_launch


def migrate_source(
    text: str,
    path: str,
    options: Options,
    leave: Mapping[int, Sequence[Diagnostic]] = MappingProxyType({}),
    together: bool = False,
    alone: Mapping[int, str] = MappingProxyType({}),
) -> FileResult:
    """Migrate every kernel of a text, in whatever language it is; parameters are those of ``migrate_text``."""

    def plain(code: str, left: Mapping[int, Sequence[Diagnostic]]) -> FileResult:
        return _migrate(code, path, options, left, together, alone)

    return own_operators.migrated(text, options.operators, leave, plain) if options.operators else plain(text, leave)


def _migrate(
    text: str,
    path: str,
    options: Options,
    leave: Mapping[int, Sequence[Diagnostic]],
    together: bool,
    alone: Mapping[int, str],
) -> FileResult:
    if options.target == "tle-dsa":
        if not is_triton(text.encode()):
            return FileResult(path, text, text)
        from tl2npu.triton.dsa.result import migrate_to_dsa

        return migrate_to_dsa(text, path, options, leave)
    if may_launch(text.encode()):
        from tl2npu.triton.result import launches_others, migrate_triton

        if is_triton(text.encode()) or launches_others(text, path):
            return migrate_triton(text, path, options, leave)
    if not may_have_kernels(text.encode()) and is_python(text):
        return _of_others(text, path, options, edit=options.target != "npuir")
    from tl2npu import migration

    if alone:
        return migration.migrate_text(text, path, options, leave, together=together, alone=alone)
    return migration.migrate_text(text, path, options, leave, together=together)


def _of_others(text: str, path: str, options: Options, *, edit: bool) -> FileResult:
    """A file without kernels, which may compile some of other files."""
    from tl2npu.imported import with_compiled

    return with_compiled(FileResult(path, text, text), options, edit=edit)[0]


def check_source(text: str, path: str, options: Options) -> FileResult:
    """Check every kernel of a text; Triton kernels are named, nothing is wrong with them."""
    if not may_have_kernels(text.encode()) and not is_triton(text.encode()) and is_python(text):
        return _of_others(text, path, options, edit=False)
    plain, found = own_operators.written(text, options.operators)
    result = checking.check_text(plain, path, options)
    if found:
        result = replace(result, old_text=text, new_text=text)
    if not is_triton(text.encode()):
        return result
    from tl2npu.triton.result import check_triton

    return check_triton(result, options)
