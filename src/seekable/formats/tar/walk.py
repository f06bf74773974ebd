"""The walk over a tar archive: from header to header, without the payloads.

The size in one header says where the next one stands. Headers are followed first and checked a few thousand
at a time, in the order of the archive, so the first flaw is the one that is reported, whatever it led to.
Nothing ends an archive but a block of zeros, or the end of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.header import (
    BLOCK_BYTES,
    PAX,
    TYPE_AT,
    find_flaw,
    link_target,
    long_name,
    number,
    size_field,
)
from seekable.formats.tar.header_batch import HeaderBatch, Members
from seekable.formats.tar.header_window import HeaderWindow
from seekable.formats.tar.link_targets import LinkTargets
from seekable.formats.tar.pax import TIMES, PaxFields, matters, pax_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from seekable.index.finder import ForwardReader

__all__ = ["Members", "Walk", "walk"]

_BATCH = 1024
"""The headers that are checked at once: 512 KiB, which fit into a cache of the processor."""

_TAIL_READ = 64 << 10
_MOST_EXTENDED = 64 << 20
"""The most bytes of PAX records, or of a long name, that one member may have."""

_MOST_SIZE = 1 << 62
"""A size that no file has: larger ones are an error at the next header."""

_SMALL_SIZES = {b"%011o\0" % size: size for size in range(512)}
"""Small sizes, those of nearly all extended headers among them, by their usual form in a header."""

_ZEROS = bytes(BLOCK_BYTES)
_MULTIPLE = -BLOCK_BYTES
_FILE, _LINK, _SYMLINK, _DIRECTORY, _VOLUME, _SPARSE, _GLOBAL, _LONG_NAME, _LONG_LINK = b"0125MSgLK"
_EXTENDED = b"xXLK"
_WITHOUT_DATA = b"123456"

_DAMAGED = "The archive is damaged, or was cut: put a whole copy of it there"
_UNLINK = "Re-create the archive with tar -h (--dereference)"
_UNSPARSE = "Re-create the archive with tar without -S, or with bsdtar --no-read-sparse"


def walk(source: ForwardReader, *, concatenated: bool = False) -> Walk:
    """Return the members of an archive, in runs; nothing is read before the first run is taken.

    Args:
        source: the bytes of the archive.
        concatenated: go on behind an end mark, if anything but zeros follows; an error otherwise.

    Raises:
        UnsupportedFormat: while runs are taken: the archive is damaged, or has members that cannot be read in
            place (symbolic links, sparse files); the message names the file, the offset, the last good
            member, and what to do.
    """
    return Walk(source, concatenated=concatenated)


class _Broken(ValueError):
    """The walk cannot go on: why, the offset, and what the caller can do."""

    def __init__(self, at: int, what: str, remedy: str = _DAMAGED) -> None:
        self.at = at
        self.what = what
        self.remedy = remedy
        super().__init__(at, what, remedy)


@final
class Walk:
    """An iterator of the members of an archive, in runs of which none is empty."""

    __slots__ = (
        *(
            "end",
            "warnings",
            "_source",
            "_concatenated",
            "_window",
            "_start",
            "_pax",
            "_long",
            "_batch",
            "_walked",
        ),
        *("_recent", "_symlinks", "_first_symlink", "_targets", "_headers", "_bodies"),
    )

    def __init__(self, source: ForwardReader, *, concatenated: bool) -> None:
        self.end: int | None = None
        """The offset of the end mark, or of the end of a file without one; None before the last run."""
        self.warnings: list[str] = []
        """Texts about what is allowed and may not be meant."""
        self._source = source
        self._concatenated = concatenated
        self._window = HeaderWindow(source)
        self._start = 0
        self._pax: PaxFields | None = None
        self._long: dict[int, bytes] = {}
        self._batch = HeaderBatch()
        self._recent: list[tuple[int, bytes]] = []
        self._walked = 0
        self._symlinks = 0
        self._first_symlink = (0, b"")
        self._targets = LinkTargets()
        self._headers = xxhash.xxh3_64()
        self._bodies = xxhash.xxh3_64()

    @property
    def header_digest(self) -> int:
        """The xxh3_64 of the headers of the runs that were taken, and of the data of extended ones."""
        digests = (self._headers.intdigest(), self._bodies.intdigest())
        return xxhash.xxh3_64_intdigest(b"".join(digest.to_bytes(8, "little") for digest in digests))

    def __iter__(self) -> Iterator[Members]:
        return self

    def __next__(self) -> Members:
        while self.end is None:
            self._batch = HeaderBatch()
            try:
                members = self._run()
            except _Broken as broken:
                raise self._error(broken) from None
            if members.names:
                return members
        raise StopIteration

    def _run(self) -> Members:
        """Return the members of the next headers."""
        try:
            self._follow()
        except _Broken:
            self._checked()  # A damaged header before that is the cause.
            raise
        return self._members(self._checked())

    def _follow(self) -> None:
        """Go from header to header until the batch is full or the archive ends: the inner loop.

        Raises:
            _Broken: the archive ends where it must not, or has what is refused; a damaged header before that
                may be the cause.
        """
        batch, window = self._batch, self._window
        heads, bodies = batch.heads.append, batch.bodies.append
        offsets, sizes = batch.offsets.append, batch.sizes.append
        start = at = self._start
        small = _SMALL_SIZES
        buffer, base, pending = window.buffer, window.base, False
        while True:
            first = at - base
            block = buffer[first : first + BLOCK_BYTES]
            if len(block) < BLOCK_BYTES:
                if not (block := self._block(at)):
                    self._end_of_file(at)
                    return
                buffer, base = window.buffer, window.base
                first = at - base
            kind = block[TYPE_AT]
            try:
                size = small[digits] if (digits := block[124:136]) in small else int(digits.rstrip(b"\0 "), 8)
            except ValueError:
                size = -1
            if kind == PAX and start == at and size >= 0:
                body = buffer[first + BLOCK_BYTES : first + BLOCK_BYTES + size]
                if len(body) == size and (TIMES.get(body[:9]) == size or not matters(body)):
                    heads(block)
                    offsets(at)
                    sizes(-1)
                    bodies(body)
                    at += BLOCK_BYTES + (size + 511 & -512)
                    continue
            elif kind == _FILE and size >= 0 and not pending:
                heads(block)
                offsets(at)
                sizes(size)
                at += BLOCK_BYTES + (size + 511 & -512)
                self._start = start = at
                if len(batch.heads) >= _BATCH:
                    return
                continue
            at = self._step(block, at)
            start, pending = self._start, self._pax is not None or bool(self._long)
            if self.end is not None or (start == at and len(batch.heads) >= _BATCH):
                return
            buffer, base = window.buffer, window.base

    def _step(self, block: bytes, at: int) -> int:
        """Take in a header that the inner loop does not, and return the offset of the next one."""
        if block == _ZEROS:
            return self._end_mark(at)
        row = self._batch.add(block, at)
        kind = block[TYPE_AT]
        try:
            size = number(size_field(block))
        except ValueError as error:
            raise _Broken(at, f"the size in the header is {error}") from None
        if kind in _EXTENDED or kind == _GLOBAL:
            self._extended(kind, at, size)
            behind = at + 512 + (size + 511 & -512)
            if kind == _GLOBAL and self._start == at:
                self._start = behind
            return behind
        pax = self._pax or PaxFields()
        name = pax.path or self._long.get(_LONG_NAME) or long_name(block)
        size = size if pax.size is None else pax.size
        self._refuse(kind, name, at, is_sparse=pax.is_sparse)
        is_directory = kind == _DIRECTORY or (kind == 0 and name.endswith(b"/"))
        if kind in b"\x0007" and not is_directory:
            self._batch.sizes[row] = min(size, _MOST_SIZE)
        elif kind == _LINK:
            self._batch.sizes[row] = 0
            self._batch.links[row] = pax.link_path or self._long.get(_LONG_LINK) or link_target(block)
        self._batch.starts[row] = self._start
        self._batch.names[row] = name.rstrip(b"/")
        self._pax, self._long = None, {}
        self._start = at + 512 + (0 if is_directory or kind in _WITHOUT_DATA else size + 511 & -512)
        return self._start

    def _refuse(self, kind: int, name: bytes, at: int, *, is_sparse: bool) -> None:
        """Raise `_Broken` for a member that cannot be read in place; count symbolic links."""
        if kind == _SPARSE or is_sparse:
            what = f"the member {_shown(name)} is a sparse file, whose holes are not in the archive"
            raise _Broken(at, what, _UNSPARSE)
        if kind == _VOLUME:
            what = f"the member {_shown(name)} continues a file of another volume"
            raise _Broken(
                at, what, "Join the volumes first: extract them with tar -M, and archive the files again"
            )
        if kind == _SYMLINK:
            self._first_symlink = self._first_symlink if self._symlinks else (at, name)
            self._symlinks += 1

    def _extended(self, kind: int, at: int, size: int) -> None:
        """Take in the data of an extended header."""
        if self._start != at and self._pax is None and not self._long:
            self._pax = PaxFields()  # The inner loop read one that gives nothing.
        if size > _MOST_EXTENDED:
            raise _Broken(
                at, f"an extended header of {size} bytes, and more than {_MOST_EXTENDED} are refused"
            )
        body = self._data(at, size)
        self._batch.bodies.append(body)
        if kind in (_LONG_NAME, _LONG_LINK):
            text = body.partition(b"\0")[0]
            if kind in self._long or not text:
                raise _Broken(
                    at, "an empty long name" if not text else "a second long name before one member"
                )
            self._long[kind] = text
            return
        try:
            fields = pax_fields(body) if matters(body) else PaxFields()
        except ValueError as error:
            raise _Broken(at, str(error)) from None
        if kind == _GLOBAL:
            if fields != PaxFields():
                what = "a global PAX header that gives all later members a name, a size or a link"
                raise _Broken(at, what, "Re-create the archive without such --pax-option")
            return
        if self._pax is not None:
            raise _Broken(at, "a second PAX header before one member: readers disagree on what it means")
        self._pax = fields

    def _end_mark(self, at: int) -> int:
        """Look behind a block of zeros; return the offset of an appended archive, or end the walk."""
        self._no_pending(at, "the end mark")
        before = at + 511
        while data := self._source.read(before, _TAIL_READ):
            if rest := data.lstrip(b"\0"):
                follows = before + len(data) - len(rest) & _MULTIPLE
                if not self._concatenated:
                    what = f"more than zeros behind the end mark at byte {at}: a second archive, or junk"
                    raise _Broken(
                        follows, what, "sk.formats.Tar(concatenated=True) reads archives joined by cat"
                    )
                self._start = follows
                return follows
            before += len(data)
        self._finish(at)
        return at

    def _end_of_file(self, at: int) -> None:
        """End the walk where the file ends without an end mark."""
        if not at:
            raise _Broken(0, "the file is empty, and an archive without members has 1,024 zeros")
        self._no_pending(at, "the end of the file")
        self.warnings.append(
            f"{self._source.path}: the archive has no end mark: its writer was not closed, or it was cut at "
            f"byte {at}, the end of a member; members may be missing"
        )
        self._finish(at)

    def _no_pending(self, at: int, what: str) -> None:
        if self._start != at:
            raise _Broken(self._start, f"an extended header without its member: {what} is at byte {at}")

    def _finish(self, at: int) -> None:
        if self._symlinks:
            first, name = self._first_symlink
            what = f"{_shown(name)} is the first of {self._symlinks} symbolic links, which have no data here"
            raise _Broken(first, what, _UNLINK)
        self.end = at

    def _block(self, at: int) -> bytes:
        """Return the header at an offset, which the window does not hold; nothing at the end of the file."""
        window = self._window
        if not window.fill(at, 0, headers=self._walked + len(self._batch.heads)):
            raise self._cut(at)
        first = at - window.base
        block = window.buffer[first : first + BLOCK_BYTES]
        if 0 < len(block) < BLOCK_BYTES:
            raise _Broken(at, f"{len(block)} bytes, where a header has 512: the file ends there")
        return block

    def _data(self, at: int, size: int) -> bytes:
        """Return the data behind the extended header at an offset."""
        body = self._window.take(at + 512, size)
        if len(body) < size:
            if not self._window.fill(at + 512, size, headers=self._walked + len(self._batch.heads)):
                raise self._cut(at + 512)
            body = self._window.take(at + 512, size)
        if len(body) < size:
            raise _Broken(at, f"an extended header of {size} bytes is cut: the file ends there")
        return body

    def _cut(self, at: int) -> _Broken:
        """Return the error that the file ends before data that end at an offset."""
        headers = [*self._batch.offsets[-1:]] or [offset for offset, _ in self._recent] or [0]
        what = f"the member is cut: its data end at byte {at}, behind the end of the file"
        return _Broken(headers[-1], what)

    def _checked(self) -> NDArray[np.uint8]:
        """Return the headers of the batch, one a row, and add them to the digest.

        Raises:
            _Broken: one of them is damaged.
        """
        batch, joined = self._batch, b"".join(self._batch.heads)
        heads = np.frombuffer(joined, np.uint8).reshape(-1, BLOCK_BYTES)
        flaw = find_flaw(heads)
        rows = batch.member_rows()
        rows = rows[rows < (flaw[0] if flaw else len(heads))][-2:]
        names = zip(rows.tolist(), batch.names_of(heads, rows), strict=True)
        self._recent = [*self._recent, *((batch.offsets[row], name) for row, name in names)][-4:]
        if flaw:
            raise _Broken(batch.offsets[flaw[0]], flaw[1])
        self._headers.update(joined)
        self._bodies.update(b"".join(batch.bodies))
        self._walked += len(heads)
        return heads

    def _members(self, heads: NDArray[np.uint8]) -> Members:
        """Return the members of the checked batch.

        Raises:
            _Broken: a hard link leads to no member before it.
        """
        members = self._batch.members(heads)
        rows = self._batch.member_rows()
        links = {int(np.searchsorted(rows, row)): target for row, target in self._batch.links.items()}
        lost = self._targets.add(members.names, members.payloads, members.sizes, links)
        if lost is not None:
            good = zip(members.starts[:lost].tolist(), members.names[:lost], strict=True)
            self._recent += [*good][-1:]
            link, target = _shown(members.names[lost]), _shown(links[lost])
            what = f"the member {link} is a hard link to {target}, which is no earlier file of this archive"
            raise _Broken(int(members.starts[lost]), what, _UNLINK)
        return members

    def _error(self, broken: _Broken) -> UnsupportedFormat:
        good = [f"{_shown(name)} at byte {offset}" for offset, name in self._recent if offset < broken.at]
        last = f"the last good member is {good[-1]}" if good else "no good member is before it"
        return UnsupportedFormat(
            f"{self._source.path}: byte {broken.at}: {broken.what}; {last}. {broken.remedy}"
        )


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "surrogateescape"))
