"""``--backend compile``: the protocol, against a stand-in for the compiler (``compiler_stand_in.py``)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.in_process import children_in_copies
from tests.verify.compiler_stand_in import bisheng, write
from tests.verify.support import HEAD, MAIN, SCALE, SCRIPT, source
from tl2npu.backends import children
from tl2npu.backends.compile.messages import line_of, meaning
from tl2npu.backends.compile.programs import same
from tl2npu.cli import cli
from tl2npu.migration import migrate_text
from tl2npu.options import Backend, Options
from tl2npu.results import Verified
from tl2npu.verified import VerifyResult
from tl2npu.verify.backends import verify
from tl2npu.verify.migration import migrate_verified
from tl2npu.verify.settings import Call, Settings

MIGRATED = migrate_text(SCRIPT, "kernel.py", Options()).new_text or ""
MUL = "            T.tile.mul(x, x, factor)\n"
COMPILE = Backend("compile")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = write(tmp_path / "installed")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with children_in_copies():
        yield folder


def judged(new: str, *calls: Call, old: str = SCRIPT, **settings: Any) -> VerifyResult:
    given = {"backend": COMPILE, "check": None, "calls": calls, **settings}
    return verify(source(old, "old.py"), source(new, "new.py"), Settings(**given))


def told(result: VerifyResult) -> list[tuple[str, str]]:
    return [(item.code, item.message) for item in result.diagnostics]


@pytest.mark.parametrize("calls", [(), (Call("scale", {"rows": 64}),), (Call("scale", {"0": 64, "factor": 2.0}),)])
def test_a_kernel_that_is_accepted(calls: tuple[Call, ...]) -> None:
    result = judged(MIGRATED, *calls)
    assert (result.ok, told(result)) == (True, [])
    assert [(k.name, k.status, k.verified) for k in result.kernels] == [
        ("scale.main", "verified", Verified("compile", 1, None))
    ]


def test_programs_of_old_and_new_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """In new processes, as a user has them."""
    monkeypatch.setattr(children, "subprocess", subprocess)
    assert "scale.main: the generated program differs from that of the old kernel" in judged(MIGRATED).notes
    again = judged(MIGRATED + "\n# another text\n", old=MIGRATED)
    assert "scale.main: the generated program is that of the old kernel, except for buffer addresses" in again.notes


def test_programs_that_are_the_same_but_for_addresses() -> None:
    """Lines as both code generators of 95acbd7f write them."""
    ascendc = (
        'extern "C" __global__ __aicore__ void {0}( GM_ADDR X) {{ auto y = ub.GetWithOffset<float>(64, {1}); {0}<<<8>>>'
    )
    pto = "TASSIGN(x, {0}); copy<half>(X + 8, pto::Shape<1, 64>(), pto::Stride<1, 64>(), {0}, 0, {1}, 64)"
    assert same(ascendc.format("main_kernel", 0), ascendc.format("k_kernel", 8192))
    assert same(pto.format(0, 32), pto.format(4096, 32))
    assert not same(pto.format(0, 32), pto.format(0, 64))
    assert not same(ascendc.format("k", 0), ascendc.format("k", 0).replace("64", "32"))


def test_the_front_end_rejects_on_a_line() -> None:
    text = MIGRATED.replace(MUL, MUL + "            T.tile.lerp(x)\n")
    line = text.split("\n").index("            T.tile.lerp(x)") + 1
    result = judged(text)
    [(code, message)] = told(result)
    assert code == "TL930"
    assert message.startswith(f"new.py line {line}: the compiler rejects the kernel: AttributeError: module")
    assert "has no attribute 'lerp'" in message
    assert message.endswith("for scale(64)")
    assert (result.ok, result.kernels[0].status) == (False, "failed")


@pytest.mark.parametrize("again", [False, True])
def test_the_old_kernel_is_told_where_both_are_rejected(again: bool) -> None:
    old = MIGRATED.replace(MUL, MUL + "            T.tile.lerp(x)\n")
    found = judged(old.replace("lerp(x)", "lerp(x, x)") if again else MIGRATED, old=old)
    assert found.ok is not again
    assert ("scale.main: the compiler rejects the old kernel too" in found.notes) is again


def test_what_the_code_generator_says_is_mapped_to_rules() -> None:
    text = MIGRATED.replace(MUL, MUL + "            y = T.exp(x)\n")
    line = text.split("\n").index("            y = T.exp(x)") + 1
    [(code, message)] = told(judged(text))
    assert code == "TL930"
    assert message.startswith(f"new.py line {line}: ")
    assert "Unresolved call Op(tir.exp) (TL733 function-in-a-scalar-loop, TL896" in message


def test_a_compiler_that_dies_is_a_verdict() -> None:
    text = MIGRATED.replace("scale(64)(x)", "scale(65536)(x)")
    result = judged(text)
    [(code, message)] = told(result)
    assert code == "TL931"
    assert "crashed with SIGSEGV in AscendMemoryPlanning (TL801 memory-capacity)" in message
    assert result.diagnostics[0].help.startswith("use smaller tiles")


@pytest.mark.thorough
def test_a_compiler_that_hangs_is_stopped() -> None:
    result = judged(MIGRATED.replace(MUL, MUL + "            # while True\n"), timeout=3.0)
    assert [code for code, _ in told(result)] == ["TL911"]
    assert result.kernels[0].status == "not verified"


def test_a_name_that_the_compiler_lacks() -> None:
    result = judged(MIGRATED.replace("pass_configs = {", "pass_configs = {\n    tilelang.PassConfigKey.TL_FAST: 1,"))
    assert told(result)[0][0] == "TL932"
    assert "new.py line 6: AttributeError: TL_FAST" in told(result)[0][1]
    assert not result.ok


def test_a_script_that_stops_for_other_reasons() -> None:
    result = judged(MIGRATED.replace('print("fine")', "raise ValueError('own')"))
    assert [code for code, _ in told(result)] == ["TL906"]
    assert "the code outside the kernels failed: ValueError: own" in told(result)[0][1]
    missing = judged("import no_such_package\n" + MIGRATED)
    assert "No module named 'no_such_package'" in told(missing)[0][1]
    assert judged("import no_such_package\n" + MIGRATED, Call("scale", {"rows": 64})).ok


def test_a_kernel_that_nothing_compiles() -> None:
    result = judged(MIGRATED.replace(MAIN, ""))
    assert (result.ok, result.kernels[0].reason) == (False, "it was never compiled")


def test_autotuned_kernels_have_their_first_configuration() -> None:
    tuned = MIGRATED.replace(
        "@tilelang.jit", '@tilelang.autotune(configs=[{"factor": 3.0}, {"factor": 4.0}])\n@tilelang.jit'
    )
    for text in (tuned, tuned.replace("scale(64)(x)", "scale(64, 5.0)(x)")):  # one is given by position
        assert judged(text).ok
    result = judged(tuned)
    assert "of autotuned kernels the first configuration is compiled" in result.notes


def test_a_plain_factory_is_compiled_as_the_file_does_it() -> None:
    plain = MIGRATED.replace("@tilelang.jit(out_idx=[1], pass_configs=pass_configs)\n", "")
    plain = plain.replace("scale(64)(x)", 'tilelang.compile(scale(64), out_idx=[1], target="pto")(x)')
    assert judged(plain, Call("scale", {"rows": 64}), old=plain).ok


def test_target_and_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    from tl2npu.backends.compile import lowering

    for target, platform in (("ascendc", "A5"), ("pto", "A2"), (None, None)):
        wanted = lowering.Wanted([("k.py", MIGRATED)], "k.py", 60.0, target=target, platform=platform)
        [program] = lowering.lower(wanted).programs
        assert (program.target, program.platform) == (target or "ascendc", platform or "A3")
        assert f"// {program.target} {program.platform}" in program.source


def test_bisheng_compiles_what_was_generated(tmp_path: Path) -> None:
    for code, expected in ((0, []), (1, ["TL933"])):
        bisheng(tmp_path / "bin", code)
        result = judged(MIGRATED)
        assert [item.code for item in result.diagnostics] == expected
    assert "bisheng rejects the generated program: k.cpp:7:3: error: no member named Foo" in told(result)[0][1]
    assert "--npu-arch=dav-2201 -O2 -xasc" in (tmp_path / "bin" / "log").read_text()


def test_what_is_missing_is_said_with_its_command(installed: Path) -> None:
    (installed / "tilelang" / "__init__.py").write_text("import tqdm_of_nobody\n")
    [(code, message)] = told(judged(MIGRATED))
    assert code == "TL912"
    assert "import tilelang: ModuleNotFoundError: No module named 'tqdm_of_nobody'" in message
    [(code, message)] = told(judged(MIGRATED, backend=Backend("compile", python="/nowhere/python")))
    assert (code, "/nowhere/python cannot be started" in message) == ("TL912", True)


def test_another_branch_is_not_asked(installed: Path) -> None:
    [(code, message)] = told(judged(MIGRATED, backend=Backend("compile", target="npuir")))
    assert (code, "needs branch npuir of tilelang-ascend, not its branch ascendc_pto" in message) == ("TL912", True)
    (installed / "tilelang" / "language" / "ascend_tile.py").unlink()
    [(code, message)] = told(judged(MIGRATED))
    assert "not TileLang for GPUs" in message


def test_branch_npuir_up_to_its_code_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(write(tmp_path / "npuir", npuir=True)))
    backend = Backend("compile", target="npuir")
    text = MIGRATED.replace(", pass_configs=pass_configs", "")
    result = judged(text, backend=backend, old=text)
    assert (result.ok, told(result)) == (True, [])
    assert any("libtilelangir, which is not built" in note for note in result.notes)
    [(code, _)] = told(judged(text.replace("scale(64)", "scale(4096)"), backend=backend, old=text))
    assert code == "TL930"
    assert [code for code, _ in told(judged(text))] == ["TL912"]  # this branch has no other target


def test_a_factory_that_became_two(tmp_path: Path) -> None:
    old = MIGRATED.replace("def scale(", "def both(").replace("scale(64)", "both(64)").replace("def main(", "def half(")
    new = MIGRATED.replace("def main(", "def half(").replace("return main", "return half")
    assert judged(new, old=old).kernels[0].name == "both.half"
    assert judged(new, old=old).ok


def test_migrate_takes_back_what_the_compiler_rejects() -> None:
    other = SCALE.replace("def scale", "def bad")
    text = HEAD + SCALE + other + MAIN + "    bad(4096)\n"
    result = migrate_verified(text, "kernel.py", Options(), Settings(backend=COMPILE, check=None))
    found = {kernel.name: kernel for kernel in result.kernels}
    assert found["scale.main"].verified == Verified("compile", 1, None)
    assert found["bad.main"].disposition == "refused"
    told = [d for d in result.diagnostics if d.kernel == "bad.main"]
    assert {d.code for d in told} == {"TL930"}
    assert "error" in {d.severity for d in told}
    assert "Memory allocation failed for: x" in told[0].message
    assert other in (result.new_text or "")


def test_the_commands(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(SCRIPT)
    done = CliRunner().invoke(cli, ["verify", "--backend", "compile", "--no-check", str(file)])
    assert done.exit_code == 0, done.output
    assert "scale.main: accepted by the compiler: 1 program" in done.output
    assert "by the compiler; 1 of 1 kernel accepted, 1 program compiled" in done.output
    done = CliRunner().invoke(cli, ["verify", "--backend", "compile", "--format", "json", str(file)])
    report = json.loads(done.output)
    assert report["kernels"][0]["verified"] == {"backend": "compile", "calls": 1, "max_error": None}
    done = CliRunner().invoke(cli, ["migrate", "--verify", "--backend", "compile", "--diff", str(file)])
    assert (done.exit_code, "accepted by the compiler: 1 program" in done.output + done.stderr) == (0, True)


def test_options_that_do_not_go_together() -> None:
    for words, said in (
        (["verify", "--target", "pto", __file__], "go with --backend compile"),
        (["verify", "--backend", "npu", "--target", "npuir", __file__], "goes with --backend compile"),
        (["migrate", "--backend", "compile", __file__], "goes with --verify"),
    ):
        done = CliRunner().invoke(cli, words)
        assert (done.exit_code, said in done.output + done.stderr) == (2, True)


def test_messages_have_meanings() -> None:
    """Texts of the compiler, as it said them of measured kernels."""
    said = "TVMError: Memory allocation failed for: dsT required: 16384, new memory available: 0"
    assert meaning(said).codes == ("TL801",)
    assert line_of(meaning(said), "a = 1\ndsT = T.alloc_ub(...)\ndsT == a", 1, 3) == 2
    assert meaning("LoweringError: something new").codes == ()
    swizzled = (
        "TypeError: use_swizzle() missing 5 required positional arguments: 'm', 'n', 'k', 'block_m', and 'block_n'"
    )
    assert meaning(swizzled).codes[0] == "TL735"
    assert meaning("TypeError: copy() got an unexpected keyword argument 'coalesced_width'").codes == ("TL730",)
    assert meaning("", "AscendMemoryPlanning").codes == ("TL801",)
    assert meaning("", "CombineCV").codes == ()


def test_this_interpreter_is_not_touched() -> None:
    judged(MIGRATED)
    assert not {"tilelang", "torch"} & set(sys.modules)
