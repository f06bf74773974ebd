from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from seekable.remote.fetching.wants import ObjectRef, Wants


def ref(path: str, identity: int = 1, size: int = 100, etag: str | None = None) -> ObjectRef:
    pin: Any = SimpleNamespace(size=size, identity=identity, etag=etag, version=None)
    return ObjectRef(path, pin)


def test_objects_are_compared_by_path_identity_and_size() -> None:
    assert ref("s3://b/a") == ref("s3://b/a", etag="known later")
    assert hash(ref("s3://b/a")) == hash(ref("s3://b/a"))
    others = [ref("s3://b/b"), ref("s3://b/a", identity=2), ref("s3://b/a", size=99)]
    assert len({ref("s3://b/a"), *others}) == 4


def test_joined_wants_name_each_object_once() -> None:
    first = Wants((ref("a"), ref("b")), np.array([0, 1, 0]), np.array([0, 5, 9]), np.array([1, 9, 9]))
    joined = Wants.joined([first, Wants.of(ref("b"), 2, 3), Wants.of(ref("c"), 0, 7)])
    assert [found.path for found in joined.objects] == ["a", "b", "c"]
    assert joined.which.tolist() == [0, 1, 0, 1, 2]
    assert joined.total_bytes == 1 + 4 + 0 + 1 + 7
    assert len(Wants.joined([])) == 0
    assert joined.take(np.array([4, 0])).stops.tolist() == [7, 1]
