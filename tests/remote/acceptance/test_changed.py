"""An object that is written again while a dataset is open is never read as if it were the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.remote.acceptance.corpus import Corpus
from tests.remote.conftest import SERVERS

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket


@pytest.mark.parametrize("store", SERVERS, indirect=True)
def test_the_next_touch_of_a_changed_object_says_so(store: Bucket, tmp_path: Path) -> None:
    corpus = Corpus.made(store, tmp_path, size=2000)
    dataset = corpus.open()
    old = store.content(corpus.keys[1])
    store.upload({corpus.keys[1]: old.replace(b"text", b"TEXT")})
    assert dataset[0] == corpus.records[0]
    with pytest.raises(sk.IndexStale, match=corpus.keys[1]):
        dataset[150]
    assert corpus.open()[150] == {"id": 150, "TEXT": corpus.records[150]["text"]}


@pytest.mark.parametrize("store", SERVERS, indirect=True)
def test_the_next_touch_of_a_deleted_object_says_so(store: Bucket, tmp_path: Path) -> None:
    corpus = Corpus.made(store, tmp_path, size=2000)
    dataset = corpus.open()
    store.delete(corpus.keys[1])
    assert dataset[299] == corpus.records[299]
    with pytest.raises((sk.DataNotFound, sk.IndexStale), match=corpus.keys[1]):
        dataset[150]
