"""The examples of every rule are run through the tool."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.backends.support import Machine
from tests.evaluate.support import subjects
from tests.in_process import children_in_copies
from tests.late_products import late_products
from tests.rules.examples import Example, examples
from tests.verify.compiler_stand_in import bisheng, write
from tl2npu.cells import by_cells
from tl2npu.codes import CODES
from tl2npu.evaluate.compare import compared
from tl2npu.languages import check_source, migrate_source
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Backend, Options
from tl2npu.results import FileResult
from tl2npu.rules import Rule, load_rules
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.settings import Settings

# What is found by executing the example: with these settings, in a process of its own where that matters.
EXECUTED = {
    "TL906": Settings(),
    "TL907": Settings(),
    "TL908": Settings(),
    "TL909": Settings(),
    "TL910": Settings(),
    "TL911": Settings(timeout=2.0),
    "TL912": Settings(backend=Backend("npu")),
}
COMPILED = ("TL930", "TL931", "TL932", "TL933")  # found by a compiler, for which a stand-in is installed
# What a device does, of which there is a stand-in: with this fault.
ON_A_DEVICE = {
    "TL940": ("die-if-developer", Backend("npu")),
    "TL941": ("hang-if-developer", Backend("npu")),
    "TL942": ("uncompiled-if-developer", Backend("npu")),
    "TL943": ("differ-if-developer", Backend("npu")),
    "TL944": ("nan-if-developer", Backend("npu")),
    "TL945": ("finding", Backend("npu", sanitize="racecheck")),
    "TL946": ("refuses", Backend("npu", time=True)),
}
# What needs an option that the command line sets.
OPTIONS = {
    "TL100": Options(fp8="float16"),
    "TL197": Options(unsafe=True),
    "TL907": Options(self_check=False),
    "TL909": Options(self_check=False),
    "TL234": Options(threads="1"),
    "TL235": Options(threads="1"),
    "TL620": Options(fixed_core=True),
    "TL594": Options(target="tle-dsa"),
    "TL595": Options(target="tle-dsa"),
}
SIZES = {"TL701", "TL720"}  # that examples leave to their callers
FOR_NPUIR = {*range(401, 440), 453, 454, 455}  # of which the examples are migrated with `--to npuir`
NPUIR_CHECKS = range(460, 480)
KEPT_TRITON = range(771, 780)  # what `check` says of Triton kernels that stay
TRITON = ("triton", "a5")  # groups of pages whose kernels are Triton kernels
# Pages whose help asks for no edit of the example, or for one that is not an edit of one kernel: why.
WITHOUT_EDIT = {
    "tool": "the group: about files, options and machines, not kernels",
    "speed": "the group: hints that need a measurement",
}
# Pages whose help names an option: with it.
BY_OPTION = {"TL332": Options(keep_expert=True)}
EXAMPLES = [(page, example) for page in load_rules().values() for example in examples(page)]


def of_kind(kind: str, groups: Collection[str] = ()) -> pytest.MarkDecorator:
    """Each example of a kind, of all pages or of those of some groups."""
    chosen = [
        pytest.param(page, example, id=f"{page.code}-{example.line}")
        for page, example in EXAMPLES
        if example.kind == kind and (not groups or page.group in groups)
    ]
    return pytest.mark.parametrize(("page", "example"), chosen)


def options(page: Rule) -> Options:
    """The options of a page's examples."""
    target = "npuir" if int(page.code[2:]) in FOR_NPUIR else "ascendc"
    return OPTIONS.get(page.code, Options(target=target))  # type: ignore[arg-type]


def in_foreign_cell(text: str) -> FileResult:
    """What is said of a notebook with a cell that writes the example to a file."""
    cells = [{"cell_type": "code", "source": f"%%writefile kernel.py\n{text}"}]
    result = by_cells(json.dumps({"cells": cells}), "a.ipynb", lambda code: FileResult("a.ipynb", code, code))
    return replace(result, diagnostics=tuple(replace(item, line=item.line - 1) for item in result.diagnostics))


def on_a_device(page: Rule, example: Example) -> FileResult:
    """What is said where the stand-in has a fault."""
    fault, backend = ON_A_DEVICE[page.code]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        machine = Machine(Path(folder))
        patch.setenv("PATH", machine.environment["PATH"])
        patch.setenv("TL2NPU_STANDIN", fault)
        seconds = 4.0 if fault.startswith("hang") else 20.0
        settings = Settings(backend=replace(backend, python=str(machine.python)), timeout=seconds)
        with children_in_copies({str(machine.python): machine.modules}):
            return migrate_verified(example.text, f"{folder}/{page.code.lower()}.py", Options(), settings)


