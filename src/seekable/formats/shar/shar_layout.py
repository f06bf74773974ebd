"""The layout of a Shar folder: fields and their files, pairs of members, and the keys that cuts have.

The name of a file is ``FIELD.SHARD.SUFFIX``: the field is what stands before the first dot. A Shar of one
shard may have files without a shard, ``cuts.jsonl`` and ``recording.tar``. The field ``cuts`` has the cuts;
every other field has one value for each cut, in the order of the cuts: a pair of members of a tar file, or a
line of JSON.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from seekable._arguments import checked_flag
from seekable._lazy import lazy
from seekable.errors import (
    AccessDenied,
    DataNotFound,
    InvalidArgument,
    Unreachable,
    UnsupportedFormat,
    WrongType,
)
from seekable.formats.look import find_files
from seekable.storage.file_names import natural_key, natural_sorted
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seekable.storage import paths
    from seekable.storage.listing import Asked
else:
    paths = lazy("seekable.storage.paths")

__all__ = [
    "ARRAYS",
    "AUDIO",
    "CUTS",
    "DATA",
    "MANIFEST",
    "NO_DATA",
    "NO_MANIFEST",
    "OWN_KEYS",
    "FieldFiles",
    "FieldKind",
    "SharFiles",
    "SharLayout",
    "checked_layout",
    "fields_of_folder",
    "held_by_cut",
    "is_shar",
    "named_fields",
    "set_field",
    "split_file_name",
]


AUDIO = frozenset({"wav", "flac", "mp3", "opus", "original"})
"""The kinds of fields that hold audio, each named by the suffix of its members."""

ARRAYS: Mapping[str, str] = MappingProxyType({"numpy": "npy", "lilcom": "llc"})
"""The kinds of fields that hold arrays, with the suffixes of their members."""

_LINES = "jsonl"

_RESERVED = frozenset({"cuts", "id", "start", "duration", "channel", "custom", "type"})


@dataclass(frozen=True, slots=True)
class SharLayout:
    """The fields of a Shar folder, and the form of its files."""

    fields: tuple[tuple[str, str], ...]
    """The names of the fields and their kinds, in the order in which the user gave them."""

    compress_jsonl: bool
    """True to compress JSON lines with gzip."""

    create_index: bool
    """True to write Lhotse's ``.idx`` files beside tar files and plain JSON lines."""

    include_cuts: bool
    """True to write the cuts; False for the fields alone."""

    @property
    def contents(self) -> tuple[str, ...]:
        """The patterns of the file names of cuts and fields; ``%06d`` stands for the shard."""
        cuts = [f"cuts.%06d{self._lines_suffix}"] if self.include_cuts else []
        fields = [
            f"{field}.%06d{self._lines_suffix if kind == _LINES else '.tar'}" for field, kind in self.fields
        ]
        return (*cuts, *fields)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the names of all files: ``contents``, then their indexes.

        Example:
            >>> SharLayout((("recording", "wav"),), False, True, True).patterns[1:3]
            ('recording.%06d.tar', 'cuts.%06d.jsonl.idx')
        """
        indexed = [f"{name}.idx" for name in self.contents if self.is_indexed(name)]
        return (*self.contents, *indexed)

    def is_indexed(self, pattern: str) -> bool:
        """Return True if a file has an index beside it."""
        return self.create_index and not pattern.endswith(".gz")

    @property
    def options(self) -> dict[str, Any]:
        """The fields and the flags, as the user gave them, JSON-safe."""
        return {
            "fields": [f"{field}: {kind}" for field, kind in self.fields],
            "compress_jsonl": self.compress_jsonl,
            "create_index": self.create_index,
            "include_cuts": self.include_cuts,
        }

    @property
    def _lines_suffix(self) -> str:
        return ".jsonl.gz" if self.compress_jsonl else ".jsonl"


def checked_layout(
    fields: object, *, compress_jsonl: object, create_index: object, include_cuts: object
) -> SharLayout:
    """Return the layout of the arguments of a user.

    Raises:
        WrongType: ``fields`` is not a dict of names, or a flag is neither True nor False.
        InvalidArgument: a field has a name that no file can have, or a kind that is not known; or there would
            be no file at all.
    """
    if not isinstance(fields, dict):
        message = f'fields must be a dict such as {{"recording": "flac"}} (got {fields!r})'
        raise WrongType(message)
    layout = SharLayout(
        tuple(_checked_field(field, kind) for field, kind in fields.items()),
        checked_flag("compress_jsonl", compress_jsonl),
        checked_flag("create_index", create_index),
        checked_flag("include_cuts", include_cuts),
    )
    if not layout.contents:
        message = "there is nothing to write: name fields, or leave include_cuts=False out"
        raise InvalidArgument(message)
    return layout


def _checked_field(field: object, kind: object) -> tuple[str, str]:
    if not isinstance(field, str):
        message = f"the names of fields are str (got {field!r} of type {type(field).__name__})"
        raise WrongType(message)
    if not field or field.startswith("_") or set(field) & set("./\\%\0") or field in _RESERVED:
        message = (
            f"no field can be named {field!r}: its files are named FIELD.000000.tar, so a name has no dot "
            f"and no slash, and it is none of {', '.join(sorted(_RESERVED))}"
        )
        raise InvalidArgument(message)
    known = (*sorted(AUDIO), *ARRAYS, _LINES)
    if not isinstance(kind, str) or kind not in known:
        message = f"the field {field!r} has the kind {kind!r}; known are {', '.join(map(repr, known))}"
        raise InvalidArgument(message)
    return field, kind


DATA: Final = "data"
"""The key of the payload in a manifest."""

MANIFEST: Final = "json"
"""The suffix of the member that has the manifest of a value."""

NO_DATA: Final = "nodata"
"""The suffix of the first member of a pair that stands for no value."""

NO_MANIFEST: Final = "nometa"
"""The suffix of the second member of a pair that stands for no value."""

CUSTOM: Final = "custom"
"""The key of the fields of a cut that have no key of their own."""

OWN_KEYS: Final = frozenset(
    {"id", "start", "duration", "channel", "supervisions", "features", "recording", CUSTOM}
)
"""The keys of a cut. Lhotse keeps every other field below ``custom``."""


def held_by_cut(field: str) -> str:
    """Return the key of a cut below which the value of a field is.

    Example:
        >>> held_by_cut("recording"), held_by_cut("target_recording")
        ('recording', 'custom')
    """
    return field if field in OWN_KEYS else CUSTOM


def set_field(cut: dict[str, Any], field: str, value: Any) -> None:
    """Put the value of a field into a cut, in place of what the cut has there.

    Raises:
        ValueError: the cut has custom fields that are not an object.

    Example:
        >>> cut = {"id": "a", "recording": {"type": "shar"}}
        >>> set_field(cut, "recording", {"id": "r"})
        >>> set_field(cut, "lang", "de")
        >>> cut
        {'id': 'a', 'recording': {'id': 'r'}, 'custom': {'lang': 'de'}}
    """
    if field in OWN_KEYS:
        cut[field] = value
        return
    custom = cut.get(CUSTOM)
    if custom is None:
        cut[CUSTOM] = {field: value}
    elif isinstance(custom, dict):
        custom[field] = value
    else:
        message = f"the cut has custom fields that are no object: {custom!r:.80}"
        raise ValueError(message)


CUTS: Final = "cuts"
"""The field of the cuts."""

FieldKind = Literal["tar", "jsonl"]
"""The kind of the files of a field."""

_NAME = re.compile(
    r"(?P<field>[^.]+)(?:\.(?P<shard>.+?))??\.(?P<suffix>tar|tar\.gz|tgz|tar\.zst|jsonl|jsonl\.gz|jsonl\.zst)",
    re.IGNORECASE,
)

_SUFFIXES: Final[Mapping[FieldKind, tuple[str, ...]]] = {
    "tar": (".tar", ".tar.gz", ".tgz", ".tar.zst"),
    "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
}

_MOST_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class FieldFiles:
    """The files of one field, one for each shard, in the order of the shards."""

    name: str
    kind: FieldKind
    found: tuple[FoundFiles, ...]

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files."""
        return [os.path.join(run.root, name) for run in self.found for name in run.names]


