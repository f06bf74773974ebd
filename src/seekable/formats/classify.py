"""The one place that decides of which format a source is, and which files it has.

In turn: a dict of sources, a spec, a folder with a mark of a format, a file that lists others, and last the
suffixes of the files. Of each but the last, a format itself says if the source is its own: `Format.claim`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats.contract import Claim, Format
from seekable.formats.look import Look, find_files
from seekable.formats.table import (
    CARDS,
    NAMES,
    SUFFIXES,
    card_by_suffix,
    card_named,
    cards_at,
    format_class,
    format_named,
)
from seekable.storage.compression import COMPRESSED, compression_of, uncompressed_name
from seekable.storage.far import far
from seekable.storage.listing import PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats import hub_folders, plugins, refusals
    from seekable.formats.contract import Card
    from seekable.index.finder import Finder
    from seekable.storage.listing import Asked, FoundFiles, Listing
else:
    hub_folders = lazy("seekable.formats.hub_folders")
    plugins = lazy("seekable.formats.plugins")
    refusals = lazy("seekable.formats.refusals")

__all__ = [
    "card_of_all",
    "card_of_file",
    "check_names",
    "check_value",
    "classify",
    "files_of_card",
    "find_data",
    "format_for",
    "format_of_spec",
    "refuse_copies",
]

_HUB = "hf"
"""The word of specs of the Hub, which the stores read."""

_LISTS = tuple(suffix for card in CARDS for suffix in card.lists)

_ITEMS = re.compile("[, ]")
_WILD = frozenset("*?[{")

_DESCRIPTIONS = frozenset({"index.json", "sizes.json", "meta.json"})
"""The names of files that describe tar files: the index of wids, and those that other tools keep."""


def classify(
    source: Asked | Mapping[str, Asked],
    given: str | Format | None = None,
    *,
    shown: str = "",
    columns: Sequence[str] | None = None,
    allow: tuple[str, ...] = (),
    index_dir: str | os.PathLike[str] | None = None,
) -> Claim:
    """Return the format and the files of a source.

    Args:
        source: the source of a user, checked.
        given: the format that the user gave, as a name or a value; None to find it.
        shown: the source as the user named it, for messages.
        columns: the columns that the user named.
        allow: the folders and files, besides the folder of a list, that lists of files may name.
        index_dir: the user's folder for indexes.

    Raises:
        DataNotFound: there is no such data.
        AccessDenied: this user may not look there.
        InvalidArgument: the source and the format contradict each other, a spec is incomplete, or no format
            has the name.
        UnsupportedFormat: a suffix is not known, the files have several formats, or it is a dataset of
            another tool, a spec or an address that is not read.
    """
    value = given if isinstance(given, Format) else None
    name = given if isinstance(given, str) else None
    look = Look(
        source, name=name, value=value, shown=shown, columns=columns, allow=allow, index_dir=index_dir
    )
    if value is not None and not look.spec and not look.path.endswith(_LISTS):
        look.name = _name_for(value, source)
    if not look.path and not isinstance(source, Mapping):
        refuse_specs_among(source)
    if look.is_stored:
        refusals.refuse_unopened(look.path)
    if (other := _class_of_others(look)) and (claim := _of_others(look, other)):
        return claim
    if claim := _claim_of_ours(look):
        return claim
    if look.spec:
        refusals.refuse_unopened(look.path)
    try:
        return _by_files(look)
    except (DataNotFound, UnsupportedFormat) as error:
        is_there = isinstance(error, UnsupportedFormat) or look.is_folder
        others = plugins.formats() if look.name is look.value is None and is_there else []
        if claim := next(filter(None, (_of_others(look, form) for form in others)), None):
            return claim
        raise


def _claim_of_ours(look: Look) -> Claim | None:
    """Return a source as a format of ours or the Hub has it by more than suffixes; None for others."""
    for card in _asked(look):
        if claim := format_class(card).claim(look):
            return claim
    found: Claim | None = far().claim(look) if look.spec == _HUB else None
    return found


def _asked(look: Look) -> Iterator[Card]:
    """Yield the cards of the formats that may know a source by more than suffixes."""
    if isinstance(look.source, Mapping):
        yield from sorted(
            (card for card in CARDS if "*" in card.fields or not look.source.keys().isdisjoint(card.fields)),
            key=lambda card: "*" in card.fields,
        )
        return
    if not look.path:
        return
    if look.spec:
        words = {look.spec, *_ITEMS.split(look.spec)}
        yield from (card for card in CARDS if not words.isdisjoint(card.specs))
    if look.path.endswith(_LISTS):
        yield from (card for card in CARDS if card.lists)
    elif not look.spec and look.is_folder:
        at = cards_at(look.names)
        yield from (card for card in CARDS if card in at or card.name == (look.name or "").partition("-")[0])


def _by_files(look: Look) -> Claim:
    """Return the format of a source whose files say it by their suffixes, or the user."""
    name, value = look.name, look.value
    found = find_data(look.asked, format_name=name, value=value)
    if name is None:
        name = card_of_all(found).name
        if (
            name == "parquet"
            and value is None
            and (look.is_folder or any(not _WILD.isdisjoint(item) for item in look.items))
        ):
            refusals.refuse_parts_of_tables(found)
    return Claim(format=format_for(look, name), found=found, together=False)


def _class_of_others(look: Look) -> type[Format] | None:
    """Return the class of another package that the user gave as a value or by its name; None for ours."""
    if look.value is not None:
        if _is_ours(look.value):
            return None
        plugins.remember(type(look.value))
        return type(look.value)
    base = (look.name or "").partition("-")[0]
    if not base or base in {card.name for card in CARDS} or look.name in NAMES:
        return None
    card = plugins.card_named(look.name or "")
    return None if card is None else format_class(card)


def _is_ours(value: Format) -> bool:
    return any(card.home == value.card.home for card in CARDS)


def _of_others(look: Look, form: type[Format]) -> Claim | None:
    """Return a source as a format of another package has it: by its claim, or by the suffixes of its card."""
    if claim := form.claim(look):
        return claim
    ends, is_given = form.card.ends, look.name is not None or look.value is not None
    if not is_given and not (look.is_folder or any(item.lower().endswith(ends) for item in look.items)):
        return None
    try:
        found = find_files(look.asked, suffixes=ends or SUFFIXES, kind=form.card.name)
    except DataNotFound:
        if is_given:
            raise
        return None
    value = form() if look.value is None else look.value
    return Claim(format=value.with_name(look.name or form.card.name), found=found, together=False)


def format_of_spec(look: Look, own: str) -> Format:
    """Return the format of a source whose files are always of one, which the user may name with options.

    Args:
        look: the source.
        own: the name of its format.

    Raises:
        InvalidArgument: the user gave another format.
    """
    name = look.name
    if name is not None and not f"{name}-".startswith(f"{own}-"):
        what = repr(look.path) if look.path else look.shown
        message = f"{what} is {own}; leave format={name!r} out"
        raise InvalidArgument(message)
    return format_for(look, name or own)


def format_for(look: Look, name: str) -> Format:
    """Return the format of a name with the options of the value that the user gave, if any.

    Raises:
        InvalidArgument: the value is of another format.
    """
    if look.value is None:
        return format_named(name)
    check_value(look.value, name, look.shown)
    made: Format = look.value.with_name(name)
    return made


def check_value(value: Format, name: str, shown: str) -> None:
    """Check that a source's files are in the format that a value stands for.

    Args:
        value: the format that the user gave.
        name: the name of the format of the files.
        shown: the source as the user named it.

    Raises:
        InvalidArgument: they are of another one.
    """
    names = _names_of(value)
    if name not in names and name.partition("-")[0] not in names:
        message = (
            f"format={type(value).__name__}(...) is for {', '.join(names)}, and {shown} is {name}: "
            f"leave it out, or name the files"
        )
        raise InvalidArgument(message)


def _names_of(value: Format) -> list[str]:
    """Return the names of the formats that a value can be of."""
    return [card.name for card in CARDS if card.home == value.card.home] or [value.card.name]


def _name_for(value: Format, source: object) -> str | None:
    """Return the name of the format of a source that is given as a value; None where its files decide.

    They do where the source is a folder or a glob, a spec, or has a suffix of one of these formats.
    """
    first = source[0] if isinstance(source, list | tuple) and source else source
    if not isinstance(first, str | os.PathLike):
        return None
    text = os.fsdecode(first)
    base = os.path.basename(text)
    suffix = os.path.splitext(base)[1]
    if not suffix or not _WILD.isdisjoint(suffix) or os.path.isdir(text):
        return None
    card, names = card_by_suffix(base), _names_of(value)
    return None if card is not None and card.name in names else names[0]


def check_names(form: Format, finder: Finder) -> None:
    """Check that a name in the index stands for one format and one way to find records.

    Files are indexed by this name: two formats that share it would read each other's records.

    Raises:
        UnsupportedFormat: the name is that of another format, or the finder has another one.
    """
    kind, name = type(form), form.name
    card = card_named(name)
    if card.home != f"{kind.__module__}:{kind.__qualname__}" and format_class(card) is not kind:
        message = (
            f"{kind.__module__}.{kind.__name__} has the name {name!r}, which is that of {card.home}: "
            f"files are indexed by this name, so give it a card with another one"
        )
        raise UnsupportedFormat(message)
    if finder.name != name and card not in CARDS:  # Kaldi's has the digest of a holder that users wrote.
        message = (
            f"the finder of {kind.__module__}.{kind.__name__} has the name {finder.name!r}, and the format "
            f"{name!r}: both must say the same"
        )
        raise UnsupportedFormat(message)


def refuse_specs_among(source: object) -> None:
    """Raise an error for a list that has a spec as an item.

    Raises:
        InvalidArgument: an item is a spec.
        UnsupportedFormat: an item is a spec or an address that cannot be opened.
    """
    for item in source if isinstance(source, list | tuple) else ():
        look = Look(item, name=None, value=None)
        is_list = look.path.endswith(_LISTS)
        if is_list or (look.spec and (look.spec == _HUB or next(_asked(look), None))):
            message = (
                f"{look.path!r} is opened alone; join several with sk.concat([sk.open(...), ...]), or "
                f"sk.mix([...], weights=..., seed=...)"
            )
            raise InvalidArgument(message)
        if look.spec or look.is_stored:
            refusals.refuse_unopened(look.path)


def find_data(
    asked: Asked, *, format_name: str | None = None, value: Format | None = None
) -> tuple[FoundFiles, ...]:
    """Return the data files of a path, a folder, a glob, or a list of those.

    Args:
        asked: the path, folder, glob or list.
        format_name: the format that the user named; with one, folders of other tools count as plain ones.
        value: the format that the user gave as a value, whose files are chosen in a folder that has others.

    Raises:
        DataNotFound: nothing is there, or no file is.
        AccessDenied: this user may not look there.
        UnsupportedFormat: a folder holds several datasets, and the path names none of them; or it is a
            dataset of another tool, which is not read.
        WrongType: something that is neither a path nor a list of paths.
    """

    def inspect(listing: Listing) -> frozenset[str]:
        if format_name is None:
            return refusals.without_other_tools(listing)
        return refusals.without_their_files(listing)

    def arranged(folder: str, names: Sequence[str]) -> Sequence[str]:
        return hub_folders.data_files(folder, _of_one_kind(_of_value(names, value), format_name))

    kind = format_name or PLAIN if value is None else type(value).__name__
    return find_files(asked, suffixes=SUFFIXES, inspect=inspect, arrange=arranged, kind=kind)


def _of_value(names: Sequence[str], value: Format | None) -> Sequence[str]:
    """Return the files of a folder that have a suffix of a value's format, if there are any."""
    if value is None:
        return names
    own = [name for name in names if (card := card_by_suffix(name)) and card.home == value.card.home]
    return own or names


