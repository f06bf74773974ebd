"""A Shar of Lhotse as a format, ``sk.formats.Shar``: a folder, ``shar:DIR``, or a dict of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import structs

from seekable._lazy import lazy
from seekable.errors import InvalidArgument, MissingDependency, UnsupportedFormat
from seekable.formats.classify import check_value
from seekable.formats.contract import Claim, Format
from seekable.formats.lines.jsonl import Jsonl
from seekable.formats.look import OtherTool
from seekable.formats.shar.shar_layout import (
    CUTS,
    MANIFEST,
    NO_DATA,
    NO_MANIFEST,
    OWN_KEYS,
    fields_of_folder,
    held_by_cut,
    is_shar,
    named_fields,
)
from seekable.formats.shar.shar_source import SharSource
from seekable.formats.table import plugged_card
from seekable.formats.tar.field_decoders import checked_decode, field_decoder
from seekable.formats.tar.tar import Tar
from seekable.formats.tar.tar_words import MemberWords
from seekable.index.integrity import VerificationProblem
from seekable.nodes.columns.names import checked_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seekable.formats.contract import Card, Checking, Opening, Reading
    from seekable.formats.lines.jsonl import JsonlScanner
    from seekable.formats.look import Folder, Look
    from seekable.formats.shar import idxpack
    from seekable.formats.shar.shar_layout import FieldFiles, SharFiles
    from seekable.index.fileset import FileSet
    from seekable.index.verification import Verification
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.key import KeyOf
    from seekable.storage.listing import FoundFiles

    Index = Callable[[Sequence[FoundFiles], Format], FileSet]
else:
    idxpack = lazy("seekable.formats.shar.idxpack")

__all__ = ["Shar"]

_SPEC = "shar"

_KEY = "id"
"""The key of cuts, unless the user defines another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shar(Format):
    """A Shar of Lhotse: cuts as JSON lines, and a tar file or lines for each other field of a shard.

    Example:
        >>> import seekable as sk
        >>> sk.formats.Shar()
        Shar()
    """

    card: ClassVar[Card] = plugged_card("shar")

    @property
    def finder(self) -> JsonlScanner:
        """The scanner of the cuts."""
        return Jsonl().finder

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the files of a Shar, or those that a pack of Lhotse's indexes names.

        Raises:
            DataNotFound: a file or a folder does not exist.
            InvalidArgument: the spec is incomplete, or the user gave another format.
            UnsupportedFormat: the files do not go together.
        """
        if look.spec == "idxpack" or look.path.endswith(idxpack.SUFFIX):
            return idxpack.pack_claim(look)
        files = _files_of(look)
        if files is None:
            return None
        if look.value is not None:
            check_value(look.value, _SPEC, look.shown)
        return Claim(format=cls(), found=files.cuts.found, detail=files)

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return what a Shar is: cuts beside other fields; cuts alone are JSON lines."""
        cuts = {name for name in folder.files if name.startswith("cuts.")}
        if not cuts or not is_shar(folder.files) or cuts == folder.files:
            return None
        way_out = "open its cuts, with all fields, as sk.open('shar:DIR')"
        return OtherTool("a folder of Lhotse Shar", way_out)

    def check(self, reading: Reading) -> None:
        """Check the columns and if Cut objects can be made.

        Raises:
            InvalidArgument: only some columns are asked for, and Cut objects too.
            WrongType: ``columns`` is not a list of names.
            MissingDependency: Lhotse is not installed.
        """
        _check_reading(reading)

    def leaf(self, files: FileSet, reading: Reading) -> FileSource:
        """Return the source of the cuts alone."""
        return Jsonl().leaf(files, reading)

    def open(self, claim: Claim, opening: Opening) -> SharSource | FileSource:
        """Return the source of a Shar; that of the cuts if there is nothing else.

        Raises:
            InvalidArgument: an option names a column or a field that there is not.
            UnsupportedFormat: the files of a field do not go with the cuts.
        """
        shar: SharFiles = claim.detail
        return _open_shar(
            shar, opening.reading, index=_index(opening), with_keys=partial(_keyed, opening=opening)
        )

    def verified(self, claim: Claim, checking: Checking) -> Verification:
        """Return what is wrong with the files of each field, and of all together."""
        shar: SharFiles = claim.detail
        found: Verification | None = None
        good: dict[tuple[FoundFiles, ...], FileSet] = {}
        for field in (shar.cuts, *shar.fields):
            verified = checking.files(field.found, _format_of_field(field).finder)
            good[field.found] = verified.good
            found = verified if found is None else found.with_those_of(verified)
        assert found is not None
        if found.problems:
            return found
        unequal = [
            VerificationProblem("record", path, message)
            for field in shar.fields
            for path, message in _unequal_files(good[shar.cuts.found], good[field.found], field.name)
        ]
        if unequal:
            return replace(found, problems=tuple(unequal))
        return checking.decoded(
            found,
            lambda reading: _open_shar(
                shar, reading, index=lambda runs, _: good[tuple(runs)], with_keys=lambda lines: lines
            ),
        )


