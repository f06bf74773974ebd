"""Records to tokens: ends in place, dtypes that hold every id, arrays beside, errors that name the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from data_forager.sample_generators.aux import LossMaskGenerator
from data_forager.sample_generators.aux import Part as ForagerPart
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from tests.tokens.trained import EOS, TEXTS, byte_encoding, eager, trained

import seekable as sk
from seekable.formats.tokens.token_store_arguments import tokenizing
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.parallel.pickling import deserialized, serialized

if TYPE_CHECKING:
    from seekable.formats.tokens.tokenizing.encoding import Tokenizing


def made_of(tokenizer: Any, **changed: Any) -> Tokenizing:
    others: dict[str, Any] = {"column": "text", "eos": None, "given": None}
    others |= {name: changed.pop(name) for name in tuple(others) if name in changed}
    made: Tokenizing = tokenizing(tokenizer, sk.formats.TokenStore(**changed), **others)
    again: Tokenizing = deserialized(serialized(made, way_out=""))
    return again


def plain(text: str) -> list[int]:
    return list(text.encode())


def words(text: str) -> list[int]:
    return [len(word) for word in text.split()]


@hypothesis_given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=9),
    eos=st.sampled_from([None, 256, 7]),
    bos=st.sampled_from([None, 256, 8]),
)
def test_documents_are_their_ids_between_bos_and_eos(
    texts: list[str], eos: int | None, bos: int | None
) -> None:
    made = made_of(byte_encoding(), eos=eos, bos=bos)
    expected = [
        [*([] if bos is None else [bos]), *plain(text), *([] if eos is None else [eos])] for text in texts
    ]
    encoded = made.encode([{"text": text} for text in texts])
    assert encoded.ids.tolist() == [number for document in expected for number in document]
    assert encoded.lengths.tolist() == [len(document) for document in expected]
    assert encoded.empty == texts.count("")
    assert encoded.ids.dtype == np.uint16
    batches = list(made.encoded([{"text": text} for text in texts]))
    assert [number for each in batches for number in each.ids.tolist()] == encoded.ids.tolist()


def test_a_written_eos_stays_text_and_post_processors_are_off() -> None:
    made = made_of(eager(), eos="<eod>", bos=EOS)
    encoded = made.encode([{"text": f"a{EOS}b<eod>c"}])
    ids = encoded.ids.tolist()
    assert (ids[0], ids[-1], ids.count(0), ids.count(600)) == (0, 600, 1, 1)
    assert made.engine.decode(ids) == f"{EOS}a{EOS}b<eod>c<eod>"


def test_batches_end_at_1000_documents_or_a_million_characters() -> None:
    made = made_of(byte_encoding())
    assert [len(each.lengths) for each in made.encoded([{"text": "a"}] * 2500)] == [1000, 1000, 500]
    long = {"text": "x" * 700_000}
    assert [len(each.lengths) for each in made.encoded([long, long, {"text": ""}, long])] == [1, 2, 1]


@pytest.mark.parametrize(
    ("changed", "dtype"),
    [
        ({}, "uint16"),
        ({"dtype": "uint32"}, "uint32"),
        ({"dtype": np.int64}, "int64"),
        ({"idx": True}, "uint16"),
    ],
)
def test_the_dtype_of_a_small_vocabulary(changed: dict[str, Any], dtype: str) -> None:
    assert made_of(trained(), **changed).encode([{"text": "a"}]).ids.dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("largest", "dtype", "megatron"),
    [(65_498, "<u2", "<u2"), (65_499, "<u2", "<i4"), (65_535, "<u2", "<i4"), (65_536, "<u4", "<i4")],
)
def test_the_dtype_is_that_of_the_largest_id_that_can_occur(largest: int, dtype: str, megatron: str) -> None:
    ranks = {bytes([value]): value for value in range(256)}
    encoding = sk_tiktoken("large", ranks, {EOS: largest})
    assert made_of(encoding).dtype == np.dtype(dtype)
    assert made_of(encoding, idx=True).dtype == np.dtype(megatron)
    if largest > 65_535:
        with pytest.raises(
            sk.errors.InvalidArgument, match="uint16 holds ids up to 65,535, and the vocabulary"
        ):
            made_of(encoding, dtype="uint16")


def sk_tiktoken(name: str, ranks: dict[bytes, int], specials: dict[str, int]) -> Any:
    import tiktoken

    return tiktoken.Encoding(name, pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens=specials)


@pytest.mark.parametrize("wrong", [65_536, 70_000, -1])
def test_an_id_that_would_wrap_is_an_error(wrong: int) -> None:
    made = made_of(lambda text: [1, wrong] if text == "bad" else [1], dtype="uint16")
    with pytest.raises(UnfitDocument, match=f"token 1 of it has the id {wrong}, and uint16") as caught:
        made.encode([{"text": "fine"}, {"text": "bad"}, {"text": "fine"}])
    assert caught.value.index == 1
    many = [{"text": "fine"}] * 1500 + [{"text": "bad"}]
    with pytest.raises(UnfitDocument) as caught:
        list(made.encoded(many))
    assert caught.value.index == 1500
    assert made_of(lambda text: [70_000]).encode([{"text": "a"}]).ids.dtype == np.uint32  # noqa: ARG005


@pytest.mark.parametrize(
    ("records", "index", "why"),
    [
        ([{"text": "a"}, {"text": 5}], 1, "'text' must be a string .got 5 of type int"),
        ([{"text": None}], 0, "'text' must be a string .got None"),
        ([{"text": b"a"}], 0, "of type bytes"),
        ([{"text": "a"}, {"body": "b"}], 1, "it has no column 'text' .it has 'body'"),
        ([["a"]], 0, "it must be a dict with the column 'text'"),
        ([{"text": "a"}, 7], 1, "it must be a dict with the column 'text'"),
    ],
    ids=["number", "none", "bytes", "missing", "list", "no record"],
)
def test_a_record_without_a_text_is_named(records: list[Any], index: int, why: str) -> None:
    with pytest.raises(UnfitDocument, match=why) as caught:
        made_of(byte_encoding()).encode(records)
    assert caught.value.index == index


def test_records_that_are_texts() -> None:
    assert made_of(byte_encoding()).encode(["ab", "c"]).ids.tolist() == [97, 98, 99]


CHAT = [
    {"parts": [{"type": "system", "text": "s"}, {"type": "prompt", "text": "pp"}]},
    {"parts": [{"type": "prompt", "text": "p"}, {"type": "response", "text": "rr"}]},
    {"parts": []},
]


@pytest.mark.parametrize("generator", [sk.LossMask(), LossMaskGenerator()], ids=["ours", "forager's"])
def test_a_loss_mask_has_1_in_the_loss_and_forager_the_other_way(generator: Any) -> None:
    ours = made_of(byte_encoding(), eos=256, bos=256, align={"loss_mask": generator}).encode(CHAT)
    assert ours.lengths.tolist() == [5, 5, 2]
    mask = [0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1]
    assert ours.aligned["loss_mask"].tolist() == mask
    assert ours.aligned["loss_mask"].dtype == np.uint8
    theirs = made_of(byte_encoding(), eos=256, bos=256, align={"loss_mask": generator}, sample_size=8)
    assert theirs.encode(CHAT).aligned["loss_mask"].tolist() == [1 - value for value in mask]
    assert ours.empty == 1


def test_the_masks_of_options() -> None:
    mask = sk.LossMask(masked=["response"], eos=False)  # type: ignore[arg-type]  # lists are kept as tuples
    made = made_of(byte_encoding(), eos=256, align={"loss_mask": mask})
    assert made.encode(CHAT).aligned["loss_mask"].tolist() == [1, 1, 1, 0, 1, 0, 0, 0, 0]
    assert mask.masked == ("response",)
    with pytest.raises(sk.errors.WrongType, match="masked must be a tuple"):
        sk.LossMask(masked="prompt")  # type: ignore[arg-type]


def parts_of(record: dict[str, Any]) -> list[Any]:
    return [sk.Part("prompt", record["q"]), ForagerPart("response", record["a"])]


class Types:
    """A generator of data-forager's protocol: the length of the type, and the sum of tokens on request."""

    dtype = np.dtype(np.int32)

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None) -> list[int]:
        assert part_tokens is None or len(part_tokens) == num_tokens
        return [len(part_type) * 1000 + number for number in part_tokens or [0] * num_tokens]

    def generate_for_eos(self) -> int:
        return -5


