"""What an address searches for, on the page of a search and on those of the rows that it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from seekable.viewer.facts.key_paths import path_of, path_text
from seekable.viewer.facts.search import Searched

if TYPE_CHECKING:
    from seekable.viewer.page import Asked


def searched_of(asked: Asked) -> Searched:
    """Return what an address searches for.

    Raises:
        InvalidArgument: the key is not written as one.
    """
    key = asked.text("key")
    return Searched(
        asked.text("q"),
        regex=bool(asked.query.get("regex")),
        case=bool(asked.query.get("case")),
        path=path_of(key) if key else None,
    )


def query_of(searched: Searched) -> str:
    """Return the parameters of an address that searches for something.

    Example:
        >>> query_of(Searched("a cat", case=True, path=("meta", "url")))
        'q=a+cat&key=meta.url&case=1'
    """
    key = "" if searched.path is None else path_text(searched.path)
    given = {"q": searched.text, "key": key, "regex": searched.regex and 1, "case": searched.case and 1}
    return urlencode({name: value for name, value in given.items() if value}, errors="surrogatepass")
