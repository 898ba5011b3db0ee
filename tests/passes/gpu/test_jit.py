"""The arguments of the GPU compiler."""

from __future__ import annotations

import pytest

from tests.passes.gpu.one_pass import after, job_of
from tests.passes.gpu.support import IMPORTS, gpu_file
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.factories.configs import ALL
from tl2npu.passes.host import pass_configs
from tl2npu.passes.host.jit import name_positional, retarget
from tl2npu.passes.job import Job

PARAMS = "A: T.Tensor((64,), 'float32'), B: T.Tensor((64,), 'float32')"
FAST = "tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True"


def file(jit: str, head: str = IMPORTS) -> str:
    return gpu_file(PARAMS, "a = T.alloc_shared((64,), 'float32')\nT.copy(A, a)\nT.copy(a, B)", jit=jit, head=head)


def require_all(job: Job) -> None:
    pass_configs.require(job, ALL)


NEW = """pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@tilelang.jit", "@tilelang.jit(pass_configs=pass_configs)"),
        ("@tilelang.jit(out_idx=[1])", "@tilelang.jit(out_idx=[1], pass_configs=pass_configs)"),
        ('@tilelang.jit(target="cuda")', "@tilelang.jit(pass_configs=pass_configs)"),
        (
            '@tilelang.jit(out_idx=1, compile_flags=["-O3"], execution_backend="nvrtc", verbose=True)',
            "@tilelang.jit(out_idx=1, verbose=True, pass_configs=pass_configs)",
        ),
        (
            f"@tilelang.jit(out_idx=[1], pass_configs={{{FAST}}})",
            "@tilelang.jit(out_idx=[1], pass_configs=pass_configs)",
        ),
        ('@tilelang.jit(pass_configs={"tl.disable_tma_lower": True})', "@tilelang.jit(pass_configs=pass_configs)"),
        (
            f"@tilelang.jit(\n    out_idx=[1],\n    pass_configs={{\n        {FAST},\n    }},\n)",
            "@tilelang.jit(\n    out_idx=[1],\n    pass_configs=pass_configs,\n)",
        ),
        ("@tilelang.jit(out_idx=[1], pass_configs=None)", "@tilelang.jit(out_idx=[1], pass_configs=pass_configs)"),
    ],
)
def test_decorators(old: str, new: str) -> None:
    assert after([retarget, require_all], file(old)) == file(new, IMPORTS + NEW)


def test_named_dict_of_one_kernel_is_replaced() -> None:
    old = file("@tilelang.jit(pass_configs=CONFIGS)", IMPORTS + f"CONFIGS = {{{FAST}}}\n\n\n")
    assert after([retarget, require_all], old) == file("@tilelang.jit(pass_configs=pass_configs)", IMPORTS + NEW)


def test_a_script_that_compiles_in_its_main_block_gets_one_dict() -> None:
    main = "if __name__ == '__main__':\n    made = tilelang.compile(factory(), pass_configs={{{}}})\n"
    new = after([retarget, require_all], file("@staticmethod") + "\n\n" + main.format(FAST))
    assert new.endswith("    made = tilelang.compile(factory(), pass_configs=pass_configs)\n")
    assert new.count("MEMORY_PLANNING") == 1


def test_keys_that_the_npu_knows_stay() -> None:
    head = IMPORTS + "CONFIGS = {\n    'tl.disable_wgmma': True,\n    'tir.disable_cse_tir': True,\n}\n\n\n"
    kept = IMPORTS + "CONFIGS = {\n    'tir.disable_cse_tir': True,\n}\n\n\n"
    assert after(retarget, file("@tilelang.jit(pass_configs=CONFIGS)", head)) == file(
        "@tilelang.jit(pass_configs=CONFIGS)", kept
    )


def test_shared_dict_is_left_to_the_others() -> None:
    head = IMPORTS + f"CONFIGS = {{{FAST}}}\nprint(CONFIGS)\n\n\n"
    assert after(retarget, file("@tilelang.jit(pass_configs=CONFIGS)", head)) == file("@tilelang.jit()", head)


def test_function_that_returns_the_dict() -> None:
    head = IMPORTS + f"def configs():\n    return {{{FAST}}}\n\n\n"
    assert after(retarget, file("@tilelang.jit(out_idx=[1], pass_configs=configs())", head)) == file(
        "@tilelang.jit(out_idx=[1])"
    )


def test_compile() -> None:
    text = file("").replace("\ndef factory", "def factory")
    old = text + '\n\nkernel = tilelang.compile(factory(), -1, target="cuda", execution_backend="cython")\n'
    new = text + "\n\nkernel = tilelang.compile(factory(), out_idx=-1)\n"
    assert after([name_positional, retarget], old) == new


HAND_OVER = """
a = T.alloc_shared((16, 16), "float16")
c = T.alloc_fragment((16, 16), "float32")
u = T.alloc_shared((16, 16), "float32")
T.copy(A, a)
T.gemm_v0(a, a, c, init=True)
T.copy(c, u)
T.tile.exp(u, u)
T.copy(u, B)
"""


@pytest.mark.parametrize(("old", "new"), [("[-1]", "[1]"), ("-1", "1"), ("(-2, -1)", "(0, 1)"), ("[1]", "[1]")])
def test_positions_count_from_the_front_beside_hand_overs(old: str, new: str) -> None:
    params = "A: T.Tensor((16, 16), 'float16'), B: T.Tensor((16, 16), 'float32')"
    text = gpu_file(params, HAND_OVER, jit=f"@tilelang.jit(out_idx={old})")
    assert after(retarget, text) == text.replace(f"out_idx={old}", f"out_idx={new}")


def test_positions_stay_without_hand_overs() -> None:
    text = file("@tilelang.jit(out_idx=[-1])")
    assert after(retarget, text) == text


@pytest.mark.parametrize(
    "jit",
    [
        "@tilelang.jit(cluster=4)",
        "@tilelang.jit(pass_configs=make(3))",
        "@tilelang.jit(pass_configs={key: True})",
        "@tilelang.jit(**options())",
    ],
)
def test_unknown_arguments_are_refused(jit: str) -> None:
    with pytest.raises(Blocked) as caught:
        after(retarget, file(jit))
    assert caught.value.code == "TL123"


HELD = "configs: dict = {tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True}\n"


@pytest.mark.parametrize(
    ("put", "is_read"),
    [
        ("if fast():\n    configs[tilelang.PassConfigKey.TL_PTXAS_REGISTER_USAGE_LEVEL] = 10\n", True),
        ("configs['tl.disable_warp_specialized'] = True\n", True),
        ("", True),
        ("configs[tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC] = True\n", False),  # which the NPU's compiler has
        ("configs.update(more())\n", False),
        ("others: dict = configs\n", False),
        ("configs[tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER] += 1\n", False),
    ],
)
def test_keys_that_are_put_into_a_dict(put: str, is_read: bool) -> None:
    text = file("@tilelang.jit(pass_configs=configs)", IMPORTS + HELD + put + "\n\n")
    if is_read:
        assert "@tilelang.jit\n" in after(retarget, text).replace("jit()", "jit")
    else:
        with pytest.raises(Blocked):
            after(retarget, text)


def test_what_was_dropped_is_said() -> None:
    job = job_of(file('@tilelang.jit(target="cuda")'))
    retarget(job)
    assert [(change.code, change.line) for change in job.changes] == [("TL122", 5)]


def test_dropped_keys_are_named() -> None:
    job = job_of(file(f'@tilelang.jit(pass_configs={{"tl.disable_tma_lower": True, {FAST}}})'))
    retarget(job)
    assert "removed from pass_configs: disable_tma_lower, TL_ENABLE_FAST_MATH" in [c.message for c in job.changes]


def test_tuner() -> None:
    text = file("").replace("\ndef factory", "def factory") + "\n\nfrom tilelang.autotuner import AutoTuner\n\n"
    old = (
        text + 'AutoTuner.from_kernel(kernel=factory, configs=[]).set_compile_args(out_idx=[1], target="auto").run()\n'
    )
    new = text + "AutoTuner.from_kernel(kernel=factory, configs=[]).set_compile_args(out_idx=[1]).run()\n"
    assert after([name_positional, retarget], old) == new
    assert ".set_compile_args(out_idx=[1], pass_configs=pass_configs).run()" in after([retarget, require_all], old)


@pytest.mark.parametrize(
    ("host", "use"),
    [
        ("def make():\n    return factory", "tilelang.compile(make()(), out_idx=[1])"),
        ("def make(n):\n    return factory(n)", "tilelang.compile(make(4), out_idx=[1])"),
        ("def inner():\n    return factory()\n\n\ndef make():\n    return inner()", "tilelang.compile(make())"),
    ],
)
def test_a_factory_that_functions_return(host: str, use: str) -> None:
    text = file("").replace("\ndef factory", "def factory") + f"\n\n{host}\n\n\nkernel = {use}\n"
    assert f"kernel = {use[:-1]}, pass_configs=pass_configs)\n" in after([retarget, require_all], text)


def test_a_function_that_returns_one_of_two_factories_shows_no_compilation() -> None:
    text = file("").replace("\ndef factory", "def factory")
    other = text[text.index("def factory") :].replace("def factory", "def other")
    host = "def make(n):\n    if n:\n        return factory()\n    return other()\n"
    with pytest.raises(Blocked) as caught:
        after([retarget, require_all], f"{text}\n\n{other}\n\n{host}\n\nkernel = tilelang.compile(make(1))\n")
    assert caught.value.code == "TL816"
