"""A file that leads a browser to the link: every user of a machine reads command lines, and not this file."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def redirect_page(url: str) -> Iterator[str]:
    """Inside of the block, give the address of a page that leads to a URL, and that this user alone can read.

    Example:
        >>> with redirect_page("http://127.0.0.1:7335/secret/") as page:
        ...     page.startswith("file:///"), "secret" in page
        (True, False)
    """
    link = escape(url)
    handle, path = tempfile.mkstemp(prefix="seekable-view-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>seekable</title>'
            f'<meta http-equiv="refresh" content="0; url={link}"></head>'
            f'<body><p><a href="{link}">Open the viewer</a></p></body></html>'
        )
    try:
        yield Path(path).as_uri()
    finally:
        with suppress(OSError):
            os.unlink(path)
