"""The frame of a chart: where values lie on the sheet, and the ticks on both axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seekable.viewer.charts.axes import tick_text, ticks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.viewer.charts.sheet import Sheet

T = TypeVar("T", float, "NDArray[np.float64]")

LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 34

_FEW = 2
"""With so few powers of ten on an axis, twice and five times each of them are ticks too."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Maps values to places on a sheet of some size."""

    width: int
    height: int
    low: tuple[float, float]
    """The least value of x, and of y."""

    high: tuple[float, float]
    log: bool = False
    """True if x grows by powers of ten."""

    right: int = RIGHT
    """The pixels that are free at the right."""

    least: tuple[float, float] = (0.0, 0.0)
    """The least step between ticks of x, and of y: 1 where values are whole."""

    unit: str = ""
    """Stands behind each tick of y."""

    def x(self, value: float) -> float:
        """Return the pixel of a value of x."""
        low, high, value = (self._scaled(each) for each in (self.low[0], self.high[0], value))
        span = (high - low) or 1.0
        return LEFT + (value - low) / span * (self.width - LEFT - self.right)

    def y(self, value: T) -> T:
        """Return the pixel of a value of y, or the pixels of an array of values."""
        span = (self.high[1] - self.low[1]) or 1.0
        return self.height - BOTTOM - (value - self.low[1]) / span * (self.height - TOP - BOTTOM)

    def places(self, x: NDArray[Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pixels of many values, float64, shape (values, 2).

        Example:
            >>> Frame(860, 240, (0, 0), (10, 1)).places(np.array([0, 10]), np.array([0.0, 1.0])).tolist()
            [[58.0, 206.0], [846.0, 34.0]]
        """
        low, high = self._scaled(self.low[0]), self._scaled(self.high[0])
        scaled = np.log10(np.maximum(x, 1.0)) if self.log else x
        across = LEFT + (scaled - low) / ((high - low) or 1.0) * (self.width - LEFT - self.right)
        return np.stack([across, self.y(y)], axis=-1)

    def grid(self, sheet: Sheet) -> None:
        """Draw a faint line at each tick of y, before what lies over it."""
        sheet.grid(
            LEFT, self.width - self.right - LEFT, (round(self.y(value), 1) for value in self._y_ticks())
        )

    def draw(self, sheet: Sheet, *, title: str, x_name: str) -> None:
        """Draw the title and both axes."""
        sheet.text(LEFT, 20, title, kind="bold")
        for value in self._y_ticks():
            words = tick_text(value) + self.unit
            sheet.text(LEFT - 8, self.y(value) + 4, words, anchor="end", kind="small")
            sheet.line((LEFT - 4, self.y(value)), (LEFT, self.y(value)))
        for value in self._x_ticks():
            sheet.text(
                self.x(value), self.height - BOTTOM + 16, tick_text(value), anchor="middle", kind="small"
            )
            sheet.line((self.x(value), self.height - BOTTOM), (self.x(value), self.height - BOTTOM + 4))
        sheet.text(self.width - self.right, self.height - 4, x_name, anchor="end", kind="small")
        sheet.line(
            (LEFT, TOP - 6), (LEFT, self.height - BOTTOM), (self.width - self.right, self.height - BOTTOM)
        )

    def _y_ticks(self) -> list[float]:
        return ticks(self.low[1], self.high[1], most=5, least=self.least[1])

    def _x_ticks(self) -> list[float]:
        if not self.log:
            return ticks(self.low[0], self.high[0], least=self.least[0])
        low, high = max(self.low[0], 1.0), self.high[0]
        first, last = math.floor(math.log10(low)), math.ceil(self._scaled(high))
        powers = [10.0**power for power in range(first, last + 1)]
        inside = [power for power in powers if low <= power <= high]
        if len(inside) > _FEW:
            return inside
        finer = [step * power for power in powers for step in (1, 2, 5) if low <= step * power <= high]
        return finer if len(finer) > _FEW else ticks(low, high, least=self.least[0])

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1.0)) if self.log else value
