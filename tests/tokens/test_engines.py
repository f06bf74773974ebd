"""Engines: the ids are those of their libraries, and what cannot be a tokenizer is refused."""

from __future__ import annotations

import functools
import os
import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tiktoken
from tests.tokens.trained import EOS, TEXTS, byte_encoding, eager, trained, trained_json
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import seekable as sk
from seekable.formats.tokens.tokenizing import huggingface_engine
from seekable.formats.tokens.tokenizing.engine import Engine, UnfitDocument
from seekable.formats.tokens.tokenizing.engines import engine_of

if TYPE_CHECKING:
    from pathlib import Path


def ids_of(engine: Engine, texts: list[str]) -> list[list[int]]:
    ids, lengths = engine.encode(texts)
    assert ids.sum() >= 0
    assert len(ids) == lengths.sum()
    return [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])]


def plain_ids() -> list[list[int]]:
    tokenizer = trained()
    tokenizer.encode_special_tokens = True
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]


@pytest.mark.parametrize("engine", [None, "hf", "gigatoken", "tiktoken"])
def test_engines_of_a_tokenizer_file_give_its_ids(engine: str | None, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(trained_json(), encoding="utf-8")
    for given in (tmp_path, tmp_path / "tokenizer.json", str(tmp_path / "tokenizer.json"), trained()):
        made = pickle.loads(pickle.dumps(engine_of(given, engine)))
        assert ids_of(made, TEXTS) == plain_ids()
        assert ids_of(made, [""]) == [[]]
        assert made.vocabulary == 600
        assert made.name == (engine or "hf")
        assert made.decode(np.array(plain_ids()[3])) == TEXTS[3]
        assert (made.id_of(EOS), made.id_of(7), made.id_of("\n")) == (0, 7, trained().token_to_id("Ċ"))


def test_a_tokenizer_and_its_file_have_one_digest(tmp_path: Path) -> None:
    trained().save(str(tmp_path / "t.json"))
    assert engine_of(tmp_path / "t.json").digest == engine_of(str(tmp_path / "t.json"), "gigatoken").digest
    assert engine_of(tmp_path / "t.json").digest == engine_of(trained()).digest != engine_of(eager()).digest


@pytest.mark.parametrize("engine", ["hf", "gigatoken"])
def test_nothing_is_added_cut_or_padded_and_special_tokens_are_text(engine: str) -> None:
    made = engine_of(eager(), engine).keeping_as_text((0, 600))
    assert ids_of(pickle.loads(pickle.dumps(made)), TEXTS) == plain_ids()
    parsing = ids_of(engine_of(eager(), engine), ["a<eod>b"])
    assert 600 in parsing[0]  # an added token that is not special, and no end of documents


def test_the_bytes_of_tiktoken() -> None:
    made = pickle.loads(pickle.dumps(engine_of(byte_encoding())))
    assert ids_of(made, TEXTS) == [list(text.encode()) for text in TEXTS]
    assert (made.name, made.vocabulary, made.id_of(EOS), made.id_of("a")) == ("tiktoken", 257, 256, 97)
    assert made.decode([104, 105, 256]) == f"hi{EOS}"
    assert made.library == f"tiktoken {tiktoken.__version__}"
    other = tiktoken.Encoding(
        "bytes", pat_str=r"\w+|\W+", mergeable_ranks=byte_encoding()._mergeable_ranks, special_tokens={}
    )
    assert engine_of(other).digest != made.digest == engine_of(byte_encoding()).digest


def test_a_named_encoding_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(name: str) -> tiktoken.Encoding:
        if name != "bytes":
            message = f"Unknown encoding {name}"
            raise ValueError(message)
        return byte_encoding()

    monkeypatch.setattr(tiktoken, "get_encoding", get)
    monkeypatch.setattr(
        "seekable.formats.tokens.tokenizing.fast_engines.tiktoken", tiktoken
    )  # the proxy keeps what was looked up before
    assert engine_of("tiktoken:bytes").vocabulary == 257
    with pytest.raises(sk.errors.InvalidArgument, match="no encoding 'gpt9'"):
        engine_of("tiktoken:gpt9")


def of_text(text: str) -> list[int]:
    return [len(word) for word in text.split()]


def of_list(texts: list[str]) -> list[list[int]]:
    assert isinstance(texts, list)
    return [of_text(text) for text in texts]


def test_a_function_takes_a_text_and_is_called_once_for_each() -> None:
    calls: list[Any] = []

    def function(anything: Any) -> Any:
        calls.append(anything)
        return of_text(anything)

    made = engine_of(function)
    assert ids_of(made, TEXTS) == [of_text(text) for text in TEXTS]
    assert sorted(calls) == sorted(TEXTS)
    assert (made.name, made.vocabulary, made.id_of(5)) == ("function", None, 5)
    assert made.functions == (function,)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(of_list, id="annotated"),
        pytest.param(lambda texts: [of_text(text) for text in texts], id="named"),
        pytest.param(lambda them: [of_text(text) for text in them], id="found out"),
        pytest.param(lambda them: {"input_ids": [of_text(text) for text in them]}, id="mapping"),
        pytest.param(lambda them: [np.array(of_text(text), np.uint16) for text in them], id="arrays"),
    ],
)
def test_a_function_takes_lists_of_texts(function: Any) -> None:
    made = engine_of(function)
    for _ in range(2):
        assert ids_of(made, TEXTS) == [of_text(text) for text in TEXTS]


