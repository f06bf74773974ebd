"""Cuts as the entries of a Shar folder: payloads, their manifests, and the cut with placeholders.

A cut is a dict, the JSON of Lhotse's ``to_dict``, with each payload under ``"data"`` of its manifest; or an
object of Lhotse, which becomes such a dict.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import MissingDependency
from seekable.formats.shar.cut import DATA
from seekable.formats.shar.shar_layout import ARRAYS, AUDIO
from seekable.formats.shar.shar_manifests import array_placeholder, json_line, recording_placeholder
from seekable.formats.shar.shar_payloads import array_payload, audio_payload, loaded
from seekable.formats.shar.shar_shard import EncodedCut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.shar.shar_layout import SharLayout

__all__ = ["UnwritableCut", "encoded_cut"]

_KEYS = ("id", "start", "duration", "channel", "supervisions", "features", "recording", "custom", "type")

_MANIFESTS = ({"sources", "sampling_rate"}, {"storage_type", "shape"}, {"array", "temporal_dim"})
"""What the manifests of recordings and of arrays have."""

Entry = list[tuple[str, bytes]]


class UnwritableCut(Exception):
    """A cut that cannot be written; the message names it, and the field."""


def encoded_cut(cut: Any, layout: SharLayout) -> EncodedCut:
    """Return a cut, ready to be written.

    Args:
        cut: a dict, or an object of Lhotse.
        layout: the fields to write.

    Raises:
        UnwritableCut: the cut has no good id, a payload does not fit to its manifest or cannot be encoded, or
            something is not JSON.
        MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
    """
    record = _record(cut)
    name = record["id"]
    entries: list[Entry] = []
    for field, kind in layout.fields:
        try:
            entry, record = _entry(cut, record, field, kind)
        except MissingDependency:
            raise
        except Exception as error:
            raise UnwritableCut(f"the field {field!r} of cut {name!r}: {error}") from error
        entries.append(entry)
    if layout.include_cuts:
        entries.insert(0, [("", _cut_line(record, layout))])
    return EncodedCut(name, entries, _unused_fields(record, {field for field, _ in layout.fields}))


def _unused_fields(record: dict[str, Any], written: set[str]) -> tuple[str, ...]:
    """Return the names of the manifests of audio, features and arrays of a cut that are not written."""
    own = [field for field in ("recording", "features") if isinstance(record.get(field), dict)]
    custom = [
        field
        for field, value in (record.get("custom") or {}).items()
        if isinstance(value, dict) and any(marks <= value.keys() for marks in _MANIFESTS)
    ]
    return tuple(field for field in (*own, *custom) if field not in written)


def _record(cut: Any) -> dict[str, Any]:
    """Return a cut as a dict of its own, with all that Lhotse needs."""
    record = dict(cut) if isinstance(cut, dict) else _of_lhotse(cut)
    name = record.get("id")
    if not isinstance(name, str) or not name:
        raise UnwritableCut(f"a cut has an id, a str that is not empty (got {name!r})")
    # Readers take a member's name without its last suffix, as a path, and compare it with the id.
    if "\0" in name or any(step in ("", ".", "..") for step in name.split("/")):
        raise UnwritableCut(
            f"cut {name!r}: the id names the members of tar files, so it has no NUL, and no step is empty, "
            f"'.' or '..'"
        )
    kind = record.get("type")
    if kind is None:
        return _completed(record)
    if kind not in ("MonoCut", "MultiCut"):
        raise UnwritableCut(
            f"cut {name!r} is a {kind}, and Shar holds MonoCut and MultiCut: make its audio one recording"
        )
    return record


def _of_lhotse(cut: Any) -> dict[str, Any]:
    if not hasattr(cut, "to_dict") or not hasattr(cut, "load_audio"):
        raise UnwritableCut(
            f"a cut is a dict or a Cut of Lhotse (got {cut!r:.80} of type {type(cut).__name__})"
        )
    record: dict[str, Any] = cut.to_dict()
    return record


def _completed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a cut with what follows from its decoded audio: times, channels and manifest."""
    recording = record.get("recording")
    found: dict[str, Any] = {"start": 0, "supervisions": []}
    if isinstance(recording, dict) and isinstance(recording.get(DATA), tuple):
        samples, rate = _checked_audio(record["id"], recording[DATA])
        channels = list(range(samples.shape[1])) if samples.ndim > 1 else [0]
        recording = {
            "id": record["id"],
            "sources": [],
            "sampling_rate": int(rate),
            "num_samples": len(samples),
            "duration": len(samples) / rate,
            "channel_ids": channels,
            **recording,
        }
        found["duration"] = recording["duration"]
        found["channel"] = channels if len(channels) > 1 else 0
        found["type"] = "MultiCut" if len(channels) > 1 else "MonoCut"
        found["recording"] = recording
    whole = {**found, **record}
    if "recording" in found:
        whole["recording"] = found["recording"]
    if lacking := [key for key in ("duration", "channel") if key not in whole]:
        raise UnwritableCut(
            f"cut {record['id']!r} lacks {' and '.join(map(repr, lacking))}: give a cut of Lhotse as a dict, "
            f'or audio as {{"id": ..., "recording": {{"data": (samples, rate)}}}}'
        )
    whole.setdefault("type", "MultiCut" if isinstance(whole["channel"], list) else "MonoCut")
    known = {key: whole[key] for key in _KEYS if key in whole and key != "type"}
    others = {key: value for key, value in whole.items() if key not in _KEYS}
    return {**known, **others, "type": whole["type"]}


