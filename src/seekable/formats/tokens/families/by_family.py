"""The surveyor of files of tokens: it recognises the family of a file, also by the files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import UnsupportedFormat
from seekable.formats.tokens.families import megatron, tntidx
from seekable.formats.tokens.families.datatrove import survey_datatrove
from seekable.formats.tokens.families.numpy_file import NUMPY_MAGIC, survey_numpy
from seekable.formats.tokens.families.olmo import survey_olmo
from seekable.formats.tokens.families.plain import LLM_C, LLM_C_EVALUATION, survey_headerless, survey_llm_c
from seekable.formats.tokens.families.store import is_part, survey_part
from seekable.formats.tokens.options import token_options
from seekable.formats.tokens.token_file import TokenFile, head_of
from seekable.formats.tokens.token_folders import survey_listed
from seekable.formats.tokens.words import TokenSchema
from seekable.storage import paths
from seekable.storage.first_bytes import HEAD_BYTES, check_compression, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Callable

    from seekable.index.surveyor import ForwardReader, SideFile, Survey

__all__ = ["TokenSurveyor"]

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".npz")

_INDEXES: tuple[tuple[bytes, Callable[[TokenFile], Survey]], ...] = (
    (megatron.MAGIC, megatron.survey_megatron),
    (tntidx.MAGIC, tntidx.survey_tntidx),
)
"""The first bytes of each kind of ``.idx`` beside a ``.bin``, and the function that reads it."""


@dataclass(frozen=True, slots=True)
class TokenSurveyor:
    """Finds the documents of a file of tokens."""

    name: str
    """``"tokens"``, and the options that decide where documents start."""

    def check_head(self, head: bytes, path: str) -> None:
        """Accept every file; `survey` refuses those that are of no family of formats."""

    def side_files(self, schema: bytes) -> tuple[SideFile, ...]:
        """Return the files beside a file of tokens that its survey read, or looked for."""
        return TokenSchema.decode(schema).beside

    def survey(self, source: ForwardReader) -> Survey:
        """Return the documents of a file.

        Raises:
            UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
            InvalidArgument: an option is missing, or contradicts the file.
        """
        options = token_options(self.name)
        with paths.listing_once(source.path):
            size = paths.status(source.path).size
            return _survey_of_family(TokenFile(source.path, size, source, options))


def _survey_of_family(file: TokenFile) -> Survey:
    """Return the documents of a file, by the family of formats that it is of.

    Files beside it come first, then its own first bytes; a file with neither has no header.

    Raises:
        UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
        InvalidArgument: an option is missing, or contradicts the file.
    """
    name = file.path.lower()
    if name.endswith(_PICKLES):
        message = f"{file.path!r} may run any code when it is loaded, and is never read: open files of tokens"
        raise UnsupportedFormat(message)
    if (found := _by_files_beside(file)) is not None:
        return found
    head = bytes(file.source.read(0, HEAD_BYTES))
    if head.startswith(NUMPY_MAGIC):
        return survey_numpy(file)
    magic = int.from_bytes(head[:4], "little")
    if name.endswith(".bin") and (magic in LLM_C or magic == LLM_C_EVALUATION):
        return survey_llm_c(file, magic)
    check_compression(head, file.path, renames=False)
    refuse_foreign(head, file.path, what="a file of tokens")
    return survey_olmo(file) if name.endswith(".npy") else survey_headerless(file)


def _by_files_beside(file: TokenFile) -> Survey | None:
    """Return the documents of a file as a file beside it has them; None if there is no such file."""
    is_bin = file.path.lower().endswith(".bin")
    if is_bin and is_part(file.path):
        return survey_part(file)
    if is_bin and paths.is_file(index := file.sibling(".idx")):
        return _by_index(file, index)
    if paths.is_file(f"{file.path}.index"):
        return survey_datatrove(file)
    return survey_listed(file)


def _by_index(file: TokenFile, index: str) -> Survey:
    head = head_of(index)
    for magic, survey in _INDEXES:
        if head.startswith(magic):
            return survey(file)
    known = " or ".join(str(magic) for magic, _ in _INDEXES)
    message = (
        f"{index!r}: byte 0: expected {known}, as indexes of Megatron and fairseq begin, found {head!r}; the "
        f"index of {file.path!r} is cut or damaged: copy it again, or move it away if it is of something else"
    )
    raise UnsupportedFormat(message)
