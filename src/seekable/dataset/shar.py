"""Opening a Shar: a folder, a spec ``shar:DIR``, or a dict of its fields."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seekable.errors import InvalidArgument
from seekable.formats.shar.discovery import CUTS, fields_of_folder, is_shar, named_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.registry import Format, SourceOptions
    from seekable.formats.shar.discovery import SharFiles
    from seekable.index.fileset import FileSet
    from seekable.nodes.contract import Leaf
    from seekable.storage.listing import Found

__all__ = ["shar_files"]

_SPEC = "shar:"


def shar_files(source: object, *, format_name: str | None) -> SharFiles | None:
    """Return the files of a Shar that a user names, None if the source is none.

    Args:
        source: a spec ``shar:DIR``, a folder, or a dict with the files of the field ``"cuts"`` and of others.
        format_name: the format that the user named; with another one than ``"shar"`` a folder is a plain one.

    Raises:
        DataNotFound: a file or a folder does not exist.
        InvalidArgument: the spec is incomplete, or is of another format.
        UnsupportedFormat: the files do not go together.
    """
    if isinstance(source, Mapping):
        return named_fields(source) if CUTS in source else None
    if not isinstance(source, str | os.PathLike):
        return None
    path = os.fsdecode(source)
    if path.startswith(_SPEC) and not os.path.lexists(path):
        if format_name not in (None, "shar"):
            message = f"{path!r} is a Shar; leave format={format_name!r} out"
            raise InvalidArgument(message)
        if path == _SPEC:
            message = f"{path!r} is not complete: shar:DIR, where DIR has the files cuts.*.jsonl"
            raise InvalidArgument(message)
        return fields_of_folder(path.removeprefix(_SPEC))
    if format_name == "shar" or (format_name is None and os.path.isdir(path) and is_shar(os.listdir(path))):
        return fields_of_folder(path)
    return None
