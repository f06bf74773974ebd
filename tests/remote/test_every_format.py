"""Every format is read from every store as from a folder: records, places, keys, order, states.

The world is closed: a format, a spec or a compression without a case fails here.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import fsspec  # type: ignore[import-untyped]
import numpy as np
import obstore
import pytest
from obstore.store import MemoryStore
from tests.format_cases import CASES, PLAIN, Case, source_of
from tests.formats import forager
from tests.formats.lhotse_indexes import index_of_lines
from tests.remote.index.counting_store import CountingStore
from tests.thrift import sample

import seekable as sk
import seekable.dataset
from seekable.formats.table import CARDS, NAMES
from seekable.remote import mounts
from seekable.remote.stores.obstore_clients import Client
from seekable.remote.stores.obstore_store import ObstoreStore
from seekable.storage.addresses import parse
from seekable.storage.compression import COMPRESSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

FEW = ("jsonl.zst", "shar", "tokens: megatron")
BATCH = 3

MOST_REQUESTS = 6
"""The most requests with which a dataset of a few files is opened again."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is fetched in a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@dataclass(frozen=True)
class Place:
    """A folder, here or in a store, into which the files of a case are copied."""

    root: str
    options: dict[str, Any] = field(default_factory=dict)
    """The arguments of ``sk.open`` for the store."""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Place]:
    """A store of obstore in the memory of this process."""
    store, root = MemoryStore(), f"s3://memory-{tmp_path.name.lower().replace('_', '-')}"
    mounted = ObstoreStore(parse(root), lambda: Client(store, "none"), secrets=[])
    monkeypatch.setitem(mounts._stores, (root, os.getpid()), mounted)

    def copy(folder: Path) -> Place:
        for name, data in files_of(folder).items():
            obstore.put(store, f"corpus/{name}", data)
        return Place(f"{root}/corpus")

    return copy


@pytest.fixture
def fsspec_memory(tmp_path: Path) -> Iterator[Callable[[Path], Place]]:
    """The memory file system of fsspec."""
    system, root = fsspec.filesystem("memory"), f"/{tmp_path.name}"

    def copy(folder: Path) -> Place:
        for name, data in files_of(folder).items():
            system.pipe_file(f"{root}/{name}", data)
        return Place(f"memory:/{root}")

    yield copy
    system.rm(root, recursive=True)


@pytest.fixture
def in_bucket(bucket: Bucket) -> Callable[[Path], Place]:
    """A bucket of a server of S3."""

    def copy(folder: Path) -> Place:
        bucket.upload({f"corpus/{name}": data for name, data in files_of(folder).items()})
        return Place(f"{bucket.url}/corpus", {"storage": sk.Storage(options=bucket.options)})

    return copy


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder without those of an index."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if ".seekable" not in name}


def same(one: Any, other: Any) -> bool:
    """Return True for equal values, of arrays and of parts of records too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        names = [each.name for each in dataclasses.fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def loader_of(ds: sk.Dataset) -> sk.Loader:
    return sk.Loader(ds.shuffle(seed=3), batch_size=BATCH, collate=list, epochs=2, prefetch=0)


def check_alike(here: sk.Dataset, root: str, there: sk.Dataset, other: str) -> None:
    """Check that two datasets are one, in two places."""
    assert len(there) == len(here) > BATCH
    assert same(list(there), list(here))
    assert there.fingerprint == here.fingerprint
    # Over a store the lines of files say besides what a request brings.
    explained = there.explain().replace(other, "DIR")
    assert all(line in explained for line in here.explain().replace(root, "DIR").splitlines())
    for row in (0, len(here) // 2, len(here) - 1):
        assert same(there[row], here[row])
        assert repr(there.locate(row)).replace(other, "DIR") == repr(here.locate(row)).replace(root, "DIR")
        places = there.locate(row)
        for place in places if isinstance(places, tuple) else (places,):
            assert row in there.find(place.path, place.row)
    assert same(keys_of(there), keys_of(here))
    rows = np.array([2, 0, len(here) - 1])
    assert same(there.shuffle(seed=1)._node.fetch(rows), here.shuffle(seed=1)._node.fetch(rows))


def keys_of(ds: sk.Dataset) -> list[Any] | None:
    try:
        return list(ds.keys())
    except sk.errors.InvalidArgument:
        return None


def check_resumed(here: sk.Dataset, there: sk.Dataset) -> None:
    """Check that a run which began in one place goes on in the other one, both ways."""
    for first, second in ((here, there), (there, here)):
        whole, begun, resumed = loader_of(first), loader_of(first), loader_of(second)
        batches = list(whole)
        some = iter(begun)
        assert same([next(some), next(some)], batches[:2])
        resumed.load_state_dict(begun.state_dict())
        assert same(list(resumed), batches[2:])


def check_case(
    case: Case, copy: Callable[[Path], Place], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open a case here and in a store, and compare them."""
    data = folder / "data"
    data.mkdir()
    case.write(data)
    place = copy(data)
    away = folder / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    there = sk.open(
        source_of(case.asked, place.root),
        **case.options,
        **place.options,
        index=sk.Index(folder=folder / "indexes"),
    )
    if case.near:
        # A script in a store leads to files beside it; a local one to files below the current folder.
        assert same(list(there), list(there))
        records = list(there)
        monkeypatch.chdir(data)
        here = sk.open(source_of(case.asked, str(data)), **case.options)
        assert same(records, list(here))
    else:
        here = sk.open(source_of(case.asked, str(data)), **case.options)
    check_alike(here, str(data), there, place.root)
    check_resumed(here, there)


