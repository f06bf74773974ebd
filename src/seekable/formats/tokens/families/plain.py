"""Files of nothing but tokens: nanoGPT's without a header, those of llm.c and modded-nanogpt with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.families.document_ends import ends_by_tokens
from seekable.formats.tokens.token_file import damage
from seekable.formats.tokens.words import TokenSchema, token_survey

if TYPE_CHECKING:
    from seekable.formats.tokens.token_file import TokenFile
    from seekable.index.surveyor import Survey

__all__ = ["LLM_C", "LLM_C_EVALUATION", "said_dtype", "survey_headerless", "survey_llm_c"]

LLM_C = {20240520: (1, "<u2"), 20240801: (7, "<u4")}
"""The version and the type of tokens, by the first number of the header of llm.c."""

LLM_C_EVALUATION = 20240522
"""The first number of files of questions for an evaluation, which are no corpus."""

_HEADER_BYTES = 1024


def survey_headerless(file: TokenFile) -> Survey:
    """Return the documents of a file without a header.

    Raises:
        InvalidArgument: the user named no type of tokens.
        CorruptTokens: the file ends within a token.
    """
    return survey_plain(file, 0, said_dtype(file))


def said_dtype(file: TokenFile) -> str:
    """Return the type of tokens that the user named, of a file that does not say it.

    Raises:
        InvalidArgument: the user named none.
    """
    if file.options.dtype is None:
        message = (
            f"{file.path!r} does not say of which type its tokens are: say it, and where documents "
            f"end: sk.formats.Tokens(dtype='uint16', eos=50256) or the like"
        )
        raise InvalidArgument(message)
    return file.options.dtype


def survey_llm_c(file: TokenFile, magic: int) -> Survey:
    """Return the documents of a file with the header of llm.c.

    Args:
        file: the file.
        magic: the first number of its header.

    Raises:
        CorruptTokens: the header says another number of tokens than the file has.
        UnsupportedFormat: it is a file of questions, or of another version.
        InvalidArgument: the user named another type of tokens.
    """
    if magic == LLM_C_EVALUATION:
        message = (
            f"{file.path!r}: byte 0: {magic} begins a file of questions of llm.c (HellaSwag), which are no "
            f"documents: open files that begin with {' or '.join(map(str, LLM_C))}"
        )
        raise UnsupportedFormat(message)
    version, dtype = LLM_C[magic]
    header = np.frombuffer(file.source.read(0, _HEADER_BYTES), np.uint8)
    if len(header) < _HEADER_BYTES:
        raise damage(
            file.path,
            len(header),
            expected=f"a header of {_HEADER_BYTES} bytes, as llm.c writes it",
            found="the end of the file",
            way_out="the file is cut: copy it again",
        )
    _, found_version, count = header[:12].view("<i4").tolist()
    if found_version != version:
        message = (
            f"{file.path!r}: byte 4: the header of llm.c is of version {found_version}, and {magic} has "
            f"version {version}: write the file with the data scripts of llm.c or modded-nanogpt"
        )
        raise UnsupportedFormat(message)
    dtype = file.dtype_of(dtype, where="its header")
    size = _HEADER_BYTES + count * np.dtype(dtype).itemsize
    if count < 0:
        way_out = "the file is damaged: copy it again"
        raise damage(file.path, 8, expected="0 tokens or more", found=f"{count}", way_out=way_out)
    if size != file.size:
        raise damage(
            file.path,
            min(size, file.size),
            expected=f"{size} bytes, as the header says of its {count} tokens",
            found=f"{file.size} bytes",
            way_out="the file is cut or damaged: copy it again",
        )
    return survey_plain(file, _HEADER_BYTES, dtype)


def survey_plain(file: TokenFile, first: int, dtype: str) -> Survey:
    """Return the documents of a file that has nothing but tokens from a byte on.

    Raises:
        CorruptTokens: the file ends within a token.
        InvalidArgument: ``eos`` or ``bos`` is no value of the type.
    """
    ends = ends_by_tokens(file, first, dtype)
    schema = TokenSchema(dtype, first=first, warnings=ends.warnings)
    return token_survey(ends.bounds, schema, digest=ends.digest)