def _files_of(look: Look) -> SharFiles | None:
    """Return the files of a Shar that a user names, None if the source is none."""
    if isinstance(look.source, Mapping):
        return named_fields(look.source) if CUTS in look.source else None
    if look.spec == _SPEC:
        if look.name not in (None, _SPEC):
            message = f"{look.path!r} is a Shar; leave format={look.name!r} out"
            raise InvalidArgument(message)
        if not look.rest:
            message = f"{look.path!r} is not complete: shar:DIR, where DIR has the files cuts.*.jsonl"
            raise InvalidArgument(message)
        return fields_of_folder(look.rest)
    if not look.is_folder or not any(name.startswith("cuts.") for name in look.names):
        return None
    is_one = look.name == _SPEC or (look.name is None and is_shar(look.names))
    return fields_of_folder(look.path) if is_one else None


def _index(opening: Opening) -> Callable[[Sequence[FoundFiles], Format], FileSet]:
    return lambda found, form: opening.indexed(found, form.finder)


def _keyed(lines: FileSource, *, opening: Opening) -> Any:
    """Return the source of the cuts with keys; without any, if the first cut has no id."""
    key: KeyOf | None = opening.key
    if key is None:
        first = lines.record(0) if lines.size else {}
        if not isinstance(first, dict) or _KEY not in first:
            return lines
        key = _KEY
    return opening.keyed(lines, key)


_NO_PAYLOAD: Final = frozenset({MANIFEST, NO_DATA, NO_MANIFEST})

_ARRAYS: Final[Mapping[str, str]] = {"llc": "lilcom", "npy": "numpy"}
"""The decoders of payloads that are arrays, by suffix."""

_CUT_OBJECTS: Final = "lhotse"
"""The decoding whose records are Cut objects."""

_ORIGINAL: Final = "original"
"""The suffix of audio in the format that it had before."""

_KEYS_OF_LHOTSE: Final = OWN_KEYS | {"type", "tracks", "transforms"}


def _open_shar(
    shar: SharFiles,
    reading: Reading,
    *,
    index: Index,
    with_keys: Callable[[FileSource], FileSource],
) -> SharSource | FileSource:
    """Return the source of a Shar; that of its cuts, if it has no other field.

    Args:
        shar: its files.
        reading: the arguments of ``sk.open``.
        index: returns the indexed files of one format.
        with_keys: returns the source of the cuts with the index of their keys.

    Raises:
        InvalidArgument: an option names a column or a field that there is not.
        WrongType: an option is of the wrong type.
        UnsupportedFormat: a file of a field has other numbers of records than the cuts have there, or a
            payload is pickled.
        MissingDependency: a payload needs a package that is not installed.
    """
    _check_reading(reading)
    columns = None if reading.columns is None else checked_names("columns", reading.columns)
    as_cuts = reading.decode == _CUT_OBJECTS
    asked = _decode_by_field("bytes" if as_cuts else reading.decode, shar.fields)
    jsonl = Jsonl()
    files = index(shar.cuts.found, jsonl)
    plain = structs.replace(reading, decode=None, columns=None, errors=None)
    if not shar.fields and columns is None and not as_cuts:
        return with_keys(jsonl.leaf(files, structs.replace(plain, errors=reading.errors)))
    lines = jsonl.leaf(files, plain)
    if columns is not None:
        _check_columns(columns, [field.name for field in shar.fields], lines)
    sources = []
    for field in shar.fields:
        own = index(field.found, _format_of_field(field))
        for _, message in _unequal_files(files, own, field.name):
            raise UnsupportedFormat(message)
        is_read = columns is None or not {field.name, held_by_cut(field.name)}.isdisjoint(columns)
        decode = asked.get(field.name) if is_read else partial(_always, "bytes")
        sources.append(_field_source(field, own, plain, decode))
    keyed = with_keys(replace(lines, errors=reading.errors))
    return SharSource(
        replace(keyed, errors=None),
        tuple(sources),
        tuple(field.name for field in shar.fields),
        reading.shown,
        columns,
        errors=reading.errors,
        as_cuts=as_cuts,
    )


def _field_source(
    field: FieldFiles, files: FileSet, plain: Reading, asked: Callable[[str], Any] | None
) -> Any:
    """Return the source of a field.

    Args:
        field: the field.
        files: its indexed files.
        plain: the arguments of ``sk.open`` without those for records.
        asked: returns the decoder that is asked for payloads of a suffix; None of JSON lines.
    """
    form = _format_of_field(field)
    if field.kind == "jsonl" or asked is None:
        return form.leaf(files, plain)
    decode = _decode_by_suffix(files, asked)
    _check_packages(field.name, decode)
    return form.leaf(files, structs.replace(plain, decode=decode))


