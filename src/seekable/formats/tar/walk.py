"""The walk over a tar archive: from header to header, without the payloads.

The size in one header says where the next one stands. Headers are followed first and checked a few thousand
at a time, in the order of the archive, so the first flaw is the one that is reported, whatever it led to.
Nothing ends an archive but a block of zeros, or the end of the file.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

import numpy as np
import xxhash

from seekable.errors import UnsupportedFormat
from seekable.formats.tar.header import (
    BLOCK_BYTES,
    PAX,
    TIMES,
    TYPE_AT,
    PaxFields,
    find_flaw,
    header_names,
    header_number,
    link_target,
    long_name,
    matters,
    pax_fields,
    size_field,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.index.finder import ForwardReader

__all__ = ["Members", "Walk"]

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


class _Broken(ValueError):
    """The walk cannot go on: why, the offset, and what the caller can do."""

    def __init__(self, at: int, what: str, remedy: str = _DAMAGED) -> None:
        self.at = at
        self.what = what
        self.remedy = remedy
        super().__init__(at, what, remedy)


@final
class Walk:
    """An iterator over the members of an archive, in runs that are not empty; it reads as it goes.

    Args:
        source: the bytes of the archive.
        concatenated: go on after an end mark, if anything but zeros follows; an error otherwise.

    Raises:
        UnsupportedFormat: while runs are taken: the archive is damaged, or has members that cannot be read in
            place (symbolic links, sparse files); the message names the file, the offset, the last good
            member, and what to do.
    """

    def __init__(self, source: ForwardReader, *, concatenated: bool = False) -> None:
        self.end: int | None = None
        """The offset of the end mark, or of the end of a file without one; None before the last run."""
        self.warnings: list[str] = []
        """Texts about what is allowed and may not be meant."""
        self._source = source
        self._concatenated = concatenated
        self._window = _HeaderWindow(source)
        self._start = 0
        self._pax: PaxFields | None = None
        self._long: dict[int, bytes] = {}
        self._batch = _HeaderBatch()
        self._recent: list[tuple[int, bytes]] = []
        self._walked = 0
        self._symlinks = 0
        self._first_symlink = (0, b"")
        self._targets = _LinkTargets()
        self._headers = xxhash.xxh3_64()
        self._bodies = xxhash.xxh3_64()

    @property
    def header_digest(self) -> int:
        """The xxh3_64 of all headers so far, with the data of extended ones."""
        digests = (self._headers.intdigest(), self._bodies.intdigest())
        return xxhash.xxh3_64_intdigest(b"".join(digest.to_bytes(8, "little") for digest in digests))

    def __iter__(self) -> Iterator[Members]:
        return self

    def __next__(self) -> Members:
        while self.end is None:
            self._batch = _HeaderBatch()
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
        """Follow headers until the batch is full or the archive ends: the inner loop.

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
        """Handle a header that the inner loop does not, and return the offset of the next one."""
        if block == _ZEROS:
            return self._end_mark(at)
        row = self._batch.add(block, at)
        kind = block[TYPE_AT]
        try:
            size = header_number(size_field(block))
        except ValueError as error:
            raise _Broken(at, f"the size in the header is {error}") from None
        if kind in _EXTENDED or kind == _GLOBAL:
            self._extended(kind, at, size)
            after = at + 512 + (size + 511 & -512)
            if kind == _GLOBAL and self._start == at:
                self._start = after
            return after
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
        """Handle the data of an extended header."""
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
        """Look after a block of zeros; return the offset of an appended archive, or end the walk."""
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
        """Return the data after the extended header at an offset."""
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


_NEAR_BYTES = 2 << 10
_NEAR_READ = 256 << 10
"""The bytes to read where headers are less than `_NEAR_BYTES` apart, extended ones counted."""

_FAR_READ = 6 << 10
"""The bytes to read elsewhere: the headers of a sample of small members, and of the large one after it."""

_NEWEST_SHARE = 0.25
"""How much the newest distance between headers weighs in the mean."""

_MOST_OFFSET = 1 << 62


@final
class _HeaderWindow:
    """The part of an archive that a walk looks at; it is long where headers are close together."""

    __slots__ = ("_at", "_headers", "_source", "_spacing", "base", "buffer")

    def __init__(self, source: ForwardReader) -> None:
        """Begin with an empty window."""
        self.buffer = b""
        """The bytes of the window."""
        self.base = 0
        """The offset of the first of them."""
        self._source = source
        self._at = 0
        self._headers = 0
        self._spacing = 0.0

    def fill(self, at: int, count: int, *, headers: int) -> bool:
        """Move the window, so that it begins one byte before an offset.

        That byte is the last of the data that end there, so that a file which ends before it is told from one
        which ends there.

        Args:
            at: the offset.
            count: the number of bytes that are needed from there on, besides the next header.
            headers: the number of headers before the offset.

        Returns:
            False if the file ends before that byte.
        """
        if headers > self._headers:
            newest = (at - self._at) / (headers - self._headers)
            self._spacing += (newest - self._spacing) * _NEWEST_SHARE
            self._at, self._headers = at, headers
        self.base = max(at - 1, 0)
        count += _NEAR_READ if self._spacing < _NEAR_BYTES else _FAR_READ
        self.buffer = self._source.read(self.base, count + 1) if at < _MOST_OFFSET else b""
        return bool(self.buffer) or not at

    def take(self, at: int, count: int) -> bytes:
        """Return bytes of the window from an offset on; fewer where it ends."""
        return self.buffer[at - self.base : at - self.base + count]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """Consecutive regular files and hard links of an archive, at most 1,024, in its order."""

    starts: NDArray[np.uint64]
    """The offset of the first extended header of each member, or of its header if it has no other."""

    payloads: NDArray[np.uint64]
    """The offset of each payload; of a hard link, that of the member it leads to, which lies before it."""

    sizes: NDArray[np.uint64]
    """The number of bytes of each payload."""

    names: list[bytes]
    """The name of each member, without final slashes."""


