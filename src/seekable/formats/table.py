"""What the core knows of its subjects without importing them: where their code is found, as literals."""

from __future__ import annotations

import inspect
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from seekable._lazy import imported, imported_module
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.formats.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.index.scanner import OtherIndex

__all__ = ["NODE_HOMES", "WRITERS", "FindIndex", "format_to_write", "index_finders", "plugged", "writer"]


class FindIndex(Protocol):
    """Finds the index that another tool keeps of the files below a folder."""

    def __call__(self, folder: str, names: Sequence[str], named: str, /) -> OtherIndex | None:
        """Return the index; None if there is none.

        Args:
            folder: the folder.
            names: the files that are to be indexed, by their paths relative to the folder.
            named: the path of an index that the user named; empty for none.
        """


WRITERS = MappingProxyType(
    {
        "jsonl": "seekable.formats.lines.jsonl_writer:json_lines",
        "parquet": "seekable.formats.tables.parquet_writer:parquet",
        "shar": "seekable.formats.shar.shar_format:shar",
        "tar": "seekable.formats.tar.tar_writer:tar",
        "tokens": "seekable.formats.tokens.writing.tokens_arguments:tokens",
    }
)
"""By the name of a format, the function that makes it with its options, ``module:name``."""

NODE_HOMES = MappingProxyType(
    {
        "megatron_blend": "seekable.packing.nodes.blend:MegatronBlend",
        "pack": "seekable.packing.nodes.pack:Pack",
        "samples": "seekable.formats.tar.sample_source:SampleSource",
        "shar": "seekable.formats.shar.shar_source:SharSource",
        "siblings": "seekable.formats.tar.siblings:Siblings",
        "table": "seekable.formats.tables.tables:TableSource",
        "tokens": "seekable.formats.tokens.source.token_source:TokenSource",
        "windows": "seekable.packing.nodes.windows:Windows",
    }
)
"""The class of each kind of node that a subject brings, ``module:name``."""

_INDEX_FINDERS = MappingProxyType(
    {
        "idxpack": ("seekable.formats.shar.idxpack:pack_over",),
        "jsonl": (
            "seekable.formats.lines.forager:index_over",
            "seekable.formats.shar.lhotse_index:indexes_over",
        ),
    }
)
"""By the name of a format, the `FindIndex` of each other tool with indexes of its files, ``module:name``, in
order of trust; and that of the indexes that users name."""

_HOMES = MappingProxyType({"packing": "seekable.packing.methods"})
"""By the name of a subject, the module with the code of methods that the core only names."""


def plugged(subject: str) -> Any:
    """Return the module with the code of methods of the core, ``packing`` for instance; it is imported now.

    Raises:
        MissingDependency: it is not installed.

    Example:
        >>> plugged("packing").pack.__name__
        'pack'
    """
    return imported_module(_HOMES[subject])


def writer(name: str) -> Callable[..., FileFormat]:
    """Return the function that makes a format of its options; its code is imported now.

    Raises:
        InvalidArgument: there is no such format.
        MissingDependency: the subject that writes it is not installed.

    Example:
        >>> writer("jsonl")(compression="gz").suffix
        '.jsonl.gz'
    """
    if name not in WRITERS:
        message = f"format must be one of {', '.join(map(repr, WRITERS))}, or a FileFormat (got {name!r})"
        raise InvalidArgument(message)
    found: Callable[..., FileFormat] = imported(WRITERS[name])
    return found


def index_finders(name: str) -> list[FindIndex]:
    """Return what finds indexes of other tools over files of a format, or those that users name, best first.

    The tools of subjects that are not installed are left out: without an index a file is scanned.
    """
    found: list[FindIndex] = []
    for home in _INDEX_FINDERS.get(name, ()):
        with suppress(MissingDependency):
            found.append(imported(home))
    return found


def format_to_write(asked: object) -> FileFormat:
    """Return the format that a user asks for: by its name with its usual options, or itself.

    Raises:
        InvalidArgument: there is no such format, or it has options that must be given.
        WrongType: neither a name nor a format.
    """
    if isinstance(asked, FileFormat):
        return asked
    if not isinstance(asked, str):
        message = f"format must be the name of a format, or a FileFormat (got {asked!r})"
        raise WrongType(message)
    make = writer(asked)
    options = inspect.signature(make).parameters.values()
    if missing := [option.name for option in options if option.default is option.empty]:
        given = ", ".join(f"{name}=" for name in missing)
        message = f"the format {asked!r} has no usual {given}: call write_{asked}(folder, {given}...)"
        raise InvalidArgument(message)
    return make()