def _of_one_kind(names: Sequence[str], format_name: str | None = None) -> Sequence[str]:
    """Return the tar files of a folder, or its other files of data.

    Files beside tar files are facts about the shards if each has the name of a numbered shard at its
    beginning, or describes all of them; the tar files are the dataset then. Else they are a list of what is
    in the tar files, a manifest say, and are the dataset themselves.

    Args:
        names: the files of known suffixes.
        format_name: the format that the user named.

    Example:
        >>> _of_one_kind(["0.tar", "0_stats.json", "1.tar"]), _of_one_kind(["audio_0.tar", "cuts.jsonl"])
        (['0.tar', '1.tar'], ['cuts.jsonl'])
    """
    ends = {name[-8:] for name in names}  # No end of an archive is longer than ``.tar.zst``.
    tars = [name for name in names if _is_tar(name)] if any(map(_is_tar, ends)) else []
    if not tars or len(tars) == len(names):
        return names
    others = [name for name in names if not _is_tar(name)]
    if format_name is not None:
        return tars if format_name.partition("-")[0] == "tar" else others
    stems = (os.path.splitext(uncompressed_name(name))[0] for name in tars)
    numbered = tuple(stem for stem in stems if stem[-1:].isdigit())
    beside = all(name.startswith(numbered) or os.path.basename(name) in _DESCRIPTIONS for name in others)
    return tars if beside else others