def _check_reading(reading: Reading) -> None:
    """Check the columns, and that Cut objects can be made, if they are asked for.

    Raises:
        InvalidArgument: only some columns are asked for.
        WrongType: ``columns`` is not a list of names.
        MissingDependency: Lhotse is not installed.
    """
    if reading.columns is not None:
        checked_names("columns", reading.columns)
    if reading.decode == _CUT_OBJECTS and reading.columns is not None:
        message = (
            f"columns= chooses keys of dicts, and decode='lhotse' makes cuts, which need them all: leave "
            f"columns= out (got {list(reading.columns)!r})"
        )
        raise InvalidArgument(message)
    if reading.decode == _CUT_OBJECTS and find_spec("lhotse") is None:
        message = (
            "decode='lhotse' makes Cut objects of Lhotse, which is not installed: pip install "
            "'seekable[lhotse]', or leave decode= out for dicts"
        )
        raise MissingDependency(message)


def _format_of_field(field: FieldFiles) -> Format:
    """Return the format of the files of a field."""
    return Jsonl() if field.kind == "jsonl" else Tar(pairs=True)


def _unequal_files(cuts: FileSet, field: FileSet, name: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file whose records are not as many as the cuts of its shard.

    Yields:
        The path, and a message that names both files and numbers.
    """
    for shard, (count, own) in enumerate(zip(cuts.records.tolist(), field.records.tolist(), strict=True)):
        if count != own:
            path = field.shown_path(shard)
            message = (
                f"{path!r} has {own:,} records of the field {name!r}, and {cuts.shown_path(shard)!r} has "
                f"{count:,} cuts: a shard has one record of every field for each cut. Write the shard again, "
                f"or open the Shar without this field"
            )
            yield path, message


def _check_columns(columns: Sequence[str], fields: Sequence[str], lines: FileSource) -> None:
    """Refuse a column that is neither a key of a cut nor a field; a cut is read only for an unknown name.

    Raises:
        InvalidArgument: there is no such column.
    """
    unknown = [name for name in columns if name not in _KEYS_OF_LHOTSE and name not in fields]
    if not unknown or not lines.size:
        return
    first = lines.record(0)
    present = [*first] if isinstance(first, dict) else []
    for name in unknown:
        if name not in present:
            known = ", ".join(map(repr, dict.fromkeys([*present, *fields])))
            message = (
                f"the cuts of this Shar have no column {name!r}, and it has no such field; there are {known}"
            )
            raise InvalidArgument(message)


def _decode_by_field(decode: Any, fields: Sequence[FieldFiles]) -> dict[str, Callable[[str], Any]]:
    """Return for each field of payloads a function from the suffix of a payload to the decoder asked for.

    Raises:
        InvalidArgument: ``decode`` names a field that the Shar lacks, or a decoder that does not exist.
        WrongType: it is neither a name, a decoder of audio, nor a dict.
    """
    tars = [field.name for field in fields if field.kind == "tar"]
    if not isinstance(decode, Mapping):
        decoders = checked_decode(decode)
        return dict.fromkeys(tars, lambda suffix: decoders.asked("wav" if suffix == _ORIGINAL else suffix))
    for name, asked in decode.items():
        if name not in tars:
            there = ", ".join(map(repr, tars)) or "none"
            message = f"decode has {name!r}, and the fields of this Shar with payloads are {there}"
            raise InvalidArgument(message)
        field_decoder("", asked)
    return {name: partial(_always, decode.get(name)) for name in tars}


def _check_packages(field: str, decode: Mapping[str, Any]) -> None:
    """Refuse a field whose decoder needs a package that is not installed.

    Raises:
        MissingDependency: a package is missing.
    """
    for suffix, asked in decode.items():
        decoder = field_decoder(suffix, asked)
        if package := decoder.missing_package:
            message = (
                f"to decode the field {field!r}, whose payloads are .{suffix}, as {decoder.name!r} needs "
                f"{package}, which is not installed: {decoder.install}. Or take its bytes with "
                f"decode={{{field!r}: 'bytes'}}, or leave it out with columns="
            )
            raise MissingDependency(message)


def _always(asked: Any, _: str) -> Any:
    return asked


def _decode_by_suffix(files: FileSet, asked: Callable[[str], Any]) -> dict[str, Any]:
    """Return the decoder of each suffix of payloads: arrays are decoded by default, and all else stays bytes.

    Args:
        files: the tar files of a field.
        asked: returns the decoder that the user asks for, None for the default.
    """
    suffixes = dict.fromkeys(suffix for schema in MemberWords(files).schemas for suffix in schema.fields)
    found = {suffix: asked(suffix) for suffix in suffixes if suffix not in _NO_PAYLOAD}
    return {
        suffix: _ARRAYS.get(suffix, "bytes") if decode is None else decode for suffix, decode in found.items()
    }
