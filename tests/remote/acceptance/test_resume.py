"""A run over a store that stops anywhere goes on exactly there, on other ranks and without its cache."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import documents
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.program import Program, run

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket
    from tests.remote.servers.nginx import Nginx

GLOBAL, SEED = 12, 7


def loaders(dataset: sk.Dataset, *, ranks: int, state: Any = None) -> list[sk.Loader]:
    made = []
    for rank in range(ranks):
        loader = sk.Loader(
            dataset.shuffle(seed=SEED),
            global_batch_size=GLOBAL,
            rank=rank,
            world_size=ranks,
            collate=list,
            end="drop",
        )
        if state is not None:
            loader.load_state_dict(state)
        made.append(loader)
    return made


def global_batches(made: list[sk.Loader]) -> Iterator[list[int]]:
    """Yield the ids of each batch of all ranks."""
    for parts in zip(*made, strict=True):
        yield sorted(record["id"] for part in parts for record in part)


def expected(corpus: Corpus) -> list[list[int]]:
    return list(global_batches(loaders(sk.from_sequence(corpus.records), ranks=1)))


def test_a_run_goes_on_with_other_ranks_and_without_the_cache(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.made(bucket, tmp_path)
    first = loaders(corpus.open(), ranks=2)
    run_of = global_batches(first)
    begun = [next(run_of) for _ in range(9)]
    state = json.loads(json.dumps(first[0].state_dict()))
    monkeypatch.setenv("SEEKABLE_REMOTE_DIR", str(tmp_path / "another-cache"))
    other = Corpus(corpus.bucket, corpus.keys, corpus.records, str(tmp_path / "another-index"))
    rest = list(global_batches(loaders(other.open(), ranks=3, state=state)))
    assert begun + rest == expected(corpus)


def test_names_with_percent_signs_on_the_web_are_those_of_other_copies(
    bucket: Bucket, nginx: Nginx, tmp_path: Path
) -> None:
    web = nginx.bucket()
    names = ["part 0.jsonl", "part+1 50%.jsonl", "part #2?.jsonl"]
    for number, name in enumerate(names):
        content = "".join(f'{{"id": {9 * number + row}}}\n' for row in range(9)).encode()
        (tmp_path / name).write_bytes(content)
        bucket.upload({f"d/{name}": content})
        web.upload({f"d/{name}": content})
    local = sk.open([tmp_path / name for name in names])
    urls = [
        f"{web.url}/d/{name}" for name in ("part%200.jsonl", "part%2B1%2050%25.jsonl", "part%20%232%3F.jsonl")
    ]
    on_web = sk.open(urls, index=sk.Index(folder=tmp_path / "index"))
    in_store = sk.open(
        [f"{bucket.url}/d/{name}" for name in names],
        index=sk.Index(folder=tmp_path / "index"),
        storage=sk.Storage(options=bucket.options),
    )
    assert on_web.fingerprint == in_store.fingerprint == local.fingerprint
    assert on_web.locate(0).path == urls[0]
    (loader,) = loaders(in_store, ranks=1)
    run_of = iter(loader)
    next(run_of)
    (again,) = loaders(on_web, ranks=1, state=loader.state_dict())
    sk.save_state(tmp_path / "run", again)
    root = ("--root", f"{web.url}/d")
    planned = documents("plan", str(tmp_path / "run"), "--batch-size", "12", *root)[0]["records"]
    assert {record["location"]["path"] for record in planned} == set(urls)
    assert list(again) == list(run_of)
    on_web.save(tmp_path / "pipeline.json")
    loaded = sk.load_pipeline(tmp_path / "pipeline.json", root=f"{web.url}/d", index_dir=tmp_path / "index")
    assert list(loaded) == list(local)


def test_a_copy_in_another_bucket_goes_on_with_the_state(
    bucket: Bucket, nginx: Nginx, tmp_path: Path
) -> None:
    corpus = Corpus.made(bucket, tmp_path)
    (loader,) = loaders(corpus.open(), ranks=1)
    run_of = global_batches([loader])
    begun = [next(run_of) for _ in range(5)]
    copy = Corpus.made(nginx.bucket(), tmp_path / "copy")
    rest = list(global_batches(loaders(copy.open(), ranks=1, state=loader.state_dict())))
    assert begun + rest == expected(corpus)


TRAIN = """
dataset = opened().shuffle(seed=given["seed"])
rank, ranks = given["rank"], given["ranks"]
loader = sk.Loader(
    dataset, global_batch_size=given["batch"], rank=rank, world_size=ranks, collate=list, end="drop",
    workers=given["workers"],
)
if given["state"]:
    sk.load_state(given["state"], loader)
for batch in loader:
    sk.save_state(given["kept"], loader)
    say(json.dumps([record["id"] for record in batch]))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_run_goes_on_elsewhere(workers: int, nginx: Nginx, tmp_path: Path) -> None:
    corpus = Corpus.made(nginx.s3_bucket(), tmp_path)
    state = str(tmp_path / "state")
    given = {**corpus.arguments(), "seed": SEED, "batch": GLOBAL, "workers": workers}
    given |= {"rank": 0, "ranks": 1, "state": None, "kept": state}
    with Program(TRAIN, given, SEEKABLE_REMOTE_DIR=str(tmp_path / "cache")) as program:
        begun = [sorted(json.loads(program.line())) for _ in range(7)]
        program.send(signal.SIGKILL)
        program.end()
    (again,) = loaders(corpus.open(), ranks=1)
    sk.load_state(state, again)
    done = len(expected(corpus)) - len(list(again))
    assert done >= 7  # it may have saved more than was read from its pipe
    given |= {"state": state, "ranks": 2, "index_dir": str(tmp_path / "another-index")}
    parts = []
    for rank in range(2):
        elsewhere = {"SEEKABLE_REMOTE_DIR": str(tmp_path / f"cache-{rank}")}
        out = run(TRAIN, {**given, "rank": rank, "kept": f"{state}-{rank}"}, **elsewhere)
        parts.append([json.loads(line) for line in out.splitlines()])
    rest = [sorted(one + two) for one, two in zip(*parts, strict=True)]
    assert begun == expected(corpus)[:7]
    assert rest == expected(corpus)[done:]