def _is_tar(name: str) -> bool:
    """Return True if a file is an archive by its name, compressed or not."""
    return uncompressed_name(name.lower()).endswith(".tar")


def files_of_card(path: str, card: Card) -> tuple[FoundFiles, ...]:
    """Return the files of a path; in a folder those that end as a format does, compressed or not.

    Raises:
        DataNotFound: there is none.
    """
    return find_files(os.path.expanduser(path), suffixes=card.ends, inspect=refusals.without_their_files)


def card_of_file(name: str) -> Card:
    """Return the card of the format of a file by its name.

    Raises:
        UnsupportedFormat: the name ends as that of no known format.

    Example:
        >>> card_of_file("web/part-0001.txt.gz").name
        'text'
    """
    if found := card_by_suffix(name):
        return found
    suffix = os.path.splitext(name.lower())[1]
    if suffix in refusals.NO_WAY_IN:
        raise UnsupportedFormat(
            f"{name!r} is compressed by its name ({suffix}), and such a file has no cheap way to its "
            f"middle; decompress it once, or compress it with gzip or zstd. Known suffixes: "
            f"{', '.join(SUFFIXES)}"
        )
    known = refusals.unopened_suffix(name)
    named = f"{name!r} is {known.what}, {known.refusal}. It" if known else f"{name!r}"
    raise UnsupportedFormat(
        f"{named} has the suffix of no known format; known suffixes are {', '.join(SUFFIXES)}. "
        f"Say what it is with format=, one of {', '.join(map(repr, NAMES))}"
    )


