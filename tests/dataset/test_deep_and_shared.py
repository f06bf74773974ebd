"""Pipelines in which one dataset stands at millions of places, and pipelines that are very deep."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, SeekableError
from seekable.nodes import node as contract
from seekable.nodes.graph import MOST_DEEP, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_CALLS = 300_000
"""Far more calls than any method makes of 31 nodes, and far fewer than of the 2**31 places of them."""

RECORDS = [{"a": number, "tokens": [1, 2], "list": [number]} for number in range(3)]
LOCAL: dict[str, Any] = {"jobs": 1}
UNCHECKED: dict[str, Any] = {**LOCAL, "check_code": False}


def doubled() -> sk.Dataset:
    ds = sk.from_sequence(RECORDS, version="records")
    for _ in range(30):
        ds = ds + ds
    return ds


def few() -> sk.Dataset:
    """Return three of the records, so that all of them can be read."""
    return doubled().take(3)


CALLS: dict[str, Callable[[Path], Any]] = {
    "batch": lambda _: doubled().batch(2)[1],
    "rows": lambda _: doubled()[[0, 5]],
    "batches": lambda _: list(few().batches("python", size=2)),
    "cast": lambda _: few().cast({"a": "int64"})[0],
    "close": lambda _: doubled().close(),
    "columns": lambda _: doubled().columns,
    "drop_columns": lambda _: doubled().drop_columns(["a"])[1],
    "epoch": lambda _: doubled().epoch(1)[0],
    "explain": lambda _: doubled().explain(),
    "fill": lambda _: doubled().fill({"b": 1})[1],
    "filter": lambda _: few().filter(bool, **LOCAL),
    "filter of many": lambda _: few().filter(lambda records: [True] * len(records), size=256, **LOCAL),
    "find": lambda _: doubled().find("<builtins.list records>", 1),
    "fingerprint": lambda _: doubled().fingerprint,
    "flatten": lambda _: few().flatten(lambda record: record["list"], **LOCAL),
    "info": lambda _: few().info(),
    "interleave": lambda _: doubled().interleave(lanes=2)[0],
    "key": lambda _: doubled().key("a"),
    "keys": lambda _: doubled().keys(),
    "lanes": lambda _: doubled().lanes,
    "lengths": lambda _: sk.formats.token_lengths(few()),
    "locate": lambda _: doubled().locate([0, 9]),
    "map": lambda _: doubled().map(dict)[7],
    "map_batches": lambda _: few().map_batches(list)[1],
    "rename by file": lambda _: doubled().rename({"*": {"a": "b"}})[1],
    "concat of distinct rows": lambda _: sk.concat([few(), few()], distinct=True),
    "second name": lambda _: few().rename({"a": "b"}, keep=True)[0],
    "computed column": lambda _: few().map(len, column="b")[0],
    "pack": lambda _: few().pack(2, seed=1, **LOCAL)[0],
    "positions": lambda _: doubled()[[sk.Position(1), sk.Position(2)]],
    "rename": lambda _: doubled().rename({"a": "b"})[0],
    "repeat": lambda _: doubled().repeat(2)[0],
    "sample": lambda _: doubled().sample(2, seed=1),
    "save": lambda folder: doubled().save(folder / "pipeline.json"),
    "schema": lambda _: doubled().schema,
    "select": lambda _: doubled().select([1, 2])[0],
    "select_columns": lambda _: doubled().select_columns(["a"])[0],
    "shapes": lambda _: sk.kaldi.shapes(few()),
    "shard": lambda _: doubled().shard(0, of=2)[1],
    "shuffle": lambda _: doubled().shuffle(1)[1],
    "skip": lambda _: doubled().skip(2)[0],
    "sort": lambda _: few().sort("a", **LOCAL)[0],
    "source_column": lambda _: doubled().source_column()[0],
    "split": lambda _: few().split({"a": 0.5, "b": 0.5}, seed=1),
    "stream": lambda _: next(iter(doubled().stream())),
    "take": lambda _: doubled().take(2)[1],
    "to_arrow": lambda _: few().to_arrow(),
    "windows": lambda _: few().windows(2, **LOCAL)[0],
    "write": lambda folder: few().write(folder / "w", "jsonl", **UNCHECKED),
    "without": lambda _: doubled().without([("<builtins.list records>", 1)])[0],
    "repr": lambda _: repr(doubled()),
    "html": lambda _: doubled()._repr_html_(),
    "pickle": lambda _: pickle.loads(pickle.dumps(doubled()))[3],
    "loader": lambda _: next(iter(sk.Loader(doubled(), batch_size=2))),
    "state": lambda _: sk.Loader(doubled(), batch_size=2).state_dict(),
}


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Import what methods import at their first call: its calls are not those of the method."""
    sk.from_sequence(RECORDS, version="records").info()


