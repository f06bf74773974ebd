"""Token stores by their folder, which ``tokens.json`` describes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.dataset.spec import Spec, checked_format
from seekable.errors import DataNotFound
from seekable.formats.tokens.options import TOKENS
from seekable.formats.tokens.store import unfinished
from seekable.storage.listing import Found
from seekable.tokens.store_document import DOCUMENT, FACTS, read_document

if TYPE_CHECKING:
    from seekable.formats.registry import Format

__all__ = ["StoreSpec"]


@dataclass(frozen=True, slots=True)
class StoreSpec(Spec):
    """A folder that ``write_tokens`` or ``sk.tokenize`` wrote."""

    text: str
    """The path of the folder, as the user wrote it."""

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[Found, ...], Format]:
        """Return the files of tokens in the order of ``tokens.json``, and their format.

        Raises:
            DataNotFound: the store is not finished, or a file of it is missing.
            CorruptState: ``tokens.json`` is damaged.
        """
        form = checked_format(self, TOKENS, format_name)
        folder = os.path.abspath(self.text)
        document = read_document(folder)
        if document is None:
            raise unfinished(folder)
        there = set(os.listdir(folder))
        for part in document.parts:
            for suffix in (*part.digests, FACTS):
                if f"{part.name}.{suffix}" not in there:
                    message = (
                        f"the token store {folder!r} has no {part.name + '.' + suffix!r}, which its "
                        f"{DOCUMENT!r} lists: copy the store again, or repeat the call that wrote it, which "
                        f"writes this part again"
                    )
                    raise DataNotFound(message)
        return (Found(folder, tuple(f"{part.name}.bin" for part in document.parts)),), form
