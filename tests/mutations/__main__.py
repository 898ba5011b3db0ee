"""``python -m tests.mutations``: verifies the mutants of fixtures, and says which of them pass.

``--sample N --seed S``: the first N of all mutants in a random order, so that a smaller sample is part of a larger one.
``--fixture TEXT`` (several): only fixtures with this in their names. ``--kind KIND`` (several).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from math import sqrt

from tests.fixture_case import Case, load_all
from tests.mutations.equivalent import reason
from tests.mutations.mutants import KINDS, Mutant, mutants
from tests.mutations.survivors import SURVIVORS
from tests.mutations.trial import Trial

NORMAL = 1.959964
"""The quantile of 95 %."""


def cases() -> list[Case]:
    """The fixtures that have a migrated kernel which verify can judge."""
    return [case for case in load_all() if case.has_after]


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share after Wilson; 0 and 1 of nothing."""
    if not total:
        return 0.0, 1.0
    share, square = count / total, NORMAL**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = NORMAL / (1 + square / total) * sqrt(share * (1 - share) / total + square / (4 * total**2))
    return middle - half, min(middle + half, 1.0)


def shuffled(chosen: list[Case], kinds: list[str], seed: int) -> list[tuple[Case, Mutant]]:
    """The mutants of fixtures in a random order."""
    made = [(case, mutant) for case in chosen for mutant in mutants(case.after) if not kinds or mutant.kind in kinds]
    random.Random(seed).shuffle(made)
    return made


def main() -> int:
    """Verify and count. The exit code is 1 if a mutant passes that is not known to be equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sample", type=int, metavar="N", help="how many mutants [default: all]")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the random order [default: 0]")
    parser.add_argument("--fixture", action="append", default=[])
    parser.add_argument("--kind", choices=list(KINDS), action="append", default=[])
    asked = parser.parse_args()
    chosen = [c for c in cases() if not asked.fixture or any(text in c.name for text in asked.fixture)]
    made = shuffled(chosen, asked.kind, asked.seed)
    caught: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    trials: dict[str, Trial] = {}
    started = time.process_time()
    sample = made[: asked.sample]
    for case, mutant in sample:
        if case.name not in trials:
            trials[case.name] = Trial(case)
        if trials[case.name].of(mutant).caught:
            caught[mutant.kind] += 1
        elif why := reason(case, mutant) or SURVIVORS.get((case.name, mutant.name), ""):
            equivalent[mutant.kind] += 1
            reasons[why] += 1
        else:
            passed[mutant.kind] += 1
            print(f"PASSED {case.name}:{mutant.line} {mutant.name}", flush=True)
    for trial in trials.values():
        trial.close()
    print(f"{'kind':14} caught equivalent passed")
    for kind in KINDS:
        print(f"{kind:14} {caught[kind]:6} {equivalent[kind]:10} {passed[kind]:6}")
    for text, count in reasons.most_common():
        print(f"{count:6} {text}")
    total = caught.total() + passed.total()
    low, high = (100 * share for share in wilson(caught.total(), total))
    share = 100 * caught.total() / total if total else 100.0
    rate = len(sample) / (time.process_time() - started)
    print(f"{len(sample)} of {len(made)} mutants, {rate:.1f} a second of CPU time")
    print(f"{caught.total()} of {total} that are not known to be equivalent are caught: {share:.2f} %")
    print(f"95 % confidence: {low:.2f} % to {high:.2f} %")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
