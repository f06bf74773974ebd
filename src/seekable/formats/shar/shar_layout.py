"""The layout of a Shar folder: fields and their files, pairs of members, and the keys that cuts have."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ARRAYS",
    "AUDIO",
    "DATA",
    "MANIFEST",
    "NO_DATA",
    "NO_MANIFEST",
    "OWN_KEYS",
    "SharLayout",
    "checked_layout",
    "held_by_cut",
    "set_field",
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
