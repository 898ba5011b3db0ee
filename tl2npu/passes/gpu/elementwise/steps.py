"""What a ``T.Parallel`` nest becomes: statements in loops, and statements by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tl2npu.kernel.model import Stmt

Form = Literal["flat", "rows", "spread", "scalar"]


@dataclass(frozen=True, eq=False)
class InLoop:
    """A statement inside of ``for names in T.Parallel(extents)``.

    ``form``: ``flat`` and ``rows`` become one instruction, or one for each row; ``spread`` puts a vector into every
    row or column; ``scalar`` runs element by element. ``stmt``: where it comes from; ``kept``: it stands there so.
    """

    names: tuple[str, ...]
    extents: tuple[str, ...]
    text: str
    form: Form
    stmt: Stmt
    kept: bool = False

    def joins(self, other: InLoop) -> bool:
        """Whether both may stand in one loop: one statement that runs row by row makes all of them do so
        (ascend_lower_parallel_to_vector.cc, ``TryVectorizeBufferStoreSeq``)."""
        same = (self.names, self.extents, self.form) == (other.names, other.extents, other.form)
        return same and self.form != "spread"


@dataclass(frozen=True, eq=False)
class Line:
    """A statement of its own."""

    text: str
    stmt: Stmt


@dataclass(frozen=True, eq=False)
class Under:
    """Statements under a condition that is the same for all elements."""

    condition: str
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]
    stmt: Stmt


Step = InLoop | Line | Under
