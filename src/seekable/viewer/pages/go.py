"""The box that goes anywhere: the address that a text names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from seekable.errors import InvalidArgument, KeyNotFound
from seekable.loader.checkpoint_files import generations_in, read_saved
from seekable.viewer.page import Redirect
from seekable.viewer.pages.row_names import row_of_place

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

__all__ = ["address_of", "go"]

_STEP = re.compile(r"step\s+([\d,]+)(?:\s+rank\s+(\d+))?", re.IGNORECASE)
_POSITION = re.compile(r"(position|sequence)\s+([\d,]+)", re.IGNORECASE)
_COMPARED = re.compile(r"compare\s+(\S+)\s+(\S+)(?:\s+step\s+([\d,]+))?", re.IGNORECASE)
_ROW = re.compile(r"(?:row\s+)?(-?\d[\d,]*)", re.IGNORECASE)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_NAMED = re.compile(r"(\S+)(?:\s+(.*))?", re.DOTALL)
_STATE = re.compile(r"(?:state\s+)?([\d,]+)(?:\s*\.\.\.\s*([\d,]+))?", re.IGNORECASE)
_FINGERPRINT = re.compile(r"xxh3:([0-9a-f]{4,32})(?:\.\.\.)?", re.IGNORECASE)
_MESSAGE = re.compile(r"(.+?): record (\d+)\b.*", re.DOTALL)
_PLACE = re.compile(r"(.+):(\d+)")
_MOST_STATES = 200
_HELP = (
    "write a row (1,234,567 or -1), a share (50%), a step (step 48210 rank 3), a position (position 17), a "
    "packed sample (sequence 17), a key (key:utt-17), a file and its row (part-00012.jsonl:531, or the "
    "message of a corrupt record), a state (xxh3:9f3c), two pipelines (compare old new step 48210), or the "
    "name of what is open, alone or before one of these"
)


def go(opened: Opened, asked: Asked) -> Redirect:
    """Return the address that a text names.

    Raises:
        InvalidArgument: the text names nothing, or nothing of its kind is open.
    """
    return Redirect(address_of(opened, asked.text("to").strip(), asked.text("in")))


def address_of(opened: Opened, text: str, within: str = "") -> str:
    """Return the address that a text names, relative to the root of the viewer.

    Args:
        opened: what is open.
        text: what a user wrote.
        within: the name of the dataset or pipeline that is meant; else it is the first one.

    Raises:
        InvalidArgument: the text names nothing, or nothing of its kind is open.
    """
    found = _by_value(opened, text, within) or _named(opened, text)
    return found or _placed(opened, text, within)


def _by_value(opened: Opened, text: str, within: str) -> str | None:  # noqa: PLR0911 - a case for each kind
    """Return the address of a row, a step, a key and so on; None for names and places."""
    if found := _STEP.fullmatch(text):
        rank = f"?rank={int(found[2])}" if found[2] else ""
        return f"p/{_pipeline(opened, text, within)}/step/{_number(found[1])}{rank}"
    if found := _POSITION.fullmatch(text):
        return f"p/{_pipeline(opened, text, within)}/{found[1].lower()}/{_number(found[2])}"
    if found := _COMPARED.fullmatch(text):
        step = {"step": _number(found[3])} if found[3] else {}
        return f"compare?{urlencode({'a': found[1], 'b': found[2], **step})}"
    if found := _ROW.fullmatch(text):
        return f"d/{_dataset(opened, text, within)}/row/{_number(found[1])}"
    if found := _PERCENT.fullmatch(text):
        name = _dataset(opened, text, within)
        size = opened.dataset(name).size or 0
        return f"d/{name}/rows?at={min(int(size * float(found[1]) / 100), max(size - 1, 0))}"
    if text.startswith("key:"):
        return f"d/{_dataset(opened, text, within)}/key?{urlencode({'key': text.removeprefix('key:')})}"
    if found := _FINGERPRINT.fullmatch(text):
        return _state_of(opened, found[1].lower())
    return None


def _named(opened: Opened, text: str) -> str | None:
    """Return the address of what begins with the name of something open; None if it does not."""
    found = _NAMED.fullmatch(text)
    name, rest = (found[1], found[2] or "") if found else ("", "")
    if name in opened.states and (state := _STATE.fullmatch(rest)):
        first, second = state.groups()
        return f"s/{name}/{_number(first)}" + (f"...{_number(second)}" if second else "")
    for kind, those in (("d", opened.datasets), ("p", opened.pipelines), ("s", opened.states)):
        if name in those:
            if not rest:
                return f"{kind}/{name}/"
            return _by_value(opened, rest, name) or _placed(opened, rest, name)
    return None


def _placed(opened: Opened, text: str, within: str) -> str:
    """Return the address of a file and its row, in the data that has it.

    Raises:
        InvalidArgument: the text does not name a file and a row, or no data is open.
    """
    found = _MESSAGE.fullmatch(text) or _PLACE.fullmatch(text)
    if not found:
        message = f"{text[:80]!r} cannot be read: {_HELP}"
        raise InvalidArgument(message)
    first, path, row = _dataset(opened, text, within), found[1].strip("'\""), int(found[2])
    for name in dict.fromkeys([first, *opened.datasets]):
        try:
            return f"d/{name}/row/{row_of_place(opened.datasets[name], path, row)}"
        except KeyNotFound:
            continue
    return f"d/{first}/at?{urlencode({'file': path, 'row': row})}"


def _state_of(opened: Opened, digits: str) -> str:
    """Return the address of the newest state of the pipeline with a fingerprint.

    Raises:
        InvalidArgument: there is none in the folders that are open.
    """
    for name, folder in opened.states.items():
        for generation in generations_in(folder)[: -_MOST_STATES - 1 : -1]:
            saved = read_saved(os.path.join(folder, generation.names[0]))
            if saved.fingerprint.rpartition(":")[2].startswith(digits):
                return f"s/{name}/{generation.step}"
    message = f"no state of a pipeline with the fingerprint xxh3:{digits} is in a folder that is open"
    raise InvalidArgument(message)


def _pipeline(opened: Opened, text: str, within: str) -> str:
    if not opened.pipelines:
        why = "; ".join(opened.unopened.values()) or "seekable view CHECKPOINTS opens one"
        message = f"{text!r} names a step, and no pipeline is open: {why}"
        raise InvalidArgument(message)
    return within if within in opened.pipelines else next(iter(opened.pipelines))


def _dataset(opened: Opened, text: str, within: str) -> str:
    if not opened.datasets:
        message = f"{text[:80]!r} cannot be looked for: no data is open"
        raise InvalidArgument(message)
    return within if within in opened.datasets else next(iter(opened.datasets))


def _number(text: str) -> int:
    return int(text.replace(",", ""))