@final
@dataclass(slots=True)
class _HeaderBatch:
    """Headers in the order of the archive, extended ones among them, to be checked at once."""

    heads: list[bytes] = field(default_factory=list)
    """The blocks of the headers."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    """The offset of each header."""

    sizes: array[int] = field(default_factory=lambda: array("q"))
    """The size of the payload after each header if it is a member's, else -1."""

    starts: dict[int, int] = field(default_factory=dict)
    """By index of a header, the offset of the first extended one before it, or its own.

    A header that is not here begins its member, unless it follows a PAX header directly.
    """

    names: dict[int, bytes] = field(default_factory=dict)
    """The names of members that do not stand in their headers."""

    links: dict[int, bytes] = field(default_factory=dict)
    """The targets of hard links."""

    bodies: list[bytes] = field(default_factory=list)
    """The data of extended headers."""

    def add(self, head: bytes, offset: int) -> int:
        """Add a header, so far of no member, and return its index."""
        self.heads.append(head)
        self.offsets.append(offset)
        self.sizes.append(-1)
        return len(self.heads) - 1

    def member_rows(self) -> NDArray[np.int64]:
        """Return the indices of the members' headers."""
        return np.flatnonzero(np.frombuffer(self.sizes, np.int64) >= 0)

    def names_of(self, heads: NDArray[np.uint8], rows: NDArray[np.int64]) -> list[bytes]:
        """Return the names of members.

        Args:
            heads: the headers, one a row, uint8, shape ``(n, 512)``.
            rows: the indices of the members' headers.
        """
        names = header_names(heads if rows.size == len(heads) else heads[rows])
        if self.names:
            names = [self.names.get(row, name) for row, name in zip(rows.tolist(), names, strict=True)]
        return names

    def members(self, heads: NDArray[np.uint8]) -> Members:
        """Return the members, hard links without payload, of headers that were checked, one a row."""
        sizes, offsets = np.frombuffer(self.sizes, np.uint64), np.frombuffer(self.offsets, np.uint64)
        rows = self.member_rows()
        starts = offsets.copy()
        after_pax = np.flatnonzero(heads[:-1, TYPE_AT] == PAX) + 1
        starts[after_pax] = offsets[after_pax - 1]
        for row, start in self.starts.items():
            starts[row] = start
        payloads = offsets[rows] + np.uint64(BLOCK_BYTES)
        return Members(starts[rows], payloads, sizes[rows], self.names_of(heads, rows))


@final
class _LinkTargets:
    """The members of an archive so far: where the payload of a name lies.

    Archives without links, which are most of them, cost 8 bytes a member here: the arrays of payloads and
    sizes are those of the walk. The first link makes a dict of them.
    """

    __slots__ = ("_by_hash", "_waiting")

    def __init__(self) -> None:
        """Begin before the first member."""
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]] = []
        self._by_hash: dict[int, tuple[int, int]] = {}

    def add(
        self,
        names: Sequence[bytes],
        payloads: NDArray[np.uint64],
        sizes: NDArray[np.uint64],
        links: Mapping[int, bytes],
    ) -> int | None:
        """Add the next members, and give each link the payload of the last member before it that it names.

        Args:
            names: the name of each member.
            payloads: the offset of each payload; written to where the member is a link.
            sizes: the size of each payload; written to where the member is a link.
            links: the targets of links, by index of the member in these arrays, ascending.

        Returns:
            The index of the first link whose target is not before it; None if there is none.
        """
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        if not links:
            self._waiting.append((hashes, payloads, sizes))
            return None
        self._catch_up()
        done = 0
        for index, target in links.items():
            self._remember(hashes[done:index], payloads[done:index], sizes[done:index])
            done = index
            if (found := self._by_hash.get(hash(target.rstrip(b"/")))) is None:
                return index
            payloads[index], sizes[index] = found
        self._remember(hashes[done:], payloads[done:], sizes[done:])
        return None

    def _catch_up(self) -> None:
        for hashes, payloads, sizes in self._waiting:
            self._remember(hashes, payloads, sizes)
        self._waiting.clear()

    def _remember(
        self, hashes: NDArray[np.int64], payloads: NDArray[np.uint64], sizes: NDArray[np.uint64]
    ) -> None:
        pairs = zip(payloads.tolist(), sizes.tolist(), strict=True)
        self._by_hash.update(zip(hashes.tolist(), pairs, strict=True))
