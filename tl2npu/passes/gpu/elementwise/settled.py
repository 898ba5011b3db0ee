"""TL144: names of element types that can be float32 only.

``accum_dtype`` may be anything, and where it stands beside another type all of a tile would be converted to float32 and
back. It is float32 where it is the type of a product; and where every call says so, an assertion keeps it that. The
types of tensors stay open: callers have both halves and floats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tl2npu.kernel import element_types
from tl2npu.kernel.access import accesses
from tl2npu.kernel.factories import assertions
from tl2npu.kernel.model import walk
from tl2npu.kernel.named_types import NamedTypes, product_types
from tl2npu.passes.gpu.elementwise.nest import Nest
from tl2npu.passes.host import parameters
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants

_TEXTS = frozenset({'"float32"', "'float32'", "T.float32"})
"""What is, or becomes (TL110), equal to ``"float32"``."""


def names(job: Job, found: Iterable[Nest], types: NamedTypes) -> tuple[frozenset[str], list[str]]:
    """Those that are known to be float32, and those of which an assertion can be written."""
    told = {name for name, dtype in assertions.types(job.file, job.located).items() if dtype == "float32"}
    certain = product_types(job.kernel, types) | told
    asked = {name for name in _beside_others(found) if types.as_written(name) and types.as_written(name) <= _TEXTS}
    asked -= certain.union(tensor.dtype for tensor in job.kernel.params)
    factory = job.located.factory
    if factory is None or not asked or not parameters.all_calls(job):
        return certain, []
    params = (*factory.node.params.params, *factory.node.params.kwonly_params)
    return certain, [param.name.value for param in params if param.name.value in asked]


def assert_types(job: Job, asked: Sequence[str]) -> None:
    """Write the assertion."""
    if asked:
        listed = " and ".join(f"`{name}`" for name in asked)
        text = f"every call gives float32 for {listed}: wrote an assertion in place of conversions"
        job.note("TL144", job.located.node, text, done=True)
        constants.define(job, [f'assert {" == ".join(asked)} == "float32"'])


def _beside_others(found: Iterable[Nest]) -> Iterator[str]:
    """Names of types that stand in one nest with another type."""
    for nest in found:
        tiles = {access.operand.buffer for stmt in walk(nest.body) for access in accesses(stmt)}
        dtypes = {element_types.plain(tile.dtype) for tile in tiles if tile.is_tile}
        yield from (dtype for dtype in dtypes if len(dtypes) > 1 and not element_types.is_known(dtype))
