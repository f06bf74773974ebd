"""``hf:`` over files of lines: JSON lines, CSV and text, compressed or not; on the Hub, and in a folder."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import os
import pickle
import shutil
import signal
import tarfile
from contextlib import suppress
from queue import Queue
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import thrift
from tests.hub import Repo
from tests.storage.compressing import zst_frame

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.hub import Child, Hub, Warm

ROWS = 40
OPEN = "ds = sk.open('hf:me/web:train:text')\n"
FAILURE = """
def failure(what):
    try:
        what()
    except sk.SeekableError as error:
        return [type(error).__name__, str(error)]
    return ["none", ""]
"""


def texts(shard: int, rows: int = ROWS) -> list[str]:
    return [f"{shard}, {row} \u00e4" for row in range(rows)]


def json_lines(shard: int, rows: int = ROWS) -> bytes:
    records = ({"id": shard * 1000 + row, "text": text} for row, text in enumerate(texts(shard, rows)))
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def separated(shard: int, delimiter: str) -> bytes:
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, delimiter=delimiter)
    writer.writerows([("id", "text"), *enumerate(texts(shard))])
    return sink.getvalue().encode()


def frames(data: bytes) -> bytes:
    """Return frames of zstd, as other programs write them that can be entered."""
    return b"".join(zst_frame(data[at : at + 1000]) for at in range(0, len(data), 1000))


def archived(shard: int) -> bytes:
    """Return a tar file of samples with one field."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for row, text in enumerate(texts(shard)):
            member = tarfile.TarInfo(f"{shard}/{row}.text")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


CONTENT: dict[str, Callable[[int], bytes]] = {
    "jsonl": json_lines,
    "ndjson": json_lines,
    "json": json_lines,
    "csv": lambda shard: separated(shard, ","),
    "tsv": lambda shard: separated(shard, "\t"),
    "txt": lambda shard: "\n".join(texts(shard)).encode(),
    "tar": archived,
}
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": frames}
SUFFIXES = [
    "jsonl",
    "ndjson",
    "json",
    "csv",
    "tsv",
    "txt",
    "jsonl.gz",
    "jsonl.zst",
    "json.gz",
    "csv.gz",
    "txt.zst",
    "tar",
    "tar.gz",
]
SHARDS = (2, 10, 1)
ALL = [text for shard in (1, 2, 10) for text in texts(shard)]


def shards(suffix: str, numbers: tuple[int, ...] = SHARDS) -> dict[str, bytes]:
    kind, _, packed = suffix.partition(".")
    pack = PACKED[f".{packed}" if packed else ""]
    return {f"data/train-{shard}.{suffix}": pack(CONTENT[kind](shard)) for shard in numbers}