@dataclass(frozen=True, slots=True)
class SharFiles:
    """The files of a Shar."""

    cuts: FieldFiles

    fields: tuple[FieldFiles, ...]
    """The other fields, by name."""


def split_file_name(name: str) -> tuple[str, str, FieldKind] | None:
    """Return the field, the shard and the kind that the name of a file says; None for any other file.

    Example:
        >>> split_file_name("cuts.000003.jsonl.gz"), split_file_name("recording.tar")
        (('cuts', '000003', 'jsonl'), ('recording', '', 'tar'))
        >>> split_file_name("recording.000003.tar.idx") is None
        True
    """
    match = _NAME.fullmatch(name)
    if match is None or name.startswith((".", "_")):
        return None
    kind: FieldKind = "jsonl" if match["suffix"].lower().startswith("jsonl") else "tar"
    return match["field"], match["shard"] or "", kind


def is_shar(names: Iterable[str]) -> bool:
    """Return True if the files of a folder are a Shar, by their names: cuts and other fields, or cuts alone.

    Files without a shard are a Shar if one of them is a tar file: manifests of Lhotse have such names too.

    Example:
        >>> is_shar(["cuts.000000.jsonl.gz", "recording.000000.tar"]), is_shar(["cuts.000000.jsonl"])
        (True, True)
        >>> is_shar(["cuts.jsonl.gz", "recordings.jsonl.gz"]), is_shar(["recording.000000.tar"])
        (False, False)
    """
    found = [split for split in map(split_file_name, names) if split is not None]
    shards = {shard for field, shard, kind in found if field == CUTS and kind == "jsonl"}
    others = [(shard, kind) for field, shard, kind in found if field != CUTS]
    if not others:
        return any(shard.isdecimal() for shard in shards)
    return any(shard in shards and (shard.isdecimal() or kind == "tar") for shard, kind in others)


