"""Spans beside texts: the tokens that they become, and what samples of any length have of them."""

from __future__ import annotations

import itertools
import json
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tokens.trained import TEXTS, byte_encoding, eager, trained, trained_json
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats import Spans, TokenStore
from seekable.testing import assert_resumes_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TRAPS = [
    *TEXTS,
    "ﬁne 👩‍👩‍👧 e\u0301\u0301 \u1e9b\u0323",
    "one\r\ntwo\r\n\r\n",
    "İstanbul ĳ ½ ﷺ",
    "\u200b\ufeff  \u00a0x",
    "நி 각",
]


def folding() -> Tokenizer:
    """Return a tokenizer that changes texts before it cuts them, and knows few characters."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(TRAPS, trainer)
    return tokenizer


def composing() -> Tokenizer:
    """Return a tokenizer that composes characters, and puts a character before each word."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False)
    tokenizer.train_from_iterator(TRAPS, trainer)
    return tokenizer


def store_of(folder: Path, records: Any, tokenizer: Any, how: Spans, **options: Any) -> sk.Dataset:
    given = {name: options.pop(name) for name in ("bos", "rows_per_file", "engine") if name in options}
    data = sk.from_sequence(records)
    store = TokenStore(align={"spans": how}, **given)
    return sk.tokenize(data, to=folder, tokenizer=tokenizer, store=store, jobs=1, **options)


