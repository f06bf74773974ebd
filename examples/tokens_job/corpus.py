"""Write code and prose of Python's standard library as JSON lines, and train a tokenizer on them.

    python corpus.py FOLDER

FOLDER gets code.jsonl (a function or class a record), prose.jsonl (a docstring a record) and tokenizer.json,
a byte-level BPE. A record has the module it is from, and its text.
"""

from __future__ import annotations

import ast
import glob
import json
import os
import sys
import sysconfig
from typing import TYPE_CHECKING

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

if TYPE_CHECKING:
    from collections.abc import Iterator

VOCABULARY = 512
END = "<|endoftext|>"
EVERY = 8
"""One module of so many is used: the demo should not take long."""


def modules() -> Iterator[tuple[str, str]]:
    """Yield names and sources of modules of the standard library."""
    paths = sorted(glob.glob(os.path.join(glob.escape(sysconfig.get_path("stdlib")), "*.py")))
    for path in paths[::EVERY]:
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path).removesuffix(".py"), file.read()


def definitions(source: str) -> Iterator[ast.AST]:
    """Yield the functions and classes at the top of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    yield from (node for node in ast.parse(source).body if isinstance(node, kinds))


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, and of all that it defines."""
    kinds = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield text


def write(path: str, records: list[dict[str, str]]) -> None:
    """Write JSON lines."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Return a byte-level BPE, trained on the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main() -> None:
    """Write both files, and the tokenizer."""
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    code: list[dict[str, str]] = []
    prose: list[dict[str, str]] = []
    for module, source in modules():
        cuts = (ast.get_source_segment(source, node) for node in definitions(source))
        code += [{"module": module, "text": text} for text in cuts if text]
        prose += [{"module": module, "text": text} for text in docstrings(source)]
    write(os.path.join(folder, "code.jsonl"), code)
    write(os.path.join(folder, "prose.jsonl"), prose)
    tokenizer = train_tokenizer([record["text"] for record in code + prose])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    print(f"{len(code):,} pieces of code, {len(prose):,} docstrings, a vocabulary of {VOCABULARY:,} tokens")


if __name__ == "__main__":
    main()