def _checked_audio(name: str, value: tuple[Any, ...]) -> tuple[NDArray[Any], int]:
    """Return the samples and the rate of decoded audio."""
    match value:
        case (np.ndarray(ndim=1 | 2) as samples, int() | float() | np.number() as rate):
            if rate > 0 and float(rate).is_integer():
                return samples, int(rate)
    raise UnwritableCut(
        f"the recording of cut {name!r}: decoded audio is a tuple of an array of samples, of shape (frames,) "
        f"or (frames, channels), and its sampling rate, a whole number of 1 or more (got {value!r:.80})"
    )


def _entry(cut: Any, record: dict[str, Any], field: str, kind: str) -> tuple[Entry, dict[str, Any]]:
    """Return the entry of one field, and the cut with a placeholder in its place."""
    name = record["id"]
    held = record if field in _KEYS else record.get("custom") or {}
    if kind == "jsonl":
        line = {"cut_id": name, field: held[field]} if field in held else {"cut_id": name}
        return [("", json_line(line))], record
    manifest = held.get(field)
    if manifest is None:
        return [(f"{name}.nodata", b""), (f"{name}.nometa", b"")], record
    if not isinstance(manifest, dict):
        manifest = {DATA: manifest}
    if kind in AUDIO:
        placeholder = recording_placeholder(record, field, manifest)
        payload = audio_payload(loaded(cut, field, manifest), record, manifest, placeholder, kind=kind)
        suffix = kind
    else:
        placeholder = array_placeholder(record, field, manifest)
        payload = array_payload(loaded(cut, field, manifest), manifest, kind=kind)
        suffix = ARRAYS[kind]
    described = json.dumps(placeholder).encode() + b"\n"
    members = [(f"{name}.{suffix}", payload), (f"{name}.json", described)]
    return members, _with_placeholder(record, field, placeholder)


def _with_placeholder(record: dict[str, Any], field: str, placeholder: dict[str, Any]) -> dict[str, Any]:
    if field in _KEYS:
        return {**record, field: placeholder}
    custom = {**record["custom"], field: placeholder}
    if "sources" in placeholder:
        custom.pop(f"{field}_channel_selector", None)
    return {**record, "custom": custom}


def _cut_line(record: dict[str, Any], layout: SharLayout) -> bytes:
    """Return the line of a cut: it begins at 0, as its payloads have no more than the cut."""
    names = {field for field, _ in layout.fields}
    for held in (record, record.get("custom") or {}):
        for field, value in held.items():
            if field not in names and isinstance(value, dict) and DATA in value:
                raise UnwritableCut(
                    f"cut {record['id']!r} holds the payload of {field!r}, which fields= does not name: add "
                    f"it, or leave {field!r} out of the cut"
                )
    try:
        return json_line({**record, "start": 0})
    except (TypeError, ValueError) as error:
        raise UnwritableCut(f"cut {record['id']!r} cannot be JSON: {error}") from None
