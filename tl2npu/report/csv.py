"""The figures of ``tl2npu verify`` as a table in the columns of ``msprobe compare``, so that viewers of those read it.

The columns up to ``Err_message`` are msprobe's (``CompareConst.COMPARE_RESULT_HEADER``, and ``EucDist``, which later
versions have); "NPU" is the new kernel, "Bench" the old one or its exact result. Those behind it are of this tool.
"""

from __future__ import annotations

import csv
import io
import math

from tl2npu.verified import Comparison, Metrics, VerifyResult

COLUMNS = (
    *("NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"),
    *("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"),
    *("NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm"),
    *("Accuracy Reached or Not", "Err_message"),
)
FURTHER = ("MERE", "MARE", "RMSE", "Matched", "Worst Index", "Standard", "Kernel", "Call")


def table(result: VerifyResult) -> str:
    """A row for each output of each launch."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*COLUMNS, *FURTHER])
    turns: dict[str, int] = {}
    for launch in result.comparisons:
        turn = turns[launch.kernel] = turns.get(launch.kernel, -1) + 1
        for row in launch.metrics:
            writer.writerow(_row(result, launch, turn, row))
    return stream.getvalue()


def _row(result: VerifyResult, launch: Comparison, turn: int, row: Metrics) -> list[object]:
    name = f"{launch.kernel}.{turn}.{row.tensor}"
    shape, dtype = str(list(row.shape)), row.dtype
    count = math.prod(row.shape)
    return [
        *(_text(name), _text(name), dtype, dtype, shape, shape),
        *(row.cosine, row.rmse * math.sqrt(count), row.max_abs, row.mare, row.within, row.within_five),
        *row.actual,
        *row.reference,
        "No" if row.unmet else "Yes",
        _text(row.unmet),
        *(row.mere, row.mare, row.rmse, row.matched, str(list(row.worst)), result.standard),
        _text(launch.kernel),
        _text(launch.call),
    ]


def _text(value: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value
