"""The engine of whatever a user gives as a tokenizer."""

from __future__ import annotations

import os
import sys
from typing import Any

from seekable._arguments import checked_path
from seekable.errors import AccessDenied, DataNotFound, InvalidArgument
from seekable.formats.tokens.tokenizing.engine import Engine, wrong_tokenizer
from seekable.formats.tokens.tokenizing.gigatoken_engine import gigatoken_engine
from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace, huggingface_engine
from seekable.formats.tokens.tokenizing.merged_ranks import merged_ranks_engine
from seekable.formats.tokens.tokenizing.text_function import function_engine
from seekable.formats.tokens.tokenizing.tiktoken_engine import tiktoken_engine, tiktoken_named
from seekable.storage.paths import is_folder, read_bytes

__all__ = ["ENGINES", "engine_of"]

ENGINES = ("hf", "tiktoken", "gigatoken")
"""The names of engines that ``engine=`` accepts."""

_FILE = "tokenizer.json"

_FIRST_PRINTED = 0x20
_JSON_SPACES = (b"\t", b"\n", b"\r")

_TIKTOKEN = "tiktoken:"


def engine_of(tokenizer: Any, engine: str | None = None) -> Engine:
    """Return the engine of a tokenizer.

    Args:
        tokenizer: the path of a ``tokenizer.json`` or of a folder with one; a ``tokenizers.Tokenizer``; a
            fast tokenizer of transformers; a ``tiktoken.Encoding``, or ``"tiktoken:"`` and the name of one; a
            function of a text that returns its ids, or of a list of texts that returns a list for each.
        engine: the package that makes the ids; None for the package that the tokenizer is of. ``"gigatoken"``
            and ``"tiktoken"`` make the ids of a tokenizer of Hugging Face faster, after a comparison.

    Raises:
        WrongType: it is no tokenizer.
        InvalidArgument: the engine cannot make the ids of this tokenizer.
        DataNotFound, AccessDenied: there is no such file, or it cannot be read.
        MissingDependency: the package is not installed.
    """
    if engine is not None and engine not in ENGINES:
        message = f"engine must be one of {', '.join(map(repr, ENGINES))}, or None (got {engine!r})"
        raise InvalidArgument(message)
    found = tokenizer if isinstance(tokenizer, Engine) else _own_engine(tokenizer)
    if engine is None or engine == found.name:
        return found
    if engine == "gigatoken" and isinstance(found, HuggingFace):
        return gigatoken_engine(found)
    if engine == "tiktoken" and isinstance(found, HuggingFace):
        return merged_ranks_engine(found)
    message = (
        f"engine={engine!r} cannot make the ids of this tokenizer, which are made by {found.name!r}: leave "
        f"out engine=, or give a tokenizer for it"
    )
    raise InvalidArgument(message)


def _own_engine(tokenizer: Any) -> Engine:
    if isinstance(tokenizer, str) and tokenizer.startswith(_TIKTOKEN):
        return tiktoken_named(tokenizer.removeprefix(_TIKTOKEN))
    if isinstance(tokenizer, str | os.PathLike):
        return _of_path(checked_path(tokenizer))
    if _is_a(tokenizer, "tiktoken", "Encoding"):
        return tiktoken_engine(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if _is_a(backend, "tokenizers", "Tokenizer"):
        return huggingface_engine(backend.to_str(), of="the tokenizer")
    if callable(getattr(tokenizer, "convert_tokens_to_ids", None)):
        message = (
            f"{type(tokenizer).__name__} is written in Python and has no tokenizer.json: give a function, "
            f"such as one that returns tokenizer.encode(text, add_special_tokens=False)"
        )
        raise InvalidArgument(message)
    if callable(tokenizer):
        return function_engine(tokenizer, _owner(tokenizer))
    raise wrong_tokenizer(tokenizer)


def _owner(method: Any) -> Engine | None:
    """Return the engine of the tokenizer that a bound method is of; None for other functions."""
    owner = getattr(method, "__self__", None)
    if owner is None or isinstance(owner, type | str | bytes | os.PathLike):
        return None
    backend = getattr(owner, "backend_tokenizer", owner)
    known = _is_a(owner, "tiktoken", "Encoding") or _is_a(backend, "tokenizers", "Tokenizer")
    return _own_engine(owner) if known else None


def _is_a(thing: Any, module: str, name: str) -> bool:
    """Return True for an instance of a class of a package, which is not imported for that."""
    package = sys.modules.get(module)
    return package is not None and isinstance(thing, getattr(package, name))


def _of_path(path: str) -> Engine:
    file = os.path.join(path, _FILE) if is_folder(path) else path
    try:
        data = read_bytes(file)
        if _is_sentencepiece(data):
            message = (
                f"{file!r} is a model of SentencePiece, and a {_FILE} is read here: give that of the same "
                f"model (on the Hub it lies beside it), or a function of a text that returns its ids, such "
                f"as sentencepiece.SentencePieceProcessor(model_file={file!r}).encode"
            )
            raise InvalidArgument(message)
        return huggingface_engine(data.decode(), of=repr(file))
    except FileNotFoundError:
        message = (
            f"there is no tokenizer at {file!r}: give the path of a {_FILE}, or 'tiktoken:NAME'; a tokenizer "
            f"of the Hub is saved by tokenizers.Tokenizer.from_pretrained(name).save({_FILE!r})"
        )
        raise DataNotFound(message) from None
    except PermissionError as error:
        message = f"no permission to read the tokenizer {file!r}"
        raise AccessDenied(message) from error
    except UnicodeDecodeError as error:
        message = f"{file!r} is no {_FILE}: it is not UTF-8 at byte {error.start}"
        raise InvalidArgument(message) from error


def _is_sentencepiece(data: bytes) -> bool:
    """Return True for a model of SentencePiece: a first piece with its size, in it a text with its own."""
    return data[:1] == data[2:3] == b"\n" and data[1] < _FIRST_PRINTED and data[1:2] not in _JSON_SPACES
