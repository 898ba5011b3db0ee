"""Profilers that do no harm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tl2npu.simulator.standin.latency import UNMEASURED
from tl2npu.simulator.standin.testing import torch_assert_close


class Profiler:
    """What ``get_profiler`` gives. Checks are made, nothing is timed."""

    def __init__(
        self,
        params: Sequence[Any],
        result_idx: Sequence[int],
        workspace_idx: Sequence[int] = (),
        supply_type: Any = None,
        adapter: Callable[..., Any] | None = None,
    ) -> None:
        self.params = params
        self.made = {*result_idx, *workspace_idx}
        self.adapter = adapter

    def with_default_adapter(self, adapter: Callable[..., Any]) -> Profiler:
        """What is run."""
        self.adapter = adapter
        return self

    @property
    def func(self) -> Callable[..., Any]:
        """What is run."""
        assert self.adapter is not None, "adapter should be provided"
        return self.adapter

    def do_bench(self, *_: Any, **__: Any) -> float:
        """Not measured."""
        return UNMEASURED

    run_once = do_bench

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def _get_inputs(self, *_: Any, **__: Any) -> list[Any]:
        import torch

        result = []
        for n, param in enumerate(self.params):
            if n in self.made:
                continue
            dtype = getattr(torch, param.dtype)
            if dtype.is_floating_point:
                result.append(torch.randn([int(d) for d in param.shape]).to(dtype))
            else:
                result.append(torch.randint(-2, 3, [int(d) for d in param.shape]).to(dtype))
        return result

    def assert_allclose(
        self,
        reference: Callable[..., Any],
        input_tensors: Any = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
        **_: Any,
    ) -> None:
        """Runs the kernel and the reference on the same inputs; a share of the elements may differ by more, as with the
        real profiler (tilelang/profiler/__init__.py:assert_allclose)."""
        inputs = input_tensors or self._get_inputs()
        expected = reference(*inputs)
        actual = self.func(*inputs)
        pairs = zip(expected, actual, strict=True) if isinstance(expected, (list, tuple)) else [(expected, actual)]
        for want, have in pairs:
            if want is not None:
                torch_assert_close(have, want, rtol=rtol, atol=atol, max_mismatched_ratio=max_mismatched_ratio)

    manual_assert_close = assert_allclose

    def assert_consistent(self, repeat: int = 2) -> None:
        """Runs are deterministic here."""
