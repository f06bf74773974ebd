"""The files of one shard of a Lhotse Shar folder: their names, and what each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ARRAYS", "AUDIO", "SharLayout", "checked_layout"]

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
        """The patterns of the names of the files of cuts and fields; ``%06d`` stands for the number."""
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
        WrongType: ``fields`` is no dict of names, or a flag is neither True nor False.
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