def fields_of_folder(folder: str | os.PathLike[str]) -> SharFiles:
    """Return the files of a Shar that all lie in one folder; other files in it are left out.

    Raises:
        DataNotFound: there is no such folder, or no file of cuts in it.
        AccessDenied: this user may not list the folder.
        UnsupportedFormat: a field lacks a shard, or has one that the cuts lack, or has files of two kinds.
    """
    root = paths.absolute(os.path.expanduser(os.fsdecode(folder)))
    try:
        names = paths.list_folder(root)
    except (AccessDenied, Unreachable):
        raise
    except PermissionError:
        message = f"{root!r} cannot be listed: this user may not read the folder"
        raise AccessDenied(message) from None
    except OSError:
        message = f"{root!r} is no folder, and a Shar is one; name the folder that has the cuts.*.jsonl files"
        raise DataNotFound(message) from None
    by_field: dict[str, dict[str, tuple[str, FieldKind]]] = {}
    for name in natural_sorted(names):
        split = split_file_name(name)
        if split is None:
            continue
        field, shard, kind = split
        if field == CUTS and kind != "jsonl":
            continue
        files = by_field.setdefault(field, {})
        if shard in files:
            _refuse_two_files(root, field, files[shard][0], name)
        files[shard] = name, kind
    if CUTS not in by_field:
        message = (
            f"{root!r} has no cuts: a Shar has files cuts.000000.jsonl (or .jsonl.gz, .jsonl.zst). Name the "
            f"folder that has them, or open other files by themselves"
        )
        raise DataNotFound(message)
    shards = sorted(by_field[CUTS], key=natural_key)
    fields = {field: _in_order(root, field, files, shards) for field, files in by_field.items()}
    cuts = fields.pop(CUTS)
    return SharFiles(cuts, tuple(fields[field] for field in sorted(fields)))


def named_fields(fields: Mapping[str, Asked]) -> SharFiles:
    """Return the files of a Shar whose fields a user named; they may lie in several folders.

    Args:
        fields: for ``"cuts"`` and any other fields the files, as a path, a glob or a list of those, or the
            folder of the files ``FIELD.*``. Files of equal places are of one shard.

    Raises:
        DataNotFound: a file or folder does not exist.
        InvalidArgument: ``"cuts"`` is missing, or a name is not a field.
        UnsupportedFormat: a field has more files than another, or files that are neither tar nor JSON lines.
    """
    if CUTS not in fields:
        message = (
            f"a Shar needs its cuts: {{'cuts': 'DIR/cuts.*.jsonl', ...}} (got the fields "
            f"{', '.join(map(repr, fields)) or 'none'})"
        )
        raise InvalidArgument(message)
    found = {name: _asked_field(name, asked) for name, asked in fields.items()}
    cuts = found.pop(CUTS)
    if cuts.kind != "jsonl":
        message = (
            f"the cuts of a Shar are JSON lines (.jsonl, .jsonl.gz or .jsonl.zst), not {cuts.paths[0]!r}"
        )
        raise UnsupportedFormat(message)
    for field in found.values():
        if len(field.paths) != len(cuts.paths):
            message = (
                f"the field {field.name!r} has {len(field.paths):,} files and the cuts have "
                f"{len(cuts.paths):,}, and each shard needs one of both: {_listed(field.paths)} beside "
                f"{_listed(cuts.paths)}. Name as many, or leave the field out"
            )
            raise UnsupportedFormat(message)
    return SharFiles(cuts, tuple(found[name] for name in sorted(found)))


