"""Pipelines as files: what is saved comes back, and what was changed, cut or moved is named."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tests.test_closed_world as world
from tests.thrift import sample

import seekable as sk
from seekable.dataset.pipeline.fields import RowFiles, described, fields_of, pair_type
from seekable.dataset.pipeline.node_json import NodeReader, NodeWriter
from seekable.dataset.pipeline.pipeline_file import needed_names
from seekable.nodes.bases import leaves_of
from seekable.nodes.key import Keys
from seekable.nodes.kinds import KINDS, node_class
from seekable.nodes.sequence_source import SequenceSource, SupportsItems
from seekable.resume.continued import Continued
from seekable.resume.placeholders import PlaceholderMap, PlaceholderSource
from seekable.storage.paths import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seekable.nodes.node import Node

NOT_MADE_BY_USERS = {Continued, PlaceholderMap, PlaceholderSource}
CASES = [
    pytest.param(kind, number, id=f"{kind.__name__}-{number}")
    for kind, builders in world.BUILDERS.items()
    for number in range(len(builders))
    if kind not in NOT_MADE_BY_USERS
]


def doubled(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "id": 2 * record["id"]}


def scaled(record: Mapping[str, Any], by: int = 1) -> dict[str, Any]:
    return {**record, "id": by * record["id"]}


class Scale:
    """An object that can be called, and has no name of its own."""

    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return scaled(record, self.by)


def write_data(folder: Path, *, files: int = 3, rows: int = 10) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(files):
        lines = [json.dumps({"id": file * rows + row, "text": f"row {row}"}) for row in range(rows)]
        (folder / f"{file}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def records(dataset: sk.Dataset, epochs: int = 2) -> list[Any]:
    return [list(dataset.epoch(epoch)) for epoch in range(epochs)]


def given_for(path: Path, dataset: sk.Dataset) -> dict[str, Any]:
    """Return the functions and the sequences of a dataset, by their names in its file."""
    functions, names = needed_names(str(path))
    found = [leaf for leaf in leaves_of(dataset._node) if isinstance(leaf, SequenceSource)]
    sequences: dict[str, Any] = {}
    for leaf in found:
        name = leaf.type_name if leaf.version is None else str(leaf.version)
        many = [each for each in sequences.values() if each is leaf.sequence]
        taken = [each for each in sequences if each.partition("#")[0] == name]
        if not many:
            sequences[f"{name}#{len(taken) + 1}" if taken else name] = leaf.sequence
    assert set(sequences) == set(names)
    return {
        "functions": {name: functions_in(dataset._node)[name] for name in functions},
        "sequences": sequences,
    }


def functions_in(node: Node) -> dict[str, Any]:
    """Return the functions of all nodes by their names in descriptions."""
    values = [getattr(node, field.name) for field in fields(node)]  # type: ignore[arg-type]  # a dataclass
    found = {described(value)["name"]: value for value in values if callable(value)}
    return functools.reduce(lambda names, child: names | functions_in(child), node.children, found)


def test_the_type_of_every_field_has_a_way_to_be_written_and_read() -> None:
    both = NodeWriter("/", RowFiles("/x.json"))._ways.keys()
    deferred = {Keys, SupportsItems}
    assert NodeReader(None)._ways.keys() ^ both == deferred  # type: ignore[arg-type]  # nothing is read
    for kind in map(node_class, KINDS):
        for name, field in fields_of(kind).items():
            own = hasattr(field.type, "from_json") and hasattr(field.type, "as_json")
            if field.type not in both | deferred and not own and pair_type(field.type) is None:
                msgspec.json.Decoder(field.type)  # Raises TypeError for a type that JSON lacks.
            assert not isinstance(field.type, str), (kind, name)


def test_a_kind_of_a_hidden_subject_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    sk.from_sequence([[1, 2, 3]] * 4).windows(3, key=None).save(path)
    monkeypatch.setitem(sys.modules, "seekable.packing.nodes.packed_node", None)
    with pytest.raises(sk.MissingDependency, match=r"p\.json.*needs seekable\.packing, which is not"):
        sk.load_pipeline(path, sequences={"list": [[1, 2, 3]] * 4})


def test_an_argument_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    sk.open(write_data(tmp_path / "data")).save(path)
    document = json.loads(path.read_text())
    del document["nodes"][0]["files"]
    path.write_text(json.dumps(document))
    with pytest.raises(sk.errors.CorruptState, match=r"nodes\[0\] \(files\): .* there is no 'files'"):
        sk.load_pipeline(path)


def of_size(case: Any, n: int) -> Any:
    return pytest.param(*case.values, n, id=f"{case.id}-{n}")


SMALL = [of_size(case, n) for case in CASES for n in (0, 1) if n or case.values[0] not in world.NEVER_EMPTY]


@pytest.mark.parametrize(
    ("kind", "number", "n"), [*(of_size(case, 12) for case in CASES), *sample(SMALL, of=9)]
)
def test_every_node_comes_back(kind: Any, number: int, n: int, tmp_path: Path) -> None:
    dataset = world.BUILDERS[kind][number](n, tmp_path)
    path = tmp_path / "saved" / "pipeline.json"
    dataset.save(path)
    again = sk.load_pipeline(path, **given_for(path, dataset))
    assert again.fingerprint == dataset.fingerprint
    assert again._node.describe(None) == dataset._node.describe(None)
    assert again.lanes == dataset.lanes
    assert repr(again) == repr(dataset)
    assert repr(records(again)) == repr(records(dataset))
    text = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == text
    assert records(sk.load_pipeline(path, **given_for(path, dataset)), 1) is not None


@pytest.mark.parametrize("kind", sorted(NOT_MADE_BY_USERS, key=str))
def test_what_users_do_not_make_is_refused(kind: Any, tmp_path: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="cannot be saved"):
        world.BUILDERS[kind][0](12, tmp_path).save(tmp_path / "p.json")
    assert not (tmp_path / "p.json").exists()


def test_the_file_is_read_by_people(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data", files=1)).map(doubled, version=3).shuffle(seed=7)
    ds.save(tmp_path / "pipeline.json")
    text = (tmp_path / "pipeline.json").read_text(encoding="utf-8")
    assert text.splitlines()[1] == '  "seekable_pipeline": 1,'
    document = json.loads(text)
    assert document["functions"] == {f"{__name__}.doubled": {"name": f"{__name__}.doubled"}}
    assert document["nodes"][1:] == [
        {
            "node": 1,
            "kind": "map",
            "child": 0,
            "fn": {"function": f"{__name__}.doubled"},
            "seed": None,
            "version": 3,
        },
        {"node": 2, "kind": "shuffle", "child": 1, "seed": 7, "fixed": False},
    ]
    (folder,) = document["nodes"][0]["files"]["folders"]
    assert (folder["folder"], folder["relative"]) == (str(tmp_path / "data"), "data")
    assert max(map(len, text.splitlines())) < 240


def test_a_run_goes_on_in_the_loaded_pipeline(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data")).filter(where=[("id", ">", 4)]).map(doubled).shuffle(seed=7)
    ds.save(tmp_path / "pipeline.json")

    again = sk.load_pipeline(tmp_path / "pipeline.json", functions={"doubled": doubled})
    loader, later = (sk.Loader(each, batch_size=4, collate=list) for each in (ds, again))
    batches = iter(loader)
    next(batches)
    later.load_state_dict(loader.state_dict())
    assert list(later) == list(batches)


def test_functions_are_named_whole_or_by_their_last_part(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data")).map(doubled)
    path = tmp_path / "p.json"
    ds.save(path)
    for name in (f"{__name__}.doubled", "doubled", "test_pipeline_files.doubled"):
        again = sk.load_pipeline(path, functions={name: doubled, "other": print})
        assert list(again) == list(ds)


def test_all_missing_names_are_listed_at_once(tmp_path: Path) -> None:
    ds = sk.zip([sk.from_sequence(range(3), version="small").map(str), sk.from_sequence([1, 2, 3]).map(abs)])
    ds.save(tmp_path / "p.json")
    with pytest.raises(sk.errors.InvalidArgument) as caught:
        sk.load_pipeline(tmp_path / "p.json", functions={"str": str}, sequences={"small": range(3)})
    assert "functions={'builtins.abs': ...}, sequences={'builtins.list': ...}" in str(caught.value)
    with pytest.raises(sk.errors.InvalidArgument) as caught:
        sk.load_pipeline(tmp_path / "p.json")
    for name in ("'builtins.str'", "'builtins.abs'", "'small'", "'builtins.list'"):
        assert name in str(caught.value)


@pytest.mark.parametrize("functions", [[doubled], "name", {1: doubled}, doubled])
def test_functions_are_a_dict_of_names(tmp_path: Path, functions: Any) -> None:
    sk.from_sequence("abc").save(tmp_path / "p.json")
    with pytest.raises(sk.errors.WrongType, match="functions must be a dict"):
        sk.load_pipeline(tmp_path / "p.json", functions=functions)


def test_lambdas_of_one_name_are_numbered(tmp_path: Path) -> None:
    numbers = [1, 2, 3]
    ds = sk.from_sequence(numbers).map(lambda n: n + 1).map(lambda n: n * 10)
    ds.save(tmp_path / "p.json")
    first, second = needed_names(str(tmp_path / "p.json"))[0]
    assert second == f"{first}#2"
    sequences = {"list": numbers}
    with pytest.raises(sk.errors.InvalidArgument, match="<lambda>#2"):
        sk.load_pipeline(tmp_path / "p.json", functions={"<lambda>": abs}, sequences=sequences)
    functions: dict[str, Callable[[int], int]] = {"<lambda>": lambda n: n + 1, "<lambda>#2": lambda n: n * 10}
    again = sk.load_pipeline(tmp_path / "p.json", functions=functions, sequences=sequences)
    assert list(again) == [20, 30, 40]
    assert again.fingerprint == ds.fingerprint


def test_a_name_that_may_be_several_is_refused(tmp_path: Path) -> None:
    sk.from_sequence("abc").map(str.upper).map(json.dumps).map(bytes.upper).save(tmp_path / "p.json")
    given = {"functions": {"upper": str.upper, "dumps": json.dumps}, "sequences": {"builtins.str": "abc"}}
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'upper' may be any of 'builtins.str.upper', 'builtins.bytes.upper'"
    ):
        sk.load_pipeline(tmp_path / "p.json", **given)  # type: ignore[arg-type]


def test_a_renamed_function_keeps_the_name_of_the_file(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data")).map(doubled, version="2")
    ds.save(tmp_path / "p.json")

    def moved(record: Mapping[str, Any]) -> dict[str, Any]:
        return doubled(record)

    again = sk.load_pipeline(tmp_path / "p.json", functions={"doubled": moved})
    assert again.fingerprint == ds.fingerprint
    assert list(again) == list(ds)
    again.save(tmp_path / "q.json")
    assert (tmp_path / "q.json").read_bytes() == (tmp_path / "p.json").read_bytes()


def test_partials_and_objects_are_functions_too(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data"))
    ds = ds.map(functools.partial(scaled, by=3)).map(Scale(2), version="twice")
    ds.save(tmp_path / "p.json")
    functions: dict[str, Any] = {"scaled": functools.partial(scaled, by=3), "Scale": Scale(2)}
    again = sk.load_pipeline(tmp_path / "p.json", functions=functions)
    assert again.fingerprint == ds.fingerprint
    assert list(again) == list(ds)
    for wrong in (scaled, functools.partial(scaled, by=4)):
        with pytest.raises(
            sk.errors.InvalidArgument,
            match=r"must be functools\.partial\(\.\.\., by=3\), .*\(got (a function that|.*by=4\))",
        ):
            sk.load_pipeline(tmp_path / "p.json", functions={**functions, "scaled": wrong})


def test_a_function_must_be_one(tmp_path: Path) -> None:
    sk.from_sequence("abc").map(str.upper).save(tmp_path / "p.json")
    with pytest.raises(sk.errors.WrongType):
        sk.load_pipeline(tmp_path / "p.json", functions={"upper": "x"}, sequences={"str": "abc"})  # type: ignore[dict-item]


def read_line(line: bytes) -> int:
    return len(line)


def id_of(record: Mapping[str, Any]) -> int:
    return int(record["id"])


def hole(_: sk.CorruptRecord) -> Any:
    return sk.HOLE


def test_the_arguments_of_open_come_back(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    (data / "9.jsonl").write_text("{torn\n", encoding="utf-8")
    path = tmp_path / "p.json"
    sk.open(data, errors=hole, storage=sk.Storage(max_open_files=2)).save(path)
    again = sk.load_pipeline(path, functions={"hole": hole})
    assert again[30] is sk.HOLE
    assert json.loads(path.read_text())["nodes"][0]["files"]["max_open_files"] == 2
    sk.open(data, decode=read_line, version=1).save(path)
    assert sk.load_pipeline(path, functions={"read_line": read_line})[30] == 5
    for key in ("id", id_of):
        sk.open(data / "*[0-2].jsonl", key=key).save(path)
        assert sk.load_pipeline(path, functions={"id_of": id_of}).key(7)["text"] == "row 7"
    sk.open(f"txt:{data}/0.jsonl:line").save(path)
    assert sk.load_pipeline(path)[0] == {"line": '{"id": 0, "text": "row 0"}'}


@pytest.mark.parametrize("decode", ["python", "numpy", "arrow"])
def test_tables_come_back_with_their_columns(tmp_path: Path, decode: Any) -> None:
    table = pa.table({"id": [1, 2, 3], "text": ["a", None, "c"], "more": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    ds = sk.open(tmp_path / "a.parquet", columns=["more", "id"], decode=decode).shuffle(seed=1)
    ds.save(tmp_path / "p.json")
    again = sk.load_pipeline(tmp_path / "p.json")
    assert repr(list(again)) == repr(list(ds))
    assert again.fingerprint == ds.fingerprint


@pytest.mark.parametrize(
    "values",
    [
        {"a": None, "b": True, "c": 1 << 70, "d": "ü", "e": 0.5},
        {
            "a": float("nan"),
            "b": float("-inf"),
            "c": b"\x00\xff",
            "d": [1, {"x": (2, None)}],
            "e": {"list": 1},
        },
    ],
)
def test_values_of_the_user_come_back(tmp_path: Path, values: Any) -> None:
    ds = sk.open(write_data(tmp_path / "data")).fill(values)
    ds.save(tmp_path / "p.json")
    assert repr(sk.load_pipeline(tmp_path / "p.json")[0]) == repr(ds[0])


def test_a_place_that_is_no_file_of_its_own_is_refused(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    ds = sk.open(data)
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"data' is a folder: save\(\) takes the path of a file"
    ):
        ds.save(data)
    with pytest.raises(sk.errors.InvalidArgument, match=r"1\.jsonl' is a data file of the pipeline"):
        ds.save(data / "1.jsonl")
    assert list(sk.open(data)) == list(ds)


def test_a_value_that_json_has_no_way_for_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"fill\(values=\), the column 'a', has a value of type complex"
    ):
        sk.open(write_data(tmp_path / "data")).fill({"a": 1j}).save(tmp_path / "p.json")


@pytest.mark.parametrize(
    "to", [int, "float32", np.dtype("<U3"), pa.int16(), pa.list_(pa.field("x", pa.string())), bool]
)
def test_types_of_casts_come_back(tmp_path: Path, to: Any) -> None:
    ds = sk.open(write_data(tmp_path / "data")).cast({"id": to, "text": doubled}, version=4)
    ds.save(tmp_path / "p.json")
    again = sk.load_pipeline(tmp_path / "p.json", functions={"doubled": doubled})
    assert again.fingerprint == ds.fingerprint
    assert again._node.targets[0][1] == ds._node.targets[0][1]  # type: ignore[attr-defined]


def test_data_and_pipeline_may_be_moved_together(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "old" / "data")).filter(where=[("id", "<", 9)]).shuffle(seed=1)
    ds.save(tmp_path / "old" / "jobs" / "p.json")
    expected = records(ds)
    del ds
    (tmp_path / "old").rename(tmp_path / "new")
    again = sk.load_pipeline(tmp_path / "new" / "jobs" / "p.json")
    assert records(again) == expected
    assert again.locate(0).path.startswith(str(tmp_path / "new" / "data"))


def test_root_says_where_the_data_is_now(tmp_path: Path) -> None:
    data = write_data(tmp_path / "one" / "data")
    sk.concat([sk.open(data / "0.jsonl"), sk.open(data / "*.jsonl")]).save(tmp_path / "p.json")
    expected = list(sk.load_pipeline(tmp_path / "p.json"))
    moved = tmp_path / "two" / "data"
    moved.parent.mkdir()
    data.rename(moved)
    with pytest.raises(sk.DataNotFound, match=r"p.json': nodes\[0\].*/one/data' has no '0.jsonl'.*root="):
        sk.load_pipeline(tmp_path / "p.json")
    roots: list[Any] = [
        moved,
        str(moved),
        [tmp_path, moved],
        {tmp_path / "one": tmp_path / "two"},
        {data: moved},
    ]
    for root in roots:
        assert list(sk.load_pipeline(tmp_path / "p.json", root=root)) == expected
    for wrong in (3, {"a": 1}, [None]):
        with pytest.raises((sk.errors.WrongType, TypeError)):
            sk.load_pipeline(tmp_path / "p.json", root=wrong)  # type: ignore[arg-type]


def test_of_several_folders_the_one_with_the_same_files_counts(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data"))
    ds.save(tmp_path / "p.json")
    other = write_data(tmp_path / "other", rows=4)
    assert sk.load_pipeline(tmp_path / "p.json", root=other).locate(0).path.startswith(str(tmp_path / "data"))


def append(folder: Path) -> None:
    with open(folder / "1.jsonl", "a", encoding="utf-8") as file:
        file.write('{"id": 99, "text": "new"}\n')


def test_changed_data_is_named_and_taken_on_request(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    ds = sk.open(data).map(doubled).shuffle(seed=1)
    ds.save(tmp_path / "p.json")
    append(data)
    with pytest.raises(
        sk.StateMismatch, match=r"(?s)p.json'.*file '1.jsonl'.*records was 10, is 11.*allow_changed=True"
    ):
        sk.load_pipeline(tmp_path / "p.json", functions={"doubled": doubled})
    again = sk.load_pipeline(tmp_path / "p.json", functions={"doubled": doubled}, allow_changed=True)
    assert len(again) == 31
    assert again.fingerprint == sk.open(data).map(doubled).shuffle(seed=1).fingerprint != ds.fingerprint


@pytest.mark.parametrize(
    "use",
    [
        lambda ds: ds.filter(where=[("id", "<", 9)]),
        lambda ds: ds.select([3, 1]),
        lambda ds: ds[2:9],
        lambda ds: ds.split({"a": 0.5, "b": 0.5}, seed=1)["a"],
        lambda ds: sk.mix([ds, sk.open(os.path.dirname(ds.locate(0).path))], seed=1).map(str),
    ],
    ids=["filter", "select", "slice", "split", "mix"],
)
def test_rows_that_were_counted_on_old_data_are_refused(
    tmp_path: Path, use: Callable[[sk.Dataset], sk.Dataset]
) -> None:
    data = write_data(tmp_path / "data")
    use(sk.open(data)).save(tmp_path / "p.json")
    append(data)
    with pytest.raises(sk.StateMismatch, match=r"allow_changed=True is not enough: build the pipeline again"):
        sk.load_pipeline(tmp_path / "p.json", allow_changed=True, functions={"str": str})


def test_another_sequence_is_named(tmp_path: Path) -> None:
    sk.from_sequence(range(9)).save(tmp_path / "p.json")
    for wrong, why in (
        (range(8), "length was 9, is 8"),
        (list(range(9)), "type was 'builtins.range', is 'builtins.list'"),
    ):
        with pytest.raises(sk.StateMismatch, match=why):
            sk.load_pipeline(tmp_path / "p.json", sequences={"range": wrong})
    with pytest.raises(sk.errors.WrongType, match="must have len"):
        sk.load_pipeline(tmp_path / "p.json", sequences={"range": 7})


def row_file(folder: Path) -> Path:
    (file,) = (folder / "p.rows").iterdir()
    return file


def test_chosen_rows_lie_beside_the_file(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", rows=200)
    ds = sk.open(data).filter(where=[("id", "<", 90)])
    ds.save(tmp_path / "p.json")
    assert row_file(tmp_path).stat().st_size == 90 * 8
    named = sk.open(data).filter(where=[("id", "<", 80)], save=tmp_path / "kept.u64")
    named.save(tmp_path / "p.json")
    (tmp_path / "kept.u64").unlink()
    assert len(sk.load_pipeline(tmp_path / "p.json")) == 80
    sk.open(data).select(range(500)).save(tmp_path / "q.json")
    assert len(sk.load_pipeline(tmp_path / "q.json")) == 500
    sk.open(data).select(range(50)).save(tmp_path / "r.json")
    assert not (tmp_path / "r.rows").exists()


def test_a_copy_of_a_pipeline_file_outlives_the_next_save(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    sk.open(data).filter(where=[("id", "<", 9)]).save(tmp_path / "p.json")
    shutil.copy(tmp_path / "p.json", tmp_path / "before.json")
    sk.open(data).filter(where=[("id", "<", 7)]).save(tmp_path / "p.json")
    assert len(sk.load_pipeline(tmp_path / "before.json")) == 9
    assert len(sk.load_pipeline(tmp_path / "p.json")) == 7


def _cut(file: Path) -> None:
    os.truncate(file, 16)


def _change(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.parametrize(
    ("damage", "error", "why"),
    [
        (os.unlink, sk.DataNotFound, r"there is no .*p.rows/\w+.u64', which holds the 9 rows"),
        (_cut, sk.errors.CorruptState, r"has 16 bytes, and 9 rows have 72"),
        (_change, sk.errors.CorruptState, r"has the digest xxh3:\w+, and the pipeline file says xxh3:\w+"),
    ],
)
def test_a_row_file_that_is_gone_or_damaged_is_named(
    tmp_path: Path, damage: Callable[[Path], None], error: type[Exception], why: str
) -> None:
    sk.open(write_data(tmp_path / "data")).filter(where=[("id", "<", 9)]).save(tmp_path / "p.json")
    damage(row_file(tmp_path))
    with pytest.raises(error, match=rf"(?s)p.json': nodes\[1\] \(filter\).rows.*{why}"):
        sk.load_pipeline(tmp_path / "p.json")


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_data(tmp_path / "data")
    sk.open(data).filter(where=[("id", "<", 9)]).save(tmp_path / "p.json")
    before = (tmp_path / "p.json").read_bytes()

    write = LOCAL.write
    for full in (".json", ".u64"):

        def fail(path: str, data: bytes, full: str = full) -> None:
            if path.endswith(full):
                raise OSError(28, "No space left on device")
            write(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(LOCAL, "write", fail)
            with pytest.raises(OSError, match="No space"):
                sk.open(data).filter(where=[("id", "<", 7)]).save(tmp_path / "p.json")
        assert (tmp_path / "p.json").read_bytes() == before
        assert len(sk.load_pipeline(tmp_path / "p.json")) == 9


def saved(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    ds = sk.open(write_data(tmp_path / "data")).filter(where=[("id", "<", 9)]).map(doubled).fill({"a": 1})
    sk.mix([ds, ds.shuffle(seed=1)], seed=2).save(tmp_path / "p.json")
    return tmp_path / "p.json", json.loads((tmp_path / "p.json").read_text())


def load(path: Path) -> sk.Dataset:
    return sk.load_pipeline(path, functions={"doubled": doubled})


def test_a_file_that_was_cut_anywhere_is_named(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    text = path.read_bytes()
    for size in range(0, len(text) - 2, 97):
        path.write_bytes(text[:size])
        with pytest.raises(
            sk.errors.CorruptState, match=rf"p.json' has {size:,} bytes that are no JSON document"
        ):
            load(path)


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        (
            {"seekable_pipeline": 2},
            sk.errors.UnsupportedFormat,
            "seekable_pipeline is 2, and this version .* reads 1",
        ),
        ({"seekable_pipeline": True}, sk.errors.UnsupportedFormat, "is True"),
        ({"nodes": []}, sk.errors.CorruptState, "nodes: expected at least one"),
        ({"nodes": {}}, sk.errors.CorruptState, "nodes: expected `array`"),
        ({"functions": None}, sk.errors.CorruptState, "functions: expected `object`"),
        ({"fingerprint": 7}, sk.errors.CorruptState, "fingerprint: expected `str`, got `int`"),
        ({"fingerprint": "xxh3:0"}, sk.StateMismatch, "the file itself was edited"),
        (
            {"nodes": [{"node": 0, "kind": "os.system"}]},
            sk.errors.CorruptState,
            "no node of the kind 'os.system'",
        ),
        (
            {"nodes": [{"node": 0, "kind": "shuffle", "child": 0, "seed": 1, "fixed": False}]},
            sk.errors.CorruptState,
            "number of an earlier node",
        ),
        (
            {"nodes": [{"node": 0, "kind": "shuffle", "seeed": 1}]},
            sk.errors.CorruptState,
            "no argument 'seeed'",
        ),
        ({"nodes": [{"node": 1, "kind": "shuffle"}]}, sk.errors.CorruptState, "node: expected 0"),
        ({"nodes": [{"kind": "shuffle"}]}, sk.errors.CorruptState, "make no node"),
    ],
)
def test_a_file_of_something_else_is_refused(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], why: str
) -> None:
    path, document = saved(tmp_path)
    path.write_text(json.dumps({**document, **change}))
    with pytest.raises(error, match=rf"(?s)p.json'.*{why}"):
        load(path)


def test_no_pipeline_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(sk.DataNotFound, match="there is no file"):
        sk.load_pipeline(tmp_path / "none.json")
    with pytest.raises(sk.DataNotFound, match="there is no file"):
        sk.load_pipeline(tmp_path)
    for text in ("{}", "[]", "3", '{"id": 1}'):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(sk.errors.UnsupportedFormat, match="is no pipeline file"):
            sk.load_pipeline(tmp_path / "p.json")
    with pytest.raises(sk.errors.WrongType, match="path of a file"):
        sk.load_pipeline(7)  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match="path of a file"):
        sk.from_sequence("ab").save(None)  # type: ignore[arg-type]
    (tmp_path / "p.json").write_text('{"seekable_pipeline": ' + "[" * 100_000)
    with pytest.raises(sk.errors.CorruptState, match="no JSON document"):
        sk.load_pipeline(tmp_path / "p.json")


JUNK: list[Any] = [
    None,
    True,
    -1,
    1 << 70,
    0.5,
    "x",
    "../../x",
    [],
    [[]],
    {},
    {"a": 1},
    {"function": "os.system"},
]


def _places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [where] * bool(where) + [place for key, held in below for place in _places(held, (*where, key))]


def _with(document: Any, where: tuple[Any, ...], junk: Any) -> Any:
    changed = json.loads(json.dumps(document))
    at = functools.reduce(lambda held, key: held[key], where[:-1], changed)
    at[where[-1]] = junk
    return changed


def _check_junk(path: Path, document: dict[str, Any], junk: list[Any], *, step: int) -> None:
    ignored = {"records", "pipeline", "asked", "name", "part"}
    for where in _places(document)[::step]:
        for each in junk:
            path.write_text(json.dumps(_with(document, where, each)))
            try:
                loaded = load(path)
            except sk.SeekableError as error:
                if "p.json" not in str(error):
                    raise
                continue
            is_said = {"max_open_files", "relative", "folder", "only", "needed"} | ignored
            assert not is_said.isdisjoint(where) or loaded.fingerprint == document["fingerprint"], (
                where,
                each,
            )


def test_junk_anywhere_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path, document = saved(tmp_path)
    _check_junk(path, document, [None, "../../x"], step=2)


@pytest.mark.exhaustive
def test_all_junk_anywhere_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path, document = saved(tmp_path)
    _check_junk(path, document, JUNK, step=1)


def test_loading_imports_no_module_that_the_file_names(tmp_path: Path) -> None:
    path, document = saved(tmp_path)
    before = set(sys.modules)
    (tmp_path / "evil.py").write_text("raise SystemExit(9)")
    for name in ("evil.run", "os.system"):
        changed = json.loads(json.dumps(document).replace(f"{__name__}.doubled", name))
        path.write_text(json.dumps(changed))
        with pytest.raises(sk.errors.InvalidArgument, match=name):
            load(path)
    assert "evil" not in set(sys.modules) - before


def test_a_dataset_that_is_used_twice_stands_there_once(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data"))
    for _ in range(12):
        ds = sk.zip([ds, ds])
    ds.save(tmp_path / "p.json")
    assert len(json.loads((tmp_path / "p.json").read_text())["nodes"]) == 13


def test_files_with_odd_names_come_back(tmp_path: Path) -> None:
    data = tmp_path / 'dätä "x"'
    write_data(data)
    (data / "0.jsonl").rename(data / "ü\nx.jsonl")
    ds = sk.open(data)
    ds.save(tmp_path / "p q.json")
    assert list(sk.load_pipeline(tmp_path / "p q.json")) == list(ds)


def test_a_relative_path_is_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    sk.open("data").select([1]).save("p")
    shutil.copytree(tmp_path, tmp_path.parent / "copy")
    monkeypatch.chdir(tmp_path.parent / "copy")
    assert sk.load_pipeline("p")[0]["id"] == 1


def test_parts_of_a_split_may_have_any_name(tmp_path: Path) -> None:
    class Part:
        def __repr__(self) -> str:
            return "the part"

    ds = sk.open(write_data(tmp_path / "data"))
    for name in ("train", 3, ("a", 1), Part()):
        for stable in (False, True):
            part = ds.split({name: 0.5, "rest": 0.5}, seed=1, stable=stable)[name]
            part.save(tmp_path / "p.json")
            again = sk.load_pipeline(tmp_path / "p.json")
            assert (list(again), again.fingerprint) == (list(part), part.fingerprint)


def test_worker_processes_read_a_loaded_pipeline(tmp_path: Path) -> None:
    ds = sk.open(write_data(tmp_path / "data")).filter(where=[("id", ">", 4)]).map(doubled)
    ds.save(tmp_path / "p.json")
    again = sk.load_pipeline(
        tmp_path / "p.json", functions={"doubled": lambda record: {**record, "id": 2 * record["id"]}}
    )
    assert [
        record for batch in sk.Loader(again, batch_size=7, workers=1, collate=list) for record in batch
    ] == list(ds)


def test_a_pipeline_file_is_no_data(tmp_path: Path) -> None:
    sk.open(write_data(tmp_path / "data")).shuffle(seed=1).save(tmp_path / "data" / "p.json")
    for path in (tmp_path / "data" / "p.json", tmp_path / "data"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"p.json' is a pipeline .*sk.load_pipeline"):
            sk.open(path)
    assert len(sk.load_pipeline(tmp_path / "data" / "p.json")) == 30
