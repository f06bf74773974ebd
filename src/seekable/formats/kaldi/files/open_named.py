"""Extended filenames, opened: `open_rx` for reading and `open_wx` for writing, as binary file objects."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from seekable._lazy import lazy
from seekable.errors import CorruptTable, DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.kaldi.basic_types import read_header, write_header
from seekable.formats.kaldi.files.local_files import (
    LockedFile,
    WrittenFile,
    check_local,
    coding_by_magic,
    coding_by_name,
    decompressed,
    local_errors,
    open_local,
    read_pieces,
)
from seekable.formats.kaldi.files.pipes import (
    RunningCommand,
    checked_pipes,
    content_of,
    file_command,
    refuse_unless_allowed,
)
from seekable.formats.kaldi.files.specifiers import (
    check_rxfilename,
    check_wxfilename,
    command_of,
    filename_text,
    split_offset,
)
from seekable.formats.kaldi.files.store_files import StoredRawFile, is_stored, mounted, stored_ranges
from seekable.formats.kaldi.files.streams import (
    PieceReader,
    PieceWriter,
    RxFile,
    StandardInput,
    WxFile,
    write_to_stdout,
)
from seekable.storage.files import TEMPORARY_SUFFIX
from seekable.storage.seek_points import frame_at

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator, Mapping

    from seekable.formats.kaldi.files import web_file
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import RxKind
    from seekable.storage import addresses
else:
    addresses = lazy("seekable.storage.addresses")
    web_file = lazy("seekable.formats.kaldi.files.web_file")

_BUFFER_BYTES: Final = 64 << 10
_OFFSET_BUFFER_BYTES: Final = 8 << 10
"""The buffer of a file at an offset: what is read is often one object, and the next one lies elsewhere."""

_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def open_rx(
    rxfilename: str | os.PathLike[str],
    *,
    header: bool = True,
    pipes: Pipes = "refuse",
    storage_options: Mapping[str, Any] | None = None,
) -> RxFile:
    r"""Open an extended filename for reading, and consume the binary header if it is there.

    Files that begin with the magic number of gzip or zstd are decompressed; an offset counts bytes of the
    content then, and is reached by reading forward: from the start, or from its frame in a zstd file that has
    a table of frames, as ``seekable recompress`` writes it. Commands that only copy or decompress files
    (``gunzip -c``, ``zcat``, ``bzip2 -dc``, ``xz -dc``, ``zstd -dc``, ``cat``) are done without running them,
    whatever ``pipes`` is. Memory is bounded.

    Args:
        rxfilename: ``"-"`` or ``""`` for standard input, ``"command |"``, ``"file:offset"``, or a file. It
            may be an address, which is read by ranges: ``"s3://bucket/feats.ark:1234"`` (also ``gs://``,
            ``az://`` and the schemes of fsspec), or ``"https://host/feats.ark:1234"``, which has
            no cache without ``storage_options``. A file of an address that ends with ``.gz`` or ``.zst`` is
            decompressed from its start.
        header: False leaves the binary header in place; for files without one, such as wave files.
        pipes: ``"allow"`` to let ``/bin/sh`` run a command. The command inherits the working folder, the
            environment, stdin and stderr.
        storage_options: the options of the store of an address, as in ``sk.open``: ``endpoint``, ``region``,
            ``anonymous``, credentials; by default those of the environment.

    Returns:
        A binary file object; ``.binary`` is True if the header was consumed, False if there is none, and None
        with ``header=False``.

    Raises:
        InvalidArgument: it is not an rxfilename, standard input has no bytes, an option is not known, or
            options are given for what is not a file of a store.
        PipeRefused: it is a command, and ``pipes`` is ``"refuse"``.
        DataNotFound: there is no such file.
        AccessDenied: this user may not read the file.
        CorruptTable: the offset is after the end of the file, or half of the binary header is there
            (CorruptObject).
        Unreachable: the server of an address cannot be reached, or fails.
        UnsupportedFormat: an address of another kind, such as ``file://``; a compressed file that is torn or
            damaged.
        MissingDependency: a file is compressed by zstd, and zstandard is not installed; or the package that
            reads a store is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open(f"{folder}/a.ark", "wb") as file:
        ...         _ = file.write(b"utt1 \0Bgood day")
        ...     with open_rx(f"{folder}/a.ark:5") as file:
        ...         file.binary, file.tell(), file.read()
        (True, 7, b'good day')
    """
    name = filename_text(rxfilename)
    kind = check_rxfilename(name)
    if storage_options and "://" not in name:
        message = (
            f"storage_options= is for addresses, such as s3://bucket/feats.ark, and {name!r} is none: "
            "leave it out"
        )
        raise InvalidArgument(message)
    file = _opened(mounted(name, storage_options), kind, checked_pipes(pipes), regular=False)
    if header:
        try:
            file.binary = read_header(file)
        except BaseException:
            file.abandon()
            raise
    return file


def open_named(rxfilename: str, *, pipes: Pipes) -> RxFile:
    """Open what a line of a script names, at its first byte: of local files regular ones alone.

    A line is read by whoever opens the script, who may not have written it.

    Raises:
        UnsupportedFormat, ...: it is a named pipe, a device or a socket; others as in `open_rx`.
    """
    return _opened(rxfilename, check_rxfilename(rxfilename), checked_pipes(pipes), regular=True)


def _opened(name: str, kind: RxKind, pipes: Pipes, *, regular: bool) -> RxFile:
    if kind == "pipe":
        return _open_pipe(name, pipes, regular=regular)
    if kind == "stdin":
        return _open_stdin(name)
    if is_stored(name):
        return _open_stored(name, kind)
    return _open_web(name, kind) if _WEB.match(name) else _open_file(name, kind, regular=regular)


def open_wx(
    wxfilename: str | os.PathLike[str],
    *,
    binary: bool = True,
    header: bool = True,
    pipes: Pipes = "refuse",
    atomic: bool = False,
) -> WxFile:
    r"""Open an extended filename for writing, and write the binary header.

    A file that exists is replaced: at once, or with ``atomic`` when the new one is complete. A reader that
    opened the old one goes on reading it. The folder must exist. The suffix of a name means nothing: to
    compress, write to ``"| gzip -c > a.gz"``.

    Args:
        wxfilename: ``"-"`` or ``""`` for standard output, ``"| command"``, or a file.
        binary: True for a binary object, which begins with a header; False for text, which has none.
        header: False writes no header for a binary object; for archives, where one stands before each object,
            and for files without one, such as wave files.
        pipes: ``"allow"`` to let ``/bin/sh`` run a command. The command inherits the working folder, the
            environment, stdout and stderr.
        atomic: True to give the file its name when it is closed, after it is synced to disk; for files alone.
            After an error in a ``with`` block nothing is left, and a file of that name is as it was.

    Returns:
        A binary file object.

    Raises:
        InvalidArgument: it is not a wxfilename, ``atomic`` for something else than a regular file, or
            standard output takes no bytes.
        PipeRefused: it is a command, and ``pipes`` is ``"refuse"``.
        DataNotFound: the folder of the file does not exist, or the file is a folder.
        AccessDenied: this user may not write the file.
        UnsupportedFormat: an address, which is not written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open_wx(f"{folder}/a.mat", atomic=True) as file:
        ...         _ = file.write(b"good day")
        ...     with open(f"{folder}/a.mat", "rb") as file:
        ...         file.read()
        b'\x00Bgood day'
    """
    name = filename_text(wxfilename)
    kind, allowed = check_wxfilename(name), checked_pipes(pipes)
    if atomic and kind != "file":
        message = f"atomic=True is for files, which get their name at the end (got {name!r}, a {kind})"
        raise InvalidArgument(message)
    if kind == "pipe":
        file = _into_pipe(name, allowed)
    elif kind == "stdout":
        write_to_stdout(memoryview(b""))
        file = WxFile(PieceWriter(write_to_stdout, name="<standard output>"), wxfilename=name, kind=kind)
    else:
        _refuse_address(name)
        file = _into_new_file(name) if atomic else _into_file(name)
    file.binary = binary
    if header:
        write_header(file, binary=binary)
    return file


def open_to_append(path: str) -> WxFile:
    """Return a file to append to, locked until it is closed.

    Args:
        path: a wxfilename that is a file; a missing one is made.

    Raises:
        InvalidArgument: another writer has the file open to append to it.
        DataNotFound: the folder of the file does not exist, or the file is a folder.
        AccessDenied: this user may not write the file.
        UnsupportedFormat: an address, which is not written.
    """
    _refuse_address(path)
    with local_errors(path, writing=True):
        return WxFile(LockedFile(path), wxfilename=path, kind="file")


def _refuse_address(name: str) -> None:
    """Raise an error for an address such as ``s3://bucket/a.ark``."""
    if found := _ADDRESS.match(name):
        message = (
            f"{name!r} is an address ({found[0]}), and only local files can be written here; files of "
            f"s3://, gs://, az://, https:// and of other stores can be read: name a local file"
        )
        raise UnsupportedFormat(message)


def _open_pipe(name: str, pipes: Pipes, *, regular: bool) -> RxFile:
    text = command_of(name)
    if (command := file_command(text)) is not None:
        for path in command.paths:
            check_local(path)
        return _over_pieces(content_of(command, regular=regular), name, "pipe")
    refuse_unless_allowed(name, pipes)
    owner = RunningCommand(text, pipe="output")
    return _over_pieces(iter(owner.read, b""), name, "pipe", owner=owner)


def _open_stdin(name: str) -> RxFile:
    owner = StandardInput()
    return _over_pieces(owner.pieces(), name, "stdin", owner=owner)


def _over_pieces(
    pieces: Iterator[bytes],
    name: str,
    kind: RxKind,
    *,
    position: int = 0,
    owner: RunningCommand | StandardInput | None = None,
    on_close: Callable[[], None] | None = None,
) -> RxFile:
    shown = "<standard input>" if kind == "stdin" else name
    raw = PieceReader(pieces, name=shown, position=position, on_close=on_close)
    return RxFile(raw, rxfilename=name, kind=kind, buffer_size=_BUFFER_BYTES, owner=owner)


def _open_web(name: str, kind: RxKind) -> RxFile:
    """Open a file of a web server; one with the suffix of a compression is decompressed from its start."""
    address, offset = split_offset(name) if kind == "offset" else (name, 0)
    name = addresses.shown(name)
    if coding := coding_by_name(urlsplit(address).path):
        raw = web_file.WebFile(address)
        file = _over_pieces(decompressed(raw, coding, raw.name), name, kind, on_close=raw.close)
        _skip(file, offset)
        return file
    raw = web_file.WebFile(address, start=offset)
    if raw.tell() < offset or (raw.size is not None and raw.size < offset):
        raw.close()
        raise _beyond(name, offset, raw.tell() if raw.size is None else raw.size)
    return RxFile(raw, rxfilename=name, kind=kind, buffer_size=_BUFFER_BYTES, owner=None)


def _open_stored(name: str, kind: RxKind) -> RxFile:
    """Open a file of a store; a compressed one is decompressed from its start."""
    path, offset = split_offset(name) if kind == "offset" else (name, 0)
    raw = StoredRawFile(stored_ranges(path))
    if coding := coding_by_name(path) if offset else raw.ranges.coding(path):
        file = _over_pieces(decompressed(raw, coding, raw.name), name, kind, on_close=raw.close)
        _skip(file, offset)
        return file
    if offset > raw.size:
        raise _beyond(name, offset, raw.size)
    raw.seek(offset)
    return RxFile(raw, rxfilename=name, kind=kind, buffer_size=_BUFFER_BYTES, owner=None)


def _open_file(name: str, kind: RxKind, *, regular: bool) -> RxFile:
    _refuse_address(name)
    path, offset = split_offset(name) if kind == "offset" else (name, 0)
    try:
        raw = open_local(path, regular=regular)
    except DataNotFound:
        if kind != "offset" or not os.path.isfile(name) or os.path.lexists(path):
            raise
        message = (
            f"there is no file {path!r}, and the digits of {name!r} are read as an offset into it: a file of "
            f"this name can only be read under another one, such as a link"
        )
        raise DataNotFound(message) from None
    try:
        return _over_file(raw, path, offset, name=name, kind=kind)
    except BaseException:
        raw.close()
        raise


def _over_file(raw: io.FileIO, path: str, offset: int, *, name: str, kind: RxKind) -> RxFile:
    status = os.fstat(raw.fileno())
    if not stat.S_ISREG(status.st_mode):
        if kind == "offset":
            message = (
                f"{name!r} has an offset, and {path!r} is not a regular file: it can only be read forward"
            )
            raise InvalidArgument(message)
        return _over_pieces(read_pieces(raw), name, kind, on_close=raw.close)
    if coding := coding_by_magic(raw):
        frame = frame_at(raw.fileno(), status.st_size, offset) if coding == "zst" and offset else None
        begin, position = frame or (0, 0)
        raw.seek(begin)
        pieces = decompressed(raw, coding, path)
        file = _over_pieces(pieces, name, kind, position=position, on_close=raw.close)
        _skip(file, offset)
        return file
    if offset > status.st_size:
        raise _beyond(name, offset, status.st_size)
    raw.seek(offset)
    size = _OFFSET_BUFFER_BYTES if kind == "offset" else _BUFFER_BYTES
    return RxFile(raw, rxfilename=name, kind=kind, buffer_size=size, owner=None)


def _skip(file: RxFile, offset: int) -> None:
    """Read up to a byte of the content."""
    while left := offset - file.tell():
        if not file.read(min(left, _BUFFER_BYTES)):
            raise _beyond(file.rxfilename, offset, file.tell())


def _beyond(name: str, offset: int, size: int) -> CorruptTable:
    return CorruptTable(
        f"{name!r} cannot be read from byte {offset:,} on: the file has {size:,} bytes. It was cut off, or "
        f"is another file than the one whose offset this is; write the script with its offsets again"
    )


def _into_pipe(name: str, pipes: Pipes) -> WxFile:
    text = command_of(name)
    refuse_unless_allowed(name, pipes)
    command = RunningCommand(text, pipe="input")
    return WxFile(PieceWriter(command.write, name=name), wxfilename=name, kind="pipe", command=command)


def _into_file(path: str) -> WxFile:
    with local_errors(path, writing=True):
        mode = _remove_old(path)
        raw = WrittenFile(path, "w")
        if mode is not None:
            os.fchmod(raw.fileno(), mode)
        return WxFile(raw, wxfilename=path, kind="file")


def _remove_old(path: str) -> int | None:
    """Remove a file that is about to be written again, and return its mode; None if it is still there.

    A reader may have mapped it: the system ends a process that reads where a mapped file was cut.
    """
    target = os.path.realpath(path)
    with contextlib.suppress(OSError):
        status = os.stat(target)
        # A file with several names stays one file, and one that this user may not write is left alone.
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and os.access(target, os.W_OK):
            os.unlink(target)
            return stat.S_IMODE(status.st_mode)
    return None


def _into_new_file(path: str) -> WxFile:
    if os.path.lexists(path) and not os.path.isfile(path):
        message = (
            f"{path!r} is not a regular file: with atomic=True a file would take its place. Leave atomic out"
        )
        raise InvalidArgument(message)
    # A link stays a link: the file that it leads to is replaced.
    target = os.path.realpath(path)
    temporary = f"{target}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    with local_errors(path, writing=True):
        raw = WrittenFile(temporary, "x")
        if os.path.exists(target):
            os.fchmod(raw.fileno(), stat.S_IMODE(os.stat(target).st_mode))
    return WxFile(raw, wxfilename=path, kind="file", temporary=temporary, target=target)