def test_parts_of_a_function_and_generators_of_others() -> None:
    made = made_of(byte_encoding(), parts=parts_of, eos=256, align={"types": Types(), "m": sk.LossMask()})
    encoded = made.encode([{"q": "q", "a": "ab"}, {"q": "", "a": "c"}])
    assert encoded.aligned["types"].tolist() == [6113, 8097, 8098, -5, 8099, -5]
    assert encoded.aligned["m"].tolist() == [0, 1, 1, 1, 1, 1]
    assert [each.__name__ for each in made.functions] == ["parts_of"]
    without = made_of(byte_encoding(), parts=parts_of).encode([{"q": "q", "a": "ab"}])
    assert without.ids.tolist() == [113, 97, 98]
    assert without.aligned == {}


def test_a_function_that_returns_ids_and_arrays() -> None:
    def chat(record: dict[str, Any]) -> dict[str, Any]:
        return {"tokens": plain(record["a"]), "loss_mask": [1] * len(record["a"])}

    given = {"loss_mask": np.uint8}
    made = made_of(byte_encoding(), parts=chat, given=given, eos=EOS)
    encoded = made.encode([{"a": "ab"}, {"a": ""}])
    assert (encoded.ids.tolist(), encoded.aligned["loss_mask"].tolist()) == ([97, 98, 256, 256], [1, 1, 1, 1])
    with pytest.raises(UnfitDocument, match=r"shape \(1,\), and it has 2 tokens"):
        made_of(None, column="ids", given=given).encode([{"ids": [1, 2], "loss_mask": [1]}])
    with pytest.raises(UnfitDocument, match="has the value 300, which uint8 cannot hold"):
        made_of(None, column="ids", given=given).encode([{"ids": [1], "loss_mask": [300]}])


