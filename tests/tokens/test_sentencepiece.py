"""Models of SentencePiece give the ids of their own package."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.tokens.trained import TEXTS

import seekable as sk
from seekable.formats.tokens.tokenizing.engine import UnfitDocument
from seekable.formats.tokens.tokenizing.engines import engine_of

if TYPE_CHECKING:
    from pathlib import Path

sentencepiece: Any = pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small model, trained on a few lines."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([f"{text} {number}" for text in TEXTS[:4] for number in range(50)]),
        model_writer=written,
        vocab_size=600,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("model") / "tokenizer.model"
    path.write_bytes(written.getvalue())
    return path


def test_the_ids_are_those_of_the_package(model: Path) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    engine = pickle.loads(pickle.dumps(engine_of(model)))
    ids, lengths = engine.encode(TEXTS)
    assert [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])] == processor.encode(TEXTS)
    assert engine.vocabulary == processor.vocab_size()
    assert engine.decode(ids[: lengths[0]]) == TEXTS[0]
    assert (engine.id_of("</s>"), engine.id_of(7)) == (processor.eos_id(), 7)
    with pytest.raises(sk.errors.InvalidArgument, match="is no piece of the model"):
        engine.id_of("no such piece")
    with pytest.raises(UnfitDocument, match="lone surrogate"):
        engine.encode(["a", "\ud800"])


def test_a_store_of_a_model(model: Path, tmp_path: Path) -> None:
    texts = [{"text": text} for text in TEXTS]
    tk = sk.tokenize(sk.from_sequence(texts), to=tmp_path, tokenizer=model, eos="</s>", jobs=1)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    assert [record["tokens"].tolist() for record in tk] == [
        [*processor.encode(text), processor.eos_id()] for text in TEXTS
    ]


def test_a_damaged_model_is_refused(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.model"
    path.write_bytes(model.read_bytes()[:-100])
    with pytest.raises(sk.errors.InvalidArgument, match="no model that the package sentencepiece can read"):
        engine_of(path)
