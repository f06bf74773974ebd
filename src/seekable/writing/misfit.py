"""A record that cannot be written."""

from __future__ import annotations

__all__ = ["Misfit"]


class Misfit(Exception):
    """A record that the format cannot hold."""

    def __init__(self, back: int, why: str) -> None:
        """Say which one.

        Args:
            back: how far it is from the end of the records that were taken so far; 1 for the last one.
            why: what is wrong with it.
        """
        super().__init__(back, why)
        self.back = back
        self.why = why
