"""Archives whose writer was killed: the torn end is cut off, and the script is made to fit."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.files.filenames import check_wxfilename, filename_text
from seekable.formats.kaldi.files.local_files import local_errors
from seekable.formats.kaldi.files.specifiers import is_specifier, parse_wspecifier
from seekable.formats.kaldi.holders.candidates import candidates_of
from seekable.formats.kaldi.holders.registry import find_holder
from seekable.formats.kaldi.tables.archive_end import find_end, first_object, iter_entries, map_archive
from seekable.formats.kaldi.tables.offset_lines import OffsetLines
from seekable.storage.files import write_atomically

if TYPE_CHECKING:
    import mmap

    from seekable.formats.kaldi.tables.archive_end import ArchiveEnd

__all__ = ["Repair", "repair"]

_HEAD_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Repair:
    """The report of a repair of an archive."""

    path: str
    """The path of the archive."""

    entries: int
    """The number of entries that are kept: all complete ones."""

    size: int
    """The number of bytes of the archive that are kept."""

    bytes_cut: int
    """The number of bytes that are cut off; 0 for an archive that is not torn."""

    torn_key: str | None
    """The key of the torn entry; None if there is none, or if its key is torn too."""

    reason: str | None
    """The error at the torn entry; None if there is none."""

    lines_dropped: int
    """The number of lines of the script that are dropped: their entries are cut off, or they are torn."""

    lines_added: int
    """The number of lines that are added to the script, for entries that were written without a line."""

    dry_run: bool
    """True if nothing was changed."""

    @property
    def changed(self) -> bool:
        """True if the archive or its script was torn (and, without ``dry_run``, was changed)."""
        return bool(self.bytes_cut or self.lines_dropped or self.lines_added)


def repair(
    path: str | os.PathLike[str],
    holder: object = None,
    *,
    script: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Repair:
    r"""Cut off the torn end that a killed writer leaves, so that the archive ends with a complete entry.

    All entries are skipped by their headers, which is fast for binary objects. Complete entries are kept. An
    archive that is damaged in another place than its end is refused. The script is replaced atomically, then
    the archive is cut in one step; both are synced to disk. Nobody may write the archive meanwhile.

    Args:
        path: the archive, a regular file that is not compressed; or the wspecifier by which it was written,
            such as ``ark,scp:out.ark,out.scp``, which names the script too.
        holder: the name of a holder such as ``"matrix"``, a holder, or a class with Read and Write; None to
            find it from the first entry, which is possible where its bytes fit one holder alone.
        script: the script that was written with the archive, if there is one. Lines of entries that are gone
            and a torn last line are dropped; entries behind those of the last line get their lines. Lines of
            other archives stay.
        dry_run: True to change nothing, and return the same report.
        options: fields of the holder.

    Raises:
        CorruptTable: the archive is damaged, and a good entry stands behind the damage; or its objects are of
            another holder, or do not go on to the end of the file; or a line of the script points at no entry
            of its key. Nothing is changed.
        InvalidArgument: a path is no file; the holder lacks an option, or cannot be found.
        DataNotFound, AccessDenied: a file cannot be read, or is no regular file.
        UnsupportedFormat: the archive is compressed.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"utt1 5 \nutt2 6 \nutt3 12"), file.flush()
        ...     report = repair(file.name, "int32")
        ...     file.seek(0), file.read()
        (0, b'utt1 5 \nutt2 6 \n')
        >>> report.entries, report.bytes_cut, report.torn_key
        (2, 7, 'utt3')
    """
    archive, script = _files(path, script)
    data = map_archive(archive)
    found = find_holder(_found_holder(data, archive) if holder is None else holder, **options)
    end = find_end(data, archive, found)
    lines, dropped, added = None, 0, 0
    if script is not None:
        lines = OffsetLines(script, archive, data)
        dropped, last = lines.fit(end)
        begin = 0 if last is None else last.offset - len(last.key) - 1
        entries = iter_entries(data, archive, found, begin=begin, end=end.size)
        unnamed = [(key, start) for key, start, _ in entries if last is None or start > last.offset]
        added = lines.add(unnamed, archive if last is None else last.path)
    report = Repair(
        path=archive,
        entries=len(end.starts),
        size=end.size,
        bytes_cut=len(data) - end.size,
        torn_key=end.torn.key if end.torn else None,
        reason=str(end.torn) if end.torn else None,
        lines_dropped=dropped,
        lines_added=added,
        dry_run=dry_run,
    )
    if not dry_run:
        if lines is not None and lines.is_changed:
            write_atomically(os.path.realpath(lines.path), bytes(lines.data))
        _cut(archive, end, len(data))
    return report


def _files(path: str | os.PathLike[str], script: str | os.PathLike[str] | None) -> tuple[str, str | None]:
    """Return the path of the archive, and that of the script."""
    text = filename_text(path)
    if script is None and is_specifier(text):
        specifier = parse_wspecifier(text)
        if specifier.archive_wxfilename is None:
            raise InvalidArgument(f"{text!r} names no archive, and only archives are cut: write ark:FILE")
        text, script = specifier.archive_wxfilename, specifier.script_wxfilename
    return _checked_file("path", text), None if script is None else _checked_file("script", script)


def _found_holder(data: mmap.mmap | bytes, path: str) -> str:
    """Return the name of the holder of the first object; of an archive without one, any."""
    start = first_object(data, path)
    names = ("matrix",) if start is None else candidates_of(data[start : start + _HEAD_BYTES])
    if len(names) != 1:
        shown = f"it can be one of {', '.join(names)}" if names else "no holder is known by them"
        raise InvalidArgument(
            f"the first bytes of {path!r} do not tell its holder: {shown}. Name it: holder="
        )
    return names[0]


def _checked_file(name: str, path: str | os.PathLike[str]) -> str:
    text = filename_text(path)
    if check_wxfilename(text) != "file":
        raise InvalidArgument(f"{name} must be a file (got {text!r})")
    return text


def _cut(path: str, end: ArchiveEnd, size: int) -> None:
    """Cut off what is behind the complete entries, and sync the file to disk."""
    if end.size == size:
        return
    with local_errors(path, writing=True):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, end.size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
