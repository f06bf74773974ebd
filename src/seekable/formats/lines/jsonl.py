"""JSON lines: one JSON value a line; blank lines are not records."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seekable._arguments import (
    checked_text,
    explains_fields,
)
from seekable._lazy import lazy
from seekable._log import LOG
from seekable.errors import CorruptRecord, UnsupportedFormat
from seekable.formats.contract import check_partitions
from seekable.formats.lines.line_bounds import BYTE_ORDER_MARK, scan_lines
from seekable.formats.lines.line_source import LineDecoder, Lines
from seekable.formats.look import OtherTool
from seekable.formats.table import card_named, index_finders
from seekable.index.digest import END_BYTES
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.byte_source import FileSource
from seekable.storage.files import shell_path
from seekable.storage.first_bytes import check_is_text

if TYPE_CHECKING:
    import json
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from seekable.dataset import pipeline
    from seekable.formats.contract import Card, Claim, Hive, Opening
    from seekable.formats.lines import forager
    from seekable.formats.look import Folder
    from seekable.index.finder import ByteSource, OtherIndex
    from seekable.nodes.node import Node
else:
    json = lazy("json")
    forager = lazy("seekable.formats.lines.forager")
    pipeline = lazy("seekable.dataset.pipeline")

__all__ = ["Jsonl", "JsonlScanner"]

_WIDS = b'"wids-shard-index-v'
_EARLY = 1024


@explains_fields("sk.formats.Jsonl")
@dataclass(frozen=True, slots=True, kw_only=True)
class Jsonl(Lines):
    r"""JSON lines.

    Args:
        partitions: ``"hive"`` if folders ``year=2024/lang=de/`` are columns of the records below them: int64
            where all values of a key are integers, else str; None for ``__HIVE_DEFAULT_PARTITION__``, and in
            a file that lies in no folder of the key. ``filter(where=)`` opens no file that they rule out. A
            record with another value than its folder's in a column of that name raises ``BadValue``.
        field: the only field to read of each record, as in ``hf:REPO:SPLIT:COLUMN``.
        pack: the path of a pack of Lhotse's indexes that may have the lines of some files; empty for none.

    Raises:
        InvalidArgument: ``partitions`` is another word.
        WrongType: an option is not a text.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     part = pathlib.Path(folder, "year=2024")
        ...     part.mkdir()
        ...     _ = (part / "a.jsonl").write_text('{"id": 0}\n')
        ...     sk.open(folder, format=sk.formats.Jsonl(partitions="hive"))[0]
        {'id': 0, 'year': 2024}
    """

    card: ClassVar[Card] = card_named("jsonl")

    partitions: Hive | None = None
    field: str | None = None
    pack: str = ""

    def __post_init__(self) -> None:
        """Check each option."""
        check_partitions(self.partitions)
        for name in ("field", "pack"):
            checked_text(name, getattr(self, name))

    @property
    def decoding(self) -> str:
        """JSON."""
        return "json"

    @property
    def only_field(self) -> str | None:
        """The only field to read of each record; None for all fields."""
        return self.field

    @property
    def finder(self) -> JsonlScanner:
        """The scanner of lines."""
        return JsonlScanner(pack=self.pack)

    @classmethod
    def foreign(cls, folder: Folder) -> OtherTool | None:
        """Return what an index of Forager is, if a folder is one."""
        if os.path.basename(folder.path) == forager.INDEX and forager.NEEDED.issubset(folder.files):
            return OtherTool(
                "the index of Forager, and no data",
                "open the folder with the files that it names in file_location.txt",
            )
        return None

    @classmethod
    def never_data(cls, folder: str, names: AbstractSet[str]) -> AbstractSet[str]:
        """Return the files of an index of Forager."""
        is_index = folder == forager.INDEX and names >= forager.NEEDED
        return frozenset(forager.NAMES) if is_index else frozenset()

    def open(self, claim: Claim, opening: Opening) -> Any:
        """Return the node of a claim, after a look whether its files seem to be of different data."""
        node = opening.records(claim)
        many = sum([len(run.names) for run in claim.found]) > 1
        if many and not claim.together and (said := _different_fields(node)):
            LOG.warning("%s", said)
        return node


@dataclass(frozen=True, slots=True)
class JsonlScanner:
    """Finds the records of a file of JSON lines."""

    name: str = "jsonl"
    splittable: bool = True

    pack: str = ""
    """The path of a pack of Lhotse's indexes that may have the lines of some files; empty for none."""

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first bytes of a file.

        Raises:
            UnsupportedFormat: they are not text in UTF-8, or one JSON document over several lines.
        """
        check_is_text(head, path)
        text = head.removeprefix(BYTE_ORDER_MARK)
        if text.startswith(b"{") and _WIDS in text[:_EARLY]:
            raise UnsupportedFormat(f"{path!r} is a list of shards of wids: open them as {f'wids:{path}'!r}")
        is_array = text.lstrip().startswith(b"[")
        # A line of JSON lines may well be an array, but a file called .json that begins so is one.
        if _is_one_document(text) or (is_array and path.lower().endswith(".json")):
            if text.lstrip(b"{ \t\r\n").startswith(f'"{pipeline.PIPELINE_KEY}"'.encode()):
                raise UnsupportedFormat(
                    f"{path!r} is a pipeline that ds.save wrote, and no data: sk.load_pipeline({path!r})"
                )
            kind, program = ("array", "'.[]'") if is_array else ("document", ".")
            raise UnsupportedFormat(
                f"{path!r} is one JSON {kind}, not one object a line; "
                f"convert it once: jq -c {program} {shell_path(path)} > NEW.jsonl"
            )

    def other_indexes(self, folder: str, names: Sequence[str]) -> Sequence[OtherIndex]:
        """Return the indexes of other tools over files below a folder: the pack, Forager's, Lhotse's."""
        packs = index_finders("shar") if self.pack else []
        found = (find(folder, names, self.pack) for find in (*packs, *index_finders("jsonl")))
        return [index for index in found if index is not None]

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return where lines start that are not blank."""
        return scan_lines(source, keep_blank=False)


