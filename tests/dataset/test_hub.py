"""``hf:REPO:SPLIT:COLUMN``: read over HTTP from a Hub on this machine, by processes of their own."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import shutil
import signal
from queue import Queue
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import Repo
from tests.thrift import sample

import seekable as sk

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer
    from pathlib import Path

    from tests.hub import Child, Hub, Warm

ROWS = 600
LARGE_ROWS = 2000
OPEN = "ds = sk.open('hf:me/web:train:text');"


@functools.cache
def table(rows: int, seed: int) -> pa.Table:
    """Return records of more than a kilobyte: few of them lie in many units of the cache."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(rows) + seed * 1_000_000,
            "text": [f"{seed} {row} {rng.bytes(400).hex()}" for row in range(rows)],
            "other": [rng.bytes(200).hex() for _ in range(rows)],
        }
    )


def parquet(rows: int, seed: int, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(rows, seed), sink, **{"row_group_size": rows // 2, **options})
    return sink.getvalue()


@functools.cache
def shards() -> dict[str, bytes]:
    return {f"data/train-{shard}.parquet": parquet(ROWS, shard) for shard in (2, 10, 1)}


@functools.cache
def texts() -> list[str]:
    return [text for shard in (1, 2, 10) for text in table(ROWS, shard)["text"].to_pylist()]


@functools.cache
def others() -> dict[str, bytes]:
    return {"data/test-0.parquet": parquet(10, 77), "README.md": b"# Web"}


@functools.cache
def large() -> dict[str, bytes]:
    pages: dict[str, Any] = {"data_page_size": 64 << 10, "write_batch_size": 64, "write_page_index": True}
    return {"data/train-0.parquet": parquet(LARGE_ROWS, 0, use_dictionary=False, **pages)}


def large_texts() -> list[str]:
    found: list[str] = table(LARGE_ROWS, 0)["text"].to_pylist()
    return found


def digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


DIGEST = """
import hashlib
def digest(texts):
    return hashlib.sha256("\\n".join(texts).encode()).hexdigest()
def failure(what):
    try:
        what()
    except sk.SeekableError as error:
        return [type(error).__name__, str(error)]
    return ["none", ""]
"""


def test_records_are_those_of_the_files_in_natural_order(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    sha = hub.repos["me/web"].commit(shards() | others())
    found = warm.run(
        f"{DIGEST}{OPEN} whole = sk.open('hf:me/web:train');"
        "rows = [0, 599, 600, 1799, 1234];"
        "tell({'n': len(ds), 'digest': digest([record['text'] for record in ds]),"
        "'one': ds[-1], 'whole': whole[rows], 'keys': sorted({tuple(r) for r in ds}),"
        "'where': [(at.path, at.row) for at in ds.locate(rows)],"
        "'back': [ds.find(at.path, at.row) for at in ds.locate(rows)], 'shown': repr(ds),"
        "'columns': sk.open('hf:me/web:train', columns=['id', 'text'])[7],"
        "'numpy': str(sk.open('hf:me/web:train:id', decode='numpy')[7]['id'].dtype)})",
        env,
    )
    assert found["n"] == len(texts())
    assert found["digest"] == digest(texts())
    assert found["one"] == {"text": texts()[-1]}
    local = pa.concat_tables([table(ROWS, shard) for shard in (1, 2, 10)])
    assert found["whole"] == local.take([0, 599, 600, 1799, 1234]).to_pylist()
    assert found["keys"] == [["text"]]
    base = f"hf://datasets/me/web@{sha}/data/train"
    assert found["where"] == [
        [f"{base}-1.parquet", 0],
        [f"{base}-1.parquet", 599],
        [f"{base}-2.parquet", 0],
        [f"{base}-10.parquet", 599],
        [f"{base}-10.parquet", 34],
    ]
    assert found["back"] == [[0], [599], [600], [1799], [1234]]
    assert "hf:me/web:train:text" in found["shown"]
    assert found["columns"] == {"id": 1_000_007, "text": texts()[7]}
    assert found["numpy"] == "int64"


def test_opening_reads_footers_and_a_row_reads_its_pages(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(large())
    size = len(large()["data/train-0.parquet"])
    assert warm.run(f"{OPEN} tell(len(ds))", env) == LARGE_ROWS
    # The whole units of the cache that hold the last 64 KiB.
    first = (size - (64 << 10)) // (256 << 10) * (256 << 10)
    assert [asked.range for asked in hub.data] == [f"bytes={first}-{size - 1}"]
    hub.asked.clear()
    assert warm.run(f"{OPEN} tell(ds[1234]['text'])", env) == large_texts()[1234]
    assert 1 <= len(hub.data) <= 2
    assert hub.bytes_sent <= 2 * (256 << 10) < size // 3
    hub.asked.clear()
    assert warm.run(f"{OPEN} tell(ds[1234]['text'])", env) == large_texts()[1234]
    assert hub.data == []
    assert [asked.path for asked in hub.asked] == ["/api/datasets/me/web/revision/main"]


def test_pages_are_looked_for_many_at_a_time(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    pages = {
        "use_dictionary": False,
        "data_page_size": 600 << 10,
        "row_group_size": 1 << 20,
        "write_batch_size": 64,
        "write_statistics": False,
        "compression": "none",
    }
    data = parquet(6000, 0, **pages)
    hub.repos["me/web"].commit({"train.parquet": data})
    told = warm.run(
        "from seekable.formats.tables import table_reading\n"
        "table_reading._LARGE_BYTES = 1 << 20\n"
        f"{OPEN} opened = fetcher.fetcher().report(); text = ds[5999]['text']\n"
        "report = fetcher.fetcher().report()\n"
        "tell([text, report.requests - opened.requests, report.waits - opened.waits])",
        env,
    )
    assert told[0].startswith("0 5999 ")
    # Whoever waits for each answer waits as often as there are requests.
    assert told[1] > told[2] + 1
    # Pages of other rows were not fetched, but for the units of their headers.
    assert hub.bytes_sent < len(data) * 3 // 4


def test_of_small_chunks_without_an_index_all_is_fetched_at_once(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    hub.repos["me/web"].commit({"train.parquet": parquet(2000, 0, use_dictionary=False)})
    warm.run(f"{OPEN} tell(ds[999]['text'])", env)
    assert 1 <= len(hub.data) <= 3


def test_a_hub_that_is_gone_leaves_what_was_read(
    served: tuple[Hub, ThreadingHTTPServer], env: dict[str, str], warm: Warm
) -> None:
    hub, server = served
    hub.repos["me/web"].commit(large())
    row = large_texts()[3]
    assert warm.run(f"{OPEN} tell(ds[3]['text'])", env) == row
    server.shutdown()
    server.server_close()
    code = f"{DIGEST}{OPEN} tell([ds[3]['text'], *failure(lambda: ds[-1])])"
    for offline in ({}, {"HF_HUB_OFFLINE": "1"}):
        text, kind, message = warm.run(code, env | offline)
        assert text == row
        assert kind == "Unreachable"
        assert "bytes " in message
        assert "hf://datasets/me/web@" in message
        assert "/data/train-0.parquet" in message
    never = f"{DIGEST}tell(failure(lambda: sk.open('hf:me/other:train:text')))"
    kind, message = warm.run(never, env | {"HF_HUB_OFFLINE": "1"})
    assert kind == "Unreachable"
    assert "'hf:me/other:train:text' is not on this machine, and HF_HUB_OFFLINE is set" in message


@pytest.mark.parametrize(
    "faults", [*sample([["500"], ["500", "500"], ["cut"], ["short"]], of=4), ["short", "500", "cut"]]
)
def test_what_fails_in_passing_is_tried_again(
    hub: Hub, env: dict[str, str], faults: list[str], warm: Warm
) -> None:
    hub.repos["me/web"].commit({"data/train-0.parquet": parquet(100, 0)})
    hub.faults.extend(faults)
    assert (
        warm.run(f"{OPEN} tell([record['text'] for record in ds])", env) == table(100, 0)["text"].to_pylist()
    )
    assert len(hub.data) >= 1 + len(faults)


def test_answers_that_are_cut_off_are_no_records(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(large())
    warm.run(f"{OPEN} tell(0)", env)
    hub.faults.extend(["short"] * 99)
    kind, message = warm.run(f"{DIGEST}{OPEN} tell(failure(lambda: ds[5]))", env)
    assert kind == "Unreachable"
    assert "8 tries in " in message
    assert " bytes came; check the network" in message
    hub.faults.clear()
    assert warm.run(f"{OPEN} tell(ds[5]['text'])", env) == large_texts()[5]


def test_processes_that_begin_at_once_agree(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards())
    code = f"{DIGEST}{OPEN} tell([ds.fingerprint, digest([record['text'] for record in ds])])"
    found = [child.told() for child in [warm.start(code, env) for _ in range(3)]]
    assert found[0] == found[1] == found[2]
    assert found[0][1] == digest(texts())


@pytest.mark.parametrize("request_number", sample([1, 3, 5, 8, 10, 14], of=2))
def test_a_process_that_is_killed_leaves_nothing_in_the_way(
    hub: Hub, env: dict[str, str], request_number: int, warm: Warm
) -> None:
    hub.repos["me/web"].commit(shards())
    code = f"{DIGEST}{OPEN} tell(digest([record['text'] for record in ds]))"
    children: Queue[Child] = Queue()

    def kill(number: int) -> None:
        if number == request_number:
            children.get(timeout=120).kill()

    hub.on_request = kill
    child = warm.start(code, env)
    children.put(child)
    assert child.end()[0] == -signal.SIGKILL
    hub.on_request = lambda _: None
    assert warm.run(code, env) == digest(texts())


def test_a_commit_is_pinned_and_content_that_stays_is_the_same_data(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    repo = hub.repos["me/web"]
    first = repo.commit(shards())
    code = "tell([sk.open(spec).fingerprint for spec in sys.argv[1:]])"
    before = warm.run(code, env, "hf:me/web:train", f"hf:me/web@{first}:train")
    assert before[0] == before[1]
    repo.commit(shards() | {"README.md": b"# More words"})
    assert warm.run(code, env, "hf:me/web:train") == before[:1]
    repo.commit(shards() | {"data/train-10.parquet": parquet(ROWS, 11)}, branch="next")
    hub.asked.clear()
    pinned, main, other = warm.run(
        code, env, f"hf:me/web@{first}:train", "hf:me/web@main:train", "hf:me/web@next:train"
    )
    assert pinned == main == before[0] != other
    assert not any(first in asked.path for asked in hub.asked if asked.path.startswith("/api"))
    # Of the new commit only the shard that is new was looked at.
    assert len(hub.data) == 1


def test_another_content_at_the_same_commit_is_refused(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    repo = hub.repos["me/web"]
    sha = repo.commit(dict(large()))
    warm.run(f"{OPEN} tell(0)", env)
    repo.commits[sha]["data/train-0.parquet"] = large()["data/train-0.parquet"][:-1] + b"?"
    kind, message = warm.run(f"{DIGEST}{OPEN} tell(failure(lambda: ds[5]))", env)
    assert kind == "IndexStale"
    assert "has another content than when the repository was listed" in message


def test_what_the_hub_refuses_is_told(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards() | others())
    hub.repos["me/gated"] = Repo(gated=True)
    hub.repos["me/private"] = Repo(token="secret")
    hub.repos["me/private"].commit(shards())
    hub.repos["me/words"] = Repo()
    hub.repos["me/words"].commit({"words.bin": b"a,b\n"})
    specs = {
        "hf:me/none:train": (
            "AccessDenied",
            "'hf:me/none:train' may not be read, or is not there: the Hub answers 401",
        ),
        "hf:me/gated:train": ("AccessDenied", "ask for access on the page of the repository"),
        "hf:me/private:train": ("AccessDenied", "set HF_TOKEN to a token that may read it"),
        "hf:me/web@none:train": ("DataNotFound", "'hf:me/web@none:train' is not there: the Hub answers 404"),
        "hf:me/web:dev:text": ("DataNotFound", "has no split 'dev'; it has default/test, default/train"),
        "hf:me/web:train:words": (
            "InvalidArgument",
            "no file has a column 'words'; there are 'id', 'text', 'other'",
        ),
        "hf:me/words:train": ("DataNotFound", "has no data file of this split (their names end with .jsonl"),
        "hf:me/words@main:train": ("DataNotFound", "has no data file of this split"),
    }
    code = f"{DIGEST}tell([failure(lambda: sk.open(spec)) for spec in sys.argv[1:]])"
    for (kind, message), (wanted, part) in zip(warm.run(code, env, *specs), specs.values(), strict=True):
        assert kind == wanted, message
        assert part in message
    hub.asked.clear()
    assert warm.run("tell(len(sk.open('hf:me/private:train')))", env | {"HF_TOKEN": "secret"}) == 3 * ROWS
    assert all(asked.has_token == (asked not in hub.data) for asked in hub.asked)


def test_the_readme_tells_of_splits_and_the_hub_has_parquet_of_other_files(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    files = {f"en/{name}": parquet(10, seed) for seed, name in enumerate(["a.parquet", "b.parquet"])}
    configs = [{"config_name": "english", "data_files": [{"split": "train", "path": "en/*.parquet"}]}]
    hub.repos["me/web"].card = {"configs": configs, "license": "mit"}
    hub.repos["me/web"].commit(files)
    hub.repos["words"] = Repo()
    hub.repos["words"].commit({"train.csv": b"a,b\n"})
    converted = {"default/train/0000.parquet": parquet(30, 0), "default/test/0000.parquet": parquet(3, 0)}
    sha = hub.repos["words"].commit(converted, branch="refs/convert/parquet")
    found = warm.run(
        "tell([len(sk.open(spec)) for spec in sys.argv[1:]] + [sk.open('hf:words:test').locate(0).path])",
        env,
        "hf:me/web:english/train:text",
        "hf:me/web:train",
        "hf:words:train",
        "hf:words:default/test",
    )
    assert found == [20, 20, 30, 3, f"hf://datasets/words@{sha}/default/test/0000.parquet"]


def test_a_copy_in_the_cache_of_huggingface_hub_is_read(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(large())
    download = "huggingface_hub.hf_hub_download('me/web', 'data/train-0.parquet', repo_type='dataset')"
    warm.run(f"import huggingface_hub\n{download}\ntell(0)", env | {"HF_HUB_DISABLE_XET": "1"})
    hub.asked.clear()
    found = warm.run(f"{DIGEST}{OPEN} tell([digest([r['text'] for r in ds]), ds.locate(0).path])", env)
    assert found[0] == digest(large_texts())
    assert found[1].startswith("hf://datasets/me/web@")
    assert hub.data == []


FORK = """
def child(row):
    reading, writing = os.pipe()
    if not os.fork():
        try:
            os.write(writing, ds[row]["text"].encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        return answer.read()
first = ds[0]["text"]
tell([first, child(1999), child(1000), ds[500]["text"]])
"""


def test_a_forked_child_reads_on(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(large())
    texts = large_texts()
    assert warm.run(f"{OPEN}\n{FORK}", env) == [texts[0], texts[1999], texts[1000], texts[500]]


LOADER = """
import pickle
ds = sk.open("hf:me/web:train:text", index=sk.Index(folder=sys.argv[1]))
ds = pickle.loads(pickle.dumps(ds)).shuffle(seed=3)
whole = [text for batch in sk.Loader(ds, batch_size=50) for text in batch["text"]]
loader = sk.Loader(ds, batch_size=50, workers=2)
batches = iter(loader)
part = [text for _ in range(7) for text in next(batches)["text"]]
state = json.loads(json.dumps(loader.state_dict()))
batches.close() if hasattr(batches, "close") else None
again = sk.Loader(ds, batch_size=50)
again.load_state_dict(state)
rest = [text for batch in again for text in batch["text"]]
tell([sorted(whole) == sorted(sk_text["text"] for sk_text in ds), part + rest == whole, len(whole)])
"""


def test_a_loader_with_workers_resumes_and_the_index_lies_where_it_shall(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm
) -> None:
    sha = hub.repos["me/web"].commit(shards())
    indexes = tmp_path / "indexes"
    assert warm.run(LOADER, env, str(indexes)) == [True, True, 3 * ROWS]
    assert os.listdir(tmp_path / "cache" / "seekable") == ["remote"]
    assert list(indexes.rglob(".seekable")) == [indexes / "hub" / "datasets--me--web" / sha / ".seekable"]


def test_keys_of_the_hub_are_found(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards())
    code = "ds = sk.open('hf:me/web:train', key='id'); tell(ds.key(2_000_005)['text'])"
    assert warm.run(code, env) == texts()[ROWS + 5]


def test_damage_is_told_of_by_the_name_on_the_hub(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    data = bytearray(parquet(200, 0, use_dictionary=False, compression="zstd"))
    data[1000:30_000] = bytes(29_000)
    hub.repos["me/web"].commit({"train.parquet": bytes(data)})
    kind, message = warm.run(f"{DIGEST}{OPEN} tell(failure(lambda: list(ds)))", env)
    assert kind == "CorruptRecord"
    assert message.startswith("hf://datasets/me/web@")
    hub.repos["me/web"].commit({"train.parquet": b"PAR1" * 100})
    kind, message = warm.run(f"{DIGEST}tell(failure(lambda: sk.open('hf:me/web:train')))", env)
    assert kind == "UnsupportedFormat"
    assert "hf://datasets/me/web@" in message


def test_bytes_on_disk_are_bounded(hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm) -> None:
    hub.repos["me/web"].commit(large())
    code = f"{DIGEST}{OPEN} tell(digest([record['text'] for record in ds]))"
    bounded = env | {"SEEKABLE_REMOTE_BYTES": str(1 << 20)}
    assert warm.run(code, bounded) == digest(large_texts())
    kept = tmp_path / "cache" / "seekable" / "remote"
    taken = sum(path.stat().st_blocks * 512 for path in kept.rglob("*") if path.is_file())
    assert taken <= (1 << 20) * 17 // 16
    shutil.rmtree(kept)
    assert warm.run(code, env) == digest(large_texts())
    none = env | {"SEEKABLE_REMOTE_BYTES": "0", "SEEKABLE_REMOTE_DIR": str(tmp_path / "none")}
    assert warm.run(code, none) == digest(large_texts())
    assert not (tmp_path / "none").exists()


def test_without_huggingface_hub_the_way_to_it_is_told(env: dict[str, str], warm: Warm) -> None:
    code = "sys.modules['huggingface_hub'] = None"
    kind, message = warm.run(f"{code}\n{DIGEST}tell(failure(lambda: sk.open('hf:me/web:train')))", env)
    assert [kind, message] == [
        "MissingDependency",
        "reading from the Hugging Face Hub needs huggingface_hub: pip install 'seekable[hub]'",
    ]


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "12:30 mirror" / "web"
    for name, data in (shards() | others()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_with_the_files_of_a_repository_is_read_without_a_hub(mirror: Path) -> None:
    ds = sk.open(f"hf:{mirror}:train:text")
    assert [record["text"] for record in ds] == texts()
    assert ds.locate(0).path == str(mirror / "data/train-1.parquet")
    assert len(sk.open(f"hf:{mirror}:test")) == 10
    with pytest.raises(sk.DataNotFound, match="has no split 'dev'; it has"):
        sk.open(f"hf:{mirror}:dev")


def test_the_readme_of_a_folder_counts(mirror: Path) -> None:
    configs = "configs:\n- config_name: default\n  data_files:\n  - {split: train, path: 'data/test-*'}\n"
    (mirror / "README.md").write_text(f"---\nlicense: mit\n{configs}---\n# Web\n", encoding="utf-8")
    assert len(sk.open(f"hf:{mirror}:train:text")) == 10


def test_a_readme_whose_metadata_are_no_yaml_is_named(mirror: Path) -> None:
    for metadata in ("configs: [\n", "- configs:\n"):
        (mirror / "README.md").write_text(f"---\n{metadata}---\n", encoding="utf-8")
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"README\.md' begins with metadata"):
            sk.open(f"hf:{mirror}:train")


def test_a_relative_name_is_a_repository_unless_it_begins_with_a_dot(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mirror.parent)
    assert len(sk.open("hf:./web:test")) == 10
    assert json.loads(json.dumps(sk.open("hf:../12:30 mirror/web:test:id")[0])) == {"id": 77_000_000}
    with pytest.raises(sk.errors.InvalidArgument, match=r"names no folder that is there: './none'"):
        sk.open("hf:./none:train")
    assert not os.path.exists("none")
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"is an address; name the split .*'hf:me/web@v1:SPLIT'"
    ):
        sk.open("hf://datasets/me/web@v1/data/*.parquet")


def test_a_saved_pipeline_reads_the_commit_that_was_saved_on_another_machine(
    hub: Hub, env: dict[str, str], warm: Warm, tmp_path: Path
) -> None:
    hub.repos["me/web"].commit(shards())
    saved = warm.run(
        f"{DIGEST}{OPEN} ds = ds.shuffle(seed=3)[:500]; ds.save({str(tmp_path / 'p.json')!r});"
        "tell([ds.fingerprint, digest([record['text'] for record in ds])])",
        env,
    )
    hub.repos["me/web"].commit(large())
    other = env | {"HF_HOME": str(tmp_path / "hf"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    loaded = warm.run(
        f"{DIGEST}ds = sk.load_pipeline({str(tmp_path / 'p.json')!r});"
        "tell([ds.fingerprint, digest([record['text'] for record in ds])])",
        other,
    )
    assert loaded == saved
