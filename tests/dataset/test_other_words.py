"""Words of other libraries, and of ours before, are answered with what to write; types tell places apart."""

from __future__ import annotations

from typing import Any, assert_type

import pytest

import seekable as sk
from seekable._other_words import DATASET


def test_each_word_is_answered_and_none_is_a_name_of_ours() -> None:
    ds = sk.from_sequence("abc")
    for word, ours in DATASET.items():
        with pytest.raises(AttributeError, match=f"has no attribute '{word}': write ") as caught:
            getattr(ds, word)
        assert str(caught.value).endswith(ours)
        assert word not in dir(sk.Dataset)


def test_another_name_is_an_ordinary_error() -> None:
    ds: Any = sk.from_sequence("abc")
    with pytest.raises(AttributeError, match=r"^'Dataset' object has no attribute 'nothing'$"):
        _ = ds.nothing
    assert not hasattr(ds, "__array__")


def test_a_dataset_has_at_most_45_public_names_and_a_stream_27() -> None:
    for kind, most in ((sk.Dataset, 45), (sk.Stream, 27)):
        assert len([name for name in dir(kind) if not name.startswith("_")]) <= most


def test_type_checkers_know_one_place_from_several() -> None:
    ds = sk.from_sequence("abc").shuffle(seed=1)
    assert len(assert_type(ds.locate([0, 1]), list[Any])) == 2
    assert_type(ds.epoch(1), sk.Dataset)