def ids_of(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def by_offsets(offsets: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Return the tokens with a character of a span, as lists have them."""
    return [token for token, (first, last) in enumerate(offsets) if first < end and last > start]


@pytest.mark.parametrize("make", [trained, eager, folding, composing])
def test_spans_of_characters_have_the_tokens_of_the_package(
    make: Callable[[], Tokenizer], tmp_path: Path
) -> None:
    pairs = [list(itertools.combinations(range(len(text) + 1), 2)) for text in TRAPS]
    records: list[dict[str, Any]] = [
        {"text": text, "spans": [[*pair, number] for number, pair in enumerate(some[:2000])]}
        for text, some in zip(TRAPS, pairs, strict=True)
    ]
    tokenizer = make()
    tk = store_of(tmp_path, records, tokenizer, Spans())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True

    for document, record in zip(tk, records, strict=True):
        encoding = tokenizer.encode(record["text"], add_special_tokens=False)
        assert document["tokens"].tolist() == encoding.ids
        found = {label: range(start, end) for start, end, label in document["spans"].tolist()}
        for start, end, label in record["spans"]:
            wanted = by_offsets(encoding.offsets, start, end)
            assert list(found.get(label, ())) == (list(range(wanted[0], wanted[-1] + 1)) if wanted else [])
            firsts = [encoding.char_to_token(place) for place in range(start, end)]
            assert {token for token in firsts if token is not None} <= set(found.get(label, ()))


def test_spans_of_characters_have_the_tokens_of_tiktoken(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"text": text, "spans": [[place, place + 1, place] for place in range(len(text))]} for text in TRAPS
    ]
    tk = store_of(tmp_path, records, byte_encoding(), Spans())

    for document, record in zip(tk, records, strict=True):
        sizes = [len(character.encode()) for character in record["text"]]
        ends = list(itertools.accumulate(sizes))
        wanted = [(end - size, end, place) for place, (size, end) in enumerate(zip(sizes, ends, strict=True))]
        assert document["spans"].tolist() == wanted


def test_ends_labels_forms_and_what_has_no_token(tmp_path: Path) -> None:
    spans: list[Any] = [[0, 1, "b"], {"start": 1, "end": 3, "label": "a"}, [2, 2, "a"], [1, 3, "a"]]
    records = [{"text": "a b", "spans": spans}, {"text": "", "spans": []}, {"text": "bc", "spans": None}]
    how = Spans(labels=["a", "b"])
    tk = store_of(tmp_path, records, trained(), how, eos="<|endoftext|>", bos=0, rows_per_file=2)

    assert [document["spans"].tolist() for document in tk] == [[(1, 2, 1), (2, 3, 0), (2, 3, 0)], [], []]
    facts = json.loads((tmp_path / "tokens.json").read_text())
    assert facts["aligned"] == {"spans": "spans"}
    described = {"units": "characters", "labels": ["a", "b"], "spans": 3, "without_token": 1}
    assert facts["spans"] == {"spans": described}
    assert not verify(tmp_path, deep=True, decode=True, jobs=1).problems


# Packed samples: tokens that occur once each say which document each place of a sample has.


def numbered(lengths: Sequence[int], spans: Sequence[Sequence[tuple[int, int]]]) -> list[dict[str, Any]]:
    """Return documents whose tokens are numbered through, with spans that are, too."""
    ends = list(itertools.accumulate(lengths))
    numbers = itertools.count()
    return [
        {
            "text": " ".join(map(str, range(end - length + 1, end + 1))),
            "spans": [[min(a, b) % (length + 1), max(a, b) % (length + 1), next(numbers)] for a, b in some],
        }
        for length, end, some in zip(lengths, ends, spans, strict=True)
    ]


def valid(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**record, "spans": [[min(a, b), max(a, b), label] for a, b, label in record["spans"]]}
        for record in records
    ]


def labels_by_token(records: Sequence[dict[str, Any]]) -> dict[int, list[int]]:
    """Return the labels of the spans over each token."""
    found: dict[int, list[int]] = defaultdict(list)
    for record in records:
        tokens = ids_of(record["text"])
        for start, end, label in record["spans"]:
            for token in tokens[start:end]:
                found[token].append(label)
    return found


def check_sample(sample: Any, wanted: dict[int, list[int]]) -> None:
    tokens = sample["tokens"].tolist()
    found: dict[int, list[int]] = defaultdict(list)
    for start, end, label in sample["spans"].tolist():
        assert 0 <= start < end <= len(tokens)
        piece = tokens[start:end]
        assert piece == list(range(piece[0], piece[0] + len(piece)))
        for place in range(start, end):
            found[place].append(label)
    assert {place: sorted(labels) for place, labels in found.items()} == {
        place: sorted(wanted[token]) for place, token in enumerate(tokens) if wanted.get(token)
    }


LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(lambda each: sum(each) > 4)
PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4)


@settings(max_examples=10)
@given(st.data())
def test_samples_have_the_spans_of_their_tokens(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lengths = data.draw(LENGTHS)
    records = valid(numbered(lengths, [data.draw(PAIRS) for _ in lengths]))
    rows = data.draw(st.sampled_from([None, 1, 3]))
    folder = tmp_path_factory.mktemp("store")
    tk = store_of(folder, records, ids_of, Spans(units="tokens"), rows_per_file=rows)
    wanted = labels_by_token(records)
    length = data.draw(st.integers(1, 4))
    given: dict[str, Any] = data.draw(st.sampled_from([{}, {"next_token": True}, {"labels": "within"}]))
    fim = sk.Fim(rate=0.5, prefix=60001, suffix=60002, middle=60003)
    made = [
        tk.pack(length, seed=3, align=["spans"], **given),
        tk.pack(length, seed=3, align=["spans"], method="best_fit", **given),
        tk.pack(length, seed=3, align=["spans"], fim=fim, **given),
        tk.shuffle(seed=1, fixed=True).pack(length, seed=3, align=["spans"], columns=["tokens", "spans"]),
        tk.windows(length, align=["spans"], next_token="next_token" in given),
    ]
    for packed in made:
        samples = list(packed)
        for row, sample in enumerate(samples):
            check_sample(sample, wanted)
            assert packed[row]["spans"].tolist() == sample["spans"].tolist()
        (batch,) = sk.Loader(packed, batch_size=len(packed))
        assert [list(map(tuple, each.tolist())) for each in batch["spans"]] == [
            sample["spans"].tolist() for sample in samples
        ]
        alone = packed.select_columns(["spans"])[0]
        assert list(alone) == ["spans"]
        assert alone["spans"].tolist() == samples[0]["spans"].tolist()


def some_store(folder: Path) -> sk.Dataset:
    spans = [[(0, 3), (2, 2), (1, 7)], [(0, 1)], [], [(3, 9), (0, 9)], [(2, 5)]] * 4
    records = valid(numbered([7, 1, 3, 9, 5] * 4, spans))
    return store_of(folder, records, ids_of, Spans(units="tokens"), rows_per_file=6)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_samples_with_spans_resume_exactly(tmp_path: Path, workers: int) -> None:
    packed = some_store(tmp_path).pack(6, seed=5, method="best_fit", align=["spans"])
    assert_resumes_exactly(
        lambda: sk.Loader(packed, batch_size=3, epochs=2, workers=workers),
        runs=1,
        cuts=[0, 1, 5] if workers else None,
        new_process=not workers,
    )


def test_ranks_share_the_samples(tmp_path: Path) -> None:
    packed = some_store(tmp_path).pack(6, seed=5, align=["spans"])

    def spans_of(**options: Any) -> list[list[Any]]:
        loader = sk.Loader(packed, end="drop", **options)
        return [[each.tolist() for each in batch["spans"]] for batch in loader]

    whole = spans_of(batch_size=4)
    halves = [spans_of(global_batch_size=4, rank=rank, world_size=2) for rank in (0, 1)]
    assert whole == [
        [first[0], second[0], first[1], second[1]] for first, second in zip(*halves, strict=True)
    ]


def test_a_flat_batch_has_its_spans_in_its_own_tokens(tmp_path: Path) -> None:
    packed = some_store(tmp_path).pack(6, seed=5, align=["spans"])
    (batch,) = sk.Loader(packed, batch_size=len(packed), collate=sk.collate.varlen())
    wanted = [
        (start + 6 * row, end + 6 * row, label)
        for row, sample in enumerate(packed)
        for start, end, label in sample["spans"].tolist()
    ]
    assert batch["spans"].tolist() == wanted


def test_documents_that_are_left_out_have_no_spans(tmp_path: Path) -> None:
    tk = some_store(tmp_path)
    packed = tk.pack(6, seed=5, align=["spans"])
    labels = set(tk[3]["spans"]["label"].tolist())
    without = packed.without([tk.locate(3)])
    left = {label for sample in without for label in sample["spans"]["label"].tolist()}
    every = {label for sample in packed for label in sample["spans"]["label"].tolist()}
    assert labels <= every
    assert left == every - labels


BAD: list[tuple[Any, Spans, str]] = [
    ([[0, 9, 1]], Spans(), "span 0 of 'spans' is from 0 to 9, and the text has 3 characters"),
    ([[0, 1, 1], [2, 1, 1]], Spans(), "span 1 of 'spans' is from 2 to 1"),
    ([[-1, 1, 1]], Spans(), "is from -1 to 1"),
    ([[0, 3, 1]], Spans(units="tokens"), "the text has 2 tokens"),
    ([[0, 1]], Spans(), "must be [start, end, label] (got [0, 1])"),
    ([7], Spans(), "must be [start, end, label] (got 7)"),
    ("0-1", Spans(), "'spans' must be a list of spans (got '0-1')"),
    ({"start": 0}, Spans(), "'spans' must be a list of spans"),
    ([[0.0, 1, 1]], Spans(), "must begin and end at integers"),
    ([[True, 1, 1]], Spans(), "must begin and end at integers"),
    ([[0, 1, "a"]], Spans(), "must be an integer (got 'a'): name the labels with sk.formats.Spans(labels="),
    ([[0, 1, 1 << 63]], Spans(), "must be an integer"),
    ([[0, 1, "c"]], Spans(labels=["a", "b"]), "must be one of 'a', 'b' (got 'c')"),
    ([[0, 1, 0]], Spans(labels=["a", "b"]), "must be one of 'a', 'b' (got 0)"),
    ([[0, 1, np.zeros(2)]], Spans(labels=["a", "b"]), "must be one of 'a', 'b'"),
]


def test_wrong_spans_are_named(tmp_path: Path) -> None:
    for number, (spans, how, wanted) in enumerate(BAD):
        records = [{"text": "abc", "spans": []}, {"text": "a b", "spans": spans}]
        with pytest.raises(sk.errors.WrongType) as error:
            store_of(tmp_path / str(number), records, trained(), how)
        assert "record 1 " in str(error.value) or "row 1" in str(error.value)
        assert wanted in str(error.value)


def test_what_cannot_have_spans_is_refused(tmp_path: Path) -> None:
    records = [{"text": "a", "spans": []}]
    refused = sk.errors.InvalidArgument
    for tokenizer, engine in [(ids_of, None), (trained(), "tiktoken"), (trained(), "gigatoken")]:
        with pytest.raises(refused, match="does not say which characters a token has"):
            store_of(tmp_path / "a", records, tokenizer, Spans(), engine=engine)
    given: list[tuple[dict[str, Any], str]] = [
        ({"parts": ids_of}, "not with parts="),
        ({"sample_size": 4}, "not with sample_size="),
        ({"align": {"spans": Spans(), "loss_mask": sk.LossMask()}}, "not with other arrays"),
    ]
    for options, words in given:
        with pytest.raises(refused, match=words):
            TokenStore(**{"align": {"spans": Spans()}, **options})
    how = TokenStore(align={"spans": Spans()})
    with pytest.raises(refused, match=r"that is sk\.tokenize"):
        sk.from_sequence([{"tokens": [1]}]).write_tokens(tmp_path / "b", store=how)
    with pytest.raises(refused, match="labels names one twice"):
        Spans(labels=["a", "a"])
    with pytest.raises(sk.errors.WrongType, match="labels must be a list of names"):
        Spans(labels="ab")
    with pytest.raises(refused, match="units"):
        Spans(units="bytes")  # type: ignore[arg-type]
    with pytest.raises(sk.errors.WrongType, match="no column 'spans'"):
        store_of(tmp_path / "c", [{"text": "a"}], trained(), Spans())


def test_another_way_to_read_spans_is_another_store(tmp_path: Path) -> None:
    records = [{"text": "a", "spans": [[0, 1, 1]]}]
    store_of(tmp_path, records, trained(), Spans())
    with pytest.raises(sk.StateMismatch, match="spans"):
        store_of(tmp_path, records, trained(), Spans(units="tokens"))


def test_spans_have_a_type_in_the_schema(tmp_path: Path) -> None:
    schema = some_store(tmp_path).schema
    assert str(schema.field("spans").type) == "list<item: struct<start: int64, end: int64, label: int64>>"
    with pytest.raises(sk.errors.BadValue, match="'odd' has values of no one type"):
        _ = sk.from_sequence([{"odd": np.zeros((1, 1), [("a", "i4")])}]).schema


def test_damage_is_named(tmp_path: Path) -> None:
    tk = some_store(tmp_path)
    part = next(iter(sorted(tmp_path.glob("*.spans"))))
    status, data = part.stat(), part.read_bytes()
    ends = len(data) - 8 * 7
    part.write_bytes(data[:ends] + b"\xff" * 8 + data[ends + 8 :])
    os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(sk.CorruptRecord, match="write it again"):
        tk[0]
    assert tk[1]["tokens"].size
    with pytest.raises(sk.CorruptRecord, match="write it again"):
        list(tk.pack(6, seed=5, align=["spans"]))
    with pytest.raises(sk.errors.CorruptTokens, match="ends of the digest"):
        sk.open(tmp_path)
    assert verify(tmp_path, deep=True, jobs=1).problems
    part.write_bytes(data[:-1])
    with pytest.raises(sk.errors.CorruptTokens, match="spans"):
        sk.open(tmp_path, index=sk.Index(folder=tmp_path / "again"))


def test_other_processes_write_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    records = [{"text": text, "spans": [[0, len(text), 7]]} for text in TRAPS * 3]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "tokenizer.json").write_text(trained_json())
    store = TokenStore(align={"spans": Spans()}, rows_per_file=5)
    for folder, jobs in (("one", 1), ("two", 2)):
        made = tmp_path / folder
        sk.tokenize(path, to=made, tokenizer=tmp_path / "tokenizer.json", store=store, jobs=jobs)
    for part in sorted((tmp_path / "one").glob("part-*")):
        assert part.read_bytes() == (tmp_path / "two" / part.name).read_bytes()
