"""What the backends say of a fault is what the table knows of it."""

from __future__ import annotations

from tests.errors.test_log import DEVICE
from tl2npu.backends.compile.messages import Meaning, meaning
from tl2npu.backends.device.runner import of_exception, of_runtime


def test_an_exception_of_the_device_with_its_bits() -> None:
    """The code, the text of the device, what the bits mean, and the rules about that."""
    said = of_runtime(DEVICE)
    text = "VEC instruction error: the ub address out of bounds"
    assert said.startswith(f"error 507035 (vector core exception, {text}): ")
    assert said.endswith(" (TL801 memory-capacity, TL832 whole-size-tile-op)")
    assert "behind the end of UB" in of_runtime("error code is 507015, errcode:(0x4000000000000000, 0, 0)")


def test_a_core_that_waits() -> None:
    said = of_runtime("error code is 507014\nerrcode:(0, 0, 0) errorStr: timeout or trap error. fixp_error0")
    assert said.startswith("error 507014 (AI Core execution timed out, timeout or trap error): no error bit is set. ")
    assert "TL941 device-hang" in said


def test_without_a_code_or_without_a_cause() -> None:
    assert of_runtime("errcode:(0x10, 0, 0)") == ""
    assert of_runtime("error code is 507014") == "error 507014 (AI Core execution timed out)"
    assert of_exception("ValueError: no", "all is well") == "ValueError: no"


def test_the_first_cause_and_no_envelope() -> None:
    text = "InternalError: Check failed: (x) is false\nInternalError: Unresolved call Op(tir.exp)\nEZ9999: Inner Error!"
    assert meaning(text) == Meaning(("TL733", "TL896"), "", "exp")
    assert meaning("InternalError: Check failed: (x) is false") == Meaning(())
    assert meaning("", "AscendMemoryPlanning") == Meaning(("TL801",))
