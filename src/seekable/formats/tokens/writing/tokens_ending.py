"""The last step of a token store: the tokenizer's file and ``tokens.json``, made of the facts of parts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from seekable.formats.file_format import Ending
from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace
from seekable.formats.tokens.tokenizing.id_lists import IdLists
from seekable.formats.tokens.tokenizing.stand_in import StandIn
from seekable.formats.tokens.tokenizing.store_document import (
    DOCUMENT,
    FACTS,
    TOKENIZER,
    VERSION,
    PartFacts,
    SourceFacts,
    StoreDocument,
    TokenizerFacts,
    decode_facts,
    encoded_document,
)
from seekable.formats.tokens.tokenizing.tiktoken_engine import Tiktoken
from seekable.formats.tokens.writing.tokens_format import Tokens
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.file_format import FileFormat, Origin
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["StoreEnding", "described", "facts_of", "tokenizer_file"]


@dataclass(frozen=True, slots=True)
class StoreEnding(Ending):
    """The last step of the writing of a token store."""

    tokenizer: str | None
    """The content of the tokenizer's file; None for no file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tokenizer's file if there is one, then ``tokens.json``."""
        return (DOCUMENT,) if self.tokenizer is None else (TOKENIZER, DOCUMENT)

    @property
    def data(self) -> tuple[()]:
        """No names: the parts hold the documents."""
        return ()

    @property
    def replaces_parts(self) -> bool:
        """False: the parts are the store."""
        return False

    def end(self, folder: str, form: FileFormat, paths: Sequence[str], origin: Origin) -> None:
        """Write the tokenizer's file, then ``tokens.json``."""
        assert isinstance(form, Tokens)
        if self.tokenizer is not None:
            output_of(folder).write(os.path.join(folder, TOKENIZER), self.tokenizer.encode())
        name = None if self.tokenizer is None else TOKENIZER
        document = described(form, origin, [facts_of(path) for path in paths], tokenizer_name=name)
        output_of(folder).write(os.path.join(folder, DOCUMENT), encoded_document(document))


def described(
    form: Tokens, origin: Origin, parts: Sequence[PartFacts], *, tokenizer_name: str | None
) -> StoreDocument:
    """Return the document of a store.

    Args:
        form: the format of the parts, settled.
        origin: the description of the records.
        parts: the facts of all parts.
        tokenizer_name: the name of the tokenizer's file in the folder; None for no file.
    """
    tokenizing, engine = form.tokenizing, _tokenizer(form.tokenizing.engine)
    tokenizer = None
    if engine is not None:
        tokenizer = TokenizerFacts(
            engine.name,
            engine.digest,
            name=engine.encoding.name if isinstance(engine, Tiktoken) else "",
            library=engine.library,
            file=tokenizer_name,
            compared=form.compared,
        )
    return StoreDocument(
        seekable_tokens=VERSION,
        dtype=tokenizing.dtype.name,
        documents=sum(part.documents for part in parts),
        tokens=sum(part.tokens for part in parts),
        empty=sum(part.empty for part in parts),
        vocabulary=tokenizing.engine.vocabulary,
        eos=tokenizing.eos,
        bos=tokenizing.bos,
        column=getattr(tokenizing.documents, "column", None),
        aligned={name: dtype.name for name, dtype in form.layout.aligned},
        tokenizer=tokenizer,
        source=SourceFacts(origin.fingerprint, origin.records, list(origin.files)),
        parts=list(parts),
    )


def tokenizer_file(engine: Engine) -> str | None:
    """Return the content of the file that a tokenizer can be loaded from; None if it has no such file."""
    tokenizer = _tokenizer(engine)
    whole = tokenizer.reference if isinstance(tokenizer, StandIn) else tokenizer
    return whole.json if isinstance(whole, HuggingFace) else None


def _tokenizer(engine: Engine) -> Engine | None:
    """Return the tokenizer whose ids an engine makes or takes; None for ids of an unknown one."""
    return engine.tokenizer if isinstance(engine, IdLists) else engine


def facts_of(path: str) -> PartFacts:
    """Return the facts of a part that was written, by the path of its tokens."""
    stem = os.path.splitext(path)[0]
    facts = decode_facts(output_of(stem).read(f"{stem}.{FACTS}"))
    return msgspec.structs.replace(facts, name=os.path.basename(stem))
