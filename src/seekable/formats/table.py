"""What the core knows of its subjects without importing them: where their code is found, as literals."""

from __future__ import annotations

import importlib
import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument, WrongType
from seekable.formats.file_format import FileFormat

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NODE_HOMES", "WRITERS", "format_to_write", "plugged", "writer"]

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

_HOMES = MappingProxyType({"packing": "seekable.packing.methods"})
"""By the name of a subject, the module with the code of methods that the core only names."""


def plugged(subject: str) -> Any:
    """Return the module with the code of methods of the core, ``packing`` for instance; it is imported now.

    Example:
        >>> plugged("packing").pack.__name__
        'pack'
    """
    return importlib.import_module(_HOMES[subject])


def writer(name: str) -> Callable[..., FileFormat]:
    """Return the function that makes a format of its options; its code is imported now.

    Raises:
        InvalidArgument: there is no such format.

    Example:
        >>> writer("jsonl")(compression="gz").suffix
        '.jsonl.gz'
    """
    if name not in WRITERS:
        message = f"format must be one of {', '.join(map(repr, WRITERS))}, or a FileFormat (got {name!r})"
        raise InvalidArgument(message)
    module, _, function = WRITERS[name].partition(":")
    found: Callable[..., FileFormat] = getattr(importlib.import_module(module), function)
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
