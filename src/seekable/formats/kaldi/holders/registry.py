"""Holders: how the objects of one type are read and written, and which holder a name stands for.

A holder reads and writes all that follows the key and the space in an archive, or all of a file that a script
names.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seekable._arguments import checked_count
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.kaldi.basic_types import BASIC_TYPES, read_header, write_header
from seekable.formats.kaldi.holders.basic_values import (
    BasicVectorHolder,
    BoolHolder,
    NumberHolder,
    PairVectorHolder,
    TokenHolder,
    TokenVectorHolder,
    VectorVectorHolder,
)
from seekable.formats.kaldi.holders.matrices import (
    CompressedMatrixHolder,
    GeneralMatrixHolder,
    MatrixHolder,
    PackedMatrixHolder,
    VectorHolder,
)
from seekable.formats.kaldi.holders.other_formats import BlobHolder, HtkHolder, NumpyArrayHolder, SphinxHolder
from seekable.formats.kaldi.holders.posteriors import GaussPosteriorHolder, PosteriorHolder
from seekable.formats.kaldi.holders.sparse import SparseMatrixHolder, SparseVectorHolder
from seekable.formats.kaldi.holders.wave import WaveHolder, WaveInfoHolder

if TYPE_CHECKING:
    from seekable.formats.kaldi.cursor import Cursor, Output, Run
    from seekable.formats.kaldi.holders.script_ranges import Range


@runtime_checkable
class Holder(Protocol):
    """A reader and writer of the objects of one type.

    A holder is immutable and can be pickled: threads and processes share it. It has no state between objects.
    `read`, `skip` and `shape` begin at the first byte of an object (its binary header, if it has one), and
    leave the cursor at the first byte after it; in text, whitespace after an object may stay unread. They
    raise CorruptObject where the bytes are not an object of the type, also where they end too early, and then
    the position is not defined.
    """

    @property
    def name(self) -> str:
        """The name under which the holder is registered, such as ``matrix``."""

    def read(self, cursor: Cursor) -> Any:
        """Return the next object. Its memory is a read-only view where the cursor reads memory."""

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write an object, in binary form or as text.

        Raises:
            WrongType: the value is of another type.
            InvalidArgument: the value cannot be stored, or has no text form and `binary` is False. Nothing
                was written.
        """

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object, without decoding it where its header has its size."""

    def shape(self, cursor: Cursor) -> tuple[int, ...]:
        """Return the shape of the next object, from its header where possible, and move past the object."""


@runtime_checkable
class SupportsRange(Protocol):
    """A holder that can read a part of an object."""

    def read_range(self, cursor: Cursor, part: Range) -> Any:
        """Return the rows and columns of `part`, reading no others where possible; move past the object.

        Raises:
            InvalidArgument: the object has no such rows or columns.
        """


@runtime_checkable
class SupportsRuns(Protocol):
    """A holder of small objects, which are read many at a time."""

    def read_run(self, data: bytes, start: int) -> Run:
        """Return the entries of an archive at a byte of `data`, before the first that must be read by itself.

        That is one that is not whole, or not in the form that Kaldi writes.
        """


@runtime_checkable
class SupportsPacking(Protocol):
    """A holder of objects that are so small that each is written together with its key."""

    def packed(self, value: Any) -> bytes:
        """Return the binary form of an object; errors as in `Holder.write`."""


@runtime_checkable
class SupportsExtent(Protocol):
    """A holder that reads a part of the bytes of each object."""

    def extent(self, cursor: Cursor) -> tuple[int, int]:
        """Return the first byte that `read` needs after the header, and the byte after the last one."""


class _KaldiObject(Protocol):
    """An object that reads and writes itself."""

    def Read(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802 - as in Kaldi
        """Read the members of the object from a binary file object, which stands after the binary header."""

    def Write(self, file: Any, binary: bool) -> None:  # noqa: FBT001, N802 - as in Kaldi
        """Write the members of the object."""


@dataclass(frozen=True, slots=True)
class ObjectHolder:
    r"""Objects of one class. The class is called without arguments, then Read of the object.

    Example:
        >>> from seekable.formats.kaldi.basic_types import read_basic_type, write_basic_type
        >>> class Count:
        ...     number = 0
        ...     def Read(self, file, binary):
        ...         self.number = read_basic_type(file, "int32", binary=binary, add=self.number)
        ...     def Write(self, file, binary):
        ...         write_basic_type(file, self.number, "int32", binary=binary)
        >>> from seekable.formats.kaldi.cursor import MemoryCursor
        >>> ObjectHolder(Count).read(MemoryCursor(b"\0B\4\5\0\0\0")).number
        5
    """

    kind: type[_KaldiObject]

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.kind.__name__

    def read(self, cursor: Cursor) -> _KaldiObject:
        """Return a new object, after its Read."""
        binary = read_header(cursor)
        found = self.kind()
        found.Read(cursor, binary)
        return found

    def write(self, file: Output, value: Any, *, binary: bool) -> None:
        """Write the binary header, if any, and call Write of an object."""
        if not callable(getattr(value, "Write", None)):
            raise WrongType(
                f"value must have a method Write, as {self.name} has (got a {type(value).__name__})"
            )
        write_header(file, binary=binary)
        value.Write(file, binary)

    def skip(self, cursor: Cursor) -> None:
        """Move past the next object by reading it."""
        self.read(cursor)

    def shape(self, cursor: Cursor) -> tuple[()]:
        """Return the shape () of an object, and move past it."""
        self.read(cursor)
        return ()


def _own_holders() -> list[Holder]:
    found: list[Holder] = [NumberHolder(name, basic) for name, basic in BASIC_TYPES.items()]
    for name, basic in BASIC_TYPES.items():
        found.append(PairVectorHolder(f"{name}-pair-vector", basic))
        if not basic.is_float:
            found.append(BasicVectorHolder(f"{name}-vector", basic))
            found.append(VectorVectorHolder(f"{name}-vector-vector", basic))
    for prefix, basic in (("", BASIC_TYPES["float"]), ("double-", BASIC_TYPES["double"])):
        found += [VectorHolder(f"{prefix}vector", basic), MatrixHolder(f"{prefix}matrix", basic)]
        for kind, upper in (("packed", "absent"), ("sp", "mirrored"), ("tp", "zero")):
            found.append(PackedMatrixHolder(f"{prefix}{kind}-matrix", basic, upper))
    found += [BoolHolder(), TokenHolder(), TokenVectorHolder(), PosteriorHolder(), GaussPosteriorHolder()]
    found += [CompressedMatrixHolder(), GeneralMatrixHolder(), SparseVectorHolder(), SparseMatrixHolder()]
    found += [HtkHolder(), SphinxHolder(), WaveHolder(), WaveInfoHolder(), BlobHolder(), NumpyArrayHolder()]
    return found


_OWN = {each.name: each for each in _own_holders()}
_HOLDERS: dict[str, Holder] = dict(_OWN)


def holder_names() -> list[str]:
    """Return the names of all holders, sorted.

    Example:
        >>> "matrix" in holder_names()
        True
    """
    return sorted(_HOLDERS)


def is_own(holder: Holder) -> bool:
    """Return True for a holder of seekable, whatever its options; False for one of the user.

    Example:
        >>> is_own(find_holder("matrix", precision=9))
        True
    """
    return type(holder) is type(_OWN.get(holder.name))


def register_holder(holder: Holder) -> None:
    """Make a holder known by its name, in this process; a later one of the same name replaces it.

    Raises:
        WrongType: it has not all methods of a Holder.
        InvalidArgument: its name is one of seekable's own, or is empty.
    """
    if isinstance(holder, type) or not isinstance(holder, Holder):
        raise WrongType(f"holder must have name, read, write, skip and shape (got {holder!r})")
    if not holder.name or not isinstance(holder.name, str) or holder.name in _OWN:
        raise InvalidArgument(f"the name of a holder must be new, and not empty (got {holder.name!r})")
    _HOLDERS[holder.name] = holder


def find_holder(holder: object, **options: Any) -> Holder:
    """Return the holder that is meant.

    Args:
        holder: a name, a holder, or a class with Read and Write in the style of Kaldi.
        options: fields of the holder to change, such as ``precision=9``, or ``method=2`` of a compressed-
            matrix.

    Raises:
        InvalidArgument: no holder has this name, or the holder lacks an option, or the precision is less
            than 1.
        WrongType: it is something else, or the precision is not an int.

    Example:
        >>> find_holder("vector", precision=9).precision
        9
    """
    found = _resolved(holder)
    if not options:
        return found
    fields: tuple[dataclasses.Field[Any], ...] = (
        dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    )
    for option in options:
        if option not in [each.name for each in fields]:
            raise InvalidArgument(f"{option}= has no meaning for the holder {found.name}")
    if "precision" in options:
        checked_count("precision", options["precision"], least=1)
    changed: Holder = dataclasses.replace(found, **options)  # type: ignore[type-var]
    return changed


def _resolved(holder: object) -> Holder:
    if isinstance(holder, str):
        if holder not in _HOLDERS:
            near = difflib.get_close_matches(holder, _HOLDERS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidArgument(f"holder must be one of {', '.join(holder_names())} (got {holder!r}){hint}")
        return _HOLDERS[holder]
    if isinstance(holder, type) and callable(getattr(holder, "Read", None)):
        return ObjectHolder(holder)
    if not isinstance(holder, type) and isinstance(holder, Holder):
        return holder
    raise WrongType(f"holder must be a name, a holder, or a class with Read and Write (got {holder!r})")
