"""``python -m tests.generated gpu --count 5000 --seed 1``: random kernels, migrated, checked, executed, compared.

Every program is printed, migrated and checked; the old and the new kernel run on the simulator, and both must give
what an oracle says that shares nothing with tl2npu. A program that is wrong is printed with its seed, made small.
``-j``: processes.
Style ``npuir``: GPU kernels for AscendNPU IR. ``--out DIR``: also writes what is wrong, with its migration, to files.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.generated.judge import Verdict
from tests.generated.search import fault, reduced, verdict_of
from tests.generated.styles import STYLES


def main() -> int:
    """The exit code is 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.generated", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("style", choices=sorted(STYLES))
    parser.add_argument("--count", type=int, default=100, metavar="N", help="how many programs [default: 100]")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first program [default: 0]")
    parser.add_argument("-j", type=int, default=1, dest="jobs", metavar="N", help="processes [default: 1]")
    parser.add_argument("--tries", type=int, default=600, metavar="N", help="to make a program smaller [default: 600]")
    parser.add_argument("--print", action="store_true", dest="shown", help="only print the programs")
    parser.add_argument("--out", type=Path, metavar="DIR")
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.shown:
        for seed in seeds:
            print(STYLES[asked.style].text(STYLES[asked.style].draw(seed)))
        return 0
    kinds: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    started = time.process_time()
    with ProcessPoolExecutor(asked.jobs) as pool:
        many = [asked.style] * len(seeds)
        verdicts = map(verdict_of, many, seeds) if asked.jobs == 1 else pool.map(verdict_of, many, seeds, chunksize=8)
        for seed, verdict in zip(seeds, verdicts, strict=True):
            kinds[verdict.kind] += 1
            if sum(kinds.values()) % 100 == 0:
                print(f"{sum(kinds.values())} of {len(seeds)}: {dict(kinds)}", file=sys.stderr, flush=True)
            codes.update(verdict.codes)
            if verdict.is_fault:
                seen[fault(verdict)] += 1
                _report(asked.style, seed, verdict, asked.tries if seen[fault(verdict)] <= 3 else 0, asked.out)
    judged = sum(kinds.values()) - kinds["discarded"]
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {judged} programs in {time.process_time() - started:.0f} s")
    for kind, count in kinds.most_common():
        print(f"  {count:5} {kind}" + (f" ({100 * count / judged:.1f} %)" if kind != "discarded" and judged else ""))
    print("reasons:", ", ".join(f"{code} {count}" for code, count in codes.most_common(30)))
    for what, count in seen.most_common():
        print(f"  {count:5} {what}")
    return 1 if seen else 0


def _report(style: str, seed: int, verdict: Verdict, tries: int, out: Path | None) -> None:
    """Print what is wrong, as small as it gets."""
    finding = reduced(style, seed, verdict, tries)
    print(f"{'-' * 8} {style} --seed {seed} --count 1\n{finding.text}", flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{style}_{seed}.py").write_text(f"{finding.text}\n'''\n{finding.verdict.new_text}'''\n")


if __name__ == "__main__":
    raise SystemExit(main())
