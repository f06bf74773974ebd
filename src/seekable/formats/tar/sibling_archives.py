"""Opening of several archives whose samples go together: ``sk.open({"image": ..., "caption": ...})``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.tar.fields.decode_argument import check_fields, checked_decode
from seekable.formats.tar.sample_records import FILE_COLUMN
from seekable.formats.tar.sample_source import SampleSource
from seekable.formats.tar.siblings import Siblings, columns_of_sides
from seekable.nodes.columns.names import checked_names
from seekable.nodes.key import SAMPLE_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.contract import Opening
    from seekable.formats.tar.fields.decode_argument import FieldDecoders
    from seekable.nodes.node import Node

__all__ = ["open_siblings"]


def open_siblings(
    sources: Mapping[str, Any], opening: Opening, given: Any, *, suffix: object, fills: bool
) -> Siblings:
    """Return the node whose records have the fields of several archives.

    Args:
        sources: the source of each side, by a name of the caller's choice.
        opening: opens each of them, with payloads that are bytes.
        given: the format of each side; None to find it.
        suffix: that option of ``sk.formats.Tar``.
        fills: True if fields that a sample lacks are None.

    Raises:
        InvalidArgument: a side is no tar file of samples, two columns have one name, or there is no such
            column.
        UnsupportedFormat: samples of the sides do not go together, or a field is pickled.
        WrongType: an argument is of another type.
    """
    names, reading = _checked_sides(sources), opening.reading
    if opening.key is not None:
        message = f"key= is for one source, and samples of archives have the key {SAMPLE_KEY!r}: leave it out"
        raise InvalidArgument(message)
    suffixes = _suffixes(names, suffix)
    decoders = checked_decode(reading.decode)
    columns = None if reading.columns is None else checked_names("columns", reading.columns)
    sides = [_archive(name, opening.side(sources[name], given)) for name in names]
    made = _with_options(sides, columns_of_sides(sides, suffixes), decoders, columns, fills=fills)
    node = Siblings(made, names, suffixes, columns, fills)
    # The number of records comes from matching the samples: those that do not go together are found here.
    if node.size:
        _check_fields(node, decoders)
    return node


def _checked_sides(sources: Mapping[Any, Any]) -> tuple[str, ...]:
    if not sources:
        message = "a dict of archives needs at least one (got an empty dict)"
        raise InvalidArgument(message)
    for name in sources:
        if not isinstance(name, str) or not name:
            message = f"the keys of a dict of archives must be names (got {name!r})"
            raise WrongType(message)
    return tuple(sources)


def _suffixes(names: tuple[str, ...], suffix: object) -> tuple[str, ...]:
    """Return the suffix of each side; a text is that of every side but the first."""
    if suffix is None:
        return ("",) * len(names)
    by_name: Mapping[str, Any] = suffix if isinstance(suffix, Mapping) else dict.fromkeys(names[1:], suffix)
    if unknown := [name for name in by_name if name not in names]:
        message = f"suffix has {unknown[0]!r}, and the archives are {', '.join(map(repr, names))}"
        raise InvalidArgument(message)
    for given in suffix.values() if isinstance(suffix, Mapping) else (suffix,):
        if not isinstance(given, str) or not given:
            message = (
                f"suffix must be a text that is not empty, or a dict of those by archive (got {given!r})"
            )
            raise InvalidArgument(message)
    return tuple(by_name.get(name, "") for name in names)


def _archive(name: str, node: Node) -> SampleSource:
    if not isinstance(node, SampleSource):
        message = (
            f"a dict is for sibling archives, tar files of samples, and {name!r} is {node!r}: "
            f"sk.join(a, b, on=...) and sk.zip(a, b) put other data together"
        )
        raise InvalidArgument(message)
    return node


def _with_options(
    sides: Sequence[SampleSource],
    called: Sequence[Mapping[str, str]],
    decoders: FieldDecoders,
    columns: tuple[str, ...] | None,
    *,
    fills: bool,
) -> tuple[SampleSource, ...]:
    """Return the sides with the columns and the decoders that the caller asks for.

    Raises:
        InvalidArgument: no side has a column.
    """
    files = {FILE_COLUMN: FILE_COLUMN} if decoders.with_url else {}
    there = [SAMPLE_KEY, *files, *(column for own in called for column in own.values())]
    if lost := [name for name in columns or () if name not in there and any(side.size for side in sides)]:
        message = f"no sample has a field {lost[0]!r}; there are {', '.join(map(repr, there))}"
        raise InvalidArgument(message)
    made = []
    for number, (side, own) in enumerate(zip(sides, called, strict=True)):
        field_of = {column: field for field, column in own.items()} | {SAMPLE_KEY: SAMPLE_KEY}
        # The file of a record is that of the first side, and the other decoders are the same without it.
        own_decoders = checked_decode(None) if number and decoders.with_url else decoders
        if not number:
            field_of |= files
        names = None if columns is None else tuple(field_of[name] for name in columns if name in field_of)
        made.append(replace(side, columns=names, decoders=own_decoders, fills=fills))
    return tuple(made)


def _check_fields(node: Siblings, decoders: FieldDecoders) -> None:
    """Refuse fields that will not be decoded, and names in ``decode=`` that no side has."""
    fields = [field for side in node.archives for field in side.fields]
    for side, own in zip(node.archives, node.called, strict=True):
        wanted = [field for field, column in own.items() if node.has(column)]
        check_fields(wanted, decoders, fields=fields, where=side.asked)
