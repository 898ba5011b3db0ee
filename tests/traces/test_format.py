"""The format on disk: what is written is read again; what is malformed or hostile is one clear error."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
import pytest

from tl2npu.traces import reading
from tl2npu.traces.child import trace_writer
from tl2npu.traces.child.trace_writer import PATTERNS, PLAIN, NotKept, Value, Writer, as_json, sample_places
from tl2npu.traces.reading import TraceError, open_trace

SCHEMA = json.loads(Path(reading.__file__).with_name("schema.json").read_text())
HEADER: dict[str, Any] = {
    "script": {"name": "s.py", "sha256": "0" * 64, "arguments": []},
    "seed": 0,
    "device": {"kind": "cuda", "name": "a GPU"},
    "versions": {"tilelang": "0.1.15", "torch": None},
}
TOLD: dict[str, Any] = {
    "kernel": "f.main",
    "factory": "f",
    "arguments_missing": None,
    "file": "s.py",
    "line": 3,
    "source_sha256": None,
    "arguments": as_json({"n": 4, "t": (1, 2), "x": float("inf"), "d": np.dtype("float16"), "s": "a", "b": True}),
    "scalars": {"k": 2.5},
}


def bits(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    kind = np.dtype(PATTERNS.get(dtype, dtype))
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind)[..., 0]


def write(folder: Path, max_bytes: int = 1 << 20, shape: tuple[int, ...] = (3, 5), dtype: str = "float32") -> Path:
    rng = np.random.default_rng(0)
    a, b, c = (Value(bits(rng, dtype, shape), dtype, (5, 1)[-len(shape) :], n) for n in range(3))
    writer = Writer(folder, HEADER, max_bytes, 4)
    writer.add(dict(TOLD), ["A", "B", "C"], ["A", "k", "B"], {"A": a, "B": b}, {"A": a, "B": c, "C": b}, ["C"], [])
    return folder


@pytest.mark.parametrize("dtype", [*PLAIN, *PATTERNS])
def test_every_type_comes_back_bit_for_bit(tmp_path: Path, dtype: str) -> None:
    write(tmp_path / "t", dtype=dtype)
    jsonschema.validate(json.loads((tmp_path / "t" / "manifest.json").read_text()), SCHEMA)
    trace = open_trace(tmp_path / "t")
    (launch,) = trace.launches
    values = trace.load(launch)
    rng = np.random.default_rng(0)
    a, b, c = (bits(rng, dtype, (3, 5)) for _ in range(3))
    assert [(t.name, t.dtype, t.role) for t in launch.tensors] == [
        ("A", dtype, "in"),
        ("B", dtype, "inout"),
        ("C", dtype, "out"),
    ]
    for found, expected in ((values.before["A"], a), (values.before["B"], b), (values.after["B"], c)):
        assert found.tobytes() == expected.tobytes()
    assert "A" not in values.after
    assert values.after["C"].tobytes() == b.tobytes()
    assert (launch.given, launch.returned, launch.scalars) == (("A", "k", "B"), ("C",), {"k": 2.5})
    assert launch.arguments == {"n": 4, "t": (1, 2), "x": float("inf"), "d": "float16", "s": "a", "b": True}


def test_bit_patterns_are_those_of_the_type(tmp_path: Path) -> None:
    numbers = np.array([1.0, -2.5, np.inf], ml_dtypes.bfloat16)
    value = Value(numbers.view(np.uint16), "bfloat16", (1,))
    Writer(tmp_path, HEADER, 1 << 20, 4).add(dict(TOLD), ["A"], ["A", "k"], {"A": value}, {"A": value}, [], [])
    trace = open_trace(tmp_path)
    found = trace.load(trace.launches[0]).before["A"]
    assert found.tolist() == [0x3F80, 0xC020, 0x7F80]


def test_outputs_beyond_the_bound_are_sampled(tmp_path: Path) -> None:
    size = 3 * trace_writer.SAMPLES
    write(tmp_path, 2 * 4 * size + 40_000, (size,))
    trace = open_trace(tmp_path)
    launch = trace.launches[0]
    values = trace.load(launch)
    assert set(values.before) == {"A", "B"}
    places = values.places["C"]
    assert (len(places), places[0], places[-1]) == (trace_writer.SAMPLES, 0, size - 1)
    whole = values.before["B"]  # of the same content, see `write`
    assert np.array_equal(values.after["C"].view(np.uint32)[places], whole.view(np.uint32)[places])
    jsonschema.validate(json.loads((tmp_path / "manifest.json").read_text()), SCHEMA)


def test_inputs_beyond_the_bound_are_hashed(tmp_path: Path) -> None:
    write(tmp_path, 64)
    trace = open_trace(tmp_path)
    assert trace.launches[0].data is None
    assert trace.launches[0].tensors[0].before is not None
    assert [count for *_, count in trace.left_out] == [1]
    jsonschema.validate(json.loads((tmp_path / "manifest.json").read_text()), SCHEMA)
    with pytest.raises(TraceError, match="without its tensors"):
        trace.load(trace.launches[0])


def test_few_launches_are_kept_of_each_kind(tmp_path: Path) -> None:
    writer = Writer(tmp_path, HEADER, 1 << 20, 2)
    assert [writer.wanted("k", "same") for _ in range(4)] == [True, True, False, False]
    assert writer.wanted("k", "other")
    assert open_trace(tmp_path).left_out[0][2] == 2


@pytest.mark.parametrize("size", [0, 1, 2, 4095, 4096, 4097, 10**6])
def test_places_of_samples(size: int) -> None:
    places = sample_places(size)
    assert len(places) == min(size, trace_writer.SAMPLES)
    assert np.array_equal(places, np.unique(places))
    assert not size or (places[0] == 0 and places[-1] == size - 1)


@pytest.mark.parametrize("value", [object(), lambda: 0, {1: 2}, {"$x": 1}, np.zeros(3), [object()]])
def test_arguments_without_a_form(value: Any) -> None:
    with pytest.raises(NotKept):
        as_json(value)


def edited(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        change(manifest)
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return edit


def launch(**values: Any) -> Callable[[Path], None]:
    return edited(lambda m: m["launches"][0].update(values))


def tensor(**values: Any) -> Callable[[Path], None]:
    return edited(lambda m: m["launches"][0]["tensors"][0].update(values))


def text(content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "manifest.json").write_text(content) and None


def moment(**values: Any) -> Callable[[Path], None]:
    return edited(lambda m: m["launches"][0]["tensors"][0]["before"].update(values))


MANIFESTS = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "a link": lambda folder: (
        shutil.move(folder / "manifest.json", folder / "m"),
        (folder / "manifest.json").symlink_to(folder / "m"),
    ),
    "no JSON": text("{"),
    "no object": text("[]"),
    "a number": text("3"),
    "deep": text("[" * 100_000),
    "NaN": text('{"schema": NaN}'),
    "binary": lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe\x00"),
    "other version": edited(lambda m: m.update(schema="tl2npu-trace/2")),
    "no version": edited(lambda m: m.pop("schema")),
    "no launches": edited(lambda m: m.pop("launches")),
    "launches no list": edited(lambda m: m.update(launches={})),
    "launch no object": edited(lambda m: m.update(launches=[1])),
    "wrong number": launch(number=7),
    "a boolean for a number": launch(number=False),
    "absolute path": launch(data="/etc/passwd"),
    "path upwards": launch(data="../00000.npz"),
    "hidden path": launch(data="00000.npz/../../x.npz"),
    "other ending": launch(data="00000.pkl"),
    "kernel no text": launch(kernel=3),
    "returned unknown": launch(returned=["A"]),
    "returned twice": launch(returned=["C", "C"]),
    "given unknown": launch(given=["A", "B", "k", "Z"]),
    "given short": launch(given=["A"]),
    "arguments no object": launch(arguments=[1]),
    "unknown mark": launch(arguments={"x": {"$pickle": "gASV"}}),
    "unknown type as argument": launch(arguments={"x": {"$dtype": "os.system"}}),
    "name with dots": tensor(name="../A"),
    "two of a name": tensor(name="B"),
    "unknown type": tensor(dtype="object"),
    "other stored type": tensor(stored="uint8"),
    "negative size": tensor(shape=[-1, 4]),
    "size no integer": tensor(shape=[2.5]),
    "size a boolean": tensor(shape=[True]),
    "huge claim": tensor(shape=[1 << 40, 1 << 40]),
    "too large": tensor(shape=[1 << 31]),
    "too many axes": tensor(shape=[1] * 40),
    "unknown role": tensor(role="weights"),
    "role that does not fit": tensor(role="out"),
    "shares what is later": tensor(shares="C"),
    "key of another": moment(key="before.B"),
    "sampled input": moment(sampled=3),
}


@pytest.mark.parametrize("how", MANIFESTS)
def test_malformed_manifests(tmp_path: Path, how: str) -> None:
    write(tmp_path)
    MANIFESTS[how](tmp_path)
    with pytest.raises(TraceError) as error:
        open_trace(tmp_path)
    assert "\n" not in str(error.value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a JSON document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NASTY: list[Any] = [
    *([], {}, [[]], [{}], {"a": []}, None, True, 0, -1, 10**30, 1.5, 1e308, "", "x" * 9999, "a\u2028\n", "../x"),
    *({"$dtype": []}, {"$dtype": {}}, {"$float": []}, {"$float": {}}, {"$tuple": {}}, {"$tuple": [{"$dtype": [[]]}]}),
    nested(900),
]


def test_any_value_in_any_place_is_taken_or_one_clear_error(tmp_path: Path) -> None:
    manifest = write(tmp_path / "t") / "manifest.json"
    whole = json.loads(manifest.read_text())
    refused: list[str] = []
    for place in places(whole):
        for value in NASTY:
            changed = {"": json.loads(json.dumps(whole))}
            at: Any = changed
            for key in ("", *place)[:-1]:
                at = at[key]
            at[("", *place)[-1]] = value
            manifest.write_text(json.dumps(changed[""]))
            try:
                trace = open_trace(tmp_path / "t")
                for found in trace.launches:
                    trace.load(found)
            except TraceError as error:
                refused.append(str(error))
    assert len(refused) > 500
    assert max(map(len, refused)) < 400 + len(str(tmp_path))
    assert not any("\n" in text for text in refused)


def rewritten(members: dict[str, bytes]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        with zipfile.ZipFile(folder / "00000.npz") as file:
            before = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(folder / "00000.npz", "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in {**before, **members}.items():
                if content:
                    file.writestr(name, content)

    return rewrite


def npy(array: np.ndarray, pickled: bool = False) -> bytes:
    import io

    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=pickled)
    return stream.getvalue()


class _Attack:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("attacked"),))


DATA = {
    "missing": lambda folder: (folder / "00000.npz").unlink(),
    "a link": lambda folder: (
        shutil.move(folder / "00000.npz", folder / "d"),
        (folder / "00000.npz").symlink_to(folder / "d"),
    ),
    "a folder": lambda folder: ((folder / "00000.npz").unlink(), (folder / "00000.npz").mkdir()),
    "empty": lambda folder: (folder / "00000.npz").write_bytes(b""),
    "no archive": lambda folder: (folder / "00000.npz").write_bytes(b"x" * 500),
    "truncated": lambda folder: (folder / "00000.npz").write_bytes((folder / "00000.npz").read_bytes()[:-40]),
    "a pickle": lambda folder: (folder / "00000.npz").write_bytes(pickle.dumps(_Attack())),
    "pickled member": rewritten({"before.A.npy": npy(np.array([_Attack()], object), pickled=True)}),
    "member missing": rewritten({"before.A.npy": b""}),
    "other shape": rewritten({"before.A.npy": npy(np.zeros((5, 3), np.float32))}),
    "other type": rewritten({"before.A.npy": npy(np.zeros((3, 5), np.int32))}),
    "other content": rewritten({"before.A.npy": npy(np.zeros((3, 5), np.float32))}),
    "column order": rewritten({"before.A.npy": npy(np.asfortranarray(np.zeros((3, 5), np.float32)))}),
    "a bomb": rewritten({"before.A.npy": npy(np.zeros(1 << 24, np.uint8))}),
    "no npy": rewritten({"before.A.npy": b"\x00" * 160}),
    "short": rewritten({"before.A.npy": npy(np.zeros((3, 5), np.float32))[:-4] + b""}),
}


@pytest.mark.parametrize("how", DATA)
def test_malformed_data(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t")
    DATA[how](tmp_path / "t")
    trace = open_trace(tmp_path / "t")
    with pytest.raises(TraceError) as error:
        trace.load(trace.launches[0])
    assert "\n" not in str(error.value)
    assert not (tmp_path / "attacked").exists()
