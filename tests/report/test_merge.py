from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.support import RUN, finding, kernel
from tl2npu.report.build import build
from tl2npu.report.merge import merge, missing_shards
from tl2npu.report.model import Report, ReportError, Run
from tl2npu.results import FileResult, Skipped


def part(*paths: str, run: Run = RUN, skipped: tuple[str, ...] = ()) -> Report:
    files = [FileResult(path, "a", "b", None, (kernel("f", 1),), (finding(1, "f"),)) for path in paths]
    return build(run, files, [Skipped(path, "@generated") for path in skipped])


def test_files_come_in_the_order_of_their_paths_and_the_worst_exit_code_counts() -> None:
    parts = [part("c.py", "a.py", skipped=("z.py",)), part("b.py", skipped=("y.py",), run=replace(RUN, exit_code=2))]
    whole = merge([(str(number), item) for number, item in enumerate(parts)])
    assert [entry.path for entry in whole.entries] == ["a.py", "b.py", "c.py"]
    assert [file.path for file in whole.skipped] == ["y.py", "z.py"]
    assert whole.run == replace(RUN, exit_code=2)
    assert merge([("1", parts[1]), ("0", parts[0])]) == whole
    assert merge([("0", part("b.py", "a.py"))]).entries == part("a.py", "b.py").entries


def shard(number: int, count: int) -> Run:
    return replace(RUN, shard=(number, count))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (replace(RUN, version="2"), 'version of tl2npu is "1.2.3" and "2"'),
        (replace(RUN, task="check"), 'task is "migrate" and "check"'),
        (replace(RUN, written=True), "`written` is false and true"),
        (replace(RUN, options={"device": "A5", "select": []}), 'option `device` is "A2" and "A5"'),
        (replace(RUN, options={"device": "A2"}), "option `select` is [] and null"),
        (shard(1, 2), "division into shards is null and 2"),
    ],
)
def test_parts_of_other_runs_do_not_go_together(run: Run, message: str) -> None:
    with pytest.raises(ReportError) as caught:
        merge([("a.json", part("a.py")), ("b.json", part("b.py", run=run))])
    assert str(caught.value) == f"a.json and b.json are not of one run: {message}"


def test_files_and_shards_must_not_come_twice() -> None:
    with pytest.raises(ReportError, match=r"a\.py is in 1\.json and in 3\.json"):
        merge([("1.json", part("a.py")), ("2.json", part("b.py")), ("3.json", part("c.py", "a.py"))])
    with pytest.raises(ReportError, match=r"a\.py is in 1 and in 2"):
        merge([("1", part("a.py")), ("2", part(skipped=("a.py",)))])
    with pytest.raises(ReportError, match="1 and 2 are both of shard 3"):
        merge([("1", part("a.py", run=shard(3, 4))), ("2", part("b.py", run=shard(3, 4)))])


def test_missing_shards() -> None:
    assert missing_shards([part(run=shard(n, 4)) for n in (4, 2)]) == [1, 3]
    assert missing_shards([part(run=shard(n, 2)) for n in (2, 1)]) == []
    assert missing_shards([part()]) == []
    assert merge([(str(n), part(run=shard(n, 2))) for n in (2, 1)]).run.shard is None
