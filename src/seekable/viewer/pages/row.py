"""One record: decoded, as it is in the file, as pipelines deliver it, and when it comes in training."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptRecord, KeyNotFound, OutOfRange, SeekableError
from seekable.viewer.facts.documents import json_safe, json_value, place_as_json
from seekable.viewer.facts.key_paths import value_at
from seekable.viewer.facts.reading import raw_record
from seekable.viewer.facts.sources import has_row
from seekable.viewer.opened import after_end
from seekable.viewer.page import Page
from seekable.viewer.render import Limits, Links, text_html
from seekable.viewer.surroundings import hex_lines, surroundings

if TYPE_CHECKING:
    from seekable.dataset.dataset import Dataset
    from seekable.loader.when import Coming
    from seekable.viewer.opened import Opened, OpenPipeline
    from seekable.viewer.page import Asked

_MOST_COMINGS = 5
_RAW_BYTES = 200_000
_HEX_BYTES = 2048
_PIECE = 20_000
_VIEWS = ("record", "file", "delivered", "difference", "bytes")


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
    around = None if error is None else surroundings(dataset.node, number, error)
    neighbours = [] if error is None else _neighbours(dataset, number)
    document = {
        "name": asked.name,
        "records": dataset.size,
        "row": number,
        "location": place_as_json(place),
        **({"error": json_safe(str(error))} if error else {"record": json_value(record)}),
        **(
            {"bytes": None if around is None else around.document(), "neighbours": neighbours}
            if error
            else {}
        ),
        "training": comings(opened, place),
    }
    shown = {
        "view": view,
        "views": _VIEWS,
        "value": record,
        "corrupt": error,
        "around": () if around is None else around.lines(),
        **_shown(opened, dataset, asked, view if error is None or view in ("file", "bytes") else "record"),
    }
    return Page("row", f"{asked.name}, row {number:,}", document, shown)


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
    size = dataset.size
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
                "comes": [
                    {
                        "step": at.step,
                        "position": at.position,
                        "epoch": at.epoch,
                        "rank": at.rank,
                        "after_end": after_end(each, at.step),
                    }
                    for at in found[:_MOST_COMINGS]
                ],
            }
        )
    return out


def _next_comings(pipeline: OpenPipeline, place: Any) -> list[Coming] | None:
    """Return when a row comes in the next epochs; None where the pipeline lacks it, or has no order."""
    try:
        loader = pipeline.loader
        if not has_row(loader.dataset.node, place.path, place.row):
            return None
        return loader.when(place.path, place.row, epochs=range(loader.epoch, loader.epoch + _MOST_COMINGS))
    except SeekableError:
        return None


def _neighbours(dataset: Dataset, number: int) -> list[dict[str, Any]]:
    """Return the rows before and after a row, as JSON documents."""
    found: list[dict[str, Any]] = []
    for each in (number - 1, number + 1):
        if each >= 0 and (dataset.size is None or each < dataset.size):
            record, error = _read(dataset, each)
            value = {"record": json_value(record)} if error is None else {"error": json_safe(str(error))}
            found.append({"row": each, **value})
    return found


def _read(dataset: Dataset, number: int) -> tuple[Any, CorruptRecord | None]:
    try:
        return dataset[number], None
    except CorruptRecord as error:
        return error, error


def _shown(opened: Opened, dataset: Dataset, asked: Asked, view: str) -> dict[str, Any]:
    """Return what a view needs besides the record."""
    number = int(asked.path["row"])
    shown: dict[str, Any] = {
        "raw": None,
        "raw_cut": 0,
        "dump": (),
        "delivered": None,
        "delivered_by": "",
        "delivered_error": "",
        "lines": (),
        "limits": Limits(depth=100) if asked.query.get("open") else None,
        "links": Links(
            texts=f"../value/{number}",
            media=f"../../../media/d/{asked.name}/{number}",
            waves=f"../wave/{number}",
            files=opened.media,
        ),
    }
    if view in ("file", "bytes"):
        raw = raw_record(dataset.node, number)
        shown |= {"raw": raw, "raw_cut": 0 if raw is None else max(0, len(raw) - _RAW_BYTES)}
        if raw is not None:
            shown |= {"raw_text": text_html(raw[:_RAW_BYTES].decode("utf-8", "backslashreplace"))}
            offset = getattr(dataset.locate([number])[0], "offset", None)
            shown |= {"dump": hex_lines(raw[:_HEX_BYTES], offset or 0)}
    if view in ("delivered", "difference"):
        shown |= _delivered(opened, dataset, asked, number)
    return shown


def _delivered(opened: Opened, dataset: Dataset, asked: Asked, number: int) -> dict[str, Any]:
    """Return the record as the first pipeline, or the one that is named, delivers it; its functions run."""
    place = dataset.locate([number])[0]
    for name, each in opened.pipelines.items():
        if asked.query.get("by", name) != name or isinstance(place, list | tuple):
            continue
        found = _next_comings(each, place)
        if found:
            try:
                record = each.loader.dataset.node.record(found[0].position)
            except Exception as error:  # noqa: BLE001 - a function of the user raises anything
                raw = raw_record(dataset.node, number)
                return {
                    "delivered_by": name,
                    "delivered_at": found[0],
                    "delivered_error": f"{type(error).__name__}: {error}",
                    "raw_text": text_html((raw or b"")[:_RAW_BYTES].decode("utf-8", "backslashreplace")),
                }
            before, after = _pretty(dataset[number]), _pretty(record)
            lines = list(difflib.ndiff(before, after)) if len(before) + len(after) < 2000 else []  # noqa: PLR2004
            return {"delivered": record, "delivered_by": name, "lines": lines, "delivered_at": found[0]}
    return {}


def _pretty(record: Any) -> list[str]:
    return json.dumps(json_value(record), indent=2, ensure_ascii=False, default=str).splitlines()


def _text_at(record: Any, at: str) -> str:
    """Return the text at a place of a record.

    Raises:
        KeyNotFound: there is none.
    """
    found = value_at(record, at) if at else record
    if not isinstance(found, str):
        message = f"the value at {json_safe(at)!r} is no text (got {type(found).__name__})"
        raise KeyNotFound(message)
    return found
