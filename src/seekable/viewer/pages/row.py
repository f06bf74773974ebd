"""One record: decoded, as it is in the file, as pipelines deliver it, and when it comes in training."""

from __future__ import annotations

import difflib
import json
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptRecord, InvalidArgument, KeyNotFound, OutOfRange, SeekableError
from seekable.loader.steerable import made_by
from seekable.nodes.node import node_of
from seekable.storage.compression import compression_of
from seekable.viewer.conversation import conversation_html
from seekable.viewer.facts.json_documents import json_safe, json_value, place_as_json
from seekable.viewer.facts.key_paths import value_at
from seekable.viewer.facts.named_sources import as_delivered, has_row
from seekable.viewer.facts.pipelines import is_function
from seekable.viewer.facts.reading import raw_record
from seekable.viewer.facts.search import marked
from seekable.viewer.opened import coming_document
from seekable.viewer.page import Page
from seekable.viewer.pages.rows import filtered
from seekable.viewer.pages.searched import searched_of
from seekable.viewer.render import Limits, Links
from seekable.viewer.unseen import text_html

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset
    from seekable.loader.step_plan import Coming
    from seekable.nodes.node import Node
    from seekable.viewer.facts.filtered_rows import FilteredRows
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked

_BEFORE = 64
_AFTER = 160
_IN_A_LINE = 16
_PRINTED = range(32, 127)


_MOST_COMINGS = 5
_RAW_BYTES = 200_000
_HEX_BYTES = 2048
_PIECE = 20_000
_VIEWS = ("record", "file", "delivered", "difference", "bytes")
_TEXTS = ("rendered", "raw")
_SINGLE_FILES = frozenset({".jsonl", ".ndjson", ".txt", ".csv", ".tsv", ".parquet"})
_HEAD_BYTES, _HEAD_WIDTH = 128, 8


def row(opened: Opened, asked: Asked) -> Page:
    """Return one record.

    Raises:
        OutOfRange: there is no such row.
    """
    dataset, number = opened.dataset(asked.name), int(asked.path["row"])
    check_row(dataset, number, asked.name)
    view = asked.choice("view", _VIEWS)
    place = dataset.locate([number])[0]
    record, error = _read(dataset, number)
    around = None if error is None else _surroundings(node_of(dataset), number, error)
    neighbours = [] if error is None else _neighbours(dataset, number)
    document = {
        "name": asked.name,
        "records": node_of(dataset).size,
        "row": number,
        "location": place_as_json(place),
        **({"error": json_safe(str(error))} if error else {}),
        **(
            {"bytes": None if around is None else around.document(), "neighbours": neighbours}
            if error
            else {}
        ),
        "training": comings(opened, place),
        **_within(opened, asked, number),
    }
    shown = {
        "view": view,
        "views": _VIEWS,
        "value": record,
        "corrupt": error,
        "commands": [] if error else _commands(opened, asked.name, number, place),
        **_marks(asked, record),
        "head": _head(dataset, number, place) if error is None else (),
        "around": () if around is None else around.lines(),
        **_shown(
            opened, dataset, asked, view if error is None or view in ("file", "bytes") else "record", record
        ),
    }

    def facts() -> dict[str, Any]:
        return {} if error else {"record": json_value(record, whole_bytes=True)}

    return Page("row", f"{asked.name}, row {number:,}", document, shown, facts=facts)


def _within(opened: Opened, asked: Asked, number: int) -> dict[str, Any]:
    """Return where a row lies among those that its address filters and sorts; nothing without either.

    ``place`` and the neighbours are None where the row is not among those that were found so far.
    """
    where, sort = asked.text("where"), asked.text("sort")
    if not where and not sort:
        return {}
    found: FilteredRows | None = filtered(opened, asked).partial
    rows: list[int] = [] if found is None else found.rows.tolist()
    place = rows.index(number) if number in rows else None
    before = rows[place - 1] if place else None
    after = rows[place + 1] if place is not None and place + 1 < len(rows) else None
    within = {"where": where, "sort": sort, "place": place, "previous": before, "next": after}
    within |= {"of": 0 if found is None else found.found}
    return {"within": within | {"made_of": "not looked at yet" if found is None else found.made_of}}


