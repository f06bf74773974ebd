"""Files of stores as tables read them: in pieces, which grow while a file is read forward."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.files.local_files import coding_by_name, coding_of, open_local
from seekable.formats.kaldi.files.specifiers import parse_rspecifier
from seekable.storage import trust
from seekable.storage.far import far
from seekable.storage.ranges import PositionedFile

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping, Sequence

    from _typeshed import WriteableBuffer

    from seekable.formats.kaldi.files.local_files import Coding
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.storage import addresses
    from seekable.storage.ranges import RangeSource
else:
    addresses = lazy("seekable.storage.addresses")

_FIRST_BYTES: Final = 256 << 10
"""The bytes of the first piece. Each next one has twice as many while a file is read forward."""

_MOST_BYTES: Final = 8 << 20

_OUTSIDE: Final = "Or copy the script to this machine, where its lines may name any file"

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_WEB: Final = frozenset({"http", "https"})


def is_stored(path: str) -> bool:
    """Return True for the address of a file in a store.

    A web server is one where ``storage_options`` of it were given; else `WebFile` reads its files.

    Example:
        >>> is_stored("s3://bucket/feats.ark"), is_stored("https://host/feats.ark"), is_stored("feats.ark")
        (True, False, False)
    """
    found = _SCHEME.match(path) if "://" in path else None
    if found is None or found[1].lower() == "file":
        return False
    return found[1].lower() not in _WEB or far().has_options(path)


def check_named(rxfilename: str, folders: Sequence[str], allow: tuple[str, ...] = ()) -> None:
    """Check that a line of a script in a store names a file below the folder of the script, or no command.

    Args:
        rxfilename: the file that the line names, or its command.
        folders: the addresses of the folders of the scripts; none for scripts of this machine.
        allow: other folders and files that the call allows.

    Raises:
        UnsupportedFormat: the file lies elsewhere, or it is a command.
    """
    if folders and rxfilename.rstrip().endswith("|"):
        message = (
            f"a line of the script is the command {rxfilename!r}, and the script is in a store: its commands "
            f'read nothing of this machine unless pipes="allow". {_OUTSIDE}'
        )
        raise UnsupportedFormat(message)
    if folders:
        below = [addresses.shown(folder) for folder in folders]
        named, by = addresses.shown(rxfilename), "a line of the script"
        trust.check_below(named, below, by=by, way_out=_OUTSIDE, allow=allow)


def script_folders(name: str) -> tuple[str, ...]:
    """Return the folder of a script in a store or on a web server; none for a local script."""
    return (name.rpartition("/")[0],) if "://" in name else ()


def mounted(rxfilename: str, storage_options: Mapping[str, Any] | None) -> str:
    """Return the name under which a file of a store is read with some options; any other name as it is.

    Args:
        rxfilename: an extended filename.
        storage_options: the options of the store by name; None for those of the environment.

    Raises:
        InvalidArgument: an option is not known.
    """
    found = _SCHEME.match(rxfilename)
    if storage_options is None or found is None or found[1].lower() == "file":
        return rxfilename
    return far().mount(rxfilename, storage_options)


def mounted_table(specifier: Rspecifier, storage_options: Mapping[str, Any] | None) -> Rspecifier:
    """Return the rspecifier under which a table is read with some options.

    Raises:
        InvalidArgument: an option is not known, or the table is an archive in no store.
    """
    name = specifier.rxfilename
    if storage_options and not _takes_options(specifier):
        message = (
            f"storage_options= is for addresses, such as ark:s3://bucket/feats.ark, and for scripts whose "
            f"lines name addresses; {name!r} is neither: leave it out"
        )
        raise InvalidArgument(message)
    return replace(specifier, rxfilename=mounted(name, storage_options))


def takes_options(rspecifier: str) -> bool:
    """Return True if a table may be in a store, or be a script whose lines may name addresses.

    Raises:
        InvalidArgument: it is not an rspecifier.

    Example:
        >>> [takes_options(table) for table in ("ark:s3://b/a.ark", "scp:a.scp", "ark:a.ark")]
        [True, True, False]
    """
    return _takes_options(parse_rspecifier(rspecifier))


def _takes_options(specifier: Rspecifier) -> bool:
    return specifier.kind == "scp" or "://" in specifier.rxfilename


def scheme_of(rxfilename: str) -> str:
    """Return the scheme of an address in lower case; empty for other extended filenames.

    Example:
        >>> scheme_of("S3://bucket/feats.ark:5"), scheme_of("feats.ark:5")
        ('s3', '')
    """
    found = _SCHEME.match(rxfilename)
    return found[1].lower() if found else ""


def mounted_beside(path: str, other: str) -> str:
    """Return the name under which a file is read with the options of another one of a store.

    That is the address itself where its bucket has options of its own, or the other one is of another scheme.

    Args:
        path: the address of the file.
        other: the address of a file or folder whose options are known.
    """
    return path if path.partition(":")[0] != other.partition(":")[0] else far().mount_beside(path, other)


def stored_ranges(path: str) -> RangeSource:
    """Return the bytes of a file in a store, in the version that is there now.

    Raises:
        DataNotFound, AccessDenied, Unreachable: it cannot be read.
    """
    return far().ranges(path, far().look(path))


def open_readable(path: str) -> io.RawIOBase:
    """Return a local file, or a file of a store, open for reading, without a buffer.

    Raises:
        DataNotFound: there is no such file; the message has the reason.
        AccessDenied: it may not be read.
        Unreachable: the store cannot be reached.
    """
    return StoredRawFile(stored_ranges(path)) if is_stored(path) else open_local(path)


@final
class GrowingRanges:
    """Byte ranges of a file in a store; pieces grow while it is read forward.

    The last piece is kept. Not safe from threads.
    """

    __slots__ = ("_data", "_first", "_first_bytes", "_next_bytes", "_source", "path", "size")

    def __init__(self, source: RangeSource, *, first_bytes: int = _FIRST_BYTES) -> None:
        """Take a source; nothing is fetched.

        Args:
            source: the bytes of the file.
            first_bytes: the bytes of the first piece.
        """
        self.path = source.path
        self.size = source.size
        self._source = source
        self._first = 0
        self._data = memoryview(b"")
        self._first_bytes = self._next_bytes = first_bytes

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, fewer at the end of the file; the errors are those of the source."""
        stop = min(stop, self.size)
        if start >= stop:
            return memoryview(b"")
        end = self._first + len(self._data)
        if not self._first <= start or stop > end:
            follows = bool(self._data) and self._first <= start <= end
            self._next_bytes = min(2 * self._next_bytes, _MOST_BYTES) if follows else self._first_bytes
            self._data = self._source.range(start, min(max(stop, start + self._next_bytes), self.size))
            self._first = start
        return self._data[start - self._first : stop - self._first]

    def coding(self, name: str) -> Coding | None:
        """Return the compression by the name of the file, or else by its first bytes."""
        return coding_by_name(name) or coding_of(bytes(self.range(0, 4)))


@final
class StoredRawFile(PositionedFile):
    """A file of a store, as a raw stream that can seek. Not safe from threads."""

    def __init__(self, source: RangeSource) -> None:
        """Begin at the first byte; nothing is fetched."""
        super().__init__(source.size)
        self.name = source.path
        """The address of the file."""
        self.size = source.size
        """The number of bytes of the file."""
        self.ranges = GrowingRanges(source)
        """The bytes of the file."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the start of a buffer; return how many bytes it got, 0 at the end."""
        with memoryview(buffer).cast("B") as target:
            piece = self.ranges.range(self._at, self._at + len(target))
            target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
