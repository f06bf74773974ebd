"""Words of other libraries, and of ours before, are answered with what to write; types tell places apart."""

from __future__ import annotations

import copy
import pickle
from typing import Any, assert_type

import pytest

import seekable as sk
from seekable._other_words import DATASET, STREAM

ABC = sk.from_sequence("abc", version=1)
FACES = [(ABC, DATASET), (ABC.stream(lanes=1), STREAM)]


@pytest.mark.parametrize(("face", "words"), FACES, ids=["Dataset", "Stream"])
def test_each_word_is_answered_and_none_is_a_name_of_ours(face: Any, words: dict[str, str]) -> None:
    for word, ours in words.items():
        with pytest.raises(AttributeError, match=f"has no attribute '{word}': write ") as caught:
            getattr(face, word)
        assert str(caught.value).endswith(ours)
        assert word not in dir(type(face))


@pytest.mark.parametrize(("face", "words"), FACES, ids=["Dataset", "Stream"])
def test_another_name_is_an_ordinary_error(face: Any, words: dict[str, str]) -> None:
    with pytest.raises(AttributeError, match=r"^'(Dataset|Stream)' object has no attribute 'nothing'$"):
        _ = face.nothing
    assert not hasattr(face, "__array__")
    assert "nothing" not in words
    for again in (copy.copy(face), copy.deepcopy(face), pickle.loads(pickle.dumps(face))):
        assert again.fingerprint == face.fingerprint


def test_a_dataset_has_few_public_names_and_so_has_a_stream() -> None:
    for kind, most in ((sk.Dataset, 46), (sk.Stream, 27)):
        assert len([name for name in dir(kind) if not name.startswith("_")]) <= most


def test_type_checkers_know_one_place_from_several() -> None:
    ds = sk.from_sequence("abc").shuffle(seed=1)
    assert len(assert_type(ds.locate([0, 1]), list[Any])) == 2
    assert_type(ds.epoch(1), sk.Dataset)
