"""The parts of a page: the parameters of its address, and the content that it shows."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from seekable.errors import InvalidArgument
from seekable.viewer.charts import THEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seekable.viewer.charts import Theme

_MOST_TEXT = 1024
_LARGEST = (1 << 63) - 1


def query_with(query: Mapping[str, str], changes: Mapping[str, Any]) -> str:
    """Return a query with some parameters changed; those that become None are left out.

    If none is left it is empty, so it has to follow an address: alone it would be a link to the same query.

    Example:
        >>> query_with({"at": "3", "as": "json"}, {"n": 5}), query_with({"at": "3"}, {"at": None})
        ('?at=3&n=5', '')
    """
    merged = {**{key: value for key, value in query.items() if key not in ("as", "is")}, **changes}
    left = urlencode(
        {key: value for key, value in merged.items() if value is not None}, errors="surrogatepass"
    )
    return left and f"?{left}"


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of an address, and checks of them."""

    path: Mapping[str, Any]
    """The parameters within the path, by name."""

    query: Mapping[str, str]
    """The parameters after the question mark."""

    byte_range: str | None = None
    """The header Range."""

    address: str = ""
    """The whole address below the root of the viewer."""

    @property
    def name(self) -> str:
        """The name of the dataset, the pipeline or the folder of states."""
        return str(self.path["name"])

    @property
    def theme(self) -> Theme:
        """The colours of a chart.

        Raises:
            InvalidArgument: there is no such theme.
        """
        return cast("Theme", self.choice("theme", THEMES))

    def count(self, key: str, *, default: int, least: int = 0, most: int = _LARGEST) -> int:
        """Return an integer parameter of the query.

        Raises:
            InvalidArgument: it is not a number, or out of range.
        """
        text = self.query.get(key, "").replace(",", "")
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            upto = "" if most == _LARGEST else f" to {most:,}"
            message = f"{key}= takes a number from {least:,}{upto} (got {text[:40]!r})"
            raise InvalidArgument(message)
        return number

    def optional(self, key: str, *, least: int = 0, most: int = _LARGEST) -> int | None:
        """Return an integer parameter of the query; None if it is not given.

        Raises:
            InvalidArgument: it is not a number, or out of range.
        """
        return self.count(key, default=least, least=least, most=most) if self.query.get(key) else None

    def text(self, key: str, default: str = "") -> str:
        """Return a text parameter of the query.

        Raises:
            InvalidArgument: it is longer than 1,024 bytes.
        """
        text = self.query.get(key, default)
        if len(text.encode("utf-8", "surrogatepass")) > _MOST_TEXT:
            message = f"{key}= takes at most {_MOST_TEXT:,} bytes (got {len(text):,} characters)"
            raise InvalidArgument(message)
        return text

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return one of some texts, the first of them if none is given.

        Raises:
            InvalidArgument: it is another text.
        """
        text = self.query.get(key) or choices[0]
        if text not in choices:
            message = f"{key}= takes one of {', '.join(choices)} (got {text[:40]!r})"
            raise InvalidArgument(message)
        return text


@dataclass(frozen=True, slots=True)
class PageRows:
    """The rows of a page as ``?as=csv`` and ``?as=jsonl`` give them."""

    header: Sequence[str]
    rows: Iterable[Sequence[Any]]

    def as_csv(self) -> bytes:
        """Return the header and the rows as CSV in UTF-8."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return out.getvalue().encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the same facts as a JSON document."""

    template: str
    """The name of the template, without its suffix."""

    title: str
    document: Mapping[str, Any]
    """The facts: what ``?as=json`` gives."""

    shown: Mapping[str, Any] = field(default_factory=dict)
    """What the template needs besides the document."""

    table: PageRows | None = None
    status: int = 200

    facts: Callable[[], Mapping[str, Any]] | None = None
    """Makes the facts of the JSON document that the page itself does not show; None if it shows all."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another address that shows what is asked for, relative to the root of the viewer."""

    to: str


@dataclass(frozen=True, slots=True)
class Svg:
    """A chart as the text of an SVG file."""

    text: str
