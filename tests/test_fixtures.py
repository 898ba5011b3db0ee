"""Every whole-kernel fixture through every invariant: text, verdict, second run, self-check, patch, comments."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.fixture_case import DISPOSITIONS, STYLES, TARGETS, Case, load_all
from tl2npu.codes import CODES
from tl2npu.migrate import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.source.diff import unified_diff
from tl2npu.verified import VerifyResult
from tl2npu.verify.judge import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

CASES = load_all()
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
with_after = pytest.mark.parametrize("case", [c for c in CASES if c.has_after], ids=lambda case: case.name)

verified = [c for c in CASES if not c.name.startswith("refused/")]
every_verified_case = pytest.mark.parametrize("case", verified, ids=lambda case: case.name)

PASS_KEYS = (
    ("TL_ASCEND_AUTO_CV_COMBINE", "tl.ascend_auto_cv_combine"),
    ("TL_ASCEND_AUTO_CV_SYNC", "tl.ascend_auto_cross_core_sync"),
    ("TL_ASCEND_AUTO_SYNC", "tl.ascend_auto_sync"),
    ("TL_ASCEND_MEMORY_PLANNING", "tl.ascend_memory_planning"),
)


# what the tool does --------------------------------------------------------------------------------------------------


@every_case
def test_before_becomes_after(case: Case, tmp_path: Path) -> None:
    result = migrate(case, case.before, tmp_path)
    assert result.error is None
    assert result.new_text == case.after
    assert result.changed == (case.before != case.after)


@every_case
def test_verdicts(case: Case, tmp_path: Path) -> None:
    result = migrate(case, case.before, tmp_path)
    found = [(short(kernel.name), kernel.disposition, kernel.target) for kernel in result.kernels]
    assert found == [(kernel.name, kernel.disposition, kernel.target) for kernel in case.kernels]
    for kernel in case.kernels:
        own = [d for d in result.diagnostics if short(d.kernel) == kernel.name]
        said = {d.code for d in own} | {c.code for c in result.changes if short(c.kernel) == kernel.name}
        assert set(kernel.codes) <= said
        if kernel.disposition in ("partial", "refused"):
            reasons = [d for d in own if d.severity != "info"]
            assert reasons
            assert all(d.line >= 1 and d.message and d.help for d in reasons)


@every_case
def test_second_run_changes_nothing(case: Case, tmp_path: Path) -> None:
    again = migrate(case, case.after, tmp_path)
    assert again.new_text == case.after
    assert again.changes == ()


@every_case
def test_check_finds_no_error_in_developer_kernels(case: Case, tmp_path: Path) -> None:
    names = {kernel.name for kernel in case.in_developer_mode()}
    result = check_text(case.after, str(tmp_path / "after.py"), Options(**case.options))
    assert result.error is None
    assert [d for d in result.diagnostics if d.severity == "error" and short(d.kernel) in names] == []


@with_after
def test_patch_applies_with_git(case: Case, tmp_path: Path) -> None:
    result = migrate(case, case.before, tmp_path)
    assert result.new_text is not None
    target = tmp_path / "kernels" / "k.py"
    target.parent.mkdir()
    target.write_bytes(case.before.encode())
    patch = unified_diff(case.before.encode(), result.new_text.encode(), "kernels/k.py")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    applied = subprocess.run(["git", "apply", "-"], input=patch, cwd=tmp_path, capture_output=True)
    assert applied.returncode == 0, applied.stderr.decode()
    assert target.read_bytes().decode() == result.new_text


# what the tool proves ------------------------------------------------------------------------------------------------


@every_verified_case
def test_before_and_after_compute_the_same(case: Case) -> None:
    """On drawn inputs, launch by launch, without a hazard; Developer mode in both readings."""
    result = run_both(case, case.after)
    assert result.ok, [(d.code, d.message) for d in result.diagnostics]
    launched = [kernel for kernel in result.kernels if kernel.name.split(".")[0] == case.factory]
    assert [kernel.status for kernel in launched] == ["verified"]
    assert launched[0].verified is not None
    assert launched[0].verified.calls == 1
    assert all(comparison.outputs for comparison in result.comparisons)


# what a fixture must be ----------------------------------------------------------------------------------------------


@every_case
def test_case_file(case: Case) -> None:
    assert case.title
    assert case.pattern
    assert case.style in STYLES
    assert {"rtol", "atol"} <= case.tolerance.keys()
    assert [k.name for k in case.kernels] == list(prim_funcs(case.before))
    for kernel in case.kernels:
        assert kernel.disposition in DISPOSITIONS
        assert kernel.target in TARGETS
        assert set(kernel.codes) <= CODES.keys()
        assert (kernel.target == "none") == (kernel.disposition in ("refused", "unchanged"))
    changes = any(k.disposition in ("migrated", "partial") for k in case.kernels)
    assert case.has_after == changes == (case.before != case.after)


@every_case
def test_scripts_are_complete(case: Case) -> None:
    for text in case.scripts.values():
        assert text.endswith("\n")
        assert not {"\r", "\t"} & set(text)
        tree = ast.parse(text)
        factory = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == case.factory)
        arguments = factory.args.args + factory.args.kwonlyargs
        required = factory.args.args[: len(factory.args.args) - len(factory.args.defaults)]
        assert case.args.keys() <= {a.arg for a in arguments}
        assert {a.arg for a in required} <= case.args.keys()
        assert "torch" in imported(tree)
        assert "assert_close" in text


@every_case
def test_black_files_are_fixed_points_of_black(case: Case) -> None:
    black = pytest.importorskip("black")
    for text in case.scripts.values():
        assert (black.format_str(text, mode=black.Mode()) == text) == (case.style == "black")


@with_after
def test_host_code_stays(case: Case) -> None:
    """References and tests stay; only the calls that passed a workspace lose it."""
    if any("TL214" in kernel.codes for kernel in case.kernels):
        before, after = host_functions(case.before), host_functions(case.after)
        assert before.keys() == after.keys()
        assert sum(before[name] != after[name] for name in before) <= 1
    else:
        assert host_functions(case.before) == host_functions(case.after)


@with_after
def test_own_line_comments_survive(case: Case) -> None:
    expected = own_line_comments(case.before) - attached_to_removed_parameters(case)
    assert expected - own_line_comments(case.after) == Counter()
    assert own_line_comments(case.after) - own_line_comments(case.before) == Counter()


@with_after
def test_developer_form(case: Case) -> None:
    """Nothing of the older style is left, in code and not in comments."""
    old, new = prim_funcs(case.before), prim_funcs(case.after)
    for kernel in case.in_developer_mode():
        launch, names = kernel_launch(new[kernel.name])
        words = {n.id for n in ast.walk(new[kernel.name]) if isinstance(n, ast.Name)}
        words |= {a.arg for a in ast.walk(new[kernel.name]) if isinstance(a, ast.arg)}
        attributes = {n.attr for n in ast.walk(new[kernel.name]) if isinstance(n, ast.Attribute)}
        assert not {"alloc_L1", "alloc_L0C", "Scope", "barrier_all", "set_flag", "set_cross_flag"} & attributes
        assert not [word for word in words if "workspace" in word]
        if "TL201" in kernel.codes or kernel.target == "developer-threads1":
            threads = next(k.value for k in launch.keywords if k.arg == "threads")
            assert ast.literal_eval(threads) == (1 if kernel.target == "developer-threads1" else 2)
            assert len(names) == 1
            assert kernel_launch(old[kernel.name])[1][1] not in words


@with_after
def test_fallback_form(case: Case) -> None:
    """No scope, no manual sync, vid and every tensor still there, no pass switched off."""
    old, new = prim_funcs(case.before), prim_funcs(case.after)
    for kernel in case.kernels:
        if kernel.target != "fallback":
            continue
        attributes = {n.attr for n in ast.walk(new[kernel.name]) if isinstance(n, ast.Attribute)}
        assert not {a for a in attributes if a in ("Scope", "sync_all") or "barrier" in a or a.endswith("_flag")}
        assert kernel_launch(new[kernel.name])[1] == kernel_launch(old[kernel.name])[1]
        assert len(new[kernel.name].args.args) == len(old[kernel.name].args.args)
        for enum, string in PASS_KEYS:
            assert enum in case.after or string in case.after


# helpers -------------------------------------------------------------------------------------------------------------


def migrate(case: Case, text: str, folder: Path) -> FileResult:
    """Run the tool on a text, under a path with no configuration above it: black's defaults hold."""
    return migrate_text(text, str(folder / "kernel.py"), Options(**case.options))


