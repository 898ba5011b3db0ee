"""Every whole-kernel fixture through every invariant: text, verdict, second run, self-check, patch, comments."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import tokenize
import zlib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TypeGuard

import black
import pytest

from tests.each import each
from tests.fixture_case import DISPOSITIONS, STYLES, TARGETS, Case, load_all
from tl2npu.codes import CODES, ROW_SPLIT
from tl2npu.migration import check_text, migrate_text
from tl2npu.options import Options
from tl2npu.results import FileResult
from tl2npu.source.diff import unified_diff
from tl2npu.verified import VerifyResult
from tl2npu.verify.judge import verify
from tl2npu.verify.loading import Source
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

_REASONS = tuple(
    f"# TL{code}: " for code in (108, 133, 138, 139, 155, 612, 623, 624, 763, *(int(code[2:]) for code in ROW_SPLIT))
)
"""Comments that say why a line is there which a reader would not expect."""

CASES = load_all()
every_case = each(CASES, lambda case: case.name)
with_after = each([c for c in CASES if c.has_after], lambda case: case.name)
VERIFIED = [c for c in CASES if not c.name.startswith("refused/")]

PASS_KEYS = (
    ("TL_ASCEND_AUTO_CV_COMBINE", "tl.ascend_auto_cv_combine"),
    ("TL_ASCEND_AUTO_CV_SYNC", "tl.ascend_auto_cross_core_sync"),
    ("TL_ASCEND_AUTO_SYNC", "tl.ascend_auto_sync"),
    ("TL_ASCEND_MEMORY_PLANNING", "tl.ascend_memory_planning"),
)

GPU_ONLY = frozenset(
    "gemm clear cumsum reduce_absmax reduce_abssum exp2 log2 tanh use_swizzle alloc_local const empty GemmWarpPolicy "
    "annotate_layout if_then_else clamp float16 bfloat16 int8 uint8".split()
)
"""Names of GPU kernels that Developer mode has no use for, in this spelling."""

DTYPES = frozenset("float16 bfloat16 float32 int8 uint8 int32".split())


# what the tool does --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    """Each fixture; of the module, so that its tests follow one another and share what is migrated."""
    found = request.param
    assert isinstance(found, Case)
    return found


@pytest.fixture(scope="module")
def migrated(case: Case, tmp_path_factory: pytest.TempPathFactory) -> FileResult:
    """What the tool makes of ``before``."""
    return migrate(case, case.before, tmp_path_factory.mktemp("migrated"))


def test_before_becomes_after(case: Case, migrated: FileResult) -> None:
    assert migrated.error is None
    assert migrated.new_text == case.after
    assert migrated.changed == (case.before != case.after)


def test_verdicts(case: Case, migrated: FileResult) -> None:
    found = [(short(kernel.name), kernel.disposition, kernel.target) for kernel in migrated.kernels]
    assert found == [(kernel.name, kernel.disposition, kernel.target) for kernel in case.kernels]
    for kernel in case.kernels:
        own = [d for d in migrated.diagnostics if short(d.kernel) == kernel.name]
        said = {d.code for d in own} | {c.code for c in migrated.changes if short(c.kernel) == kernel.name}
        assert set(kernel.codes) <= said
        if kernel.disposition in ("partial", "refused"):
            reasons = [d for d in own if d.severity != "info"]
            assert reasons
            assert all(d.line >= 1 and d.message and d.help for d in reasons)


def test_patch_applies_with_git(case: Case, migrated: FileResult, tmp_path: Path) -> None:
    assert migrated.new_text is not None
    patch = unified_diff(case.before.encode(), migrated.new_text.encode(), "kernels/k.py")
    assert bool(patch) == case.has_after
    if patch:
        target = tmp_path / "kernels" / "k.py"
        target.parent.mkdir()
        target.write_bytes(case.before.encode())
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}  # in no repository
        applied = subprocess.run(["git", "apply", "-"], input=patch, cwd=tmp_path, capture_output=True, env=alone)
        assert applied.returncode == 0, applied.stderr.decode()
        assert target.read_bytes().decode() == migrated.new_text


def test_second_run_changes_nothing(case: Case, tmp_path: Path) -> None:
    again = migrate(case, case.after, tmp_path)
    assert again.new_text == case.after
    assert again.changes == ()


def test_check_finds_no_error_in_developer_kernels(case: Case, tmp_path: Path) -> None:
    written = [*case.in_developer_mode(), *(kernel for kernel in case.kernels if kernel.target == "npuir")]
    names = {kernel_after(case, kernel.name).name for kernel in written}
    result = check_text(case.after, str(tmp_path / "after.py"), Options(**case.options))
    assert result.error is None
    assert [d for d in result.diagnostics if d.severity == "error" and short(d.kernel) in names] == []


@pytest.mark.thorough
def test_black_files_are_fixed_points_of_black(case: Case) -> None:
    """The new file, most of whose lines are the old ones; an old file that is none says so."""
    text = case.after if case.style == "black" else case.before
    assert (black.format_str(text, mode=black.Mode()) == text) == (case.style == "black")


# what the tool proves ------------------------------------------------------------------------------------------------


@pytest.mark.sampled  # all of them are evaluated in every run, as they are migrated
@pytest.mark.parametrize("case", VERIFIED, ids=lambda case: case.name)
def test_before_and_after_compute_the_same(case: Case) -> None:
    """On drawn inputs, launch by launch, without a hazard; Developer mode in both readings."""
    result = run_both(case, case.after)
    assert result.ok, [(d.code, d.message) for d in result.diagnostics]
    launched = [kernel for kernel in result.kernels if kernel.name.split(".")[0] == case.factory]
    if case.after == case.before:
        assert [kernel.status for kernel in launched] == ["unchanged"]
    else:
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
    assert [k.name for k in case.kernels] == list(kernels(case.before))
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
        arguments = {a.arg for a in factory.args.args + factory.args.kwonlyargs}
        required = {a.arg for a in factory.args.args[: len(factory.args.args) - len(factory.args.defaults)]}
        if is_eager(factory):  # is called with tensors; its extents are declared inside
            extents = declared_extents(factory)
            arguments |= extents
            required = (required - declared_tensors(factory)) | extents
        lost = set() if text == case.before else lost_parameters(case)
        assert case.args.keys() - lost <= arguments
        assert required <= case.args.keys()
        assert "torch" in imported(tree)
        assert "assert_close" in text


@with_after
def test_host_code_stays(case: Case) -> None:
    """References and tests stay; only the calls that passed a workspace lose it, and code for a GPU is for an NPU."""
    if case.of_gpu:
        gone = top_level(case.before) - top_level(case.after)
        assert gone <= device_helpers(case.before)
        assert gpu_host(case, without_lost_arguments(case), gone) == gpu_host(case, case.after, set())
    elif case.from_npuir:
        assert host_functions(without_mode(case.before)) == host_functions(without_mode(case.after))
    elif any("TL214" in kernel.codes for kernel in case.kernels):
        before, after = host_functions(case.before), host_functions(case.after)
        assert before.keys() == after.keys()
        assert sum(before[name] != after[name] for name in before) <= 1
    else:
        assert host_functions(without_lost_arguments(case)) == host_functions(case.after)


def without_mode(text: str) -> str:
    """A file without what chooses between the compilers, and the mode of one of them."""
    kept = [line for line in text.splitlines() if line != "import os" and "TILELANG_ASCEND_MODE" not in line]
    return "\n".join(kept).replace(', target="npuir"', "").replace(", pass_configs=pass_configs", "")


def lost_parameters(case: Case) -> set[str]:
    """Parameters of the factory that nothing reads any more (TL315)."""
    if not case.has_after or not any("TL315" in kernel.codes for kernel in case.kernels):
        return set()
    old, new = (parameters(text, case.factory) for text in (case.before, case.after))
    return set(old) - set(new)


def parameters(text: str, factory: str) -> list[str]:
    """Of the factory; of an eager kernel those that are no tensors."""
    functions = (f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and f.name == factory)
    function = next(functions)
    tensors = declared_tensors(function) if is_eager(function) else set()
    return [a.arg for a in function.args.args if a.arg not in tensors]


def without_lost_arguments(case: Case) -> str:
    """The old file with calls of the factory that do not give these parameters."""
    lost = lost_parameters(case)
    if not lost:
        return case.before
    tree = ast.parse(case.before)
    order = [a.arg for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == case.factory for a in f.args.args]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == case.factory:
            node.args = [arg for arg, name in zip(node.args, order, strict=False) if name not in lost]
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in lost]
    return ast.unparse(tree)


@with_after
def test_own_line_comments_survive(case: Case) -> None:
    expected = own_line_comments(case.before) - attached_to_removed_parameters(case) - captions_of_removed_lines(case)
    assert expected - own_line_comments(case.after) == Counter()
    added = own_line_comments(case.after) - own_line_comments(case.before)
    assert {comment for comment in added if not comment.startswith(_REASONS)} == set()


@with_after
def test_developer_form(case: Case) -> None:
    """Nothing of the older style is left, in code and not in comments."""
    old = kernels(case.before)
    for kernel in case.in_developer_mode():
        function = kernel_after(case, kernel.name)
        launch, names = kernel_launch(function)
        words = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        words |= {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        attributes = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
        barriers = set() if "TL763" in kernel.codes else {"barrier_all"}
        assert not {"alloc_L1", "alloc_L0C", "Scope", "set_flag", "set_cross_flag", *barriers} & attributes
        assert not [word for word in words if "workspace" in word]
        if case.of_gpu:
            continue  # test_launch_on_an_npu
        if "TL201" in kernel.codes or kernel.target == "developer-threads1":
            threads = next(k.value for k in launch.keywords if k.arg == "threads")
            assert ast.literal_eval(threads) == (1 if kernel.target == "developer-threads1" else 2)
            assert len(names) == 1
            keeps = case.from_npuir or "TL235" in kernel.codes  # a block for each vector core, which keeps its number
            assert keeps or kernel_launch(old[kernel.name])[1][1] not in words


@with_after
def test_launch_on_an_npu(case: Case) -> None:
    """GPU kernels: one grid axis, one or two vector cores where they work, no word that only a GPU compiler knows."""
    if not case.of_gpu:
        return
    for kernel in case.in_developer_mode():
        function = kernel_after(case, kernel.name)
        launch, names = kernel_launch(function)
        given = {k.arg: ast.literal_eval(k.value.orelse if by_size(k.value) else k.value) for k in launch.keywords}
        assert len(launch.args) == 1
        assert given.pop("is_npu") is True
        if len(names) == 1:
            assert given == {"threads": 1 if kernel.target == "developer-threads1" else 2}
        else:
            assert (given, len(names), names[1], kernel.target) == ({}, 2, "_", "developer")
        attributes = {n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)}
        assert not attributes & GPU_ONLY
    words = {n.id for n in ast.walk(ast.parse(case.after)) if isinstance(n, ast.Name)}
    words |= {n.attr for n in ast.walk(ast.parse(case.after)) if isinstance(n, ast.Attribute)}
    assert not {word for word in words if "cuda" in word}


def by_size(threads: ast.expr) -> TypeGuard[ast.IfExp]:
    """``1 if M % 2 else 2``."""
    return isinstance(threads, ast.IfExp) and ast.unparse(threads).endswith("% 2 else 2")


@with_after
def test_launch_of_npuir(case: Case) -> None:
    """One grid axis or two, no threads, a second index that is not used, and the target named."""
    for kernel in case.kernels:
        if kernel.target != "npuir":
            continue
        launch, names = kernel_launch(kernel_after(case, kernel.name))
        assert {k.arg: ast.literal_eval(k.value) for k in launch.keywords} == {"is_npu": True}
        assert len(launch.args) == (2 if case.options.get("grid2d") else 1)
        assert names[len(launch.args) :] == ["_"]
        after = case.after.replace("'", '"')
        assert 'target="npuir"' in after
        assert after.count('os.environ["TILELANG_ASCEND_MODE"] = "Developer"') == 1


@with_after
def test_fallback_form(case: Case) -> None:
    """No scope, no manual sync, vid and every tensor still there, no pass switched off."""
    old, new = prim_funcs(case.before), prim_funcs(case.after)
    for kernel in case.kernels:
        if kernel.target != "fallback":
            continue
        attributes = {n.attr for n in ast.walk(new[kernel.name]) if isinstance(n, ast.Attribute)}
        assert not {a for a in attributes if a in ("Scope", "sync_all") or "barrier" in a or a.endswith("_flag")}
        names, before = (kernel_launch(functions[kernel.name])[1] for functions in (new, old))
        assert len(names) == len(before)
        assert "TL747" in kernel.codes or names == before
        assert len(new[kernel.name].args.args) == len(old[kernel.name].args.args)
        for enum, string in PASS_KEYS:
            assert enum in case.after or string in case.after


# helpers -------------------------------------------------------------------------------------------------------------


def migrate(case: Case, text: str, folder: Path) -> FileResult:
    """Run the tool on a text, under a path with no configuration above it: black's defaults hold."""
    return migrate_text(text, str(folder / "kernel.py"), Options(**case.options))