class TooManyCallsError(Exception):
    pass


@pytest.mark.parametrize("name", CALLS)
def test_a_node_that_stands_at_many_places_is_passed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Or the answer is an error in words, where it would have to name each place."""
    monkeypatch.setattr(contract, "_MOST_FOUND", 1000)
    left = MOST_CALLS

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooManyCallsError

    sys.setprofile(count)
    try:
        with suppress(SeekableError):
            CALLS[name](tmp_path)
    finally:
        sys.setprofile(None)
    assert left >= 0


def test_each_public_name_of_a_dataset_has_its_call() -> None:
    public = {name for name in dir(Dataset) if not name.startswith("_")}
    assert {name for name in public if not name.startswith("write_")} <= CALLS.keys()


def test_what_cannot_be_shown_is_left_out() -> None:
    ds = doubled()
    assert len(repr(ds)) < 50_000
    assert "..." in repr(ds)
    assert "and so on" in ds.explain()
    assert [len(nodes_of(ds._node)), nodes_of(ds._node)[-1] is ds._node] == [31, True]


def deep(make: Callable[[sk.Dataset], sk.Dataset], cost: int) -> sk.Dataset:
    """Return the deepest dataset that there may be."""
    ds = sk.from_sequence(RECORDS, version="records")
    for _ in range((MOST_DEEP - 3) // cost):
        ds = make(ds)
    return ds


DEEPER: dict[str, tuple[Callable[[sk.Dataset], sk.Dataset], int]] = {
    "map": (lambda ds: ds.map(dict), 3),
    "zip": (lambda ds: sk.zip([ds]), 3),
    "shuffle": (lambda ds: ds.shuffle(1), 1),
    "concat": (lambda ds: ds + sk.from_sequence(RECORDS, version="records"), 2),
}


def below(frames: int, call: Callable[[], Any]) -> Any:
    """Call a function below some others, as frameworks do."""
    return call() if not frames else below(frames - 1, call)


@pytest.mark.parametrize("kind", DEEPER)
def test_below_the_limit_all_works_and_above_it_is_told(tmp_path: Path, kind: str) -> None:
    make, cost = DEEPER[kind]
    ds = deep(make, cost)

    def use() -> None:
        assert pickle.loads(pickle.dumps(ds)).fingerprint == ds.fingerprint
        assert ds.explain()
        assert ds[0] == ds[[0]][0]
        loader = sk.Loader(ds, batch_size=1, steps=2, epochs=None)
        next(iter(loader))
        sk.Loader(ds, batch_size=1, steps=2, epochs=None).load_state_dict(loader.state_dict())
        ds.save(tmp_path / "pipeline.json")

    below(150, use)
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(ds[1]))
    thread.start()
    thread.join()
    assert done == [ds[1]]
    with pytest.raises(InvalidArgument, match=r"is \d+ steps deep, and 210 are the most"):
        make(make(make(ds)))


def test_a_pipeline_file_of_more_steps_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    deep(*DEEPER["shuffle"]).save(path)
    document = json.loads(path.read_text())
    nodes = document["nodes"]
    for _ in range(3):
        nodes.append({**nodes[-1], "node": len(nodes), "child": len(nodes) - 1})
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidArgument, match="steps deep"):
        sk.load_pipeline(path, sequences={"records": RECORDS})
