"""Archives and scripts that exist, opened to write behind their last entries after a check of their ends."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from seekable.errors import CorruptTable, InvalidArgument
from seekable.formats.kaldi.files.filenames import check_wxfilename
from seekable.formats.kaldi.files.opening import open_to_append
from seekable.formats.kaldi.tables.archive_end import find_end, map_archive
from seekable.formats.kaldi.tables.offset_lines import OffsetLines

if TYPE_CHECKING:
    import mmap

    from seekable.formats.kaldi.files.wx_file import WxFile
    from seekable.formats.kaldi.holders.holder import Holder
    from seekable.formats.kaldi.tables.archive_end import ArchiveEnd

__all__ = ["open_behind"]

_SPACES: Final = b" \t\n\r\f\v"


def open_behind(archive: str, script: str | None, holder: Holder) -> tuple[WxFile, WxFile | None]:
    """Open an archive, and its script, to write behind their last entries; missing files are made.

    With a script, only the entries behind its last line are looked at. Without one, all are skipped by their
    headers. The archive is locked until it is closed, so that no two processes append to it.

    Raises:
        InvalidArgument: a name is no regular file, or another process appends to the archive.
        CorruptTable: the last entry is torn, or the script does not fit the archive.
        DataNotFound, AccessDenied, UnsupportedFormat: a file cannot be opened, or is compressed.
    """
    for name in (archive, script):
        if name is not None:
            _check_regular(name)
    opened = contextlib.ExitStack()
    with opened:
        archive_file = opened.enter_context(open_to_append(archive))
        data = map_archive(archive)
        lines = None if script is None else OffsetLines(script, archive, data)
        end = _checked_end(data, archive, holder, lines)
        script_file = None
        if lines is not None:
            script_file = opened.enter_context(open_to_append(lines.path))
            if lines.data[-1:] not in {b"", b"\n"}:
                script_file.write(b"\n")
        if _lacks_line_end(data, end):
            archive_file.write(b"\n")
        opened.pop_all()
    return archive_file, script_file


def _check_regular(name: str) -> None:
    kind = check_wxfilename(name)
    if kind != "file" or (os.path.lexists(name) and not os.path.isfile(name)):
        found = "no regular file" if kind == "file" else f"a {kind}"
        raise InvalidArgument(f"append=True is for regular files (got {name!r}, {found}). Leave it out")


def _checked_end(
    data: mmap.mmap | bytes, archive: str, holder: Holder, lines: OffsetLines | None
) -> ArchiveEnd:
    """Return the last entries of an archive that is not torn, and whose script has lines for all of them."""
    last = None if lines is None else lines.last()
    begin = 0 if last is None else last.offset - len(last.key) - 1
    end = find_end(data, archive, holder, begin=begin)
    script = "" if lines is None else f", script={lines.path!r}"
    way = f"kaldi.repair({archive!r}, {holder.name!r}{script})"
    if end.torn is not None:
        raise CorruptTable(
            f"{archive!r} ends with a torn entry, behind which none can be written ({end.torn}): cut it off "
            f"with {way}, which keeps the {end.size:,} bytes before it"
        )
    unnamed = len(end.starts) - (last is not None)
    if lines is not None and unnamed:
        raise CorruptTable(
            f"{lines.path!r} has no lines for the last {unnamed:,} entries of {archive!r}: {way} adds them"
        )
    return end


def _lacks_line_end(data: mmap.mmap | bytes, end: ArchiveEnd) -> bool:
    """True if the last entry is text without white space at its end: the next key would belong to it."""
    return bool(end.starts) and data[-1] not in _SPACES and data.find(b"\0", end.starts[-1]) < 0