def test_annotations_and_names_say_what_a_function_takes() -> None:
    seen: list[type] = []

    def typed(them: list[str]) -> list[list[int]]:
        seen.append(type(them))
        return [[1] for _ in them]

    def named(texts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the point
        seen.append(type(texts))
        return [[1] for _ in texts]

    def one(texts: str) -> list[int]:
        seen.append(type(texts))
        return [1]

    for function in (typed, named, one):
        ids_of(engine_of(function), ["a", "b"])
    assert seen == [list, list, str, str]


class Numbered:
    """An object that makes ids, by a call or by a method."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, them: list[str]) -> list[list[int]]:
        assert isinstance(them, list)
        return [[self.number] for _ in them]

    def encode(self, text: str) -> list[int]:
        assert isinstance(text, str)
        return [self.number]


def test_objects_and_their_methods_are_told_apart_by_their_state() -> None:
    assert ids_of(engine_of(Numbered(3)), ["a", "b"]) == [[3], [3]]
    assert ids_of(engine_of(Numbered(4).encode), ["a", "b"]) == [[4], [4]]
    assert engine_of(Numbered(3)).digest == engine_of(Numbered(3)).digest
    assert engine_of(Numbered(3).encode).digest == engine_of(Numbered(3).encode).digest
    makers = [Numbered(3), Numbered(4), Numbered(3).encode, Numbered(4).encode, Numbered(3).__call__]
    assert len({engine_of(made).digest for made in makers}) == len(makers)
    unpicklable = Numbered(3)
    unpicklable.number = lambda: 3  # type: ignore[assignment]
    with pytest.raises(sk.errors.InvalidArgument, match=r"plain function \(its state cannot be pickled"):
        engine_of(unpicklable)


def test_methods_of_tokenizers_are_functions_with_a_vocabulary() -> None:
    made = engine_of(trained().encode)
    assert ids_of(made, ["hello", EOS]) == [trained().encode("hello").ids, [0]]
    assert (made.vocabulary, made.id_of(EOS), made.name) == (600, 0, "function")
    assert made.digest == engine_of(trained().encode).digest != engine_of(eager().encode).digest
    assert ids_of(engine_of(byte_encoding().encode_ordinary), ["ab"]) == [[97, 98]]


@pytest.mark.parametrize("engine", ["hf", "gigatoken", "tiktoken"])
def test_a_text_that_is_none_is_named(engine: str) -> None:
    made = engine_of(trained(), engine)
    with pytest.raises(UnfitDocument, match=r"lone surrogate '\\ud800' at character 1") as caught:
        made.encode(["fine", "a\ud800b", "fine"])
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda _: [1, 2.5], "no flat list of integers"),
        (lambda _: "ids", "no flat list of integers"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (of_text, None),
    ],
    ids=["floats", "text", "raises", "fine"],
)
def test_a_function_that_fails_names_the_text(function: Any, why: str | None) -> None:
    made = engine_of(function)
    if why is None:
        assert ids_of(made, ["a b"]) == [[1, 1]]
        return
    with pytest.raises(UnfitDocument, match=why):
        made.encode(["a"])


def test_a_function_that_loses_a_text() -> None:
    def short(texts: list[str]) -> list[list[int]]:
        return [[1] for _ in texts[1:]]

    with pytest.raises(UnfitDocument, match="returned 1 lists for 2 texts"):
        engine_of(short).encode(["a", "b"])


@pytest.mark.parametrize(
    ("tokenizer", "engine", "error", "message"),
    [
        ("no/such.json", None, sk.DataNotFound, "there is no tokenizer at"),
        (5, None, sk.errors.WrongType, "tokenizer must be the path"),
        (None, None, sk.errors.WrongType, "tokenizer must be the path"),
        (trained, "fast", sk.errors.InvalidArgument, "engine must be one of 'hf', 'tiktoken', 'gigatoken'"),
        (of_text, "gigatoken", sk.errors.InvalidArgument, "made by 'function'"),
        (byte_encoding(), "hf", sk.errors.InvalidArgument, "made by 'tiktoken'"),
        (functools.partial(max, object()), None, sk.errors.InvalidArgument, "wrap it in a plain function"),
    ],
)
def test_what_is_no_tokenizer_is_refused(
    tokenizer: Any, engine: str | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        engine_of(tokenizer, engine)


def test_files_that_are_no_tokenizer_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.model").write_bytes(b"\x0a\xff\xfe")
    with pytest.raises(sk.DataNotFound, match=r"tokenizer\.json'"):
        engine_of(tmp_path)
    with pytest.raises(
        sk.errors.InvalidArgument, match="is no tokenizer that the package tokenizers can read"
    ):
        engine_of(tmp_path / "a.json")
    with pytest.raises(sk.errors.InvalidArgument, match="not UTF-8 at byte 1"):
        engine_of(tmp_path / "b.model")
    (tmp_path / "c.model").write_bytes(b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02\x0a\xff")
    with pytest.raises((sk.errors.InvalidArgument, sk.MissingDependency), match="sentencepiece"):
        engine_of(tmp_path / "c.model")


def test_random_merges_are_refused() -> None:
    tokenizer = Tokenizer(models.BPE(dropout=0.1))
    with pytest.raises(sk.errors.InvalidArgument, match=r"drops merges at random \(dropout=0.1"):
        engine_of(tokenizer)


@pytest.mark.parametrize("engine", ["hf", "gigatoken", "tiktoken"])
def test_tokens_that_are_not_in_the_vocabulary_are_refused(engine: str) -> None:
    made = engine_of(trained(), engine)
    for wrong in ("no such token", "", 600, -1):
        with pytest.raises(sk.errors.InvalidArgument):
            made.id_of(wrong)


def test_engines_that_differ_are_refused_and_equal_ones_reported() -> None:
    made = engine_of(trained(), "gigatoken")
    compared = made.compared(TEXTS)
    assert compared is not None
    assert (compared["documents"], compared["different"]) == (len(TEXTS), 0)
    assert compared["with"].startswith("tokenizers ")
    assert engine_of(trained()).compared(TEXTS) is None
    other = engine_of(Tokenizer.from_str(trained_json(size=500)))
    wrong = type(made)(other, made.digest, 600)  # type: ignore[call-arg]
    object.__setattr__(wrong, "reference", _Reference(made, other))
    with pytest.raises(sk.errors.InvalidArgument, match=r"gigatoken gives other ids .* document 2 of the 7"):
        wrong.compared(TEXTS)


class _Reference:
    """Loads one tokenizer and encodes by another, as an engine with an error would."""

    def __init__(self, loaded: Any, reference: Engine) -> None:
        self.key, self.encode, self.library = loaded.reference.key, reference.encode, reference.library


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda it: setattr(it, "normalizer", normalizers.Lowercase()), "changes texts"),
        (lambda it: setattr(it, "pre_tokenizer", pre_tokenizers.Whitespace()), "by other means"),
        (lambda it: it.add_tokens(["<plain>"]), "added tokens that are no special ones, such as '<plain>'"),
    ],
    ids=["normalizer", "words", "added"],
)
def test_tokenizers_that_tiktoken_cannot_stand_in_for(change: Any, why: str) -> None:
    tokenizer = trained()
    change(tokenizer)
    with pytest.raises(sk.errors.InvalidArgument, match=why):
        engine_of(tokenizer, "tiktoken").encode(["a"])


def test_threads_of_the_package_are_off_and_the_environment_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str | None] = []

    class Spy:
        def encode_batch_fast(self, texts: list[str], **_: Any) -> list[Any]:
            seen.append(os.environ.get("TOKENIZERS_PARALLELISM"))
            return list(trained().encode_batch(texts))

    monkeypatch.setattr(huggingface_engine, "_load", lambda _: Spy())
    made = engine_of(trained())
    for before in (None, "true"):
        if before is None:
            monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
        else:
            monkeypatch.setenv("TOKENIZERS_PARALLELISM", before)
        threads = [threading.Thread(target=made.encode, args=(["a"],)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.environ.get("TOKENIZERS_PARALLELISM") == before
    assert seen == ["false"] * 8