def _marks(asked: Asked, record: Any) -> dict[str, Any]:
    """Return the places of what the address searches for, or why they are not known."""
    shown: dict[str, Any] = {"marks": None, "unmarked": "", "searched": asked.text("q")}
    if asked.text("q"):
        try:
            shown["marks"] = marked(record, searched_of(asked))
        except InvalidArgument as error:
            shown["unmarked"] = str(error)
    return shown


def value(opened: Opened, asked: Asked) -> Page:
    """Return one text of a record, in pieces of 20,000 characters."""
    dataset, number = opened.dataset(asked.name), int(asked.path["row"])
    check_row(dataset, number, asked.name)
    at, start = asked.text("at"), asked.count("from", default=0)
    found = _text_at(dataset[number], at)
    document = {
        "name": asked.name,
        "row": number,
        "at": at,
        "characters": len(found),
        "from": start,
        "text": found[start : start + _PIECE],
    }
    return Page("value", f"{asked.name}, row {number:,}, {at}", document, {"piece": _PIECE})


def check_row(dataset: Dataset, number: int, name: str) -> None:
    """Refuse a row that a dataset does not have.

    Raises:
        OutOfRange: there is no such row.
    """
    size = node_of(dataset).size
    if size is not None and not 0 <= number < size:
        have = f"{size:,} rows, 0 to {size - 1:,}" if size else "no rows"
        message = f"there is no row {number:,}: {name} has {have}"
        raise OutOfRange(message)


def comings(opened: Opened, place: Any) -> list[dict[str, Any]]:
    """Return when a row comes in each pipeline that reads its file: steps, positions, epochs and ranks."""
    out: list[dict[str, Any]] = []
    if isinstance(place, list | tuple):
        return out
    for name, each in opened.pipelines.items():
        found = _next_comings(each, place)
        if found is None:
            continue
        epoch = each.loader.epoch
        out.append(
            {
                "pipeline": name,
                "epochs": [epoch, epoch + _MOST_COMINGS],
                "comes": [coming_document(each, at) for at in found[:_MOST_COMINGS]],
            }
        )
    return out


def _next_comings(pipeline: OpenPipeline, place: Any) -> list[Coming] | None:
    """Return when a row comes in the next epochs; None where the pipeline lacks it or is a stream."""
    try:
        loader = pipeline.loader
        if not has_row(node_of(loader.dataset), place.path, place.row):
            return None
        return loader.when(place.path, place.row, epochs=range(loader.epoch, loader.epoch + _MOST_COMINGS))
    except SeekableError:
        return None


def _commands(opened: Opened, name: str, number: int, place: Any) -> list[tuple[str, str]]:
    """Return how to print and to read the record elsewhere; nothing of data that no path leads to."""
    path, row = opened.paths.get(name), number
    if path is not None and is_function(path):
        module, _, function = path.partition(":")
        return [("In Python", f"from {module} import {function}; {function}()[{row}]")]
    if path is None:
        path, row = getattr(place, "path", ""), getattr(place, "row", number)
        # Other formats are more than one file, or are opened with more than its path.
        if os.path.splitext(path)[1] not in _SINGLE_FILES or not os.path.isfile(path):
            return []
    if os.path.exists(path):
        path = os.path.abspath(path)
    return [
        ("In a shell", f"seekable get {shlex.quote(path)} {row}"),
        ("In Python", f"sk.open({path!r})[{row}]"),
    ]


def _head(dataset: Dataset, number: int, place: Any) -> list[HexLine]:
    """Return the first bytes of a record as lines; none where they cost a request, or there are none."""
    path = getattr(place, "path", None)
    raw = raw_record(node_of(dataset), number) if path is not None and os.path.isfile(path) else None
    return [] if raw is None else _hex_lines(raw[:_HEAD_BYTES], place.offset or 0, width=_HEAD_WIDTH)


