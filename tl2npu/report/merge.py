"""The reports of the parts of a run, joined into one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tl2npu.report.escape import visible
from tl2npu.report.model import Report, ReportError, Run


def merge(reports: Sequence[tuple[str, Report]]) -> Report:
    """One report of all files, by path; names stand in messages. The exit code is the largest: that of one whole run.

    Raises :class:`ReportError` where the parts do not belong together: other versions, tasks or options, shards of
    another division or twice the same, a file in two of them.
    """
    first_name, first = reports[0]
    for name, other in reports[1:]:
        _same_run(first_name, first.run, name, other.run)
    _distinct_shards(reports)
    _distinct_files(reports)
    run = replace(first.run, exit_code=max(report.run.exit_code for _, report in reports), shard=None)
    entries = [entry for _, report in reports for entry in report.entries]
    skipped = [file for _, report in reports for file in report.skipped]
    return Report(
        run, tuple(sorted(entries, key=lambda entry: entry.path)), tuple(sorted(skipped, key=lambda file: file.path))
    )


def missing_shards(reports: Sequence[Report]) -> list[int]:
    """The numbers of the shards that no report is of."""
    shards = [report.run.shard for report in reports if report.run.shard is not None]
    return sorted(set(range(1, shards[0][1] + 1)) - {number for number, _ in shards}) if shards else []


def _same_run(first: str, one: Run, second: str, other: Run) -> None:
    pairs = [
        ("version of tl2npu", one.version, other.version),
        ("task", one.task, other.task),
        ("`written`", one.written, other.written),
        ("division into shards", one.shard and one.shard[1], other.shard and other.shard[1]),
    ]
    names = sorted({*one.options, *other.options})
    pairs += [(f"option `{name}`", one.options.get(name), other.options.get(name)) for name in names]
    for what, left, right in pairs:
        if left != right:
            raise ReportError(
                f"{first} and {second} are not of one run: {what} is {json.dumps(left)} and {json.dumps(right)}"
            )


def _distinct_shards(reports: Sequence[tuple[str, Report]]) -> None:
    seen: dict[int, str] = {}
    for name, report in reports:
        if report.run.shard is not None:
            number = report.run.shard[0]
            if number in seen:
                raise ReportError(f"{seen[number]} and {name} are both of shard {number}")
            seen[number] = name


def _distinct_files(reports: Sequence[tuple[str, Report]]) -> None:
    seen: dict[str, str] = {}
    for name, report in reports:
        for path in [entry.path for entry in report.entries] + [file.path for file in report.skipped]:
            if path in seen:
                raise ReportError(f"{visible(path)} is in {seen[path]} and in {name}")
            seen[path] = name
