"""What scripts import besides the language: names that mean something, names that do no harm, and what comes back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tl2npu.simulator.errors import UnsupportedOperator
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session

Script = Callable[..., dict[str, Any]]


def test_modules_come_back() -> None:
    """A real ``tilelang`` that was loaded is there again, and no stand-in is left."""
    import types

    real = types.ModuleType("tilelang")
    sys.modules["tilelang"] = real
    try:
        with installed(Session()):
            import tilelang.language
            import tvm.tir

            assert tilelang is not real
            assert tvm.tir.ceildiv(5, 2) == 3
        assert sys.modules["tilelang"] is real
        assert "tilelang.language" not in sys.modules
        assert "tvm.tir" not in sys.modules
        assert "torch_npu" not in sys.modules
    finally:
        del sys.modules["tilelang"]


def test_imports(script: Script) -> None:
    """The forms of import that scripts use."""
    found = script("""
        import tilelang as tl
        import tilelang.language
        from tilelang import DataType, PassConfigKey, carver, jit, language as T, tvm
        from tilelang.autotuner import AutoTuner, autotune
        from tilelang.cache import clear_cache
        from tilelang.carver.arch.ascend import Ascend
        from tilelang.engine import lower
        from tilelang.intrinsics import make_nz_layout, make_zn_layout
        from tilelang.jit import JITKernel, compile
        from tilelang.language import ceildiv
        from tilelang.profiler import do_bench
        from tilelang.utils.target import determine_platform
        import tilelang.testing
        import tvm
        from tvm import tir
        from tvm.tir import Var

        clear_cache()
        tl.cache.clear_cache()
        bits = [DataType("float16").bits, DataType(T.bfloat16).bits // 8, tvm.DataType("int4").bits]
        numbers = [ceildiv(7, 2), tl.cdiv(9, 4), tl.math.next_power_of_2(5), tl.next_power_of_2(8), tir.floordiv(7, 2)]
        key = str(PassConfigKey.TL_ASCEND_AUTO_SYNC)
        same = tl.jit.JITKernel is JITKernel and tl.language is tilelang.language
        platforms = determine_platform("A5"), determine_platform()
    """)
    assert found["bits"] == [16, 2, 4]
    assert found["numbers"] == [4, 3, 8, 8, 3]
    assert found["key"] == "tl.ascend_auto_sync"
    assert found["same"]
    assert found["platforms"][0] == "A5"
    assert found["platforms"][1] in ("A2", "A3")


def test_a_name_that_means_nothing_is_no_number(script: Script) -> None:
    """It may be imported, called and asked for more names, but not computed with."""
    script("from tilelang.contrib import nvcc\nnvcc.find_cuda_path().anything(1, 2)")
    with pytest.raises(TypeError):
        script("from tilelang.contrib import nvcc\nnvcc.version() + 1")
    with pytest.raises(TypeError, match="nothing in the simulator"):
        script("from tilelang.contrib import nvcc\nlist(nvcc.versions())")


TUNED = """
import numpy as np
import tilelang
import tilelang.language as T

def body(n, block, by):
    assert n % block == 0
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(n // block, threads=32) as b:
            for i in range(block):
                B[b * block + i] = A[b * block + i] * by
    return main

configs = [{"block": 5, "by": 2}, {"block": 4, "by": 3}, {"block": 2, "by": 4}]
a = np.arange(8, dtype="int32")
"""


def test_autotune_takes_the_first_configuration_that_can_be_built(script: Script) -> None:
    """Only for parameters that the call leaves out; functions of the arguments may make the configurations."""
    found = script(
        TUNED
        + """
@tilelang.autotune(configs=configs, ref_prog=None, warmup=3)
@tilelang.jit(out_idx=[-1])
def make(n, block, by):
    return body(n, block, by)

@tilelang.autotune(configs=lambda n, **_: [{"block": n, "by": 5}])
@tilelang.jit(out_idx=[-1])
def from_arguments(n, block, by):
    return body(n, block, by)


kernel = make(8)
tuned, result = kernel(a), kernel.get_tuner_result()
given = make(8, 4, by=7)(a)
part = make(8, by=9)(a)
called = from_arguments(8)(a)
built = tilelang.jit(out_idx=[-1])(lambda block, by: body(8, block, by))
tuner = tilelang.autotuner.AutoTuner.from_kernel(built, configs).set_compile_args(out_idx=[-1]).set_profile_args()
best = tuner.run(warmup=1, rep=1)
"""
    )
    a = found["a"]
    np.testing.assert_array_equal(found["tuned"], a * 3)
    assert found["result"] == {"block": 4, "by": 3}
    np.testing.assert_array_equal(found["given"], a * 7)
    np.testing.assert_array_equal(found["part"], a * 9)
    np.testing.assert_array_equal(found["called"], a * 5)
    assert found["best"].config == {"block": 4, "by": 3}
    np.testing.assert_array_equal(found["best"].kernel(a), a * 3)


def test_autotune_without_a_configuration_that_fits(script: Script) -> None:
    """The error of the first configuration, or the name that none gives."""
    head = TUNED + "@tilelang.autotune(configs=CONFIGS)\n@tilelang.jit(out_idx=[-1])\n"
    head += "def make(n, block, by):\n    return body(n, block, by)\nmake(8)"
    with pytest.raises(AssertionError):
        script(head.replace("CONFIGS", '[{"block": 3, "by": 1}]'))
    with pytest.raises(TypeError, match="no configuration gives block, by of make"):
        script(head.replace("CONFIGS", '[{"block": 4}]'))


def test_templates_of_carver_give_a_configuration(script: Script) -> None:
    """Blocks within the sizes."""
    found = script("""
        from tilelang import carver
        from tilelang.carver.arch.ascend import Ascend
        hints = carver.MatmulTemplate(M=32, N=256, K=16, in_dtype="float16").with_arch(Ascend()).recommend_hints(topk=9)
        blocks = [(h.block, h.rstep) for h in hints]
    """)
    assert found["blocks"] == [([32, 64], [16])]


def test_the_tests_of_a_file(script: Script) -> None:
    """``tilelang.testing.main`` runs them with pytest and exits as pytest does."""
    text = """
        import tilelang
        import tilelang.testing

        @tilelang.testing.requires_cuda
        @tilelang.testing.requires_cuda_compute_version_ge(9, 0)
        def test_one():
            tilelang.testing.set_random_seed(0)
            assert {}

        if __name__ == "__main__":
            tilelang.testing.main()
    """
    for outcome, code in (("True", 0), ("False", 1)):
        with pytest.raises(SystemExit) as stopped:
            script(text.format(outcome))
        sys.modules.pop("script", None)
        assert int(stopped.value.code or 0) == code


def test_an_unknown_name_is_given_a_buffer(script: Script) -> None:
    """To do nothing with a kernel's buffer would give wrong numbers; a layout made of one changes none."""
    source = """
        import numpy as np
        import tilelang
        import tilelang.language as T
        from tilelang.cuda.intrinsics import make_mma_swizzle_layout
        from tilelang.cuda.intrinsics.macro.mma_macro_generator import TensorCoreIntrinEmitter

        emitter = TensorCoreIntrinEmitter(chunk=32)

        @T.prim_func
        def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                S = T.alloc_shared((8,), "float32")
                T.annotate_layout({S: make_mma_swizzle_layout(S)})
                T.copy(A, S)
                LINE
                T.copy(S, B)

        found = tilelang.compile(main, out_idx=[1])(np.ones(8, np.float32))
    """
    assert script(source.replace("LINE", "emitter.name()"))["found"].sum() == 8
    with pytest.raises(UnsupportedOperator, match=r"TensorCoreIntrinEmitter.stmatrix is called with a buffer"):
        script(source.replace("LINE", "emitter.stmatrix(S)"))
    with pytest.raises(UnsupportedOperator, match=r"TensorCoreIntrinEmitter.mma is called with a buffer"):
        script(source.replace("LINE", "emitter.mma(1, to=S[0:4])"))
