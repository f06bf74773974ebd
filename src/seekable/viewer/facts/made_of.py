"""What a figure is made of: its origin in words, the bounds of a share, the pace of partial results.

Pages, the command line and JSON documents print the words beside each figure.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from datetime import datetime

FROM_INDEX = "exact, from the index"
COMPUTED = "exact, computed"

NORMAL_95 = 1.959963984540054
"""The 97.5 % point of the normal distribution, for intervals of 95 %."""

RULE_OF_THREE = 3.0
"""What never came in n draws has a share of at most 3/n with 95 % confidence: 0.95 = 1 - exp(-3)."""

_SECONDS = 0.05
_PARTS = 4


def from_sample(rows: int, *, of: int, seed: int) -> str:
    """Return the words for a figure from some rows of a shuffle.

    Args:
        rows: the number of rows that were looked at.
        of: the number of all rows.
        seed: the seed of the shuffle.

    Example:
        >>> from_sample(1000, of=10_000_000, seed=0)
        'from 1,000 of 10,000,000 rows, seed 0'
        >>> from_sample(3, of=3, seed=0)
        'exact, from all 3 rows'
    """
    if rows >= of:
        return f"exact, from all {of:,} rows" if of != 1 else "exact, from the only row"
    return f"from {rows:,} of {of:,} rows, seed {seed}"


def from_all(at: datetime) -> str:
    """Return the words for a figure from a pass over all records.

    Example:
        >>> from datetime import datetime, timezone
        >>> from_all(datetime(2026, 1, 31, 14, 2, tzinfo=timezone.utc))
        'from all, at 14:02'
    """
    return f"from all, at {at:%H:%M}"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the rows that have a property, with its 95 % bounds.

    Example:
        >>> share_of(600, 1000).in_words()
        '60 % (57 to 63)'
        >>> share_of(0, 1000).in_words()
        'at most 0.3 %'
        >>> share_of(1000, 1000).in_words()
        'at least 99.7 %'
        >>> share_of(1, 4, exact=True).in_words()
        '25 %'
    """

    count: int
    """The number of rows that have the property."""

    of: int
    """The number of rows that were looked at."""

    low: float
    """The lower bound of the share, 0 to 1."""

    high: float
    """The upper bound of the share, 0 to 1; equal to the lower one if the share is exact."""

    @property
    def share(self) -> float:
        """The share among the rows that were looked at, 0 to 1; 0 without rows."""
        return self.count / self.of if self.of else 0.0

    @property
    def exact(self) -> bool:
        """True if all rows were looked at, so that the share has no bounds."""
        return self.low == self.high

    def in_words(self) -> str:
        """Return the share in percent with its bounds: "at most" if never seen, "at least" if always."""
        if not self.of:
            return "no rows"
        if self.exact:
            return f"{_percent(self.share)} %"
        if not self.count:
            return f"at most {_percent(self.high)} %"
        if self.count == self.of:
            return f"at least {_percent(self.low)} %"
        return f"{_percent(self.share)} % ({_percent(self.low)} to {_percent(self.high)})"

    def document(self) -> dict[str, Any]:
        """Return the counts, the share and its bounds, JSON-safe."""
        return {"count": self.count, "of": self.of, "share": self.share, "low": self.low, "high": self.high}


def share_of(count: int, of: int, *, exact: bool = False) -> Share:
    """Return a share with its 95 % bounds: Wilson's interval, and the rule of three at both ends.

    A sample without replacement has narrower bounds than these, so they hold for it too.

    Args:
        count: the number of rows that have the property.
        of: the number of rows that were looked at.
        exact: True if these were all rows there are; the bounds are then the share.

    Raises:
        InvalidArgument: ``count`` is below 0 or above ``of``.

    Example:
        >>> found = share_of(2, 1000)
        >>> round(found.low, 5), found.share, round(found.high, 5)
        (0.00055, 0.002, 0.00726)
    """
    checked_count("count", count, least=0)
    if count > of:
        message = f"count must be at most {of}, the number of rows that were looked at (got {count})"
        raise InvalidArgument(message)
    if not of:
        return Share(0, 0, 0.0, 0.0 if exact else 1.0)
    share = count / of
    if exact:
        return Share(count, of, share, share)
    if not count:
        return Share(count, of, 0.0, min(1.0, RULE_OF_THREE / of))
    if count == of:
        return Share(count, of, max(0.0, 1 - RULE_OF_THREE / of), 1.0)
    square = NORMAL_95 * NORMAL_95 / of
    middle = (share + square / 2) / (1 + square)
    half = NORMAL_95 / (1 + square) * math.sqrt(share * (1 - share) / of + square / of / 4)
    return Share(count, of, max(0.0, middle - half), min(1.0, middle + half))


def _percent(share: float) -> str:
    """Return a share in percent with as many digits as tell it from 0 and from 100."""
    percent = 100 * share
    distance = min(percent, 100 - percent)
    if distance <= 0:
        return "0" if percent < 50 else "100"  # noqa: PLR2004 - the nearer end
    digits = 0 if distance >= 10 else -math.floor(math.log10(distance))  # noqa: PLR2004
    text = f"{percent:.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class ResultPace:
    """Says when a partial result is due: some 50 ms after the last one.

    Making one may take long, so the next is due at the earliest after four times that time.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._wait = _SECONDS

    def due(self) -> bool:
        """Return True if a partial result is to be made now."""
        now = time.monotonic()
        if now - self._last < self._wait:
            return False
        self._last = now
        return True

    def made(self) -> None:
        """Note that the partial result is made; what its reader does until ``due`` is called counts too."""
        now = time.monotonic()
        self._wait = max(_SECONDS, _PARTS * (now - self._last))
        self._last = now