def _neighbours(dataset: Dataset, number: int) -> list[dict[str, Any]]:
    """Return the rows before and after a row, as JSON documents."""
    found: list[dict[str, Any]] = []
    size = node_of(dataset).size
    for each in (number - 1, number + 1):
        if each >= 0 and (size is None or each < size):
            record, error = _read(dataset, each)
            value = {"record": json_value(record)} if error is None else {"error": json_safe(str(error))}
            found.append({"row": each, **value})
    return found


def _read(dataset: Dataset, number: int) -> tuple[Any, CorruptRecord | None]:
    try:
        return dataset[number], None
    except CorruptRecord as error:
        return error, error


def _shown(opened: Opened, dataset: Dataset, asked: Asked, view: str, record: Any) -> dict[str, Any]:
    """Return what a view needs besides the record."""
    number = int(asked.path["row"])
    limits = Limits(depth=100) if asked.query.get("open") else None
    shown: dict[str, Any] = {
        "raw": None,
        "raw_cut": 0,
        "dump": (),
        "turns": None,
        # A text that was searched for is marked in the raw record.
        "text": asked.choice("text", _TEXTS[::-1] if asked.text("q") else _TEXTS),
        "delivered": None,
        "delivered_by": "",
        "delivered_error": "",
        "lacking": (),
        "lines": (),
        "limits": limits,
        "links": Links(
            texts=f"../value/{number}",
            media=f"../../../media/d/{asked.name}/{number}",
            waves=f"../wave/{number}",
            files=opened.media,
        ),
    }
    if view in ("file", "bytes"):
        raw = raw_record(node_of(dataset), number)
        shown |= {"raw": raw, "raw_cut": 0 if raw is None else max(0, len(raw) - _RAW_BYTES)}
        if raw is not None:
            shown |= {"raw_text": text_html(raw[:_RAW_BYTES].decode("utf-8", "backslashreplace"))}
            offset = getattr(dataset.locate([number])[0], "offset", None)
            shown |= {"dump": _hex_lines(raw[:_HEX_BYTES], offset or 0)}
    if view in ("delivered", "difference"):
        shown |= _delivered(opened, dataset, asked, number)
    if view in ("record", "delivered"):
        value = shown["delivered"] if view == "delivered" else record
        shown["turns"] = conversation_html(value, links=shown["links"], limits=limits)
    return shown


def _delivered(opened: Opened, dataset: Dataset, asked: Asked, number: int) -> dict[str, Any]:
    """Return the record as the first pipeline, or the named one, delivers it; its functions run."""
    place, lacking = dataset.locate([number])[0], []
    for name, each in opened.pipelines.items():
        if asked.query.get("by", name) != name or isinstance(place, list | tuple):
            continue
        found = _next_comings(each, place)
        if found:
            try:
                made = as_delivered(made_by(each.loader, found[0].step))
                if made is None:
                    lacking.append(name)
                    continue
                record = made.record(found[0].position)
            except Exception as error:  # noqa: BLE001 - a function of the user raises anything
                raw = raw_record(node_of(dataset), number)
                return {
                    "delivered_by": name,
                    "delivered_at": found[0],
                    "delivered_error": f"{type(error).__name__}: {error}",
                    "raw_text": text_html((raw or b"")[:_RAW_BYTES].decode("utf-8", "backslashreplace")),
                }
            before, after = _pretty(dataset[number]), _pretty(record)
            lines = list(difflib.ndiff(before, after)) if len(before) + len(after) < 2000 else []  # noqa: PLR2004
            return {"delivered": record, "delivered_by": name, "lines": lines, "delivered_at": found[0]}
    return {"lacking": lacking}


def _pretty(record: Any) -> list[str]:
    return json.dumps(json_value(record), indent=2, ensure_ascii=False, default=str).splitlines()