PLACES = {(page.code, example.line): (page, example) for page, example in EXAMPLES}


def run(page: Rule, example: Example) -> FileResult:
    """What the tool says of an example: several tests ask."""
    assert PLACES[page.code, example.line] == (page, example)
    return run_once(page.code, example.line)


@cache
def run_once(code: str, line: int) -> FileResult:
    """Limits are what ``check`` finds in the output; everything else is what ``migrate`` says."""
    page, example = PLACES[code, line]
    path = f"{page.code.lower()}.py"
    if page.code == "TL913":
        return in_foreign_cell(example.text)
    if example.beside:
        with TemporaryDirectory() as folder:
            for name, text in (*example.beside, ("pyproject.toml", ""), ("k.py", example.text)):
                (Path(folder) / name).write_text(text, encoding="utf-8")
            return migrate_text(example.text, f"{folder}/k.py", options(page))
    if page.code in COMPILED:
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(write(Path(folder))))
            patch.setenv("PATH", bisheng(Path(folder) / "bin", int(page.code == "TL933")) + f":{os.environ['PATH']}")
            with children_in_copies():
                return migrate_verified(example.text, path, Options(), Settings(backend=Backend("compile"), check=None))
    if page.code in EXECUTED:
        with children_in_copies():
            return migrate_verified(example.text, path, options(page), EXECUTED[page.code])
    if page.code in ON_A_DEVICE:
        return on_a_device(page, example)
    if int(page.code[2:]) in KEPT_TRITON:
        return check_source(example.text, path, Options())
    if page.group in TRITON:
        return migrate_source(example.text, path, options(page))
    if page.code == "TL970":
        with late_products():
            return migrate_text(example.text, path, options(page))
    checked = page.group == "output" or int(page.code[2:]) in NPUIR_CHECKS
    if page.group == "instructions" and example.after is None:
        checked = "is_npu=True" in example.text
    if checked and page.code != "TL883":
        return check_text(example.text, path, Options())
    return migrate_text(example.text, path, options(page))


@of_kind("edit")
def test_before_becomes_after(page: Rule, example: Example) -> None:
    result = run(page, example)
    assert result.error is None
    assert result.new_text == example.after
    assert page.code in {change.code for change in result.changes}


@of_kind("edit")
def test_after_stays(page: Rule, example: Example) -> None:
    assert example.after is not None
    again = (migrate_source if page.code == "TL594" else migrate_text)(example.after, "again.py", options(page))
    assert again.new_text == example.after
    assert again.changes == ()


@of_kind("edit")
def test_after_passes_the_checks(page: Rule, example: Example) -> None:
    assert example.after is not None
    result = check_text(example.after, "after.py", options(page))
    found = [finding for finding in result.diagnostics if finding.severity != "info"]
    assert [finding for finding in found if finding.code not in SIZES] == []


@of_kind("refused")
def test_finding_stands_on_the_marked_line(page: Rule, example: Example) -> None:
    result = run(page, example)
    if page.code == "TL901":  # nothing was read, so the finding is the error of the whole file
        assert result.error is not None
        assert result.error.startswith(f"line {example.expected[0][0]}: ")
        return
    assert result.error is None
    found = {(finding.line, finding.code) for finding in result.diagnostics}
    assert set(example.expected) <= found


@pytest.mark.sampled
@of_kind("accepted")
def test_accepted_kernels_are_not_reported(page: Rule, example: Example) -> None:
    result = run(page, example)
    assert result.error is None
    assert page.code not in {finding.code for finding in result.diagnostics}


@of_kind("accepted", TRITON)
def test_accepted_triton_kernels_are_migrated(page: Rule, example: Example) -> None:
    """What a page tells the reader to write instead goes all the way, not only past this rule."""
    result = run(page, example)
    assert {kernel.disposition for kernel in result.kernels} == {"migrated"}
    gone = "tle.gpu" if options(page).target == "tle-dsa" else "import triton"
    assert gone not in result.new_text.replace("triton.cdiv", "")


