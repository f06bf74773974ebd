"""``sk.open`` of objects: what it transfers, publishes, and opens as a sample; and ``verify``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import output
from tests.remote.index.builds import entries_in

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.index.counting_store import CountingStore


def fill(store: CountingStore, files: int = 100, rows: int = 10) -> None:
    """Put files of JSON lines into a store."""
    for number in range(files):
        lines = (b'{"file": %d, "row": %d}\n' % (number, row) for row in range(rows))
        store.objects[f"data/{number:03}.jsonl"] = b"".join(lines)


def data_reads(store: CountingStore) -> set[str]:
    """Return the keys of data files that were read."""
    return {key for key, _, _ in store.reads if ".seekable/" not in key}


def test_a_second_opening_lists_alone(store: CountingStore, tmp_path: Path) -> None:
    fill(store)
    first = sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))
    assert len(first) == 1000
    store.forget()
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))) == 1000
    assert not store.reads
    assert store.stats == ["data"]  # It may be an object itself.
    assert store.lists


def test_one_changed_object_is_read_alone(store: CountingStore, tmp_path: Path) -> None:
    fill(store)
    sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))
    store.objects["data/042.jsonl"] = b'{"new": 1}\n'
    store.forget()
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))) == 991
    assert store.reads == [("data/042.jsonl", 0, 11)]


@pytest.mark.parametrize("asked", ["data", "data/*.jsonl", "data/**/*.jsonl"])
def test_entries_of_deleted_objects_go_with_the_next_listing(
    store: CountingStore, tmp_path: Path, asked: str
) -> None:
    fill(store, files=5)
    store.objects["data/more/x.jsonl"] = b"{}\n"
    sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))
    (folder,) = (path.parent for path in tmp_path.rglob("catalog.json"))
    names = {"000.jsonl", "001.jsonl", "003.jsonl", "004.jsonl", "more/x.jsonl"}
    assert set(entries_in(folder)) == names | {"002.jsonl"}
    del store.objects["data/002.jsonl"], store.objects["data/003.jsonl"]
    # A list of names tells nothing of others, and so does an opening that writes no index.
    store.objects["data/100.jsonl"] = b"{}\n"
    sk.open([f"{store.mount}/data/100.jsonl"], index=sk.Index(folder=tmp_path))
    assert set(entries_in(folder)) == names | {"002.jsonl", "100.jsonl"}
    store.objects["data/101.jsonl"] = b"{}\n"
    sk.open(f"{store.mount}/{asked}", index=sk.Index(folder=tmp_path))
    assert set(entries_in(folder)) == (names - {"003.jsonl"}) | {"100.jsonl", "101.jsonl"}


def test_publishing_serves_a_machine_without_an_index(store: CountingStore, tmp_path: Path) -> None:
    fill(store)
    one = sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path / "one", publish=True))
    assert store.puts[-1] == "data/.seekable/catalog.json"
    store.forget()
    two = sk.open(f"{store.mount}/data/*.jsonl", index=sk.Index(folder=tmp_path / "two"))
    assert not data_reads(store)
    assert two.fingerprint == one.fingerprint
    assert two[123] == {"file": 12, "row": 3}


def test_the_published_index_is_no_data(store: CountingStore, tmp_path: Path) -> None:
    fill(store, files=3)
    sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, publish=True))
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path))) == 30
    assert len(sk.open(f"{store.mount}/data/**", format="jsonl", index=sk.Index(folder=tmp_path))) == 30


def test_local_data_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\n")
    with pytest.raises(InvalidArgument, match="folder of this machine"):
        sk.open(tmp_path, index=sk.Index(publish=True))
    assert not (tmp_path / ".seekable").exists()


def test_most_bytes_refuses_before_anything_is_read(store: CountingStore, tmp_path: Path) -> None:
    fill(store)
    size = sum(map(len, store.objects.values()))
    with pytest.raises(InvalidArgument, match="nothing was transferred"):
        sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, most_bytes=size - 1))
    assert not store.reads
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, most_bytes=size))) == 1000
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, most_bytes=0))) == 1000


def test_wrong_options_of_the_index_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="most_bytes must be at least 0"):
        sk.Index(most_bytes=-1)
    with pytest.raises(WrongType, match="publish must be True or False"):
        sk.Index(publish=1)  # type: ignore[arg-type]
    with pytest.raises(WrongType, match="sampled must be True or False"):
        sk.Index(sampled="all")  # type: ignore[arg-type]


def test_a_sample_is_64_files_in_their_order(store: CountingStore, tmp_path: Path) -> None:
    fill(store, files=200)
    sample = sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, sampled=True))
    assert len(sample) == 640
    files = [record["file"] for record in sample][::10]
    assert files == sorted(files)
    assert len(data_reads(store)) == 64
    # More files hardly change the sample, and a copy elsewhere has the same one.
    fill(store, files=202)
    again = sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, sampled=True))
    assert len({record["file"] for record in again} - set(files)) <= 2
    folder = tmp_path / "copy"
    folder.mkdir()
    for key in list(store.objects)[:200]:
        (folder / key.rpartition("/")[2]).write_bytes(store.objects[key])
    copy = sk.open(folder, index=sk.Index(sampled=True))
    assert [record["file"] for record in copy][::10] == files


def test_few_files_are_their_own_sample(store: CountingStore, tmp_path: Path) -> None:
    fill(store, files=64)
    assert len(sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, sampled=True))) == 640


def test_a_sample_of_files_that_belong_together_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="belong together"):
        sk.open({"a": "a.tar", "b": "b.tar"}, index=sk.Index(sampled=True))


def test_the_state_of_a_sample_goes_on_with_all_files(store: CountingStore, tmp_path: Path) -> None:
    """The rest of the begun epoch comes in the order of the sample, then an epoch of all files."""
    fill(store, files=100)

    def loader(*, sampled: bool = False) -> sk.Loader:
        ds = sk.open(f"{store.mount}/data", index=sk.Index(folder=tmp_path, sampled=sampled))
        return sk.Loader(ds.shuffle(seed=3), batch_size=16, collate=list)

    undisturbed = [record for batch in loader(sampled=True) for record in batch]
    sample = loader(sampled=True)
    begun = iter(sample)
    delivered = [record for _ in range(7) for record in next(begun)]
    state = json.loads(json.dumps(sample.state_dict()))
    full = loader()
    full.load_state_dict(state, resume="rows")
    rest = [record for batch in full for record in batch]
    assert delivered + rest == undisturbed
    epoch = [(record["file"], record["row"]) for batch in full for record in batch]
    assert len(epoch) == len(set(epoch)) == 1000


@pytest.mark.parametrize("deep", [False, True])
def test_objects_are_verified(store: CountingStore, tmp_path: Path, *, deep: bool) -> None:
    fill(store, files=20)
    url = f"{store.mount}/data"
    sk.open(url, index=sk.Index(folder=tmp_path))
    good = verify(url, index_dir=tmp_path, deep=deep)
    assert (good.problems, good.files, good.records) == ((), 20, 200)
    store.objects["data/003.jsonl"] = store.objects["data/003.jsonl"].replace(b'"row": 5', b'"row":  5')
    del store.objects["data/004.jsonl"]
    store.objects["data/100.jsonl"] = b"{}\n"
    found = {problem.path: problem.kind for problem in verify(url, index_dir=tmp_path, deep=deep).problems}
    assert found == {
        f"{url}/003.jsonl": "changed",
        f"{url}/004.jsonl": "gone",
        f"{url}/100.jsonl": "not indexed",
    }


def test_the_command_publishes(store: CountingStore, tmp_path: Path) -> None:
    fill(store, files=3)
    url = f"{store.mount}/data"
    done = output("index", "--index", f"folder={tmp_path}", "--publish", url)
    assert f"published in {url}/.seekable".encode() in done
    assert "data/.seekable/catalog.json" in store.objects
