"""Lines of text: every line is a record, blank ones too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.formats.lines.line_bounds import scan_lines
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seekable.index.scanner import ByteSource


@dataclass(frozen=True, slots=True)
class TextScanner:
    """Finds the lines of a text file."""

    name: str = "text"
    splittable: bool = True

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are not text in UTF-8.
        """
        check_is_text(head, path)

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets at which lines start, uint64."""
        return scan_lines(source, keep_blank=True)
