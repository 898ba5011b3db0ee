"""The pass_configs of the new form: completed where they stand, never for another kernel."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.passes.support import (
    CONFIGS,
    CV_PARAMS,
    GEMM_SCALE,
    IMPORTS,
    KEYS,
    LOAD,
    STORE,
    developer,
    gemm_file,
    kernel,
    migrated,
    refused,
    vector_file,
)
from tests.simulator.kernels import load
from tl2npu.kernel.factories.configs import read_configs
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.migration import migrate_text
from tl2npu.options import Options
from tl2npu.source.index import Index

HEAD = "out_idx=[2], workspace_idx=[3]"
JIT = HEAD + ", pass_configs=pass_configs"
STRINGS = (
    "tl.ascend_auto_cv_combine",
    "tl.ascend_auto_cross_core_sync",
    "tl.ascend_auto_sync",
    "tl.ascend_memory_planning",
)
REFUSED = GEMM_SCALE.replace("vid * 16, 0], u)", "vid * 8, 0], u)")


def dict_of(keys: dict[str, bool], name: str = "pass_configs") -> str:
    return (
        f"{name} = {{\n"
        + "".join(f"    tilelang.PassConfigKey.{key}: {value},\n" for key, value in keys.items())
        + "}\n"
    )


def compiled(text: str, defined: str = "DEBUG = False\n") -> list[dict[str, Any]]:
    """What each ``tilelang.jit`` of a file is given as pass_configs, in order, with keys by their enum names."""
    found: list[dict[str, Any]] = []
    text = text.replace("@tilelang.jit(", "@recorded(").replace("import tilelang\n", "import tilelang\n" + defined)
    text = text.replace("@recorded(", "@recorded(seen=SEEN, ")
    recorder = (
        "SEEN = []\ndef recorded(seen=None, pass_configs=None, **rest):\n"
        "    seen.append(dict(pass_configs or {}))\n    return lambda f: f\n"
    )
    space = load(text.replace(defined, defined + recorder))
    names = dict(zip(STRINGS, KEYS, strict=True))
    found += [{names.get(key, key): value for key, value in configs.items()} for configs in space["SEEN"]]
    return found


ALL = dict.fromkeys(KEYS, True)


@pytest.mark.parametrize("present", [c for n in range(4) for c in itertools.combinations(KEYS, n)])
def test_missing_keys_are_added(present: tuple[str, ...]) -> None:
    new = developer(gemm_file(jit=JIT, head=dict_of(dict.fromkeys(present, True))))
    assert compiled(new) == [ALL]


WRITTEN = {
    "nothing": ("", HEAD),
    "None": ("", HEAD + ", pass_configs=None"),
    "inline": ("", HEAD + ", pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}"),
    "strings": ("", HEAD + ", pass_configs={'tl.ascend_auto_sync': True}"),
    "empty": ("", HEAD + ", pass_configs={}"),
    "alias of the enum": ("Key = tilelang.PassConfigKey\npass_configs = {Key.TL_ASCEND_AUTO_SYNC: True}\n", JIT),
    "dict call": ("pass_configs = dict({tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True})\n", JIT),
    "merged": (
        (
            "base = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}\n"
            "pass_configs = {**base, tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}\n"
        ),
        JIT,
    ),
    "united": (
        (
            "base = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}\n"
            "pass_configs = base | {tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}\n"
        ),
        JIT,
    ),
    "updated": (
        (
            "pass_configs = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}\n"
            "pass_configs.update({tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True})\n"
        ),
        JIT,
    ),
    "set later": ("pass_configs = {}\npass_configs[tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC] = True\n", JIT),
    "from a function": ("def configs():\n    return {}\n", HEAD + ", pass_configs=configs()"),
    "None by name": ("configs = None\n", HEAD + ", pass_configs=configs"),
    "a condition": ("configs = {}\n", HEAD + ", pass_configs=configs if DEBUG else None"),
    "the first that is set": ("configs = None\n", HEAD + ", pass_configs=(configs or {})"),
    "comments": (
        "pass_configs = {\n    # sync\n    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,  # yes\n    # end\n}\n",
        JIT,
    ),
    "no trailing comma": ("pass_configs = {\n    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True  # yes\n}\n", JIT),
    "one line": (
        "pass_configs = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, "
        "tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True}\n",
        JIT,
    ),
    "all off": (dict_of(dict.fromkeys(KEYS, False)), JIT),
    "a local dict of the same name": (
        dict_of({KEYS[2]: True})
        + "def bench():\n    "
        + dict_of(ALL).replace("\n", "\n    ")
        + "return pass_configs\n",
        JIT,
    ),
    "keys under a condition": (
        dict_of({KEYS[2]: True})
        + (
            f"if DEBUG:\n    pass_configs[tilelang.PassConfigKey.{KEYS[0]}] = True\n"
            f"    pass_configs[tilelang.PassConfigKey.{KEYS[1]}] = True\n"
        ),
        JIT,
    ),
    "a key that is deleted": (CONFIGS + f"del pass_configs[tilelang.PassConfigKey.{KEYS[1]}]\n", JIT),
    "a key that is popped": (CONFIGS + f"pass_configs.pop(tilelang.PassConfigKey.{KEYS[1]})\n", JIT),
    "cleared": (CONFIGS + "pass_configs.clear()\n", JIT),
    "a name that is unpacked": ("pass_configs, n = {}, 1\n", JIT),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", WRITTEN)
def test_ways_to_write_pass_configs(case: str) -> None:
    head, jit = WRITTEN[case]
    text = gemm_file(jit=jit, head=head)
    result = migrated(text)
    if result.kernels[0].target.startswith("developer"):
        assert compiled(result.new_text or "") == [ALL]
        for comment in ("# sync", "# yes", "# end"):
            assert (comment in head) == (comment in (result.new_text or ""))
    else:
        assert "a key" in case or case in ("cleared", "a name that is unpacked")


@pytest.mark.parametrize("name", ["configs", "pass_configs"])
@pytest.mark.parametrize("second", [", pass_configs=None", "", ", pass_configs={}"])
def test_each_compilation_gets_its_own_keys(name: str, second: str) -> None:
    """The first compilation has all keys and stays as it is, whatever the one behind it lacks."""
    first = f"one = tilelang.compile(factory(), pass_configs={name})\n"
    body = kernel(LOAD + STORE, jit="#").replace("@tilelang.jit(#)\n", "")
    text = IMPORTS + dict_of(ALL, name) + body + first + f"two = tilelang.compile(factory(){second})\n"
    new = migrated(text).new_text or ""
    assert first in new
    kernels = FileKernels(Index.parse(new))
    (located,) = kernels.located
    assert located.factory is not None
    both = [read_configs(kernels, found) for found in located.factory.compilations]
    assert [all(found.is_on(key) for key in KEYS if key != KEYS[1]) for found in both] == [True, True]


SYNC_OFF = f"pass_configs[tilelang.PassConfigKey.{KEYS[1]}] = False"


def test_a_name_that_is_always_a_dict_needs_no_stand_in() -> None:
    head = "if DEBUG:\n    configs = {}\nelse:\n    configs = {'tl.ascend_auto_sync': True}\n"
    new = developer(gemm_file(jit=HEAD + ", pass_configs=configs", head=head))
    assert "**configs," in new
    assert compiled(new) == [ALL]
    new = developer(gemm_file(jit=HEAD + ", pass_configs=configs", head=head.replace("configs = {}", "configs = None")))
    assert "**(configs or {})," in new
    assert compiled(new) == [ALL]


def unknown_after(block: str) -> bool:
    """Whether a block of the module leaves open which keys a kernel below it is compiled with."""
    kernels = FileKernels(Index.parse(gemm_file(jit=JIT, head=CONFIGS + block)))
    (located,) = kernels.located
    assert located.factory is not None
    (found,) = located.factory.compilations
    return read_configs(kernels, found).unknown


@pytest.mark.parametrize(
    "block",
    [
        "if DEBUG:\n    print(pass_configs.get(1), len(pass_configs))\n",
        "for key in pass_configs:\n    print(key)\n",
        "if DEBUG:\n    other = tilelang.compile(program, pass_configs=pass_configs)\n",
        "with DEBUG:\n    other[0] = pass_configs\n",
    ],
)
def test_a_block_that_reads_the_dict_does_not_change_it(block: str) -> None:
    assert not unknown_after(block)


@pytest.mark.parametrize(
    "block",
    [
        f"if DEBUG:\n    {SYNC_OFF}\n",
        f"with DEBUG:\n    if DEBUG:\n        pass; {SYNC_OFF}\n",
        f"if DEBUG:\n    other = {SYNC_OFF}\n",
        f"if DEBUG:\n    del pass_configs[tilelang.PassConfigKey.{KEYS[1]}]\n",
        f"if DEBUG:\n    pass_configs.update({{tilelang.PassConfigKey.{KEYS[1]}: False}})\n",
        "if DEBUG:\n    pass_configs |= OTHER\n",
        "if DEBUG:\n    pass_configs = {}\n",
        "for pass_configs in ALL_CONFIGS:\n    pass\n",
    ],
)
def test_a_block_that_may_change_the_dict_makes_it_unknown(block: str) -> None:
    assert unknown_after(block)


def test_a_parameter_of_the_name_is_not_the_modules_dict() -> None:
    text = gemm_file(head=CONFIGS)
    imports, rest = text.split("\n\n@tilelang.jit")
    inner = "".join(f"    {line}\n" if line else "\n" for line in ("@tilelang.jit" + rest).split("\n"))
    new = migrated(imports + "\n\ndef outer(pass_configs):\n" + inner + "    return factory\n").new_text or ""
    if "threads=2" in new:
        assert new.count("TL_ASCEND_AUTO_CV_SYNC: True") == 2, "the argument may be anything"


def switched(off: tuple[str, ...]) -> dict[str, str]:
    """Ways to switch some passes off beside others that are on."""
    on = dict.fromkeys((key for key in KEYS if key not in off), True)
    keys = ", ".join(f"tilelang.PassConfigKey.{key}: False" for key in off)
    strings = ", ".join(f'"{STRINGS[KEYS.index(key)]}": False' for key in off)
    later = "".join(f"pass_configs[tilelang.PassConfigKey.{key}] = False\n" for key in off)
    inverse = ", ".join(f"**{{tilelang.PassConfigKey.{key}: False}}" for key in off)
    return {
        "one dict": dict_of({**on, **dict.fromkeys(off, False)}),
        "strings": dict_of(on).replace("}\n", f"    {strings},\n}}\n"),
        "set later": dict_of(ALL) + later,
        "updated later": dict_of(ALL) + f"pass_configs.update({{{keys}}})\n",
        "merged": dict_of(on, "base") + f"pass_configs = {{**base, {keys}}}\n",
        "merged last": f"off = {{{keys}}}\n" + dict_of(ALL, "base") + "pass_configs = {**base, **off}\n",
        "nested": dict_of(ALL).replace("}\n", f"    {inverse},\n}}\n"),
        "union": dict_of(ALL, "base") + f"pass_configs = base | {{{keys}}}\n",
        "given twice": dict_of({**dict.fromkeys(off, False), **on}) + later,
    }


OFF = [off for count in (1, 2, 3) for off in itertools.combinations(KEYS[:3], count)]


@pytest.mark.sampled
@pytest.mark.parametrize("way", switched(KEYS[:1]))
@pytest.mark.parametrize("off", OFF, ids="+".join)
def test_a_pass_that_replaces_what_was_written_by_hand_is_switched_on(off: tuple[str, ...], way: str) -> None:
    text = gemm_file(jit=JIT, head=switched(off)[way])
    result = migrated(text)
    assert compiled(developer(text)) == [ALL]
    notes = [d for d in result.diagnostics if d.code == "TL925"]
    assert sorted(note.message.split("`")[1] for note in notes) == sorted(off)
    assert {(note.severity, "was False; wrote True, because" in note.message) for note in notes} == {("warning", True)}
    assert migrated(result.new_text or "").new_text == result.new_text


def test_the_policy_keep_leaves_the_authors_word() -> None:
    text = gemm_file(jit=JIT, head=dict_of({**ALL, KEYS[2]: False}))
    result = migrate_text(text, "k.py", Options(pass_config_policy="keep"))
    assert [(k.disposition, k.codes) for k in result.kernels] == [("refused", ("TL816",))]
    assert f"{KEYS[2]} is switched off, but `--pass-config-policy keep` forbids" in result.diagnostics[0].message


def test_planning_is_switched_on_where_addresses_were_written_by_hand() -> None:
    head = dict_of({**ALL, KEYS[3]: False})
    text = gemm_file(jit=JIT, head=head)
    place = text.index("            T.copy(A[")
    by_hand = text[:place] + "            T.annotate_address({u: 0})\n" + text[place:]
    assert compiled(developer(by_hand)) == [ALL]
    (note,) = [d for d in migrated(by_hand).diagnostics if d.code == "TL925"]
    assert "the hand-written addresses were removed" in note.message
    assert compiled(developer(text)) == [{**ALL, KEYS[3]: False}]


def test_memory_planning_may_stay_off() -> None:
    head = dict_of({**ALL, KEYS[3]: False})
    assert compiled(developer(gemm_file(jit=JIT, head=head))) == [{**ALL, KEYS[3]: False}]


def test_a_value_that_cannot_be_read() -> None:
    refused(gemm_file(jit=JIT, head=f"pass_configs = {{tilelang.PassConfigKey.{KEYS[1]}: DEBUG}}\n"), "TL816")


def test_a_vector_kernel_needs_no_cross_core_sync() -> None:
    new = developer(vector_file(LOAD + "T.tile.exp(a, a)\n" + STORE, head="pass_configs = {}\n"))
    (configs,) = compiled(new)
    assert set(configs) == {KEYS[0], KEYS[2], KEYS[3]}


# several kernels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("given_keys", [{KEYS[2]: True}, {**ALL, KEYS[2]: False}], ids=["missing", "off"])
def test_a_kernel_that_stays_keeps_its_configs(given_keys: dict[str, bool], first: bool) -> None:
    """A vector kernel that is refused shares the dict of one that is migrated: what it is given must not change."""
    stays = kernel(
        LOAD.replace("vid * 16", "vid * 8") + "T.barrier_all()\nT.sync_all()\nT.tile.atomic_add(A[0, 0], a)\n",
        params=CV_PARAMS,
        name="stays",
        jit="pass_configs=pass_configs",
    )
    moves = kernel(GEMM_SCALE, params=CV_PARAMS, jit=JIT)
    text = (
        "import torch\nimport tilelang\nimport tilelang.language as T\n\n"
        + dict_of(given_keys)
        + (stays + moves if first else moves + stays)
    )
    result = migrated(text)
    by_name = {k.name: k.target for k in result.kernels}
    assert by_name["factory.main"] == "developer"
    assert by_name["stays.main"] == "none"
    given = compiled(result.new_text or "")
    assert given[0 if first else 1] == given_keys
    assert given[1 if first else 0] == ALL


def test_configs_inside_shared_arguments() -> None:
    head = f'JIT = {{"out_idx": [2], "pass_configs": {{tilelang.PassConfigKey.{KEYS[2]}: True}}}}\n'
    stays = kernel(
        LOAD.replace("vid * 16", "vid * 8") + "T.sync_all()\nT.tile.atomic_add(A[0, 0], a)\n", name="stays", jit="**JIT"
    )
    text = vector_file(LOAD + "T.tile.exp(a, a)\n" + STORE, head=head, tail=stays).replace(
        "out_idx=[2], pass_configs=pass_configs", "**JIT"
    )
    result = migrated(text)
    if result.kernels[1].target == "none":
        assert compiled(result.new_text or "")[1] == {KEYS[2]: True}


def test_two_kernels_migrated_with_one_dict() -> None:
    text = gemm_file(
        jit=JIT, head=dict_of({KEYS[2]: True}), tail=kernel(GEMM_SCALE, params=CV_PARAMS, name="second", jit=JIT)
    )
    result = migrated(text)
    assert [k.target for k in result.kernels] == ["developer", "developer"]
    assert compiled(result.new_text or "") == [ALL, ALL]


def test_a_bare_decorator_gets_arguments() -> None:
    text = vector_file(LOAD + "T.tile.exp(a, a)\n" + STORE, head="").replace(
        "@tilelang.jit(out_idx=[2], pass_configs=pass_configs)", "@tilelang.jit"
    )
    assert "@tilelang.jit(pass_configs=" in developer(text)


def test_a_taken_name() -> None:
    text = gemm_file(jit=HEAD, head="", tail="\n\ndef bench(pass_configs):\n    return pass_configs\n")
    assert compiled(developer(text)) == [ALL]


@pytest.mark.thorough
def test_running_again_changes_nothing() -> None:
    for head, jit in WRITTEN.values():
        once = migrated(gemm_file(jit=jit, head=head)).new_text or ""
        assert migrated(once).new_text == once


def test_added_keys_are_indented_below_the_argument() -> None:
    """A dict that is changed elsewhere is not edited; black lays out neither this call nor what comes into it."""
    head = dict_of({KEYS[0]: True, KEYS[1]: True}) + "pass_configs.update({})\nsingle = 'quotes'\n"
    jit = "\n    out_idx=[2],\n    workspace_idx=[3],\n        pass_configs=pass_configs,\n"
    new = developer(gemm_file(jit=jit, head=head))
    lines = new[new.index("@tilelang.jit(") : new.index("def factory")].splitlines()
    start = next(number for number, line in enumerate(lines) if "pass_configs={" in line)
    assert lines[start] == "        pass_configs={"
    assert {len(line) - len(line.lstrip()) for line in lines[start + 1 : -3]} == {12}
    assert lines[-2] == "        },"