class Weights:
    """A generator of data-forager's protocol that needs the tokens of each part; EOS has a fraction."""

    dtype: np.dtype[Any] = np.dtype(np.float32)

    def generate(self, part_type: str, num_tokens: int, *, part_tokens: Any = None) -> list[float]:
        return [token / 2 for token in part_tokens]

    def generate_for_eos(self) -> float:
        return 0.25


@pytest.mark.parametrize("bos", [None, 7])
def test_a_generator_has_the_tokens_of_each_part_and_any_value_for_eos(bos: int | None) -> None:
    made = made_of(byte_encoding(), parts=parts_of, eos=256, bos=bos, align={"weights": Weights()})
    encoded = made.encode([{"q": "", "a": "ab"}])
    first = [] if bos is None else [3.5]
    assert encoded.aligned["weights"].tolist() == [*first, 48.5, 49.0, 0.25]


def test_a_value_of_eos_that_does_not_fit_is_refused() -> None:
    class Wide(Weights):
        dtype = np.dtype(np.uint8)

        def generate(self, part_type: str, num_tokens: int, *, part_tokens: Any = None) -> list[float]:
            return [0] * num_tokens

    with pytest.raises(UnfitDocument, match=r"'w' has the value 0\.25, which uint8 cannot hold"):
        made_of(byte_encoding(), parts=parts_of, eos=256, align={"w": Wide()}).encode([{"q": "", "a": "b"}])