def run_both(case: Case, after: str) -> VerifyResult:
    """Execute before and after with the arguments of the case, in this process; a third on all kinds of inputs."""
    draws = 6 if zlib.crc32(case.name.encode()) % 3 == 0 else 2
    call = Call(case.builder or case.factory, case.args, case.inputs)
    old = Source(case.before, f"{case.name}/before.py", f"{case.name}/before.py")
    new = Source(after, f"{case.name}/after.py", f"{case.name}/after.py")
    return verify(old, new, Settings(calls=(call,), draws=draws), here)


def short(kernel: str | None) -> str:
    """The prim_func's own name: results qualify it with the factory's."""
    return (kernel or "").rsplit(".", 1)[-1]


@cache
def prim_funcs(text: str) -> Mapping[str, ast.FunctionDef]:
    """The prim_funcs of a file in text order."""
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    found = [f for f in functions if any("prim_func" in ast.unparse(d) for d in f.decorator_list)]
    return {f.name: f for f in sorted(found, key=lambda f: f.lineno)}


@cache
def kernels(text: str) -> Mapping[str, ast.FunctionDef]:
    """The prim_funcs and the eager kernels of a file in text order."""
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and is_eager(n)]
    found = {**prim_funcs(text), **{f.name: f for f in functions}}
    return dict(sorted(found.items(), key=lambda item: item[1].lineno))


