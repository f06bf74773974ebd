"""The surveyor of files of tokens: it recognises the tool that wrote a file, also by the files beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.formats.tokens.families import survey_of_family
from seekable.formats.tokens.options import token_options
from seekable.formats.tokens.token_file import TokenFile
from seekable.formats.tokens.words import TokenSchema
from seekable.storage.files import stat_file

if TYPE_CHECKING:
    from seekable.index.surveyor import ForwardBytes, SideFile, Survey

__all__ = ["TokenSurveyor"]


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

    def survey(self, source: ForwardBytes) -> Survey:
        """Return the documents of a file.

        Raises:
            UnsupportedFormat: the file, or one beside it, is damaged, or is of a form that is not read.
            InvalidArgument: an option is missing, or contradicts the file.
        """
        options = token_options(self.name)
        size = stat_file(source.path).st_size
        return survey_of_family(TokenFile(source.path, size, source, options))
