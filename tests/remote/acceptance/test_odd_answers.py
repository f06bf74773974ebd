"""Answers that no request asked for: they are asked for again, or the error says what the store answered."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import fsspec  # type: ignore[import-untyped]
import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.acceptance.faults import QUICK
from tests.remote.proxy import Fault

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.remote.proxy import Front, Proxies
    from tests.remote.servers.bucket import Bucket
    from tests.remote.servers.nginx import Nginx

ODD = (304, 412, 416)
"""Statuses of a condition or of a range that does not fit the object."""


@pytest.fixture
def listed(bucket: Bucket, proxies: Proxies, tmp_path: Path) -> Iterator[tuple[Corpus, Front]]:
    """Objects of a bucket that is listed, behind a proxy."""
    front = proxies.before(bucket.server)
    yield Corpus.made(bucket, tmp_path).behind(front), front
    front.shut()


@pytest.mark.parametrize(
    "status", [ODD[0], *(pytest.param(status, marks=pytest.mark.exhaustive) for status in ODD[1:])]
)
def test_a_status_of_a_condition_that_was_not_sent_is_asked_for_again(
    status: int, front: Front, nginx: Nginx, tmp_path: Path, forget: Callable[[], None]
) -> None:
    corpus = Corpus.made(nginx.s3_bucket(), tmp_path).behind(front)
    front.rule(Fault(status=status), target="^HEAD ")
    dataset = corpus.open(**QUICK)
    forget()
    front.rule(Fault(status=status), target="^GET .*part-01")
    assert list(dataset) == list(corpus.records)
    front.rule(Fault(status=status), target="^HEAD ", count=1000)
    with pytest.raises(sk.errors.Unreachable, match=rf"part-0.*2 tries.*{status}"):
        corpus.open(retries=1)


def test_a_listing_that_was_cut_off_is_asked_for_again(listed: tuple[Corpus, Front]) -> None:
    corpus, front = listed
    front.rule(Fault(lie=40), target="^GET .*list-type")
    front.rule(Fault(status=412), target="^GET .*list-type")
    options = {**corpus.bucket.options, **QUICK}
    dataset = sk.open(
        f"{corpus.bucket.url}/corpus",
        index=sk.Index(folder=corpus.index_dir),
        storage=sk.Storage(options=options),
    )
    assert list(dataset) == list(corpus.records)
    assert len([noted for noted in front.log() if noted.fault]) == 2


def test_an_object_is_opened_where_nothing_may_be_listed(listed: tuple[Corpus, Front]) -> None:
    corpus, front = listed
    front.rule(Fault(status=403), target="^GET .*list-type", count=1000)
    options = corpus.bucket.options
    one = sk.open(
        corpus.urls[0], index=sk.Index(folder=corpus.index_dir), storage=sk.Storage(options=options)
    )
    assert list(one) == list(corpus.records[:100])
    with pytest.raises(sk.errors.AccessDenied, match="listed"):
        sk.open(
            f"{corpus.bucket.url}/corpus",
            index=sk.Index(folder=corpus.index_dir),
            storage=sk.Storage(options=options),
        )


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, sk.errors.AccessDenied, "credentials: access_key_id"),
        (403, sk.errors.AccessDenied, "credentials: access_key_id"),
        (404, sk.DataNotFound, "open the data again"),
        (409, sk.errors.Unreachable, "409 Conflict"),
    ],
)
def test_an_error_of_a_read_names_object_and_range(
    status: int,
    error: type[Exception],
    said: str,
    listed: tuple[Corpus, Front],
    forget: Callable[[], None],
) -> None:
    corpus, front = listed
    dataset = corpus.open(**QUICK)
    forget()
    front.rule(Fault(status=status), target="^GET .*part-01", count=1000)
    with pytest.raises(error, match=rf"{re.escape(corpus.keys[1])}.*bytes \d+ to \d+.*{said}"):
        dataset[150]


def test_a_conflict_of_writers_is_asked_for_again(listed: tuple[Corpus, Front]) -> None:
    corpus, front = listed
    for code in ("OperationAborted", "Conflict"):
        front.rule(Fault(status=409, code=code), target="^PUT .*part")
    front.rule(Fault(status=412), target="^PUT .*part")
    options = {**corpus.bucket.options, **QUICK}
    written = f"{corpus.bucket.url}/written"
    sk.from_sequence(list(corpus.records), version=1).write_jsonl(
        written, jobs=1, storage=sk.Storage(options=options)
    )
    assert list(sk.open(written, storage=sk.Storage(options=options))) == list(corpus.records)
    assert [noted.status for noted in front.log() if noted.fault] == [409, 409, 412]


def test_a_key_that_no_client_lists_is_named(bucket: Bucket, tmp_path: Path) -> None:
    corpus = Corpus.made(bucket, tmp_path)
    bucket.upload({"corpus//part-03.jsonl": b"{}"})
    with pytest.raises(sk.errors.InvalidArgument, match=r"corpus//.*rename it.*sk\.Storage\(filesystem="):
        sk.open(
            f"{bucket.url}/corpus",
            index=sk.Index(folder=corpus.index_dir),
            storage=sk.Storage(options=bucket.options),
        )
    assert list(corpus.open()) == list(corpus.records)


def test_an_object_of_fsspec_that_is_written_again_is_never_mixed(tmp_path: Path) -> None:
    """Also within a second, in equal size, after other ranges of it have been read."""
    files, root = fsspec.filesystem("memory"), f"/{tmp_path.name}"
    old, new = (
        b"".join(b'{"id": %d, "text": "%s"}\n' % (row, letter * 3000) for row in range(300))
        for letter in (b"a", b"b")
    )
    files.pipe_file(f"{root}/a.jsonl", old)
    opened = partial(
        sk.open,
        f"memory:/{root}",
        index=sk.Index(folder=tmp_path / "indexes"),
        storage=sk.Storage(filesystem=files, cache=False),
    )
    dataset = opened()
    assert dataset[0]["text"][0] == "a"
    files.pipe_file(f"{root}/a.jsonl", new)
    with pytest.raises(sk.IndexStale, match=r"a\.jsonl"):
        dataset[299]
    assert {record["text"][0] for record in opened()} == {"b"}
    files.rm(root, recursive=True)