def run_both(case: Case, after: str) -> VerifyResult:
    """Execute before and after with the arguments of the case, in this process."""
    call = Call(case.factory, case.args, case.inputs)
    old = Source(case.before, f"{case.name}/before.py", f"{case.name}/before.py")
    new = Source(after, f"{case.name}/after.py", f"{case.name}/after.py")
    return verify(old, new, Settings(calls=(call,)), here)


def short(kernel: str | None) -> str:
    """The prim_func's own name: results qualify it with the factory's."""
    return (kernel or "").rsplit(".", 1)[-1]


def prim_funcs(text: str) -> dict[str, ast.FunctionDef]:
    """The prim_funcs of a file in text order."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    found = [f for f in functions if any("prim_func" in ast.unparse(d) for d in f.decorator_list)]
    return {f.name: f for f in sorted(found, key=lambda f: f.lineno)}


def kernel_launch(function: ast.FunctionDef) -> tuple[ast.Call, list[str]]:
    """The ``T.Kernel(...)`` call of a prim_func and the names that it binds."""
    for node in ast.walk(function):
        if isinstance(node, ast.With):
            for item in node.items:
                call, target = item.context_expr, item.optional_vars
                if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "Kernel" and target:
                    return call, [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    raise AssertionError(f"{function.name} has no launch")


def imported(tree: ast.Module) -> set[str]:
    """Top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def host_functions(text: str) -> dict[str, str]:
    """Top-level functions without a prim_func, and the other top-level statements but imports and assignments."""
    tree = ast.parse(text)
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
            decorators = [ast.unparse(d) for f in functions for d in f.decorator_list]
            if not any("prim_func" in d or "macro" in d for d in decorators):
                found[node.name] = ast.dump(node)
        elif isinstance(node, ast.If):
            found[f"if {ast.unparse(node.test)}"] = ast.dump(node)
        elif isinstance(node, ast.Expr):
            found[f"{len(found)} expression"] = ast.dump(node)
    return found


def own_line_comments(text: str) -> Counter[str]:
    """The comments that stand alone on their lines, with how often each occurs."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT and t.line.strip() == t.string)


def attached_to_removed_parameters(case: Case) -> Counter[str]:
    """Own-line comments directly above parameters that are gone: they speak of the parameter."""
    gone: Counter[str] = Counter()
    lines = case.before.split("\n")
    new = prim_funcs(case.after)
    for name, function in prim_funcs(case.before).items():
        if len(new[name].args.args) == len(function.args.args):
            continue
        kept = {a.arg for a in new[name].args.args}
        for parameter in function.args.args:
            above = parameter.lineno - 2
            while parameter.arg not in kept and lines[above].strip().startswith("#"):
                gone[lines[above].strip()] += 1
                above -= 1
    return gone