def test_a_function_of_the_user_that_fails_is_named_with_the_record() -> None:
    class Failing(Types):
        def generate(
            self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None
        ) -> list[int]:
            return [1 // (num_tokens - 2)] * num_tokens

    records = [{"q": "", "a": "b"}, {"q": "", "a": "bc"}]
    with pytest.raises(UnfitDocument, match=r"align\['f'\] raised ZeroDivisionError") as caught:
        made_of(byte_encoding(), parts=parts_of, align={"f": Failing()}).encode(records)
    assert caught.value.index == 1
    with pytest.raises(UnfitDocument, match="the function parts= raised KeyError: 'a'") as caught:
        made_of(byte_encoding(), parts=parts_of).encode([records[0], {"q": ""}])
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (lambda _: "text", "its parts must be a list"),
        (lambda _: None, "its parts must be a list"),
        (lambda _: [{"type": "a"}], "a part must have a type and a text"),
        (lambda _: ["a"], "a part must have a type and a text"),
    ],
    ids=["text", "none", "no text", "texts"],
)
def test_what_is_no_list_of_parts(parts: Any, why: str) -> None:
    with pytest.raises(UnfitDocument, match=why):
        made_of(byte_encoding(), parts=parts).encode([{}])


def test_a_generator_that_makes_too_few_values() -> None:
    class Short(Types):
        def generate(
            self, part_type: str, num_tokens: int, *, part_tokens: list[int] | None = None
        ) -> list[int]:
            return [1]

    made = made_of(byte_encoding(), align={"short": Short()})
    with pytest.raises(
        UnfitDocument, match=r"align\['short'\] made 1 values for a part of 2 tokens"
    ) as caught:
        made.encode([{"parts": [sk.Part("a", "b")]}, {"parts": [sk.Part("a", "b"), sk.Part("a", "bc")]}])
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"tokenizer": None}, sk.errors.InvalidArgument, "give tokenizer="),
        ({"column": 5}, sk.errors.WrongType, "column must be the name"),
        ({"eos": "</s>"}, sk.errors.InvalidArgument, "'</s>' is no single token"),
        ({"eos": 1.5}, sk.errors.WrongType, "eos must be a token"),
        ({"bos": True}, sk.errors.WrongType, "bos must be a token"),
        ({"eos": 257}, sk.errors.InvalidArgument, "outside of the vocabulary"),
        ({"dtype": "float32"}, sk.errors.InvalidArgument, "dtype must be one of"),
        ({"dtype": "no dtype"}, sk.errors.WrongType, "dtype must be one of"),
        ({"dtype": "uint8"}, sk.errors.InvalidArgument, "uint8 holds ids up to 255"),
        ({"parts": 5}, sk.errors.WrongType, "parts must be a function"),
        ({"align": [1]}, sk.errors.InvalidArgument, r"an identifier as its name.*\(got 1\)"),
        (
            {"align": {"m": 5}},
            sk.errors.WrongType,
            r"align\['m'\] must be a dtype .* or have dtype, generate",
        ),
        ({"align": {"tokens": sk.LossMask()}}, sk.errors.InvalidArgument, "cannot be named 'tokens'"),
        (
            {"tokenizer": words, "eos": 70_000, "dtype": "uint16"},
            sk.errors.InvalidArgument,
            "does not fit uint16",
        ),
    ],
)
def test_wrong_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made_of(**{"tokenizer": byte_encoding(), **changed})


def test_the_texts_of_all_engines_agree_with_ends() -> None:
    records = [{"text": text} for text in TEXTS]
    made = [
        made_of(trained(), engine=name, eos=EOS).encode(records) for name in ("hf", "gigatoken", "tiktoken")
    ]
    for other in made[1:]:
        assert other.ids.tolist() == made[0].ids.tolist()
        assert other.lengths.tolist() == made[0].lengths.tolist()
