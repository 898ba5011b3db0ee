"""Parameters that carried hand-overs go; everything that counts or passes parameters follows."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.passes.support import (
    CONFIGS,
    CV_ALLOCS,
    CV_CUBE,
    CV_PARAMS,
    CV_VECTOR,
    GEMM_SCALE,
    IMPORTS,
    developer,
    gemm_file,
    kernel,
    migrated,
    refused,
)

A, B, OUT, WS = CV_PARAMS
HOST = "out_idx=[2], pass_configs=pass_configs"


def names(text: str) -> list[str]:
    """The parameters of the kernel."""
    return re.findall(r"^        (\w+): T\.Tensor", text, re.M)


def chosen(text: str, key: str) -> list[str]:
    """The parameters that ``out_idx`` or ``workspace_idx`` designates, the way that Python indexes."""
    found = re.search(rf"{key}=(\[[^]]*\]|\([^)]*\)|-?\d+)", text)
    if found is None:
        return []
    value = eval(found[1])
    return [names(text)[i] for i in (value if isinstance(value, (list, tuple)) else [value])]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::3])
@pytest.mark.parametrize("negative", [False, True])
def test_outputs_stay_the_same_tensors(order: tuple[int, ...], negative: bool) -> None:
    params = [CV_PARAMS[i] for i in order]
    out, ws = order.index(2), order.index(3)
    out, ws = (out - 4, ws - 4) if negative else (out, ws)
    old = gemm_file(params=params, jit=f"out_idx=[{out}], workspace_idx=[{ws}], pass_configs=pass_configs")
    new = developer(old)
    assert chosen(old, "out_idx") == chosen(new, "out_idx") == ["O"]
    assert "workspace_idx" not in new
    assert "-" not in re.search(r"out_idx=(.*?)[,)]", new)[1], "a negative position counts the appended workspaces"  # type: ignore[index]
    assert [n for n in names(old) if n != "workspace_1"] == names(new)


@pytest.mark.parametrize("written", ["[2, -1]", "(2, -1)", "[-3, 4]", "(-3, 4)"])
def test_several_outputs(written: str) -> None:
    params = [A, B, OUT, WS, 'P: T.Tensor((64, 64), "float32")']
    body = GEMM_SCALE + "T.copy(u, P[cid * 32 + vid * 16, 0])"
    old = gemm_file(body, params=params, jit=f"out_idx={written}, workspace_idx=[3], pass_configs=pass_configs")
    new = developer(old)
    assert chosen(new, "out_idx") == ["O", "P"]
    assert f"out_idx={'(' if written[0] == '(' else '['}2, 3" in new


@pytest.mark.parametrize("written", ["3", "-1", "[3]", "(3,)", "[-1]", "WS", "[WS]", "[1 + 2]"])
def test_ways_to_write_workspace_idx(written: str) -> None:
    old = gemm_file(jit=f"out_idx=[2], workspace_idx={written}, pass_configs=pass_configs", head="WS = 3\n" + CONFIGS)
    new = developer(old)
    assert "workspace_idx" not in new
    assert chosen(new, "out_idx") == ["O"]


@pytest.mark.parametrize("written", ["2", "-2", "(2,)", "(-2,)"])
def test_ways_to_write_out_idx(written: str) -> None:
    new = developer(gemm_file(jit=f"out_idx={written}, workspace_idx=[3], pass_configs=pass_configs"))
    assert chosen(new, "out_idx") == ["O"]
    assert "-" not in new.split("out_idx=")[1].split(",")[0]


def test_an_index_list_that_other_code_shares_is_not_changed() -> None:
    head = CONFIGS + "OUT = [-2]\n"
    text = gemm_file(jit="out_idx=OUT, workspace_idx=[3], pass_configs=pass_configs", head=head, tail="print(OUT)\n")
    assert "OUT = [-2]" in (migrated(text).new_text or "")
    refused(text, "TL902")


def test_positions_that_cannot_be_read() -> None:
    refused(gemm_file(jit="out_idx=outputs(), workspace_idx=[3], pass_configs=pass_configs"), "TL902")
    refused(gemm_file(jit="out_idx=[2], workspace_idx=[9], pass_configs=pass_configs"), "TL902")


def test_one_workspace_stays() -> None:
    """Only ``workspace_1`` is emptied; the other keeps its position in ``workspace_idx``."""
    params = [A, 'workspace_2: T.Tensor((64, 64), "float32")', WS, B, OUT]
    body = GEMM_SCALE + "T.copy(v, workspace_2[cid * 32 + vid * 16, 0])"
    old = gemm_file(body, params=params, jit="out_idx=[-1], workspace_idx=[1, 2], pass_configs=pass_configs")
    new = migrated(old).new_text or ""
    if migrated(old).kernels[0].target == "developer":
        assert chosen(new, "workspace_idx") == ["workspace_2"]
        assert chosen(new, "out_idx") == ["O"]


# host code -----------------------------------------------------------------------------------------------------------


def host(tail: str) -> str:
    return gemm_file(jit=HOST, tail="\n\n" + tail)


CALL = "kernel = factory()\nws = torch.empty((2, 32, 64)).npu()\n"


@pytest.mark.parametrize(
    "tail",
    [
        CALL + "o = kernel(a, b, ws)\n",
        "ws = torch.zeros((2, 32, 64), dtype=torch.float32, device='npu')\no = factory()(a, b, ws)\n",
        CALL + "for _ in range(3):\n    o = kernel(a, b, ws)\n",
        CALL + "def once():\n    return kernel(a, b, ws)\n",
        "def main():\n    kernel = factory()\n    return kernel(a, b, torch.empty((2, 32, 64)))\n",
    ],
)
def test_calls_no_longer_pass_the_workspace(tail: str) -> None:
    new = developer(host(tail))
    assert "(a, b)" in new
    assert "torch.empty" not in new
    assert "torch.zeros" not in new


@pytest.mark.parametrize(
    "tail",
    [
        CALL + "o = kernel(a, b, ws=ws)\n",
        CALL + "o = kernel(*tensors)\n",
        CALL + "o = kernel(a, b, ws)\nprint(ws.sum())\n",
        CALL + "o = kernel(a, b, ws)\nother(ws)\n",
        CALL + "o = kernel(a, b)\n",
        "print('nobody calls it')\n",
        CALL + "o = kernel(a, b, ws)\nbench(kernel, a, b, torch.empty((2, 32, 64)))\n",
        CALL + "o = kernel(a, b, ws)\nfast = kernel\nfast(a, b, c)\n",
        CALL
        + (
            "o = kernel(a, b, ws)\nclass Layer:\n    def __init__(self):\n"
            "        self.kernel = factory()\n    def run(self, x, y, z):\n"
            "        return self.kernel(x, y, z)\n"
        ),
        CALL + "o = kernel(a, b, ws)\nkernels = {'gemm': factory()}\nkernels['gemm'](a, b, c)\n",
        CALL + "o = kernel(a, b, ws)\nfor k in [factory()]:\n    k(a, b, c)\n",
        CALL + "o = kernel(a, b, ws)\nrun = lambda k=factory(): k(a, b, c)\n",
        CALL + "o = kernel(a, b, ws)\nx = kernel.get_kernel_source()\ny = partial(kernel, a, b)\n",
    ],
)
def test_calls_that_cannot_be_changed_with_certainty(tail: str) -> None:
    text = host(tail)
    result = migrated(text)
    assert not result.kernels[0].target.startswith("developer"), result.new_text
    assert {d.code for d in result.diagnostics} & {"TL883", "TL842"}


def test_a_kernel_of_the_same_name_in_another_function_is_another_kernel() -> None:
    other = kernel(
        'u = T.alloc_ub((7, 64), "float32")\nT.copy(A[cid, 0], u)\nT.copy(u, O[cid + vid, 0])',
        params=(*CV_PARAMS[:2], WS, OUT),
        name="plain",
        jit="out_idx=[3], pass_configs=pass_configs",
    )
    tail = other + (
        "\n\ndef one(a, b):\n    kernel = factory()\n    return kernel(a, b, torch.empty((2, 32, 64)))\n"
        "\n\ndef two(a, b):\n    kernel = plain()\n    return kernel(a, b, make(b))\n"
    )
    new = migrated(gemm_file(jit=HOST, tail=tail)).new_text or ""
    assert "return kernel(a, b, make(b))" in new


def test_a_local_bound_under_a_condition_is_another_kernel() -> None:
    """``kernel`` of ``two`` is its own, wherever in the function it is bound."""
    two = "\ndef two(a, b, flag):\n    if flag:\n        kernel = plain\n"
    two += "    return kernel(a, b, torch.empty((2, 32, 64)))\n"
    new = developer(host(CALL + "o = kernel(a, b, ws)\n" + two))
    assert "o = kernel(a, b)\n" in new
    assert two in new


# several kernels -----------------------------------------------------------------------------------------------------

REFUSED = CV_ALLOCS + CV_CUBE + CV_VECTOR.replace("vid * 16, 0], u)", "vid * 8, 0], u)")


def test_two_kernels_of_one_factory_share_its_positions() -> None:
    """The second one still needs ``workspace_idx``, which both are compiled with."""
    first = gemm_file().replace("\n    return main\n", "")
    second = kernel(REFUSED, params=CV_PARAMS).split("def factory():\n")[1].replace("main", "other")
    text = first + "\n" + second.replace("return other", "return main if N else other")
    new = migrated(text).new_text or ""
    count = len(re.findall(r"workspace_\w+: T\.Tensor", new))
    assert count == (2 if "workspace_idx=[3]" in new else 0), "one of the two kernels lost its workspace"


@pytest.mark.parametrize("second_body", [REFUSED, GEMM_SCALE])
def test_arguments_that_two_compilations_share(second_body: str) -> None:
    head = CONFIGS + 'JIT = {"out_idx": [-2], "workspace_idx": [3], "pass_configs": pass_configs}\n'
    text = gemm_file(jit="**JIT", head=head, tail=kernel(second_body, params=CV_PARAMS, name="second", jit="**JIT"))
    new = migrated(text).new_text or ""
    count = len(re.findall(r"workspace_\w+: T\.Tensor", new))
    assert count == (2 if '"workspace_idx": [3]' in new else 0), "one of the two kernels lost its workspace"


def test_a_compile_call_beside_the_factory() -> None:
    text = (
        IMPORTS
        + CONFIGS
        + kernel(GEMM_SCALE, params=CV_PARAMS).replace(
            "@tilelang.jit(out_idx=[2], workspace_idx=[3], pass_configs=pass_configs)\n", ""
        )
    )
    text = re.sub(r"@tilelang.jit\(.*\)\n", "", text)
    text += (
        "\n\n"
        "kernel = tilelang.compile(factory(), out_idx=[-2], workspace_idx=[3], pass_configs=pass_configs)\n"
        "o = kernel(a, b)\n"
    )
    new = developer(text)
    assert "tilelang.compile(factory(), out_idx=[2], pass_configs=pass_configs)" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tilelang.compile({}, [2], [3])", "tilelang.compile({}, [2])"),
        ("tilelang.compile({}, [2], -1, verbose=True)", "tilelang.compile({}, [2], verbose=True)"),
        ('tilelang.compile({}, [-2], [3], "cython")', 'tilelang.compile({}, [2], None, "cython")'),
        ('tilelang.JITKernel({}, 2, 3, "cython")', 'tilelang.JITKernel({}, 2, None, "cython")'),
        ("tilelang.cached({}, [2], [3])", "tilelang.cached({}, [2])"),
    ],
)
def test_positions_by_position(old: str, new: str) -> None:
    """A workspace that goes must not let what stands behind it move up into its place."""
    made = "factory(64, 64, 32)"
    args = ", pass_configs=pass_configs)"
    text = gemm_file(jit="", tail=f"kernel = {old.format(made)[:-1]}{args}\n").replace("@tilelang.jit()\n", "")
    found = developer(text).splitlines()[-1]
    assert found == f"kernel = {new.format(made)[:-1]}{args}"
