"""Logs: which line says what, in which order, and that no log takes long."""

from __future__ import annotations

import io
import os
import time

import pytest

from tl2npu.errors import log
from tl2npu.errors.log import Found, explain, explain_query, explain_stream
from tl2npu.errors.table import ENTRIES

DEVICE = """\
RuntimeError: NPU function error: c10_npu::acl::AclrtSynchronizeStreamWithTimeout(copy_stream), error code is 507035
[ERROR] 2026-11-02-16:33:48 (PID:107001, Device:7, RankID:-1) ERR00100 PTA call acl api failed
[Error]: The vector core execution is abnormal.
EZ9999: Inner Error!
EZ9999: [PID: 41970] The error from device(chipId:7, dieId:0), serial number is 1, there is an exception of aivec \
error, core id is 14, error code = 0x4000000000000000, dump info: pc start: 0x124400000000, vec error info: 0xde24
       The extend info: errcode:(0x4000000000000000, 0, 0) errorStr: VEC instruction error: the ub address out of \
bounds. fixp_error0 info: 0x3001a20
       Kernel task happen error, retCode=0x31, [vector core exception].[FUNC:PreCheckTaskErr]
[ERROR] stream.cc Aicore kernel execute failed, stream_id=11, fault kernel_name=softmax_kernel, fault kernel info
rtDeviceReset failed, error code is 507901
"""


def told(text: str) -> list[tuple[str, int]]:
    return [(found.entry.key, found.line) for found in explain(text).found]


def test_a_log_of_the_device() -> None:
    """The cause, which stands in line 5, before the symptoms, and what followed from it last. A PID is no code."""
    assert told(DEVICE) == [
        ("ub-out-of-bounds", 5),
        ("507035", 1),
        ("core-dump-line", 5),
        ("task-exception", 7),
        ("fault-kernel", 8),
        ("507901", 9),
        ("torch-npu-call", 2),
        ("EZ9999", 4),
    ]
    cause = explain(DEVICE).found[0]
    assert (cause.count, cause.bits) == (2, (62,))
    assert dict(explain(DEVICE).found[4].names) == {"kernel": "softmax_kernel"}


def test_the_first_of_several_causes_comes_first() -> None:
    text = "a\ncommon.cpp:3:4: error: use of undeclared identifier 'T'\nx\nInternalError: Unresolved call Op(tir.exp)\n"
    assert told(text) == [("undeclared-template-parameter", 2), ("unresolved-function", 4)]
    assert explain(text).found[1].names == (("call", "exp"),)


def test_the_most_specific_of_messages_that_overlap() -> None:
    assert told("Memory allocation failed for: x memory allocate conflict with: y") == [("planned-conflict", 1)]
    assert told("error: use of undeclared identifier 'T'") == [("undeclared-template-parameter", 1)]
    assert told("error: use of undeclared identifier 'T2'") == [("undeclared-local", 1)]
    assert told("Unresolved call Op(tl.ascend_sin)") == [("unresolved-operator", 1)]
    assert told("Unresolved call Op(tl.gemm)") == [("unresolved-gpu-operator", 1)]


def test_an_envelope_is_no_news_beside_its_message() -> None:
    assert told("InternalError: Check failed: (ws_info.shapes.size() >= 2) is false:") == [("transfer-rank", 1)]
    assert told("InternalError: Check failed: (x > y) is false:") == [("internal-check", 1)]