def _asked_field(name: str, asked: Asked) -> FieldFiles:
    """Return the files of one field that a user named.

    Raises:
        DataNotFound: there is no such file.
        InvalidArgument: the name cannot be that of a field.
        UnsupportedFormat: the files are of another kind, or of two.
    """
    if not isinstance(name, str) or not name:
        message = f"the fields of a Shar have names (got {name!r})"
        raise InvalidArgument(message)
    suffixes = [suffix for some in _SUFFIXES.values() for suffix in some]
    if isinstance(asked, str | os.PathLike):
        asked = os.path.expanduser(os.fsdecode(asked))
        if paths.is_folder(asked):
            asked = os.path.join(asked, f"{name}.*")
    runs = []
    for run in find_files(asked, suffixes=suffixes):
        names = tuple(each for each in run.names if not each.lower().endswith(".idx"))
        runs += [FoundFiles(run.root, names)] if names else []
    kinds = {_kind_of(os.path.join(run.root, each)) for run in runs for each in run.names}
    if not kinds:
        message = f"the field {name!r} has no file: only indexes (.idx) match {asked!r}"
        raise DataNotFound(message)
    if len(kinds) > 1:
        message = f"the field {name!r} has tar files and files of JSON lines: name files of one kind"
        raise UnsupportedFormat(message)
    return FieldFiles(name, kinds.pop(), tuple(runs))


def _kind_of(path: str) -> FieldKind:
    """Return the kind of a file by its suffix.

    Raises:
        UnsupportedFormat: it is of no kind that a Shar has.
    """
    lower = path.lower()
    for kind, suffixes in _SUFFIXES.items():
        if lower.endswith(suffixes):
            return kind
    ends = ", ".join(suffix for some in _SUFFIXES.values() for suffix in some)
    message = f"{path!r} is no file of a Shar, whose files end in {ends}"
    raise UnsupportedFormat(message)


def _in_order(
    root: str, field: str, files: Mapping[str, tuple[str, FieldKind]], shards: Sequence[str]
) -> FieldFiles:
    """Return a field's files in the order of the cuts' shards.

    Raises:
        UnsupportedFormat: the shards are others than those of the cuts, or the files are of two kinds.
    """
    missing = [shard for shard in shards if shard not in files]
    more = natural_sorted(files.keys() - set(shards))
    if missing or more:
        # Numbers may be written with more or fewer zeros than those of the cuts.
        files = {_same_number(shard, shards): file for shard, file in files.items()}
        missing = [shard for shard in shards if shard not in files]
        more = natural_sorted(files.keys() - set(shards))
    if missing or more:
        lacks = f"lacks the shards {_listed(missing)} of the cuts" if missing else ""
        has = f"has the shards {_listed(more)}, which the cuts lack" if more else ""
        message = (
            f"the field {field!r} in {root!r} {' and '.join(filter(None, (lacks, has)))}; each shard needs "
            f"a file of every field. Put the files there, or open the fields that are whole: "
            f"sk.open({{'cuts': '{root}/cuts.*', ...}})"
        )
        raise UnsupportedFormat(message)
    ordered = [files[shard] for shard in shards]
    if len({kind for _, kind in ordered}) > 1:
        message = (
            f"the field {field!r} in {root!r} has tar files and files of JSON lines: keep one kind there"
        )
        raise UnsupportedFormat(message)
    return FieldFiles(field, ordered[0][1], (FoundFiles(root, tuple(name for name, _ in ordered)),))


def _same_number(shard: str, shards: Iterable[str]) -> str:
    """Return the shard of the cuts that has the same number as another one; that one itself if there is none.

    Example:
        >>> _same_number("3", ["000002", "000003"]), _same_number("a", ["000002"])
        ('000003', 'a')
    """
    if not shard.isdecimal():
        return shard
    return next((other for other in shards if other.isdecimal() and int(other) == int(shard)), shard)


def _refuse_two_files(root: str, field: str, one: str, other: str) -> None:
    """Raise the error for two files of one field and shard.

    Raises:
        UnsupportedFormat: always.
    """
    message = (
        f"{one!r} and {other!r} in {root!r} are both the field {field!r} of one shard: keep one of them "
        f"there, or name the files as sk.open({{'cuts': ..., {field!r}: ...}})"
    )
    raise UnsupportedFormat(message)


def _listed(names: Sequence[str]) -> str:
    """Return the first names as text, and how many more there are."""
    shown = ", ".join(map(repr, names[:_MOST_SHOWN]))
    return shown + (f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else "")
