"""What answers of stores mean: web pages in the place of files, and objects that stand for folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seekable.errors import AccessDenied
from seekable.remote.stores.store import plain_etag

if TYPE_CHECKING:
    from seekable.remote.stores.store import Page

__all__ = ["is_between", "is_page", "page_refused", "same_etag", "without_markers"]

_PAGES: Final = ("text/html", "application/xhtml+xml")
_PAGE_SUFFIXES: Final = (".html", ".htm", ".xhtml")


def is_page(key: str, content_type: str | None) -> bool:
    """Return True if the answer for a file is a web page, and the name of the file is not that of one.

    Such a page asks for a log-in, or says that there is an error.

    Example:
        >>> is_page("a.jsonl", "text/html; charset=utf-8"), is_page("a.html", "text/html"), is_page("a", None)
        (True, False, False)
    """
    kind = str(content_type or "").lower()
    return kind.startswith(_PAGES) and not key.lower().endswith(_PAGE_SUFFIXES)


def page_refused(shown: str, content_type: str | None, credentials: str) -> AccessDenied:
    """Return the error for a web page in the place of a file.

    Args:
        shown: the address of the file, without secrets.
        content_type: that of the answer.
        credentials: a text for the kind of the credentials that were used.
    """
    return AccessDenied(
        f"{shown} cannot be read: the server answers with a web page ({content_type}) in the place of the "
        f"file, such as one that asks for a log-in (credentials: {credentials}); give the address of the "
        f"file, or storage_options={{'headers': {{'Authorization': ...}}}}, or download the file"
    )


def same_etag(one: str | None, other: str | None) -> bool:
    """Return True if two etags are of one content, be they weak or without quotes."""
    return bool(one and other) and plain_etag(str(one)) == plain_etag(str(other))


def is_between(key: str, after: str, before: str) -> bool:
    """Return True if a key comes after one and before another; an empty one is no bound."""
    return key > after and (not before or key < before)


def without_markers(page: Page) -> Page:
    """Leave out empty objects that stand for a folder: the keys of the next objects begin with theirs."""
    last = len(page) - 1
    return [
        stat
        for at, stat in enumerate(page)
        if stat.size or at == last or not page[at + 1].key.startswith(f"{stat.key}/")
    ]
