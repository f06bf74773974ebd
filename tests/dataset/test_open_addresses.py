"""``sk.open`` of addresses: a dataset in a bucket is the dataset that its local copy is."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from tests.remote.conftest import bucket, moto  # noqa: F401 - fixtures
from tests.remote.servers.bucket import request
from tests.remote.servers.s3 import SIGNED

import seekable as sk
from seekable.index.index_location import find_index
from seekable.remote.fetching.fetcher import fetcher

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

FILES = 5
ROWS = 20


def lines(file: int) -> bytes:
    return b"".join(json.dumps({"id": file * ROWS + row}).encode() + b"\n" for row in range(ROWS))


CONTENT = {f"corpus/part-{file}.jsonl": lines(file) for file in range(FILES)}


@pytest.fixture(autouse=True)
def _indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEKABLE_INDEX_DIR", str(tmp_path / "indexes"))
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def corpus(bucket: Bucket) -> Bucket:  # noqa: F811 - a fixture
    bucket.upload(CONTENT)
    return bucket


@pytest.fixture
def local(tmp_path: Path) -> sk.Dataset:
    for name, content in CONTENT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return sk.open(tmp_path / "corpus")


def opened(corpus: Bucket, asked: str = "/corpus/*.jsonl", **how: Any) -> sk.Dataset:
    return sk.open(corpus.url + asked, storage=sk.Storage(options=corpus.options, **how))


def turn_versions_on(versioned: Bucket) -> None:
    status = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    answer = request(versioned.server, "PUT", f"/{versioned.name}?versioning", status, SIGNED)
    assert answer.status == 200, answer


def requests() -> int:
    return fetcher().report().requests


def test_a_bucket_is_the_dataset_that_its_copy_is(corpus: Bucket, local: sk.Dataset) -> None:
    ds = opened(corpus)
    assert list(ds) == list(local)
    assert ds[37] == local[37]
    assert ds.fingerprint == local.fingerprint
    assert list(ds.shuffle(seed=1)) == list(local.shuffle(seed=1))
    located = ds.locate(25)
    assert located.path == f"{corpus.url}/corpus/part-1.jsonl"
    assert ds.find(located.path, located.row) == [25]
    assert ds.explain().startswith(local.explain())
    assert f"{corpus.url}/corpus/part-0.jsonl" in ds.explain()
    assert f"{corpus.url}/corpus" in repr(ds)


@pytest.mark.parametrize("asked", ["/corpus", "/corpus/", "", "/**/*.jsonl", "/corpus/part-{0..4}.jsonl"])
def test_ways_to_name_the_files(corpus: Bucket, local: sk.Dataset, asked: str) -> None:
    ds = opened(corpus, asked)
    assert list(ds) == list(local)


@pytest.mark.usefixtures("local")
def test_addresses_and_paths_in_one_list(corpus: Bucket, tmp_path: Path) -> None:
    both: list[str | Path] = [tmp_path / "corpus" / "part-1.jsonl", f"{corpus.url}/corpus/part-0.jsonl"]
    ds = sk.open(both, storage=sk.Storage(options=corpus.options))
    assert [record["id"] for record in ds] == [*range(ROWS, 2 * ROWS), *range(ROWS)]


def test_the_second_call_lists_and_a_call_without_refresh_asks_nothing(corpus: Bucket) -> None:
    ds = opened(corpus)
    before = requests()
    assert len(opened(corpus)) == len(ds)
    assert requests() == before + 1
    assert opened(corpus, refresh=False).fingerprint == ds.fingerprint
    assert requests() == before + 1
    corpus.upload({"corpus/part-9.jsonl": lines(9), "corpus/part-0.jsonl": lines(7)})
    kept = opened(corpus, refresh=False)
    assert len(kept) == FILES * ROWS
    with pytest.raises(sk.IndexStale, match=r"part-0\.jsonl"):
        kept[0]
    fresh = opened(corpus)
    assert (len(fresh), fresh[0]) == ((FILES + 1) * ROWS, {"id": 7 * ROWS})


def test_the_index_lies_in_the_folder_of_indexes(corpus: Bucket, tmp_path: Path) -> None:
    opened(corpus)
    folder = find_index(f"{corpus.url}/corpus", index_dir=None).folder
    assert folder == f"{tmp_path}/indexes/s3/{corpus.name}/corpus/.seekable"


def test_a_loader_stops_and_resumes_on_the_copy_and_back(corpus: Bucket, local: sk.Dataset) -> None:
    def batches(ds: sk.Dataset, state: Any = None) -> tuple[list[Any], Any]:
        loader = sk.Loader(ds.shuffle(seed=3), batch_size=8)
        if state is not None:
            loader.load_state_dict(state)
        found, states = [], []
        for batch in loader:
            found.append(batch["id"].tolist())
            states.append(loader.state_dict())
        return found, states

    whole, states = batches(local)
    assert batches(opened(corpus))[0] == whole
    assert batches(opened(corpus), states[4])[0] == whole[5:]
    assert batches(local, batches(opened(corpus))[1][2])[0] == whole[3:]


def test_a_pipeline_file_names_the_address_and_moves_to_a_copy(
    corpus: Bucket, local: sk.Dataset, tmp_path: Path
) -> None:
    secret = {**corpus.options, "secret_access_key": "hush-hush"}
    saved, from_local = tmp_path / "pipeline.json", tmp_path / "local.json"
    whole = sk.open(f"{corpus.url}/corpus", storage=sk.Storage(options=secret)).shuffle(seed=5)
    whole.save(saved)
    local.shuffle(seed=5).save(from_local)
    assert "hush-hush" not in saved.read_text()
    assert f'"{corpus.url}/corpus"' in saved.read_text()
    for loaded in (
        sk.load_pipeline(saved, root=f"{corpus.url}/corpus", storage=sk.Storage(options=secret)),
        sk.load_pipeline(saved, root=tmp_path / "corpus"),
        sk.load_pipeline(from_local, root=f"{corpus.url}/corpus", storage=sk.Storage(options=secret)),
        sk.load_pipeline(saved, root={corpus.url: tmp_path}),
    ):
        assert loaded.fingerprint == whole.fingerprint
        assert list(loaded) == list(whole)
    with pytest.raises(sk.DataNotFound, match=rf"{corpus.url}/corpus', .* is not followed: .* allow='"):
        sk.load_pipeline(saved, storage=sk.Storage(options=secret))
    corpus.delete("corpus/part-4.jsonl")
    with pytest.raises(sk.DataNotFound, match=r"part-4\.jsonl"):
        sk.load_pipeline(saved, root=f"{corpus.url}/corpus", storage=sk.Storage(options=secret))


def test_workers_read_the_same(corpus: Bucket, local: sk.Dataset) -> None:
    loader = sk.Loader(opened(corpus).shuffle(seed=3), batch_size=20, workers=1)
    assert [row for batch in loader for row in batch["id"].tolist()] == [
        record["id"] for record in local.shuffle(seed=3)
    ]


def test_neither_a_pickle_nor_an_index_has_secrets(corpus: Bucket, tmp_path: Path) -> None:
    ds = sk.open(
        f"{corpus.url}/corpus",
        storage=sk.Storage(options={**corpus.options, "secret_access_key": "hush-hush"}),
    )
    pickled = pickle.dumps(ds)
    assert b"hush-hush" not in pickled
    assert pickle.loads(pickled)[3] == {"id": 3}
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()
    ] == []


def test_a_dataset_of_versions_outlasts_a_rewrite(corpus: Bucket) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="needs a bucket that keeps versions"):
        opened(corpus, pin="version")
    turn_versions_on(corpus)
    corpus.upload(CONTENT)
    ds = opened(corpus, pin="version")
    before = requests()
    assert opened(corpus, pin="version", refresh=False).fingerprint == ds.fingerprint
    assert requests() == before
    corpus.upload(dict.fromkeys(CONTENT, lines(9)))
    assert [record["id"] for record in pickle.loads(pickle.dumps(ds))] == list(range(FILES * ROWS))
    assert opened(corpus, pin="version")[0] == {"id": 9 * ROWS}


def test_a_cache_of_no_bytes_keeps_nothing(
    corpus: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEKABLE_REMOTE_BYTES", "")
    assert opened(corpus, cache=False)[3] == {"id": 3}
    assert not (tmp_path / "cache").exists()
    assert opened(corpus, cache=1 << 30)[3] == {"id": 3}


def test_wrong_arguments_are_refused(corpus: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(0))
    with pytest.raises(sk.errors.InvalidArgument, match=r"Storage\(options=\) is for data in a store"):
        sk.open(tmp_path / "a.jsonl", storage=sk.Storage(options={"region": "x"}))
    with pytest.raises(sk.errors.WrongType, match="refresh must be True or False"):
        opened(corpus, refresh=1)
    with pytest.raises(sk.errors.InvalidArgument, match="pin must be"):
        opened(corpus, pin="size")
    with pytest.raises(sk.errors.InvalidArgument, match=r"Storage\(cache=\) is for data in a store"):
        sk.open(tmp_path / "a.jsonl", storage=sk.Storage(cache=0))
    with pytest.raises(sk.errors.InvalidArgument, match="'region'"):
        sk.open(corpus.url, storage=sk.Storage(options={"regoin": "x"}))
    with pytest.raises(sk.errors.InvalidArgument, match="'s3://b/i' is an address"):
        sk.open(tmp_path / "a.jsonl", index=sk.Index(folder="s3://b/i"))


def test_what_is_not_there_is_said(corpus: Bucket) -> None:
    with pytest.raises(sk.DataNotFound, match=r"no object or folder .*part-0\.jsonl"):
        opened(corpus, "/corpus/part-00.jsonl")
    with pytest.raises(sk.DataNotFound, match="no file matches"):
        opened(corpus, "/corpus/*.parquet")
    with pytest.raises(sk.DataNotFound, match="nosuchbucket"):
        sk.open("s3://nosuchbucket/a.jsonl", storage=sk.Storage(options=corpus.options))
