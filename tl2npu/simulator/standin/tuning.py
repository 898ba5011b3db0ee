"""Tuners that do not tune: ``autotune``, ``AutoTuner`` and the templates of ``tilelang.carver``.

A simulator has no latencies, so the first configuration whose kernel can be built is taken.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.standin.latency import UNMEASURED


class Tuned:
    """A factory under ``@autotune(configs=...)``: parameters that a call leaves out come from a configuration."""

    def __init__(self, function: Any, configs: Any) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.configs = configs
        self.signature = inspect.signature(getattr(function, "function", function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = set(self.signature.bind_partial(*args, **kwargs).arguments)
        needed = [
            n
            for n, p in self.signature.parameters.items()
            if n not in given and p.default in (p.empty, None) and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]
        if not needed:
            return self.function(*args, **kwargs)
        error: Exception | None = None
        for config in self.candidates(args, kwargs):
            chosen = {n: v for n, v in config.items() if n in self.signature.parameters and n not in given}
            if any(n not in chosen and self.signature.parameters[n].default is not None for n in needed):
                continue
            try:
                result = self.function(*args, **kwargs, **chosen)
            except (SimulatorError, AssertionError, ValueError) as failed:
                error = error or failed
                continue
            if hasattr(result, "config"):
                result.config = dict(config)
            return result
        if error is not None:
            raise error
        if all(self.signature.parameters[n].default is None for n in needed):
            return self.function(*args, **kwargs)
        raise TypeError(f"no configuration gives {', '.join(needed)} of {self.function.__name__}")

    def candidates(self, args: Any, kwargs: Any) -> Iterable[dict[str, Any]]:
        """The configurations; a function of the call's arguments may make them.

        tilelang calls it with the arguments (tuner.py:995), tilelang-ascend with two tuples, the positional arguments
        and the keyword ones as pairs (tuner.py:299).
        """
        if not callable(self.configs):
            return self.configs or []
        try:
            inspect.signature(self.configs).bind(*args, **kwargs)
        except TypeError:
            return self.configs(args, tuple(sorted(kwargs.items())))  # type: ignore[no-any-return]
        return self.configs(*args, **kwargs)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def autotune(*args: Any, configs: Any = None, **_: Any) -> Any:
    """``@autotune(configs=...)``."""
    if len(args) == 1 and callable(args[0]) and configs is None:
        return Tuned(args[0], [])
    return lambda function: Tuned(function, configs if configs is not None else args[0] if args else [])


class AutoTuner:
    """``AutoTuner.from_kernel(kernel, configs)``; the other methods give the tuner back, ``run`` the result."""

    def __init__(self, function: Any, configs: Any) -> None:
        self.function = function
        self.configs = configs
        self.options: dict[str, Any] = {}

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Any) -> AutoTuner:
        """A tuner for a factory."""
        return cls(kernel, configs)

    def set_compile_args(self, **options: Any) -> AutoTuner:
        """``out_idx``, ``pass_configs`` and more, as for ``tilelang.compile``."""
        self.options |= options
        return self

    def set_profile_args(self, **_: Any) -> AutoTuner:
        """Nothing is profiled."""
        return self

    set_kernel_parameters = set_profile_args

    def run(self, *_: Any, compiler: Callable[..., Any] | None = None, **__: Any) -> Any:
        """The kernel of the first configuration that can be built."""
        built = Tuned(self.function, self.configs)
        kernel = built()
        if compiler is not None and not hasattr(kernel, "get_profiler"):
            kernel = compiler(kernel, **self.options)
        config: Any = getattr(kernel, "config", None) or next(iter(self.configs), {})
        return SimpleNamespace(kernel=kernel, config=config, latency=UNMEASURED, ref_latency=UNMEASURED, libcode="")


class Template:
    """``carver.MatmulTemplate(M=, N=, K=)`` and the like: one modest tile."""

    def __init__(self, **sizes: Any) -> None:
        self.sizes = {k: v for k, v in sizes.items() if isinstance(v, int)}

    def with_arch(self, _: Any) -> Template:
        """Every architecture is the same here."""
        return self

    def recommend_hints(self, topk: int = 1, **_: Any) -> list[Any]:
        """One hint: blocks of at most 64."""
        sizes = list(self.sizes.values()) or [64, 64, 64]
        blocks = [min(64, size) for size in sizes[:2]] * (1 if len(sizes) > 1 else 2)
        steps = [min(64, size) for size in sizes[2:3]] or [blocks[-1]]
        plan = SimpleNamespace(panel_width_=1, __bool__=lambda: False)
        return [
            SimpleNamespace(
                block=blocks, warp=blocks, thread=[1, 1], rstep=steps, step=[1], pipeline_stage=1, use_async=False,
                rasterization_plan=plan, vectorize={}, use_tc=True, block_order=None,
            )
        ]  # fmt: skip
