"""Small tokenizers, trained on a few lines, and texts that are hard for them."""

from __future__ import annotations

import functools
import inspect
import json

import tiktoken
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

EOS = "<|endoftext|>"

TEXTS = [
    "hello world, hello tokens",
    "",
    "def main() -> None:\n\treturn  None\n\n",
    "zażółć gęślą jaźń 東京 🎉",
    f"{EOS} is text here, and so is <eod> and <plain>",
    "    ",
    "x" * 300,
]


@functools.cache
def trained_json(*, specials: tuple[str, ...] = (EOS,), size: int = 600) -> str:
    """Return the tokenizer.json of a byte-level BPE, trained on the source of the module json."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([inspect.getsource(json), inspect.getsource(json.decoder)], trainer)
    described: str = tokenizer.to_str()
    return described


def trained() -> Tokenizer:
    """Return a tokenizer with one special token, `EOS`, whose id is 0."""
    return Tokenizer.from_str(trained_json())


def eager() -> Tokenizer:
    """Return a tokenizer that adds tokens, cuts and pads, as some files do, with a plain added token."""
    tokenizer = trained()
    tokenizer.add_tokens([AddedToken("<eod>", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{EOS} $A {EOS}", special_tokens=[(EOS, 0)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    return tokenizer


def byte_encoding() -> tiktoken.Encoding:
    """Return an encoding of tiktoken whose ids are bytes, with one special token, 256."""
    return tiktoken.Encoding(
        "bytes",
        pat_str=r"\w+|\W+",
        mergeable_ranks={bytes([value]): value for value in range(256)},
        special_tokens={EOS: 256},
    )
