"""The surveyor of files of tokens: it recognises the tool that wrote a file, also by the files beside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument
from seekable.formats.tokens import megatron
from seekable.formats.tokens.options import token_options
from seekable.formats.tokens.token_file import TokenFile
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from seekable.index.surveyor import ForwardBytes, Survey

__all__ = ["TokenSurveyor"]

_MAGIC_BYTES = 16


@dataclass(frozen=True, slots=True)
class TokenSurveyor:
    """Finds the documents of a file of tokens."""

    name: str
    """``"tokens"``, and the options that decide where documents start."""

    def check_head(self, head: bytes, path: str) -> None:
        """Accept every file; `survey` refuses those that are of no family of formats."""

    def survey(self, source: ForwardBytes) -> Survey:
        """Return the documents of a file.

        Raises:
            UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
            InvalidArgument: an option is missing, or contradicts the file.
        """
        options = token_options(self.name)
        file = TokenFile(source.path, stat_file(source.path).st_size, source, options)
        if _head_of(file.sibling(".idx")).startswith(megatron.MAGIC):
            return megatron.survey_megatron(file)
        message = f"the type of the tokens of {file.path!r} is not known: say it, as dtype='uint16'"
        raise InvalidArgument(message)


def _head_of(path: str) -> bytes:
    """Return the first bytes of a file; none if it is not there."""
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(_MAGIC_BYTES)