@pytest.mark.sampled
@of_kind("mended")
def test_the_edit_that_the_help_asks_for_ends_the_finding(page: Rule, example: Example) -> None:
    """No error is left, no warning that was not there before, and the kernel is migrated where it was to be."""
    refused = [other for other in examples(page) if other.kind == "refused" and other.line < example.line][-1]
    before = {finding.code for finding in run(page, refused).diagnostics if finding.severity != "error"}
    result = run(page, example)
    assert result.error is None
    left = {finding.code for finding in result.diagnostics if finding.severity != "info"}
    errors = {finding.code for finding in result.diagnostics if finding.severity == "error"}
    assert errors == set()
    assert left <= (before - {page.code}) | SIZES
    assert "refused" not in {kernel.disposition for kernel in result.kernels}


# Pages whose help changes what a kernel computes: why.
OTHER_NUMBERS = {
    "TL153": "the threads of the refused kernel add to one variable, in no order",
    "TL199": "the refused kernel stores one element after the other",
    "TL221": "the refused kernel leaves rows out",
    "TL323": "the refused kernel uses slices of an earlier turn",
    "TL324": "the refused kernel leaves the last slice out",
    "TL325": "the refused kernel forgets all slices but the last",
    "TL429": "the refused kernel subtracts from columns what belongs to rows",
    "TL445": "a kernel for AscendNPU IR has no vid to split rows by",
    "TL711": "the refused kernel converts in a way that the page warns of",
    "TL734": "another kernel of the same name goes",
    "TL735": "the kernel that stays for a GPU gets another body",
    "TL799": "the refused kernel leaves rows out",
    "TL831": "the sizes are fixed",
    "TL838": "the refused kernel takes a whole tile for a row",
    "TL852": "the host multiplies the indices",
}


@pytest.mark.sampled
@of_kind("mended")
def test_the_edit_that_the_help_asks_for_keeps_the_numbers(page: Rule, example: Example) -> None:
    """Where both kernels can be evaluated: on one vector core, as ``threads=2`` may be what is wrong."""
    if page.group in TRITON or example.beside:
        return
    refused = [other for other in examples(page) if other.kind == "refused" and other.line < example.line][-1]
    old, new = (
        {one.kernel.name: one for one in subjects(text.replace("threads=2", "threads=1"))}
        for text in (refused.text, example.text)
    )
    different = [name for name in old.keys() & new.keys() if compared(old[name], new[name]).equal is False]
    assert not different or page.code in OTHER_NUMBERS


def functions(text: str) -> list[str]:
    """The names of all functions of an example: what is edited keeps them."""
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]


@pytest.mark.thorough
def test_every_help_is_followed() -> None:
    """By a `diff mended`, an accepted example with the same functions and perhaps more, an option, or on a page of
    Triton any example that is migrated."""
    left = set()
    for page in load_rules().values():
        if page.safety != "display-only" or page.group in WITHOUT_EDIT:
            continue
        kinds = {example.kind for example in examples(page)}
        triton = page.group in TRITON and "accepted" in kinds
        refused = [functions(example.text) for example in examples(page) if example.kind == "refused"]
        accepted = [example for example in examples(page) if example.kind == "accepted"]
        same = [example for example in accepted if holds(functions(example.text), refused) and clean(page, example)]
        if not ("mended" in kinds or triton or same or page.code in BY_OPTION):
            left.add(page.code)
    assert left == set()


def holds(found: list[str], of_refused: list[list[str]]) -> bool:
    """Whether an example has all functions of a refused one: one kernel may become several."""
    return any(set(names) <= set(found) for names in of_refused)


@pytest.mark.parametrize("code", BY_OPTION)
def test_the_option_that_the_help_names_ends_the_finding(code: str) -> None:
    page = load_rules()[code]
    (refused,) = (example for example in examples(page) if example.kind == "refused")
    result = migrate_text(refused.text, "k.py", BY_OPTION[code])
    assert code not in {finding.code for finding in result.diagnostics}
    assert "--keep-expert" in CODES[code].remedy


def clean(page: Rule, example: Example) -> bool:
    return not any(finding.severity != "info" for finding in run(page, example).diagnostics)


@of_kind("refused", TRITON)
def test_triton_kernels_with_an_error_stay(page: Rule, example: Example) -> None:
    """A refused kernel is the page's own text in the result, and one with a note is migrated."""
    result = run(page, example)
    expected = "refused" if page.severity == "error" else "migrated"
    assert {kernel.disposition for kernel in result.kernels} == {expected}
    assert (result.new_text == example.text) == (page.severity == "error")