def is_eager(function: ast.FunctionDef) -> bool:
    """The function is itself a kernel: compiled, with a launch and no prim_func inside."""
    if prim_funcs(ast.unparse(function)) or not any("jit" in ast.unparse(d) for d in function.decorator_list):
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == "Kernel" for n in ast.walk(function))


def kernel_after(case: Case, name: str) -> ast.FunctionDef:
    """A kernel of ``after``, by its name in ``before``: an eager kernel becomes the prim_func of a factory."""
    if name not in prim_funcs(case.before):
        factory = next(n for n in ast.parse(case.after).body if isinstance(n, ast.FunctionDef) and n.name == name)
        (function,) = prim_funcs(ast.unparse(factory)).values()
        return function
    return prim_funcs(case.after)[name]


def declared_extents(function: ast.FunctionDef) -> set[str]:
    """The names that ``T.const`` makes in an eager kernel."""
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".const")]
    return {name for call in calls for name in ast.literal_eval(call.args[0]).replace(",", " ").split()}


def declared_tensors(function: ast.FunctionDef) -> set[str]:
    """The parameters that an eager kernel declares as tensors in its body."""
    return {n.target.id for n in function.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def device_helpers(text: str) -> set[str]:
    """Top-level functions that write kernel code: they are written out where they are called."""
    tree = ast.parse(text)
    alias = {a.asname or a.name for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    alias &= {"T", "tl", "TL"}
    return {
        f.name
        for f in tree.body
        if isinstance(f, ast.FunctionDef) and alias & {n.id for n in ast.walk(f) if isinstance(n, ast.Name)}
    }


class _OnAnyDevice(ast.NodeTransformer):
    """Host code without what rightly differs between a GPU and an NPU."""

    def __init__(self, eager: frozenset[str]) -> None:
        self._eager = eager

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in ("T", "tl") and node.attr in DTYPES:
            return ast.Constant(node.attr)
        self.generic_visit(node)
        node.attr = node.attr.replace("cuda", "npu")
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(node.value.replace("cuda", "npu")) if isinstance(node.value, str) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = node.func.func if isinstance(node.func, ast.Call) else node.func
        if isinstance(called, ast.Name) and called.id in self._eager:
            return ast.Call(called, [self.visit(a) for a in node.args if not isinstance(a, ast.Starred)], [])
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "compile":
            node.keywords = []
        return node


def gpu_host(case: Case, text: str, gone: set[str]) -> dict[str, str]:
    """The host code, compared as for one device; an eager kernel is called with its tensors either way.

    A factory whose launches were split is a host function afterwards: it runs the parts (TL106).
    """
    eager = frozenset(kernels(case.before).keys() - prim_funcs(case.before).keys())
    split = {case.factory} if any("TL106" in kernel.codes for kernel in case.kernels) else set()
    tree = ast.parse(text)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.FunctionDef) and n.name in eager | gone | split)]
    return host_functions(ast.unparse(_OnAnyDevice(eager).visit(tree)))


def top_level(text: str) -> set[str]:
    """The names of the functions of a module."""
    return {n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}


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


def captions_of_removed_lines(case: Case) -> Counter[str]:
    """Own-line comments directly above a line that is gone. Others below may have moved: stages of a pipeline do."""
    lines = [line.strip() for line in case.before.split("\n")]
    new, old = Counter(line.strip() for line in case.after.split("\n")), Counter(lines)
    found: Counter[str] = Counter()
    for at, line in enumerate(lines):
        rest = dropwhile(lambda text: text.startswith("#"), lines[at:])
        below = list(takewhile(lambda text: text and not text.startswith("#"), rest))
        if line.startswith("#") and below and new[below[0]] < old[below[0]]:
            found[line] += 1
    return found


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
