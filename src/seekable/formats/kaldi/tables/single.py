"""Single objects: one object in a file, at an offset of an archive, in a pipe or in a standard stream."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, final

from seekable.errors import CorruptObject, InvalidArgument
from seekable.formats.kaldi.files.open_named import open_rx, open_wx
from seekable.formats.kaldi.files.specifiers import filename_text, split_range
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.holders.script_ranges import parse_range
from seekable.formats.kaldi.tables.archive import cause_of, cursor_over

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.streams import WxFile
    from seekable.formats.kaldi.holders.registry import Holder


def read(
    rxfilename: str | os.PathLike[str],
    holder: object,
    *,
    pipes: Pipes = "refuse",
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    r"""Return the object that an extended filename names, or a part of it.

    Bytes after the object are left alone, as Kaldi does. With a range, only the bytes of its rows are read
    from a file that is not compressed, where the holder can skip the others.

    Args:
        rxfilename: an extended filename, maybe with a range at its end: ``feats.ark:8[0:51,89:100]``. Bounds
            are inclusive, and count from 0.
        holder: the name of a holder such as ``"matrix"``, a holder, or a class with Read and Write.
        pipes: ``"allow"`` to let ``/bin/sh`` run a command.
        storage_options: the options of the store of an address, as in `open_rx`.
        options: fields of the holder, such as ``keep_short=True`` of a wave.

    Raises:
        CorruptObject: the bytes are not an object of the holder, or end too early; the message has the byte.
        InvalidArgument: the range is none, lies outside of the object, or the holder reads no ranges.
        PipeFailed: a command failed.
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_rx`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(f"{folder}/a.mat", [[1, 2, 3], [4, 5, 6]], "matrix")
        ...     read(f"{folder}/a.mat", "matrix").shape, read(f"{folder}/a.mat[1:1,0:1]", "matrix").tolist()
        ((2, 3), [[4.0, 5.0]])
    """
    found = find_holder(holder, **options)
    name, text = split_range(filename_text(rxfilename))
    part = None if text is None else parse_range(text)
    read_range = getattr(found, "read_range", None)  # A check of `SupportsRange` takes ten times as long.
    if part is not None and read_range is None:
        message = f"{rxfilename!r} has a range, and the holder {found.name} reads whole objects only"
        raise InvalidArgument(message)
    with open_rx(name, header=False, pipes=pipes, storage_options=storage_options) as file:
        cursor = cursor_over(file)
        try:
            return found.read(cursor) if part is None or read_range is None else read_range(cursor, part)
        except CorruptObject as error:
            raise cause_of(error, file) from None


def write(
    wxfilename: str | os.PathLike[str],
    value: Any,
    holder: object,
    binary: bool = True,  # noqa: FBT001, FBT002 - the order of Kaldi's arguments
    *,
    pipes: Pipes = "refuse",
    atomic: bool = False,
    **options: Any,
) -> None:
    r"""Write one object to an extended filename.

    A file that exists is replaced; it stays as it was if the value is refused.

    Args:
        wxfilename: the extended filename.
        value: the object, as the holder takes it.
        holder: the name of a holder such as ``"matrix"``, a holder, or a class with Read and Write.
        binary: False to write text.
        pipes: ``"allow"`` to let ``/bin/sh`` run a command.
        atomic: True to give a file its name once it is complete and synced to disk.
        options: fields of the holder, such as ``precision=9`` or ``method=2``.

    Raises:
        WrongType: the value is of another type than the holder takes.
        InvalidArgument: the value cannot be stored, or has no text form.
        PipeFailed: a command failed, or did not read everything.
        InvalidArgument, PipeRefused, DataNotFound, AccessDenied, UnsupportedFormat: as in `open_wx`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(f"{folder}/v", [1, 2.5], "vector", binary=False)
        ...     read(f"{folder}/v", "vector").tolist()
        [1.0, 2.5]
    """
    found = find_holder(holder, **options)
    write_object(
        lambda: open_wx(wxfilename, binary=binary, header=False, pipes=pipes, atomic=atomic),
        found,
        value,
        binary=binary,
    )


def write_object(open_file: Callable[[], WxFile], holder: Holder, value: Any, *, binary: bool) -> None:
    """Write an object to a file, which is opened once the holder has accepted the value.

    Args:
        open_file: opens the file, empty and without a header.
        holder: writes the object.
        value: the object.
        binary: False to write text.

    Raises:
        Exception: the errors of ``open_file``, of the holder, and of the file when it is closed.
    """
    late = _LateFile(open_file)
    try:
        holder.write(late, value, binary=binary)
        file = late.opened()
    except BaseException:
        late.discard()
        raise
    file.close()


@final
class _LateFile:
    """A file that is opened when its first bytes are written."""

    def __init__(self, open_file: Callable[[], WxFile]) -> None:
        self._open = open_file
        self._file: WxFile | None = None

    def opened(self) -> WxFile:
        if self._file is None:
            self._file = self._open()
        return self._file

    def write(self, data: Any, /) -> Any:
        return self.opened().write(data)

    def discard(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.discard()