def _is_one_document(head: bytes) -> bool:
    """Return whether the lines together are one JSON value, or its start, and the first line is none."""
    whole = head if len(head) < END_BYTES else head[: head.rfind(b"\n") + 1]
    first, _, rest = whole.strip().partition(b"\n")
    return bool(rest) and not _is_json(first, or_its_start=False) and _is_json(whole, or_its_start=True)


def _is_json(data: bytes, *, or_its_start: bool) -> bool:
    try:
        text = str(data, "utf-8").strip()
        json.loads(text)
    except UnicodeDecodeError:
        return False
    except json.JSONDecodeError as error:
        return or_its_start and error.pos >= len(text)
    except (ValueError, RecursionError):
        return not or_its_start  # A number too long, or levels too many: whoever reads the record says so.
    return True


_MOST_FILES = 8
_MOST_RECORDS = 4
"""The first records of a file that are looked at: one may lack a field that the others have."""


def _different_fields(node: Node) -> str:
    """Return what is to be said of files whose fields differ from those of the first; nothing if none do.

    A few files are looked at, the first and the last among them, and a few records of each. Files differ if
    each of two has a field, in all of these records, which none of the other's has. Fields that only one of
    them has more are common: many writers leave out what is null.
    """
    source = next(iter(leaves_of(node)), None)
    if not isinstance(source, FileSource):
        return ""
    decoder = source.decoder
    if source.files.has_objects or not isinstance(decoder, LineDecoder):
        return ""
    if decoder.name != "json" or decoder.plain is not None:
        return ""
    bare, records = replace(source, errors=None), source.files.records
    filled = np.flatnonzero(records).tolist()
    step = max(1, (len(filled) - 1) / (_MOST_FILES - 1))
    chosen = dict.fromkeys(filled[round(number * step)] for number in range(min(len(filled), _MOST_FILES)))
    first: tuple[str, frozenset[str], frozenset[str]] | None = None
    for file in chosen if len(chosen) > 1 else ():
        always, ever = _fields(bare, file)
        if not always:
            continue
        path = source.files.shown_path(file)
        if first is None:
            first = path, always, ever
        elif (ours := first[1] - ever) and (theirs := always - first[2]):
            return (
                f"the files of {source.asked} have different fields: {min(ours)!r} is in {first[0]!r} and "
                f"not in {path!r}, which has {min(theirs)!r}. If they are of different data, open them apart "
                f"and join them with sk.mix or sk.concat; rename() by file gives them the same fields"
            )
    return ""


def _fields(source: FileSource, file: int) -> tuple[frozenset[str], frozenset[str]]:
    """Return the fields that all of the first records of a file have, and those that some have."""
    start = int(source.files.starts[file])
    found: list[frozenset[str]] = []
    for row in range(min(_MOST_RECORDS, int(source.files.records[file]))):
        with suppress(CorruptRecord):  # reading names it
            record = source.record(start + row)
            found.append(
                frozenset(record if isinstance(record, dict) else [f"no fields, a {type(record).__name__}"])
            )
    if not found:
        return frozenset(), frozenset()
    return frozenset.intersection(*found), frozenset.union(*found)
