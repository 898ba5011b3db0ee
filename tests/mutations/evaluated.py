"""``python -m tests.mutations.evaluated``: which mutants of migrated GPU kernels the check of every run tells apart.

``--sample N --seed S`` and ``--fixture TEXT`` as for ``python -m tests.mutations``. Mutants that pass are printed; some
are equivalent: a number of stages, a tile that is filled before it is overwritten, a token that orders the cores.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tests.evaluate.support import subjects
from tests.mutations.__main__ import cases, shuffled
from tl2npu.checks.subject import Subject
from tl2npu.evaluate.compare import compared

KINDS = ["dropped", "swapped", "index", "slice", "extent", "init", "grid", "comparison", "operator", "axis", "tail"]
KINDS += ["constant"]
"""What changes values; launches, ``pass_configs`` and element types are for ``check`` and ``verify``."""


def main() -> None:
    """Compare and count."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.evaluated")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--fixture", action="append", default=[])
    asked = parser.parse_args()
    chosen = [case for case in cases() if case.name.startswith("gpu/")]
    chosen = [case for case in chosen if not asked.fixture or any(text in case.name for text in asked.fixture)]
    olds: dict[str, dict[str, Subject]] = {}
    count: Counter[str] = Counter()
    for case, mutant in shuffled(chosen, KINDS, asked.seed)[: asked.sample]:
        if case.name not in olds:
            olds[case.name] = {one.kernel.name: one for one in subjects(case.before)}
        verdicts = []
        for new in subjects(mutant.text):
            if new.kernel.name in olds[case.name]:
                verdicts.append(compared(olds[case.name][new.kernel.name], new))
        told = any(found.equal is False for found in verdicts)
        result = "told apart" if told else "not checked" if any(v.equal is None for v in verdicts) else "passed"
        count[result if verdicts else "no pair"] += 1
        if verdicts and not told:
            why = "; ".join(found.why for found in verdicts if found.why)
            print(f"{result.upper()} {case.name}:{mutant.line} {mutant.name} {why}", flush=True)
    print(", ".join(f"{number} {result}" for result, number in count.most_common()))


if __name__ == "__main__":
    main()