def _text_at(record: Any, at: str) -> str:
    """Return the text at a place of a record.

    Raises:
        KeyNotFound: there is none.
    """
    found = value_at(record, at) if at else record
    if not isinstance(found, str):
        message = f"the value at {json_safe(at)!r} is not a text (got {type(found).__name__})"
        raise KeyNotFound(message)
    return found


@dataclass(frozen=True, slots=True)
class HexLine:
    """Some bytes of a file, in a line."""

    offset: int
    codes: str
    characters: str
    notes: tuple[str, ...] = ()
    """What begins or lies in the line."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The bytes around the place of an error."""

    offset: int
    """The place of the first byte in the file, or in the content of a compressed one."""

    data: bytes
    record: range
    """The bytes of the record, by their places in the file."""

    failing: int | None
    """The place of the byte at which decoding failed, if the decoder says that."""

    def document(self) -> dict[str, Any]:
        """Return the places and the bytes, JSON-safe."""
        return {
            "offset": self.offset,
            "hex": self.data.hex(),
            "record": [self.record.start, self.record.stop],
            "failing": self.failing,
        }

    def lines(self) -> list[HexLine]:
        """Return the bytes in lines, with notes where the record begins, ends, and cannot be decoded."""
        notes = {
            self.record.start: "the record begins at byte {:,}",
            self.record.stop: "it ends before byte {:,}",
        }
        places = [(at, words.format(at)) for at, words in notes.items()]
        if self.failing is not None:
            places.append((self.failing, f"it cannot be decoded at byte {self.failing:,}"))
        return [
            HexLine(
                line.offset,
                line.codes,
                line.characters,
                tuple(words for at, words in sorted(places) if 0 <= at - line.offset < _IN_A_LINE),
            )
            for line in _hex_lines(self.data, self.offset)
        ]


def _hex_lines(data: bytes, offset: int, *, width: int = _IN_A_LINE) -> list[HexLine]:
    r"""Return bytes as lines: offset, codes and characters.

    Args:
        data: the bytes.
        offset: the place of the first of them.
        width: the bytes of a line.

    Example:
        >>> _hex_lines(b"a\n", 100)
        [HexLine(offset=100, codes='61 0a', characters='a.', notes=())]
    """
    lines = []
    for at in range(0, len(data), width):
        part = data[at : at + width]
        characters = "".join(chr(byte) if byte in _PRINTED else "." for byte in part)
        lines.append(HexLine(offset + at, part.hex(" "), characters))
    return lines


def _failing_byte(error: CorruptRecord) -> int | None:
    r"""Return the place in the file at which the decoder of a record failed; None if it does not say.

    Example:
        >>> from seekable.errors import CorruptRecord
        >>> cause = UnicodeDecodeError("utf-8", b"ab\\xff", 2, 3, "invalid start byte")
        >>> _failing_byte(CorruptRecord("a.txt", 7, offset=100, length=3, preview=b"ab", cause=cause))
        102
    """
    cause: BaseException | None = error.cause
    while cause is not None:
        if isinstance(cause, json.JSONDecodeError):
            return error.offset + len(cause.doc[: cause.pos].encode("utf-8", "surrogatepass"))
        if isinstance(cause, UnicodeDecodeError):
            return error.offset + cause.start
        cause = cause.__cause__
    return None


def _surroundings(node: Node, row: int, error: CorruptRecord) -> Surroundings | None:
    """Return the bytes around the place of the error; None where they cannot be read.

    In compressed files and objects of stores they are those of the record alone.

    Args:
        node: the source of the record.
        row: the index of the record in it.
        error: what reading it raised.
    """
    failing = _failing_byte(error)
    at = error.offset if failing is None else failing
    first = max(0, at - _BEFORE)
    if os.path.isfile(error.path) and compression_of(error.path) is None:
        with open(error.path, "rb") as file:
            file.seek(first)
            data = file.read(_BEFORE + _AFTER)
    else:
        first = max(first, error.offset)
        data = (raw_record(node, row) or b"")[first - error.offset :][: _BEFORE + _AFTER]
    if not data:
        return None
    return Surroundings(first, data, range(error.offset, error.offset + error.length), failing)