@pytest.mark.parametrize("name", [*PLAIN, *sample([name for name in CASES if name not in PLAIN], of=2)])
def test_every_format_is_read_from_a_store_in_memory(
    name: str, memory: Callable[[Path], Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_case(CASES[name], memory, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", FEW)
def test_formats_are_read_by_fsspec(
    name: str, fsspec_memory: Callable[[Path], Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_case(CASES[name], fsspec_memory, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in CASES if name not in FEW)]
)
def test_formats_are_read_from_a_server(
    name: str, in_bucket: Callable[[Path], Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_case(CASES[name], in_bucket, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in PLAIN or name == "shar" else pytest.mark.exhaustive)
        for name in CASES
    ],
)
def test_an_indexed_format_is_opened_again_with_few_requests_and_no_reads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, store = CASES[name], CountingStore(f"s3://counted-{tmp_path.name.lower().replace('_', '-')}")
    monkeypatch.setitem(mounts._stores, (store.mount, os.getpid()), store)
    (tmp_path / "data").mkdir()
    case.write(tmp_path / "data")
    store.objects = {f"corpus/{name}": data for name, data in files_of(tmp_path / "data").items()}
    asked = source_of(case.asked, f"{store.mount}/corpus")
    first = sk.open(asked, **case.options, index=sk.Index(folder=tmp_path / "indexes"))
    assert len(store.reads) <= 3 * len(store.objects)
    store.forget()
    again = sk.open(asked, **case.options, index=sk.Index(folder=tmp_path / "indexes"))
    assert (store.reads, again.fingerprint) == ([], first.fingerprint)
    assert len(store.lists) + len(store.stats) <= MOST_REQUESTS, (store.lists, store.stats)


@pytest.mark.parametrize("beside", ["a.jsonl.idx", "index", ""])
def test_lines_of_an_object_that_another_index_has_are_not_scanned(
    beside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CountingStore(f"s3://other-{tmp_path.name.lower().replace('_', '-')}")
    monkeypatch.setitem(mounts._stores, (store.mount, os.getpid()), store)
    content = b"".join(b'{"id": %d, "text": "%s"}\n' % (row, b"x" * 600) for row in range(4000))
    (tmp_path / "a.jsonl").write_bytes(content)
    if beside == "index":
        forager.write_index(tmp_path, ["a.jsonl"])
    elif beside:
        (tmp_path / beside).write_bytes(index_of_lines(content))
    store.objects = files_of(tmp_path)
    ds = sk.open(store.mount, index=sk.Index(folder=tmp_path / "indexes"))
    read = sum(stop - start for name, start, stop in store.reads if name == "a.jsonl")
    assert (read < len(content) / 4) == bool(beside)
    assert (len(ds), ds[3999]["id"]) == (4000, 3999)
    assert ds.fingerprint == sk.open(tmp_path / "a.jsonl").fingerprint


@pytest.mark.parametrize("name", ["shar", "tokens: megatron", "token store"])
def test_two_stores_of_one_name_are_not_mixed(name: str, bucket: Bucket, tmp_path: Path) -> None:
    mounts.mount(bucket.url, {"endpoint": "http://127.0.0.1:1", "retries": 1})
    case = CASES[name]
    (tmp_path / "data").mkdir()
    case.write(tmp_path / "data")
    bucket.upload({f"corpus/{key}": data for key, data in files_of(tmp_path / "data").items()})
    ds = sk.open(
        source_of(case.asked, f"{bucket.url}/corpus"),
        **case.options,
        index=sk.Index(folder=tmp_path / "indexes"),
        storage=sk.Storage(options=bucket.options),
    )
    assert same(list(ds), list(sk.open(source_of(case.asked, str(tmp_path / "data")), **case.options)))
    assert ds.locate(0).path.startswith(f"{bucket.url}/corpus/")


def test_spans_beside_tokens_are_read_from_a_store(bucket: Bucket, tmp_path: Path) -> None:
    texts = sk.from_sequence(
        [{"text": "1 2 3 4", "spans": [[0, number % 4 + 1, number]]} for number in range(9)]
    )
    store = sk.formats.TokenStore(align={"spans": sk.formats.Spans(units="tokens")}, rows_per_file=4)
    tk = sk.tokenize(texts, to=tmp_path / "tokens", tokenizer=_numbers, store=store, jobs=1)
    bucket.upload({f"tokens/{key}": data for key, data in files_of(tmp_path / "tokens").items()})
    storage = sk.Storage(options=bucket.options)
    far = sk.open(f"{bucket.url}/tokens", index=sk.Index(folder=tmp_path / "indexes"), storage=storage)

    assert same(list(far), list(tk))
    packed = far.pack(5, seed=3, align=["spans"], method="best_fit")
    assert same(list(packed), list(tk.pack(5, seed=3, align=["spans"], method="best_fit")))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def test_the_world_is_closed() -> None:
    assert CASES.keys() >= {*NAMES}
    wanted = {f"{card.name}.{kind}" for card in CARDS if card.compressible for kind in COMPRESSED}
    assert wanted <= CASES.keys()
    specs = {case.asked.partition(":")[0] for case in CASES.values() if isinstance(case.asked, str)}
    assert specs >= {word for card in CARDS for word in card.specs}