@pytest.mark.parametrize(
    ("text", "bits", "keys"),
    [
        ("errcode:(0x10, 0, 0)", {4}, {"illegal-instruction"}),
        ("errcode:(0x800000, 0, 0)", {23}, {"gm-invalid"}),
        ("errcode:(0x9000, 0x800, 0)", {12, 15, 75}, {"l0-out-of-bounds", "ub-unaligned"}),
        ("errcode:(0, 0x4000000000, 0)", {102}, {"fixpipe-bounds"}),
        ("errcode:(0, 0, 0x1000)", {140}, {"flag-counter"}),
        ("errcode:(0, 0, 0x4000000000)", {151}, {"ub-unaligned"}),
        ("errcode:(0, 0, 0x20000)", set(), set()),
        ("errcode:(95)", {95}, {"gm-invalid"}),
        ("errcode:(340, 341)", {340, 341}, {"ub-unaligned", "ub-out-of-bounds"}),
        ("error code = 0x800000, dump info", {23}, {"gm-invalid"}),
        ("error code = 95, dump info", {95}, {"gm-invalid"}),
        ("error code = 0, dump info", set(), set()),
        ("errcode:(0, 0, 0)", set(), set()),
        ("errcode:(0x4, 0, 0)", set(), set()),
        ("errcode:(zebra)", set(), set()),
    ],
)
def test_bits_of_an_exception(text: str, bits: set[int], keys: set[str]) -> None:
    """Of A2 and A3 the third word has 17 bits of one register below and those of another from 32 on."""
    found = explain(text).found
    assert {bit for one in found for bit in one.bits} == bits
    assert {one.entry.key for one in found} == keys


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all is well, 507 tests passed in 15 s",
        "step 107000 of 200000: loss 0.1",
        "listening on port 207001",
        "error: pid 507015 exited",
        "failed: 1507015 bytes",
        "error code 507015.25",
        "EZ99999 and XEZ9999",
        "\0\0\0\xff\xfe",
    ],
)
def test_what_is_no_error_is_nothing(text: str) -> None:
    assert explain(text).found == ()


@pytest.mark.parametrize(
    "text",
    [
        "error code is 507015",
        "ACL stream synchronize failed, error code:507015",
        "aclrtSynchronizeStream(stream) failed: 507015 (main.cpp:92)",
        "runtime result = 507015.",
        "ret 507015",
        "\x1b[31merror\x1b[0m code \x1b[1m507015\x1b[0m",
        "error code is 507015\r\nnext line",
        "ACL_ERROR_RT_AICORE_EXCEPTION",
    ],
)
def test_a_code_in_its_surroundings(text: str) -> None:
    assert "507015" in [found.entry.key for found in explain(text).found]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (" 507015 ", "507015"),
        ("EZ9999", "EZ9999"),
        ("0x4000000000000000", "ub-out-of-bounds"),
        ("0x7150026", "507015"),  # what the task scheduler says
        ("InnerCode=0x0715005E", "507035"),
    ],
)
def test_a_query_may_be_a_code_alone(text: str, key: str) -> None:
    assert [found.entry.key for found in explain_query(text).found] == [key]


def test_line_numbers_behind_what_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PART", 1000)
    lines = ["error code is 507014", *(f"line {n} is long enough" for n in range(2, 500)), "error code is 507015"]
    explained = explain_stream(io.BytesIO("\n".join(lines).encode()))
    assert [(one.entry.key, one.line) for one in explained.found] == [("507014", 1), ("507015", 500)]
    assert explained.skipped > 400
    assert explain("\n".join(lines)) == explained


def test_a_message_where_both_ends_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PART", 64)
    for before in range(40, 70):
        text = "x" * before + "\nerror code is 507015\n"
        assert [(one.entry.key, one.line) for one in explain_stream(io.BytesIO(text.encode())).found] == [("507015", 2)]


def test_a_word_where_two_steps_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_STEP", 64)
    for before in range(64):
        text = "x" * before + " Buffer address not found: B\n"
        assert [one.entry.key for one in explain(text).found] == ["no-address"]


def test_everything_at_once() -> None:
    found = {one.entry.key for one in explain("\n".join(entry.example for entry in ENTRIES)).found}
    assert found == {entry.key for entry in ENTRIES}


def took(data: bytes) -> float:
    begun = time.process_time()
    explain_stream(io.BytesIO(data))
    return time.process_time() - begun


@pytest.mark.thorough
def test_hostile_logs_take_no_longer_than_their_size() -> None:
    """Binary data, lines without end, messages without end: each in some seconds, on any machine."""
    needles = [template.needle for entry in ENTRIES for template in entry.says]
    for data in (
        os.urandom(1_000_000),
        b"a" * 1_000_000,
        b"error code " * 35_000,
        b"error code is 507015 EZ9999 Check failed: \n" * 17_000,
        b"errcode:(" + b"0x1," * 70_000,
        (" ".join(needles) * 7).encode(),
        b"Unsupported argument type: " * 14_000,
        b"<class 'tvm.tir" * 14_000,
    ):
        assert took(data) < 2


def test_found_is_a_value() -> None:
    one = explain(DEVICE).found[0]
    assert isinstance(one, Found)
    assert one == explain(DEVICE).found[0]