def mirrored(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


READ = """
def read(suffix):
    ds = sk.open(f"hf:me/{suffix}:train:text")
    rows = [0, 39, 40, 119, 77]
    at = ds.locate(rows)
    return {
        "all": [record["text"] for record in ds], "some": ds[rows], "one": ds[-1],
        "where": [[where.path, where.row] for where in at],
        "back": [ds.find(where.path, where.row) for where in at],
        "shuffled": sorted(record["text"] for record in ds.shuffle(seed=1)),
        "key": sk.open(f"hf:me/{suffix}:train", key="text").key(sys.argv[1])["text"],
        "fingerprint": ds.fingerprint,
    }
tell([read(suffix) for suffix in sys.argv[2:]])
"""
AGAIN = """
opened = [sk.open(f"hf:me/{suffix}:train:text") for suffix in sys.argv[2:]]
tell([[ds.fingerprint, ds[77]["text"]] for ds in opened])
"""


def test_each_format_is_read_from_the_hub_once_and_then_by_ranges(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    files = {suffix: shards(suffix) for suffix in SUFFIXES}
    hub.repos.update({f"me/{suffix}": Repo() for suffix in SUFFIXES})
    shas = {
        suffix: hub.repos[f"me/{suffix}"].commit(files[suffix] | {"README.md": b"# Web"})
        for suffix in SUFFIXES
    }
    arguments = (ALL[45], *SUFFIXES)
    told = warm.run(READ, env, *arguments)
    for suffix, found in zip(SUFFIXES, told, strict=True):
        assert found["all"] == ALL, suffix
        assert found["some"] == [{"text": ALL[row]} for row in (0, 39, 40, 119, 77)], suffix
        assert found["one"] == {"text": ALL[-1]}, suffix
        base = f"hf://datasets/me/{suffix}@{shas[suffix]}/data/train"
        shard_rows = [(1, 0), (1, 39), (2, 0), (10, 39), (2, 37)]
        assert found["where"] == [[f"{base}-{shard}.{suffix}", row] for shard, row in shard_rows], suffix
        assert found["back"] == [[0], [39], [40], [119], [77]], suffix
        assert found["shuffled"] == sorted(ALL), suffix
        assert found["key"] == ALL[45], suffix
    assert hub.bytes_sent == sum(len(data) for each in files.values() for data in each.values())
    hub.asked.clear()
    again = warm.run(AGAIN, env, *arguments)
    assert again == [[found["fingerprint"], ALL[77]] for found in told]
    assert [asked.path for asked in hub.asked] == [
        f"/api/datasets/me/{suffix}/revision/main" for suffix in SUFFIXES
    ]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_format_is_read_from_a_folder(tmp_path: Path, suffix: str) -> None:
    folder = mirrored(tmp_path / "12:30 mirror", shards(suffix) | {"data/test-0.jsonl": json_lines(7)})
    ds = sk.open(f"hf:{folder}:train:text")
    assert [record["text"] for record in ds] == ALL
    assert pickle.loads(pickle.dumps(ds))[[77, 0]] == [{"text": ALL[77]}, {"text": ALL[0]}]
    assert ds.locate(41).path == str(folder / f"data/train-2.{suffix}")
    assert list(sk.open(f"hf:{folder}:test:id")) == [{"id": 7000 + row} for row in range(ROWS)]
    assert verify(f"hf:{folder}:train", deep=True, decode=True).problems == ()


@pytest.mark.parametrize("suffix", ["jsonl.gz", "csv", "txt"])
def test_a_saved_pipeline_of_one_column_of_lines_is_read(tmp_path: Path, suffix: str) -> None:
    ds = sk.open(f"hf:{mirrored(tmp_path / 'mirror', shards(suffix))}:train:text").shuffle(seed=1)
    ds.save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json")
    assert again.fingerprint == ds.fingerprint
    assert list(again) == list(ds)


def test_a_snapshot_in_the_cache_of_huggingface_hub_is_such_a_folder(tmp_path: Path) -> None:
    blobs = mirrored(
        tmp_path / "datasets--me--web" / "blobs", {"0a": shards("jsonl.gz")["data/train-1.jsonl.gz"]}
    )
    snapshot = tmp_path / "datasets--me--web" / "snapshots" / "0123" / "data"
    snapshot.mkdir(parents=True)
    (snapshot / "train-1.jsonl.gz").symlink_to(blobs / "0a")
    assert [record["text"] for record in sk.open(f"hf:{snapshot.parent}:train:text")] == texts(1)


@functools.cache
def large() -> bytes:
    return "".join(
        f'{{"id": {row}, "text": "{hash((row, 1)) % 10**18:018}{row:07}"}}\n' for row in range(60_000)
    ).encode()


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_row_of_a_large_file_costs_its_range(
    hub: Hub, env: dict[str, str], suffix: str, tmp_path: Path, warm: Warm
) -> None:
    data = gzip.compress(large(), 1) if suffix.endswith("gz") else large()
    hub.repos["me/web"].commit({f"train.{suffix}": data})
    progress = (
        "seen = []\n"
        "ds = sk.open('hf:me/web:train:id', progress=lambda at: seen.append([at.bytes, at.bytes_done]))\n"
        "tell([len(ds), seen[-1]])"
    )
    assert warm.run(progress, env) == [60_000, [len(data), len(data)]]
    assert hub.bytes_sent == len(data)
    shutil.rmtree(tmp_path / "cache" / "seekable" / "remote")
    hub.asked.clear()
    one = warm.run("ds = sk.open('hf:me/web:train:id'); tell(ds[30_000]['id'])", env)
    assert one == 30_000
    assert 0 < hub.bytes_sent <= 3 * (256 << 10) < len(data)
    hub.asked.clear()
    rows = [59_000, 7, 20_000, 30_001]
    assert warm.run(f"ds = sk.open('hf:me/web:train:id'); tell([r['id'] for r in ds[{rows}]])", env) == rows
    assert hub.bytes_sent < len(data)


def test_sizes_that_are_shown_are_those_on_the_hub(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    files = shards("jsonl.gz")
    hub.repos["me/web"].commit(files | {"test.arrow": arrow(["good"] * 9)})
    code = (
        "ds = sk.open('hf:me/web:train')\n"
        "other = sk.open('hf:me/web:test:text', storage=sk.Storage(max_open_files=1))\n"
        "tell([str(ds.explain()), [file.bytes for file in ds.info().files], list(other)[-1], other[8]])"
    )
    explained, sizes, *others = warm.run(code, env)
    assert f"train-1.jsonl.gz: 40 records, {len(files['data/train-1.jsonl.gz'])} bytes" in explained
    assert sizes == [len(files[f"data/train-{shard}.jsonl.gz"]) for shard in (1, 2, 10)]
    assert others == [{"text": "good"}] * 2


def arrow(values: list[str]) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"text": values})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_a_hub_that_fails_while_files_are_scanned_leaves_what_is_finished(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    hub.repos["me/web"].commit(shards("csv"))
    hub.faults.extend([*[""] * 2, *["short"] * 99])
    kind, message = warm.run(f"{FAILURE}tell(failure(lambda: sk.open('hf:me/web:train')))", env)
    assert kind == "Unreachable"
    assert message.startswith("hf://datasets/me/web@")
    assert "bytes 0 to " in message
    assert "8 tries in " in message
    assert "run again: nothing is lost" in message
    hub.faults.clear()
    assert warm.run(f"{OPEN}tell([r['text'] for r in ds])", env) == ALL


def test_rows_in_their_order_are_fetched_many_units_at_a_time(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm
) -> None:
    more = b', "more": "' + b"m" * 950 + b'"}\n'
    documents = b"".join(line[:-1] + more for line in large().split(b"\n")[:4000])
    hub.repos["me/web"].commit({"train.jsonl": documents, "test.jsonl": large()})
    warm.run("tell([len(sk.open(f'hf:me/web:{split}')) for split in ('train', 'test')])", env)
    for split, data, rows, most in (("train", documents, 4000, 4), ("test", large(), 60_000, 12)):
        shutil.rmtree(tmp_path / "cache" / "seekable" / "remote")
        hub.asked.clear()
        assert warm.run(f"tell(sum(1 for _ in sk.open('hf:me/web:{split}:text')))", env) == rows
        assert hub.bytes_sent == len(data)
        assert len(hub.data) <= most
    # Rows of a shuffle are fetched when they are read, the rows of a batch at once.
    shutil.rmtree(tmp_path / "cache" / "seekable" / "remote")
    hub.asked.clear()
    warm.run("tell(sk.open('hf:me/web:test:id').shuffle(seed=1)[:2][[0, 1]])", env)
    assert len(hub.data) == 2


def test_parts_of_files_are_scanned_at_once_and_an_interrupt_keeps_what_is_finished(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    names = {f"train-{shard}.jsonl": json_lines(shard) for shard in range(30)}
    hub.repos["me/web"].commit(names)
    code = """
class Enough(Exception):
    pass
def stop(at):
    if at.files_done > 2:
        raise Enough
try:
    sk.open('hf:me/web:train:text', progress=stop)
except Enough:
    import threading
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.name.startswith("seekable-"):
            thread.join(60)
    from seekable.index.catalog import read_table
    import pathlib
    (folder,) = pathlib.Path(os.environ["XDG_CACHE_HOME"]).rglob(".seekable")
    tell(read_table(str(folder)).files)
"""
    kept = warm.run(code, env)
    assert 0 < kept < 30
    assert warm.run(f"{OPEN}tell([r['text'] for r in ds])", env) == [
        text for shard in range(30) for text in texts(shard)
    ]


@pytest.mark.parametrize(
    "request_number",
    [4, *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (1, 2, 3, 5, 6, 7, 8, 9))],
)
def test_a_process_that_is_killed_while_it_scans_leaves_nothing_in_the_way(
    hub: Hub, env: dict[str, str], request_number: int, warm: Warm
) -> None:
    hub.repos["me/web"].commit(shards("jsonl.gz"))
    children: Queue[Child] = Queue()

    def kill(number: int) -> None:
        if number == request_number:
            children.get(timeout=120).kill()

    hub.on_request = kill
    code = f"{OPEN}tell([r['text'] for r in ds])"
    child = warm.start(code, env)
    children.put(child)
    assert child.end()[0] == -signal.SIGKILL
    hub.on_request = lambda _: None
    assert warm.run(code, env) == ALL


def test_a_new_commit_costs_the_files_that_are_new(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm
) -> None:
    repo, files = hub.repos["me/web"], shards("jsonl.gz")
    repo.commit(files)
    before = warm.run(f"{OPEN}tell(ds.fingerprint)", env)
    repo.commit(files | {"README.md": b"# More words"})
    hub.asked.clear()
    assert warm.run(f"{OPEN}tell([r['text'] for r in ds])", env) == ALL
    assert hub.data == []
    kept = tmp_path / "cache" / "seekable" / "remote"
    shutil.rmtree(kept)
    hub.asked.clear()
    assert warm.run(f"{OPEN}tell(ds.fingerprint)", env) == before
    assert hub.data == []
    assert warm.run(f"{OPEN}tell([r['text'] for r in ds])", env) == ALL
    shutil.rmtree(kept)
    repo.commit(files | shards("jsonl.gz", (11,)))
    hub.asked.clear()
    assert warm.run(f"{OPEN}tell(len(ds))", env) == 4 * ROWS
    assert hub.bytes_sent == len(shards("jsonl.gz", (11,))["data/train-11.jsonl.gz"])


LOADER = """
import pickle
ds = pickle.loads(pickle.dumps(sk.open("hf:me/web:train:text").shuffle(seed=3, window=2, lanes=2)))
whole = [text for batch in sk.Loader(ds, batch_size=7) for text in batch["text"]]
for workers, done in json.loads(sys.argv[1]):
    loader = sk.Loader(ds, batch_size=7, workers=workers)
    batches = iter(loader)
    part = [text for _ in range(done) for text in next(batches)["text"]]
    state = json.loads(json.dumps(loader.state_dict()))
    loader.close() if hasattr(loader, "close") else None
    again = sk.Loader(ds, batch_size=7)
    again.load_state_dict(state)
    assert part + [text for batch in again for text in batch["text"]] == whole, done
tell(whole)
"""


@pytest.mark.parametrize(
    "stops", [[(0, 0), (0, 5), (0, 17)], pytest.param([(2, 5), (1, 9)], marks=pytest.mark.exhaustive)]
)
def test_a_loader_resumes_exactly(
    hub: Hub, env: dict[str, str], warm: Warm, stops: list[tuple[int, int]]
) -> None:
    hub.repos["me/web"].commit(shards("jsonl.gz"))
    assert sorted(warm.run(LOADER, env, json.dumps(stops))) == sorted(ALL)


def test_a_loader_over_a_folder_resumes_exactly(tmp_path: Path) -> None:
    spec = f"hf:{mirrored(tmp_path / 'mirror', shards('csv.gz', (1, 2)))}:train:text"
    assert_resumes_exactly(
        lambda: sk.Loader(sk.open(spec).shuffle(seed=1), batch_size=9), new_process=thrift.ALL
    )


BEGIN = """
def pipeline(weights):
    web, wiki = (sk.open(spec).shuffle(seed=1) for spec in json.loads(sys.argv[1]))
    return sk.mix({"web": web, "wiki": wiki}, weights=weights, seed=0, stop="never")
def run(loader, batches):
    return [text for _, batch in zip(range(batches), loader) for text in batch["text"]]
loader = sk.Loader(pipeline({"web": 0.5, "wiki": 0.5}), batch_size=5)
first = run(loader, 8)
sk.save_state(sys.argv[2], loader)
tell(first)
"""
CONTINUE = (
    BEGIN.partition("loader = ")[0]
    + """
loader = sk.Loader(pipeline({"web": 0.9, "wiki": 0.1}), batch_size=5)
assert sk.load_state(sys.argv[2], loader, resume="rows")
tell(run(loader, 40))
"""
)


@pytest.mark.parametrize("place", thrift.sample(["hub", "folder"], of=2))
def test_rows_go_on_after_weights_changed_and_shards_were_appended(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm, place: str
) -> None:
    files, wiki = shards("jsonl.gz", (1, 2)), {"train.txt": "\n".join(texts(50)).encode()}
    hub.repos["me/wiki"] = Repo()
    specs = ["hf:me/web:train:text", "hf:me/wiki:train:text"]
    mirror = mirrored(tmp_path / "web", files)
    if place == "folder":
        specs = [f"hf:{mirror}:train:text", f"hf:{mirrored(tmp_path / 'wiki', wiki)}:train:text"]
    hub.repos["me/web"].commit(files)
    hub.repos["me/wiki"].commit(wiki)
    args = (json.dumps(specs), str(tmp_path / "states"))
    first = warm.run(BEGIN, env, *args)
    hub.repos["me/web"].commit(files | shards("jsonl.gz", (3,)))
    mirrored(mirror, shards("jsonl.gz", (3,)))
    later = warm.run(CONTINUE, env, *args)
    old, new = set(texts(1) + texts(2)), set(texts(3))
    of_web = [text for text in first + later if text in old | new]
    # The begun epoch ends in its old order, each row once; then comes the next one, over all three shards.
    assert sorted(of_web[: len(old)]) == sorted(old)
    assert new & set(of_web[len(old) :])
    assert len([text for text in later if text in old | new]) > len(later) * 0.8


@pytest.mark.exhaustive
def test_the_founding_payload_goes_on_behind_its_row(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards("jsonl.gz"))
    hub.repos["me/words"] = Repo()
    hub.repos["me/words"].commit({"train.txt": "\n".join(texts(50)).encode()})
    code = """
def loader():
    web, words = sk.open("hf:me/web:train:text"), sk.open("hf:me/words:train:text")
    return sk.Loader(sk.mix([web, words], weights=[0.75, 0.25], seed=1, stop="never"), batch_size=4)
def run(loader, batches):
    return [text for _, batch in zip(range(batches), loader) for text in batch["text"]]
first, again = loader(), loader()
before = run(first, 16)
document = json.loads(json.dumps(first.resume_state()))
again.load_state_dict(document)
tell([before, document["resume_state"]["datasets"], run(again, 4)])
"""
    before, (web, words), after = warm.run(code, env)
    assert web == {"spec": "hf:me/web:train:text", "shard": "data/train-2.jsonl.gz", "row_offset": 8}
    assert words == {"spec": "hf:me/words:train:text", "shard": "train.txt", "row_offset": 16}
    assert sorted(before) == sorted(ALL[:48] + texts(50)[:16])
    of_web = [text for text in after if text in ALL]
    of_words = [text for text in after if text not in ALL]
    assert (of_web, of_words) == (ALL[48:][: len(of_web)], texts(50)[16:][: len(of_words)])


@pytest.mark.exhaustive
def test_a_filter_above_may_change(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards("csv.gz"))
    code = """
def even(record):
    return int(record["id"]) % 2 == 0
stream = sk.open("hf:me/web:train").shuffle(seed=1).stream()
loader = sk.Loader(stream, batch_size=10, collate=list)
first = [record["text"] for _, batch in zip(range(4), loader) for record in batch]
again = sk.Loader(stream.filter(even), batch_size=10, collate=list)
again.load_state_dict(json.loads(json.dumps(loader.state_dict())), resume="rows")
tell([first, [record["text"] for _, batch in zip(range(8), again) for record in batch]])
"""
    first, rest = warm.run(code, env)
    even = {text for shard in SHARDS for text in texts(shard)[::2]}
    assert len(first) == 40
    left = even - set(first)
    assert sorted(rest[: len(left)]) == sorted(left)


def test_columns_that_are_missing_and_values_that_are_no_objects_are_told(tmp_path: Path) -> None:
    lines = b'{"id": 1, "text": "good"}\n{"id": 2}\n[1]\n{"text": NaN}\n{"text": \n'
    folder = mirrored(tmp_path, {"train.jsonl": lines, "words/train.csv": b"id,word\n1,good\n"})
    ds = sk.open(f"hf:{folder}:default/train:text")
    assert ds[0] == {"text": "good"}
    assert str(ds[3]["text"]) == "nan"
    missing = r"train.jsonl: record 1 at byte 26 .* it has no field 'text'; its fields are 'id'. errors="
    with pytest.raises(sk.CorruptRecord, match=missing):
        ds[1]
    with pytest.raises(sk.CorruptRecord, match="it is no object with a field 'text', but list"):
        ds[2]
    with pytest.raises(sk.CorruptRecord, match="record 4"):
        list(ds[4:])
    replaced = sk.open(f"hf:{folder}:default/train:text", errors=lambda error: {"text": str(error.row)})
    assert [record["text"] for record in replaced][1:3] == ["1", "2"]
    with pytest.raises(sk.CorruptRecord, match="it has no field 'text'; its fields are 'id', 'word'"):
        sk.open(f"hf:{folder}:words/train:text")[0]
    (problem,) = verify(f"hf:{folder}:words/train:text", decode=True).problems
    assert (problem.kind, problem.row) == ("record", 0)
    with pytest.raises(sk.errors.InvalidArgument, match="decode='bytes' returns no fields"):
        sk.open(f"hf:{folder}:default/train:text", decode="bytes")
    with pytest.raises(sk.errors.InvalidArgument, match=r"columns= is for tables .*\.select_columns"):
        sk.open(f"hf:{folder}:default/train", columns=["text"])
    names = {sk.open(f"hf:{folder}:default/train{column}").fingerprint for column in ("", ":text", ":id")}
    assert len(names) == 3


def test_lines_of_text_have_one_column(tmp_path: Path) -> None:
    folder = mirrored(tmp_path, {"train.txt": b"one\ntwo\n"})
    assert list(sk.open(f"hf:{folder}:train")) == [{"text": "one"}, {"text": "two"}]
    assert sk.open(f"hf:{folder}:train:text", decode="bytes")[1] == {"text": b"two"}
    with pytest.raises(sk.errors.InvalidArgument, match="lines of text, which have one column, 'text'"):
        sk.open(f"hf:{folder}:train:line")


def test_a_split_has_one_format(tmp_path: Path) -> None:
    files = {"train-0.jsonl": json_lines(0), "train-1.csv": separated(1, ","), "train_notes.txt": b"notes\n"}
    folder = mirrored(tmp_path, files)
    mixed = (
        r"several formats for the split 'train': jsonl \(1, such as 'train-0.jsonl'\), csv \(1, such as "
        r"'train-1.csv'\). Choose one with format=, such as format='jsonl'"
    )
    with pytest.raises(sk.errors.UnsupportedFormat, match=mixed):
        sk.open(f"hf:{folder}:train:text")
    assert [record["text"] for record in sk.open(f"hf:{folder}:train:text", format="csv")] == texts(1)
    assert len(sk.open(f"hf:{folder}:train:text", format="text")) == 1
    with pytest.raises(
        sk.DataNotFound, match=r"has no data file of this split \(their names end with .parquet"
    ):
        sk.open(f"hf:{folder}:train", format="parquet")
    with pytest.raises(sk.errors.InvalidArgument, match="format must be one of"):
        sk.open(f"hf:{folder}:train", format="word")


def test_a_file_and_its_compressed_copy_are_refused(tmp_path: Path) -> None:
    folder = mirrored(tmp_path, shards("jsonl", (1,)) | shards("jsonl.gz", (1,)))
    with pytest.raises(sk.errors.UnsupportedFormat, match="look like the same data twice"):
        sk.open(f"hf:{folder}:train")


def test_the_readme_names_files_of_lines(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    files = {"en/a.json.gz": gzip.compress(json_lines(1)), "en/notes.md": b"-", "de/a.jsonl": json_lines(2)}
    configs = [
        {"config_name": "en", "data_files": [{"split": "train", "path": "en/*"}]},
        {"config_name": "de", "data_files": [{"split": "train", "path": "de/*.jsonl"}]},
    ]
    hub.repos["me/web"].card = {"configs": configs}
    hub.repos["me/web"].commit(files)
    code = "tell([[r['text'] for r in sk.open(f'hf:me/web:{name}/train:text')] for name in ('en', 'de')])"
    assert warm.run(code, env) == [texts(1), texts(2)]


def test_files_that_the_hub_converted_come_first_unless_others_are_named(
    hub: Hub, env: dict[str, str], warm: Warm
) -> None:
    sha = hub.repos["me/web"].commit({"train.jsonl": json_lines(1), "dev.jsonl": json_lines(2)})
    converted = io.BytesIO()
    pq.write_table(pa.table({"text": ["converted"]}), converted)
    branch = {"default/train/0000.parquet": converted.getvalue()}
    hub.repos["me/web"].commit(branch, branch="refs/convert/parquet")
    code = (
        "tell([len(sk.open('hf:me/web:train')), len(sk.open('hf:me/web:train', format='jsonl')),"
        f"len(sk.open('hf:me/web@{sha}:train')), len(sk.open('hf:me/web:validation')),"
        "len(sk.open('hf:me/web:train', format='parquet'))])"
    )
    assert warm.run(code, env) == [1, ROWS, ROWS, ROWS, 1]


def damaged(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes(byte ^ 0x55 for byte in data[at : at + 20]) + data[at + 20 :]


@pytest.mark.parametrize("harm", [damaged, lambda data: data[:-30]])
def test_a_damaged_file_is_told_by_its_name_on_the_hub(
    hub: Hub, env: dict[str, str], warm: Warm, harm: Callable[[bytes], bytes]
) -> None:
    files = shards("jsonl.gz")
    name = "data/train-2.jsonl.gz"
    sha = hub.repos["me/web"].commit(files | {name: harm(files[name])})
    kind, message = warm.run(f"{FAILURE}tell(failure(lambda: sk.open('hf:me/web:train')))", env)
    assert kind == "UnsupportedFormat"
    assert message.startswith(
        f"'hf://datasets/me/web@{sha}/{name}' cannot be decompressed as gzip at about byte "
    )
    assert "gzip -t train-2.jsonl.gz" in message


def test_what_is_no_lines_is_told_by_its_name_on_the_hub(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(
        {"train.json": b'[\n {"id": 1},\n {"id": 2}\n]\n', "test.jsonl.zst": zst_frame(bytes(17 << 20))}
    )
    code = f"{FAILURE}tell([failure(lambda: sk.open(f'hf:me/web:{{split}}')) for split in ('train', 'test')])"
    (array, array_says), (frame, frame_says) = warm.run(code, env)
    assert (array, frame) == ("UnsupportedFormat", "UnsupportedFormat")
    assert "train.json' is one JSON array, not one object a line" in array_says
    assert "jq -c '.[]' train.json > NEW.jsonl" in array_says
    assert "test.jsonl.zst' can be entered in 1 place(s) only" in frame_says
    assert "seekable recompress test.jsonl.zst" in frame_says


def test_content_that_is_another_than_the_indexed_one_is_stale(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm
) -> None:
    repo, files = hub.repos["me/web"], shards("jsonl.gz")
    sha = repo.commit(dict(files))
    warm.run(f"{OPEN}tell(0)", env)
    kept = tmp_path / "cache" / "seekable" / "remote"
    shutil.rmtree(kept)
    code = f"{FAILURE}{OPEN}tell(failure(lambda: ds[50]))"
    name = "data/train-2.jsonl.gz"
    hub.swapped[files[name]] = damaged(files[name])
    kind, message = warm.run(code, env)
    assert kind == "IndexStale"
    assert message.startswith(f"'hf://datasets/me/web@{sha}/{name}', bytes 0 to ")
    hub.swapped.clear()
    shutil.rmtree(kept)
    repo.commits[sha][name] = damaged(files[name])
    kind, message = warm.run(code, env)
    assert kind == "IndexStale"
    assert "has another content than when the repository was listed" in message


VERIFY = """
from seekable.dataset.verify_data import verify
found = [verify("hf:me/web:train:text", deep=deep, decode=deep) for deep in (False, True)]
def told(problems):
    return [[problem.kind, problem.path, problem.message, problem.row] for problem in problems]
tell([[one.files, one.records, one.bytes, told(one.problems)] for one in found])
"""


@pytest.mark.parametrize("suffix", ["jsonl", "csv.gz"])
def test_verify_finds_what_is_damaged_on_the_hub(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm, suffix: str
) -> None:
    files = shards(suffix)
    sha = hub.repos["me/web"].commit(files)
    name = f"data/train-2.{suffix}"
    shown = f"hf://datasets/me/web@{sha}/{name}"
    cache = tmp_path / "cache" / "seekable"
    (unindexed, *_), _ = ([problem[0] for problem in found[3]] for found in warm.run(VERIFY, env))
    assert unindexed == "index"
    warm.run(f"{OPEN}tell(0)", env)
    good = [3, 3 * ROWS, sum(map(len, files.values())), []]
    assert warm.run(VERIFY, env) == [good, good]
    # Other bytes under the etag that was listed, found by reading all of them.
    shutil.rmtree(cache / "remote")
    hub.swapped[files[name]] = damaged(files[name])
    shallow, deep = warm.run(VERIFY, env)
    assert shallow == good
    assert [(problem[0], problem[1]) for problem in deep[3]] == [("content", shown)]
    # Another etag than the one that was listed.
    hub.swapped.clear()
    shutil.rmtree(cache / "remote")
    hub.repos["me/web"].commits[sha][name] = damaged(files[name])
    _, deep = warm.run(VERIFY, env)
    assert [(problem[0], problem[1]) for problem in deep[3]] == [("content", shown)]
    assert "has another content than when the repository was listed" in deep[3][0][2]
    hub.repos["me/web"].commits[sha] = files
    # The index itself.
    (segment,) = cache.rglob("offsets-*.u64")
    segment.write_bytes(damaged(segment.read_bytes()))
    for found in warm.run(VERIFY, env):
        assert ["index", str(segment)] in [problem[:2] for problem in found[3]]


def test_verify_finds_a_damaged_placeholder(
    hub: Hub, env: dict[str, str], tmp_path: Path, warm: Warm
) -> None:
    files = shards("jsonl")
    sha = hub.repos["me/web"].commit(files)
    warm.run(f"{OPEN}tell(0)", env)
    placeholder = next(tmp_path.rglob("train-2.jsonl"))
    status = placeholder.stat()
    for text in (
        placeholder.read_bytes().replace(b'"size"', b'"sice"'),
        placeholder.read_bytes()[:-3] + b"0}\n",
    ):
        placeholder.write_bytes(text)
        os.utime(placeholder, ns=(status.st_mtime_ns, status.st_mtime_ns))
        for found in warm.run(VERIFY, env):
            assert [problem[1] for problem in found[3]] == [f"hf://datasets/me/web@{sha}/data/train-2.jsonl"]


def test_verify_finds_what_is_damaged_in_a_folder(tmp_path: Path) -> None:
    folder = mirrored(tmp_path, shards("jsonl.zst"))
    spec = f"hf:{folder}:train"
    sk.open(spec)
    assert verify(spec, deep=True, decode=True).problems == ()
    path = folder / "data/train-10.jsonl.zst"
    path.write_bytes(damaged(path.read_bytes()))
    (problem,) = verify(spec, deep=True).problems
    assert (problem.kind, problem.path) == ("changed", str(path))
    with suppress(sk.errors.UnsupportedFormat):
        sk.open(spec)


@pytest.mark.exhaustive
def test_a_copy_in_the_cache_of_huggingface_hub_is_scanned(hub: Hub, env: dict[str, str], warm: Warm) -> None:
    hub.repos["me/web"].commit(shards("jsonl.gz", (1,)))
    download = "huggingface_hub.hf_hub_download('me/web', 'data/train-1.jsonl.gz', repo_type='dataset')"
    warm.run(f"import huggingface_hub\n{download}\ntell(0)", env | {"HF_HUB_DISABLE_XET": "1"})
    hub.asked.clear()
    found = warm.run(f"{OPEN}tell([[r['text'] for r in ds], ds.locate(0).path])", env)
    assert found[0] == texts(1)
    assert found[1].startswith("hf://datasets/me/web@")
    assert hub.data == []


@pytest.mark.parametrize("rows", [0, *thrift.sample([1, 1000], of=2)])
def test_few_and_many_records(hub: Hub, env: dict[str, str], warm: Warm, rows: int) -> None:
    hub.repos["me/web"].commit({"train.jsonl": json_lines(1, rows), "train.csv": b"text\n"})
    code = "ds = sk.open('hf:me/web:train:text', format='jsonl'); tell([len(ds), [r['text'] for r in ds]])"
    assert warm.run(code, env) == [rows, texts(1, rows)]
