"""Connections of the viewer's server: those that wait for the head of a request are few, and not for long.

Whoever knows the token sends a head at once. Other users of the machine may connect too, and without these
limits their idle connections would leave none for the owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_HEAD_SECONDS = 10.0
_MOST_WAITING = 32


class HeadProtocol(H11Protocol):
    """HTTP/1.1 whose connections are closed where the first head takes longer than 10 seconds.

    Of more than 32 connections that wait for theirs, the oldest is closed, so that a new one always comes
    through. Refused requests close their connections too (``guard``).
    """

    late: asyncio.TimerHandle | None = None
    """Drops the connection later, as long as it waits."""

    if TYPE_CHECKING:
        connections: set[Any]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of the first request."""
        super().connection_made(transport)
        self.late = self.loop.call_later(_HEAD_SECONDS, self.drop)
        waiting = {each: each.late.when() for each in self.connections if each.late is not None}
        if len(waiting) > _MOST_WAITING:
            min(waiting, key=waiting.__getitem__).drop()

    def handle_events(self) -> None:
        """Take what came, and wait no more once there is a head."""
        super().handle_events()
        if self.cycle is not None:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait_no_more(self) -> None:
        if self.late is not None:
            self.late.cancel()
            self.late = None

    def drop(self) -> None:
        """Close the connection at once."""
        self._wait_no_more()
        self.transport.abort()
