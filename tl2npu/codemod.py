"""The migration as a codemod of LibCST: ``python -m libcst.tool codemod -x tl2npu.codemod.MigrateCommand FILES``.

It writes what ``tl2npu migrate`` writes; docs/codemod.md says how LibCST finds it, and what it lacks.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from tl2npu.config import load_options
from tl2npu.files import may_have_kernels, skip_reason
from tl2npu.options import Fp8, PassConfigPolicy, Target, Threads
from tl2npu.project.one import process
from tl2npu.results import Diagnostic

_CHOICES = {"to": Target, "threads": Threads, "fp8": Fp8, "pass_config_policy": PassConfigPolicy}
_NAMES = ("device", "ascend_version")
_NUMBERS = ("rows_per_block",)
_SWITCHES = ("grid2d", "fixed_core", "keep_expert", "unsafe", "partial", "notes")


class MigrateCommand(CodemodCommand):
    """Migrates the kernels of each file; what stands in the way of one is a warning."""

    DESCRIPTION = "Migrate TileLang kernels to Ascend Developer mode. Use --no-format: tl2npu lays out what it writes."

    def __init__(self, context: CodemodContext, **given: Any) -> None:
        super().__init__(context)
        self._given = {"target" if name == "to" else name: value for name, value in given.items()}

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """The options of ``tl2npu migrate`` that bear on what is written, with its defaults."""
        help = "as in `tl2npu migrate --help`"
        for name, values in _CHOICES.items():
            arg_parser.add_argument(_option(name), choices=get_args(values), default=None, help=help)
        for name in _NAMES:
            arg_parser.add_argument(_option(name), metavar="NAME", default=None, help=help)
        for name in _NUMBERS:
            arg_parser.add_argument(_option(name), metavar="N", type=int, default=None, help=help)
        for name in _SWITCHES:
            arg_parser.add_argument(_option(name), action="store_true", default=None, help=help)

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The migrated module; a file that asks to be left alone is skipped, a broken option is an error."""
        text, name = tree.code, self.context.filename or "<stdin>"
        reason = skip_reason(text.encode())
        if reason is not None:
            raise SkipFile(reason)
        if not may_have_kernels(text.encode()):
            return tree
        options = load_options(Path(name) if self.context.filename else Path.cwd(), self._given)
        result = process("migrate", text, name, options, debug=True)
        if result.error is not None:
            raise ValueError(result.error)
        for item in result.diagnostics:
            self.warn(_told(item))
        if result.new_text is None or not result.changed:
            return tree
        return cst.parse_module(result.new_text, config=tree.config_for_parsing)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _told(item: Diagnostic) -> str:
    help = f" (help: {item.help})" if item.help else ""
    return f"line {item.line}: {item.severity} {item.code} {item.name}: {item.message}{help}"
