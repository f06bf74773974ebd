"""The cards of formats, as literals: the core knows its subjects by them without importing any.

A format is a card, and a class in a folder of its own that is imported when data of it is opened. Formats of
other packages have their cards at their classes, which entry points of the group ``seekable.formats`` name.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from seekable._lazy import imported, imported_module, lazy
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.formats.contract import Card
from seekable.storage.compression import uncompressed_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from seekable.formats import file_format, plugins
    from seekable.formats.contract import Format
    from seekable.formats.file_format import FileFormat
    from seekable.index.finder import OtherIndex
else:
    file_format = lazy("seekable.formats.file_format")
    plugins = lazy("seekable.formats.plugins")

__all__ = [
    "CARDS",
    "NAMES",
    "NODE_HOMES",
    "SUFFIXES",
    "FindIndex",
    "card_by_suffix",
    "card_named",
    "cards_at",
    "format_class",
    "format_named",
    "format_to_write",
    "index_finders",
    "node_home",
    "plugged",
    "plugged_card",
    "writer",
]

CARDS = (
    Card(name="jsonl", home="seekable.formats.lines.jsonl:Jsonl", suffixes=(".jsonl", ".ndjson", ".json"),
         compressible=True, marks=("file_location.txt",),
         indexes=("seekable.formats.lines.forager:index_over",
                  "seekable.formats.shar.lhotse_index:indexes_over"),
         writer="seekable.formats.lines.jsonl_writer:json_lines"),
    Card(name="text", home="seekable.formats.lines.text:Text", suffixes=(".txt",), compressible=True,
         specs=("txt",)),
    Card(name="csv", home="seekable.formats.lines.csv_format:Csv", suffixes=(".csv",), compressible=True,
         variants=True),
    Card(name="tsv", home="seekable.formats.lines.csv_format:Csv", suffixes=(".tsv",), compressible=True,
         variants=True),
    Card(name="csv-semicolon", home="seekable.formats.lines.csv_format:Csv", compressible=True),
    Card(name="parquet", home="seekable.formats.tables.tables:Tables", suffixes=(".parquet", ".pq"),
         kinds=(("table", "seekable.formats.tables.tables:TableSource"),),
         writer="seekable.formats.tables.parquet_writer:parquet"),
    Card(name="arrow", home="seekable.formats.tables.tables:Tables",
         suffixes=(".arrow", ".feather", ".ipc")),
    Card(name="ark", home="seekable.formats.kaldi.kaldi:Kaldi", suffixes=(".ark",), compressible=True,
         variants=True, specs=("ark", "scp", "kaldi"), marks=("feats.scp", "wav.scp")),
    Card(name="scp", home="seekable.formats.kaldi.kaldi:Kaldi", suffixes=(".scp",), compressible=True,
         variants=True),
    Card(name="kaldi-directory", home="seekable.formats.kaldi.kaldi:Kaldi", key="key"),
    Card(name="tar", home="seekable.formats.tar.tar:Tar", suffixes=(".tar", ".tgz"), compressible=True,
         variants=True, specs=("energon", "wids"), fields=("*",), marks=(".nv-meta",),
         kinds=(("samples", "seekable.formats.tar.sample_source:SampleSource"),
                ("siblings", "seekable.formats.tar.siblings:Siblings")),
         writer="seekable.formats.tar.tar_writer:tar"),
    Card(name="shar", home="seekable.formats.shar.shar:Shar", by_name=False, specs=("shar", "idxpack"),
         lists=(".idxpack",), indexes=("seekable.formats.shar.idxpack:pack_over",), fields=("cuts",),
         marks=("cuts.*",),
         kinds=(("shar", "seekable.formats.shar.shar_source:SharSource"),),
         writer="seekable.formats.shar.shar_writer:shar"),
    Card(name="tokens", home="seekable.formats.tokens.token_format:Tokens", variants=True,
         named_suffixes=(".bin", ".ds", ".npy", ".mds", ".safetensors"), specs=("megatron", "tokens"),
         marks=("tokens.json", "*.facts", "index.json", "index", "*.bin", "*.ds", "*.npy"),
         kinds=(("tokens", "seekable.formats.tokens.token_source:TokenSource"),),
         writer="seekable.formats.tokens.token_store_arguments:tokens"),
    Card(name="packing", home="seekable.packing.packing_methods", by_name=False,
         kinds=(("megatron_blend", "seekable.packing.nodes.blend:MegatronBlend"),
                ("pack", "seekable.packing.nodes.packed_node:PackNode"),
                ("windows", "seekable.packing.nodes.packed_node:WindowsNode"))),
)  # fmt: skip
"""All subjects that the core asks something, in the order in which messages name them."""

_HOMES = frozenset(card.home for card in CARDS)

_BY_NAME = {card.name: card for card in CARDS if card.by_name}

NAMES = tuple(_BY_NAME)
"""The names of all formats that files can be of."""

NODE_HOMES = {kind: home for card in CARDS for kind, home in card.kinds}
"""The class of each kind of node that a subject brings, ``module:name``."""

_WRITERS = {card.name: card.writer for card in sorted(CARDS, key=lambda card: card.name) if card.writer}

SUFFIXES = tuple(end for card in CARDS for end in card.ends)
"""The ends of the names of data files."""

_BY_SUFFIX = sorted(
    ((suffix, card) for card in CARDS for suffix in (*card.suffixes, *card.named_suffixes)),
    key=lambda pair: -len(pair[0]),
)


def card_by_suffix(name: str) -> Card | None:
    """Return the card for a file by the end of its name, the longest one first; None if no format has it.

    Example:
        >>> card_by_suffix("web/part-0001.JSONL").name, card_by_suffix("web/part-0001.txt.gz").name
        ('jsonl', 'text')
        >>> card_by_suffix("a.xyz") is None
        True
    """
    lower = name.lower()
    content = uncompressed_name(lower)
    for suffix, card in _BY_SUFFIX:
        if lower.endswith(suffix) or (card.compressible and content.endswith(suffix)):
            return card
    return None


def cards_at(names: Collection[str]) -> list[Card]:
    """Return the cards that have a mark among the names in a folder.

    Example:
        >>> [card.name for card in cards_at(["cuts.000.jsonl", "A.BIN"])]
        ['shar', 'tokens']
    """
    there = {f"*{name[name.rfind('.') :].lower()}" for name in names}
    return [card for card in CARDS if any(mark in there or _is_at(mark, names) for mark in card.marks)]


def _is_at(mark: str, names: Collection[str]) -> bool:
    if mark.endswith("*"):
        return any(name.startswith(mark[:-1]) for name in names)
    return mark in names


def card_named(name: str) -> Card:
    """Return the card of a format by a name in the index, which may have options.

    Raises:
        WrongType: the name is not a text.
        InvalidArgument: there is no such format.

    Example:
        >>> card_named("ark-matrix").name, card_named("kaldi-directory").name
        ('ark', 'kaldi-directory')
    """
    if not isinstance(name, str):
        message = f"format must be the name of a format (got {name!r} of type {type(name).__name__})"
        raise WrongType(message)
    if name in _BY_NAME:
        return _BY_NAME[name]
    found = _BY_NAME.get(name.partition("-")[0])
    if found is not None and found.variants:
        return found
    plugin = plugins.card_named(name)
    if plugin is None:
        is_spec = any(name in card.specs for card in CARDS)
        way = f": the source itself says it, as {f'{name}:...'!r}, or its folder does" if is_spec else ""
        raise InvalidArgument(f"format must be one of {', '.join(map(repr, NAMES))}; got {name!r}{way}")
    return plugin


def format_named(name: str) -> Format:
    """Return the format of a name in the index, or one that a user names with ``format=``.

    Raises:
        InvalidArgument: no format has this name, or an option in it is not known.
        MissingDependency: the code of the format is not installed.

    Example:
        >>> format_named("csv-pipe")
        Csv(delimiter='|', quote=None, encoding=None, partitions=None, field=None)
    """
    return format_class(card_named(name))().with_name(name)


def format_class(card: Card) -> type[Format]:
    """Return the class of a card; its code is imported now.

    Raises:
        MissingDependency: it cannot be imported.
    """
    if card.home not in _HOMES and (given := plugins.class_of(card)):
        return given
    found: type[Format] = imported(card.home)
    return found


def node_home(kind: str) -> str | None:
    """Return the class for a kind of node that a subject or another package brings; None if none does.

    Example:
        >>> node_home("pack"), node_home("shuffle")
        ('seekable.packing.nodes.packed_node:PackNode', None)
    """
    return NODE_HOMES.get(kind) or plugins.node_homes().get(kind)


def plugged_card(name: str) -> Card:
    """Return the card of any subject, also of one that ``format=`` does not name."""
    return next(card for card in CARDS if card.name == name)


def plugged(subject: str) -> Any:
    """Return the module with the code of methods of the core, ``packing`` for instance; it is imported now.

    Raises:
        MissingDependency: it is not installed.

    Example:
        >>> plugged("packing").pack.__name__
        'pack'
    """
    return imported_module(plugged_card(subject).home)


def writer(name: str) -> Callable[..., FileFormat]:
    """Return the function that makes a format of its options; its code is imported now.

    Raises:
        InvalidArgument: there is no such format.
        MissingDependency: the subject that writes it is not installed.

    Example:
        >>> writer("jsonl")(compression="gz").suffix
        '.jsonl.gz'
    """
    if name not in _WRITERS:
        message = f"format must be one of {', '.join(map(repr, _WRITERS))}, or a FileFormat (got {name!r})"
        raise InvalidArgument(message)
    found: Callable[..., FileFormat] = imported(_WRITERS[name])
    return found


class FindIndex(Protocol):
    """Finds the index that another tool keeps of the files below a folder."""

    def __call__(self, folder: str, names: Sequence[str], named: str, /) -> OtherIndex | None:
        """Return the index; None if there is none.

        Args:
            folder: the folder.
            names: the files that are to be indexed, by their paths relative to the folder.
            named: the path of an index that the user named; empty for none.
        """


def index_finders(name: str) -> list[FindIndex]:
    """Return what finds indexes of other tools over files of a format, or those that users name, best first.

    The tools of subjects that are not installed are left out: without an index a file is scanned.
    """
    found: list[FindIndex] = []
    for home in plugged_card(name).indexes:
        with suppress(MissingDependency):
            found.append(imported(home))
    return found


def format_to_write(asked: object) -> FileFormat:
    """Return the format that a user asks for: by its name with its usual options, or itself.

    Raises:
        InvalidArgument: there is no such format, or it has options that must be given.
        WrongType: neither a name nor a format.
    """
    if isinstance(asked, file_format.FileFormat):
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
