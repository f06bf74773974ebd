"""A Shar of Lhotse as a format, ``sk.formats.Shar``: a folder, ``shar:DIR``, or a dict of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from seekable._lazy import lazy
from seekable.errors import InvalidArgument
from seekable.formats.classify import check_value
from seekable.formats.contract import Claim, Format
from seekable.formats.lines.jsonl import Jsonl
from seekable.formats.look import OtherTool
from seekable.formats.shar.discovery import CUTS, fields_of_folder, is_shar, named_fields
from seekable.formats.shar.shar_opening import check_reading, format_of_field, open_shar, unequal_files
from seekable.formats.table import plugged_card
from seekable.index.integrity import VerificationProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.contract import Card, Checking, Opening, Reading
    from seekable.formats.lines.jsonl import JsonlScanner
    from seekable.formats.look import Folder, Look
    from seekable.formats.shar import idxpack_files
    from seekable.formats.shar.discovery import SharFiles
    from seekable.formats.shar.shar_source import SharSource
    from seekable.index.fileset import FileSet
    from seekable.index.verification import Verification
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.key import KeyOf
    from seekable.storage.listing import FoundFiles
else:
    idxpack_files = lazy("seekable.formats.shar.idxpack_files")

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
        if look.spec == "idxpack" or look.path.endswith(idxpack_files.SUFFIX):
            return idxpack_files.pack_claim(look)
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
            WrongType: ``columns`` is no list of names.
            MissingDependency: Lhotse is not installed.
        """
        check_reading(reading)

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
        return open_shar(
            shar, opening.reading, index=_index(opening), with_keys=partial(_keyed, opening=opening)
        )

    def verified(self, claim: Claim, checking: Checking) -> Verification:
        """Return what is wrong with the files of each field, and of all together."""
        shar: SharFiles = claim.detail
        found: Verification | None = None
        good: dict[tuple[FoundFiles, ...], FileSet] = {}
        for field in (shar.cuts, *shar.fields):
            verified = checking.files(field.found, format_of_field(field).finder)
            good[field.found] = verified.good
            found = verified if found is None else found.with_those_of(verified)
        assert found is not None
        if found.problems:
            return found
        unequal = [
            VerificationProblem("record", path, message)
            for field in shar.fields
            for path, message in unequal_files(good[shar.cuts.found], good[field.found], field.name)
        ]
        if unequal:
            return replace(found, problems=tuple(unequal))
        return checking.decoded(
            found,
            lambda reading: open_shar(
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
