"""Files of web servers (``http://`` and ``https://``), read by ranges, without a cache."""

from __future__ import annotations

import base64
import http.client
import io
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import AccessDenied, DataNotFound, IndexStale, SeekableError, Unreachable
from seekable.storage.addresses import secrets_of, shown

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_FIRST_BYTES: Final = 256 << 10
"""The bytes of the first request. Each next one has twice as many while the file is read forward."""

_MOST_BYTES: Final = 8 << 20
_TIMEOUT_SECONDS: Final = 30.0
_WAITS: Final = (0.5, 1.0, 2.0)
"""The seconds before each further attempt."""

_PARTIAL: Final = 206
_BEHIND_END: Final = 416
_KEPT: Final = "%/:=&?~#+!$,;'@()*[]"
"""The characters of an address that are not replaced, beside letters and digits."""

_DENIED: Final = frozenset({401, 403, 407})
_NOT_FOUND: Final = frozenset({404, 410})
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_RANGE: Final = re.compile(r"bytes (?:([0-9]+)-[0-9]+|\*)/([0-9]+|\*)")


@final
class WebFile(io.RawIOBase):
    """A file of a web server, as a raw stream.

    It can seek if the server sends ranges; otherwise it can only be read forward. Requests that fail for a
    passing reason are sent again. Proxies of the environment are used.
    """

    def __init__(self, address: str, *, start: int = 0) -> None:
        """Send the first request of the file.

        Args:
            address: the address of the file.
            start: the first byte to read.

        Raises:
            DataNotFound: the server has no such file.
            AccessDenied: the server does not send the file to anybody.
            Unreachable: the server cannot be reached, or fails.
        """
        super().__init__()
        self.name = shown(address)
        """The address of the file, without user, password and query."""
        self._address, self._headers = _without_userinfo(address)
        self.size: int | None = None
        """The number of bytes of the file; None if the server does not say it."""
        self._at = start
        self._data = memoryview(b"")
        self._first = start
        self._next_bytes = _FIRST_BYTES
        self._version: str | None = None
        self._response: Any = None
        self._fetch()

    def readable(self) -> bool:
        """Return True, as files of the standard library do."""
        return True

    def seekable(self) -> bool:
        """Return True if the server sends ranges of the file."""
        return self._response is None and self.size is not None

    def tell(self) -> int:
        """Return the byte of the file that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a byte, and return it; nothing is fetched."""
        if not self.seekable() or self.size is None:
            message = f"{self.name!r} can only be read forward: the server sends no ranges"
            raise io.UnsupportedOperation(message)
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the start of a buffer; return how many bytes it got, 0 at the end."""
        if self._response is not None:
            return self._read_forward(buffer)
        place = self._at - self._first
        if not 0 <= place < len(self._data):
            if self.size is not None and self._at >= self.size:
                return 0
            self._fetch()
            place = 0
        with memoryview(buffer).cast("B") as target:
            piece = self._data[place : place + len(target)]
            target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        """Close the connection, if one is open."""
        if not self.closed:
            super().close()
            if self._response is not None:
                self._response.close()

    def _read_forward(self, buffer: WriteableBuffer) -> int:
        """Read from the one response of a server that sends no ranges."""
        try:
            count: int = self._response.readinto(buffer)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        self._at += count
        if not count and memoryview(buffer).nbytes and self.size is not None and self._at < self.size:
            raise self._unreachable(f"it ended after {self._at:,} of {self.size:,} bytes")
        return count

    def _fetch(self) -> None:
        """Fetch bytes from the present one on; more of them if they follow those that were fetched last."""
        follows = self._at == self._first + len(self._data)
        self._next_bytes = min(2 * self._next_bytes, _MOST_BYTES) if follows and self._data else _FIRST_BYTES
        why: object = ""
        for wait in (*_WAITS, None):
            try:
                if self._request():
                    return
                why = "fewer bytes came than the server announced"
            except SeekableError:
                raise
            except urllib.error.HTTPError as error:
                why = f"it answers {error.code} {error.reason}"
                error.close()
                self._refuse(error.code)
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = getattr(error, "reason", error)
            if wait is not None:
                time.sleep(wait)
        raise self._unreachable(why)

    def _request(self) -> bool:
        """Send one request; return False if less came than was announced."""
        stop = self._at + self._next_bytes
        headers = {"Range": f"bytes={self._at}-{stop - 1}", "Accept-Encoding": "identity"}
        address = urllib.parse.quote(self._address, safe=_KEPT)
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the caller checks the scheme
        for name, value in self._headers.items():
            request.add_unredirected_header(name, value)
        try:
            response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)  # noqa: S310
        except urllib.error.HTTPError as error:
            if error.code != _BEHIND_END:
                raise
            with error:
                self._take(b"", self._at, error.headers.get("Content-Range", ""))
            return True
        self._check_version(response.headers)
        if response.status != _PARTIAL:
            self._start_forward(response)
            return True
        with response:
            data = response.read()
        return self._take(data, stop, response.headers.get("Content-Range", ""))

    def _take(self, data: bytes, stop: int, stated: str) -> bool:
        """Keep the bytes of a range, if they are all that were requested; return whether they are."""
        found = _RANGE.fullmatch(stated)
        if found is not None and found[2] != "*":
            self.size = int(found[2])
        if data and (found is None or int(found[1] or -1) != self._at):
            message = f"the range {stated!r} is not the one of the request, from byte {self._at}"
            raise ValueError(message)
        expected = max(0, min(stop, self.size if self.size is not None else stop) - self._at)
        if self.size is not None and len(data) < expected:
            return False
        self._data, self._first = memoryview(data), self._at
        return True

    def _start_forward(self, response: Any) -> None:
        """Read the whole file forward, up to the first byte that is needed."""
        length = response.headers.get("Content-Length", "")
        self.size = int(length) if length.isdecimal() else None
        self._response, target, self._at = response, self._at, 0
        skipped = bytearray(_FIRST_BYTES)
        while self._at < target:
            if not self._read_forward(memoryview(skipped)[: target - self._at]):
                break

    def _check_version(self, headers: Any) -> None:
        version = headers.get("ETag") or headers.get("Last-Modified")
        if self._version is not None and version != self._version:
            message = f"{self.name!r} was changed on its server while it was read: read it again"
            raise IndexStale(message)
        self._version = version

    def _refuse(self, status: int) -> None:
        """Raise the error of an answer that will be the same again."""
        if status in _DENIED:
            raise AccessDenied(
                f"{self.name!r} may not be read: the server answers {status}. Get the file with a program "
                f"that logs in there, and name the copy"
            )
        if status in _NOT_FOUND:
            raise DataNotFound(f"there is no file {self.name!r}: the server answers {status}")
        if status not in _PASSING:
            raise self._unreachable(f"it answers {status}")

    def _unreachable(self, why: object) -> Unreachable:
        return Unreachable(
            f"{self.name!r} cannot be read from byte {self._at:,} on: {why}. Is there a network, and is the "
            f"server up? Try again later, or copy the file to this machine"
        )


def _without_userinfo(address: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the headers that have these instead."""
    userinfo = secrets_of(address).userinfo
    if not userinfo:
        return address, {}
    pair = base64.b64encode(urllib.parse.unquote(userinfo).encode()).decode()
    return address.replace(f"{userinfo}@", "", 1), {"Authorization": f"Basic {pair}"}
