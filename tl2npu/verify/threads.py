"""How many threads NumPy's matrix products use while kernels run."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "OPENBLAS_NUM_THREADS"
"""Read by OpenBLAS when NumPy is loaded: it has to be set before that."""


def one_thread(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment with one thread for a product, unless the user has chosen a number.

    A kernel's products are small tiles, many of them: on a machine that has other work, handing them to several threads
    made them ten times slower.
    """
    given = dict(os.environ if environment is None else environment)
    given.setdefault(VARIABLE, "1")
    return given
