"""``python -m tests.mutations``: verifies the mutants of fixtures, and says which of them pass.

``--fixture TEXT`` (several): only fixtures with this in their names. ``--every N``: each N-th mutant. ``--kind KIND``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fixture_case import Case, load_all
from tests.mutations.equivalent import reason
from tests.mutations.mutants import KINDS, mutants
from tests.mutations.trial import Trial, Verdict


def cases() -> list[Case]:
    """The fixtures that have a migrated kernel which verify can judge."""
    return [case for case in load_all() if case.has_after]


def main() -> int:
    """Verify and count. The exit code is 1 if a mutant passes that is not known to be equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--fixture", action="append", default=[])
    parser.add_argument("--kind", choices=list(KINDS), action="append", default=[])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--shard", default="0/1", help="K/N: fixtures K, K + N, ...")
    asked = parser.parse_args()
    part, of = map(int, asked.shard.split("/"))
    chosen = [c for c in cases() if not asked.fixture or any(text in c.name for text in asked.fixture)][part::of]
    caught: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    passed: list[tuple[str, Verdict]] = []
    for case in chosen:
        started = time.monotonic()
        made = [m for m in mutants(case.after) if not asked.kind or m.kind in asked.kind][:: asked.every]
        trial = Trial(case)
        for mutant in made:
            verdict = trial.of(mutant)
            if verdict.caught:
                caught[mutant.kind] += 1
            elif reason(case, mutant):
                equivalent[mutant.kind] += 1
                reasons[reason(case, mutant)] += 1
            else:
                passed.append((case.name, verdict))
                print(f"PASSED {case.name}:{mutant.line} {mutant.name}", flush=True)
        trial.close()
        print(f"{case.name}: {len(made)} mutants, {time.monotonic() - started:.1f} s", flush=True)
    print(f"{'kind':14} caught equivalent passed")
    open_ = Counter(verdict.mutant.kind for _, verdict in passed)
    for kind in KINDS:
        print(f"{kind:14} {caught[kind]:6} {equivalent[kind]:10} {open_[kind]:6}")
    for text, count in reasons.most_common():
        print(f"{count:6} {text}")
    total = caught.total() + len(passed)
    share = 100 * caught.total() / total if total else 100.0
    print(f"{caught.total()} of {total} that are not known to be equivalent are caught: {share:.2f} %")
    return int(bool(passed))


if __name__ == "__main__":
    sys.exit(main())