def card_of_all(found: Sequence[FoundFiles]) -> Card:
    """Return the card of the one format of all files.

    Raises:
        UnsupportedFormat: a suffix is not known, or there is more than one format.
    """
    cards: dict[str, tuple[Card, str]] = {}
    for run in found:
        # Most names have one end; the rest of the work is done once for each.
        ends = {name.rpartition(".")[2]: name for name in run.names}
        alike = ends.values() if not any(map(compression_of, ends.values())) else run.names
        for suffix, name in {_suffix(name): name for name in alike}.items():
            card = card_of_file(name if suffix else os.path.basename(name))
            cards.setdefault(card.name, (card, name))
    if len(cards) > 1:
        examples = ", ".join(f"{card.name} ({name})" for card, name in cards.values())
        way_out = "Scripts name entries of archives, so open one kind: 'scp:PATH' or 'ark:PATH'"
        if cards.keys() != {"ark", "scp"}:
            way_out = "Open them apart and combine them with sk.concat or sk.mix, or say what all are with "
            way_out += "format="
        what = f"a dataset has one format, and here there are {len(cards)}: {examples}"
        raise UnsupportedFormat(f"{what}. {way_out}")
    (card, _), *_ = cards.values()
    return card


def _suffix(name: str) -> str:
    """Return the suffix that decides the format, in lower case; of compressed files both suffixes."""
    stem, suffix = os.path.splitext(name)
    return (os.path.splitext(stem)[1] + suffix if compression_of(name) else suffix).lower()


def refuse_copies(found: Sequence[FoundFiles]) -> None:
    """Refuse a file beside its compressed copy, because each record would come twice.

    Raises:
        UnsupportedFormat: there is such a pair.
    """
    for run in found:
        ends = {name[-4:] for name in run.names}
        compressed = (
            [name for name in run.names if compression_of(name)] if any(map(compression_of, ends)) else []
        )
        names = set(run.names) if compressed else set()
        for name in compressed:
            copies = {uncompressed_name(name), *(f"{uncompressed_name(name)}.{kind}" for kind in COMPRESSED)}
            if copy := min((copies - {name}) & names, default=None):
                message = (
                    f"{copy!r} and {name!r} in {run.root!r} look like the same data twice, compressed and "
                    f"not: keep one of them there, or say which with a glob or a list"
                )
                raise UnsupportedFormat(message)
