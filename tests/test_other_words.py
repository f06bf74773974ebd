"""Words of other libraries are answered with what to write here."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import seekable as sk
from seekable import _other_words

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = sk.from_sequence(range(4))
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[object, ...]]] = {
    "Loader": (sk.Loader, _other_words.LOADER, (RECORDS,)),
    "open": (sk.open, _other_words.OPEN, ("no/such/folder",)),
    "mix": (sk.mix, _other_words.MIX, ([RECORDS],)),
    "save_state": (sk.save_state, _other_words.SAVE_STATE, ("folder", sk.Loader(RECORDS))),
    "load_state": (sk.load_state, _other_words.LOAD_STATE, ("folder", sk.Loader(RECORDS))),
}
WORDS = [(name, word) for name, (_, words, _) in FUNCTIONS.items() for word in words]


@pytest.mark.parametrize(("name", "word"), WORDS)
def test_a_word_is_answered(name: str, word: str) -> None:
    function, words, args = FUNCTIONS[name]
    wanted = re.escape(f"{name}() has no argument {word!r}: write {words[word]}")
    with pytest.raises(sk.errors.InvalidArgument, match=f"^{wanted}$"):
        function(*args, **{word: 2})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_table_has_no_word_that_is_ours_and_names_what_is(name: str) -> None:
    function, words, _ = FUNCTIONS[name]
    own = set(inspect.signature(function).parameters)
    assert own & words.keys() == set()
    # Where an answer is an argument alone, it is one of this function.
    alone = {match[1] for text in words.values() if (match := re.match(r"(\w+)=($|[\"\d, ])", text))}
    assert alone <= own


@pytest.mark.parametrize(
    "word",
    [
        *("num_workers", "shuffle", "drop_last", "collate_fn", "pin_memory", "persistent_workers", "seed"),
        *("prefetch_factor", "sampler", "batch_sampler", "worker_init_fn", "multiprocessing_context"),
        *("generator", "timeout", "worker_type", "restart_workers"),
    ],
)
def test_the_arguments_of_a_torch_loader_are_known(word: str) -> None:
    assert word in _other_words.LOADER


def test_a_misspelt_argument_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"'batchsize': did you mean batch_size=\?"):
        sk.Loader(RECORDS, batchsize=2)  # type: ignore[call-arg]
    with pytest.raises(sk.errors.InvalidArgument, match=r"'xyz': it has dataset, batch_size, "):
        sk.Loader(RECORDS, xyz=2)  # type: ignore[call-arg]


def test_a_value_without_its_name_is_answered_with_the_name() -> None:
    with pytest.raises(sk.errors.WrongType, match=r"takes 1 argument by position .*batch_size=32"):
        sk.Loader(RECORDS, 32)  # type: ignore[call-arg]
