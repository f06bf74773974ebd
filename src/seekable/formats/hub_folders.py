"""Folders of Hugging Face ``datasets``: their data files, in the order of records.

``Dataset.save_to_disk`` writes the data as streams of Arrow, names them in ``state.json`` in their order, and
describes the columns in ``dataset_info.json``. A cache folder has no such list: there are the files that a
builder made for each split, and beside them what ``map`` and ``filter`` have kept. Values are what the files
hold: a class is its number, an image or a piece of audio its bytes and its path.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._lazy import lazy
from seekable.errors import DataNotFound, UnsupportedFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.storage import paths
else:
    paths = lazy("seekable.storage.paths")

__all__ = ["data_files"]

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_DESCRIPTIONS = frozenset({_INFO, "dataset_infos.json", _SPLITS})
"""Names of files that describe data and hold none."""

_DATA = ".arrow"


class _DataFile(msgspec.Struct):
    """A file as the state of a dataset names it."""

    filename: str


def data_files(folder: str, names: Sequence[str]) -> Sequence[str]:
    """Return the data files of a folder, in the order of their records.

    Args:
        folder: any folder.
        names: its files of known suffixes, and those below it, in natural order.

    Raises:
        UnsupportedFormat: the folder holds several splits, or a choice of rows beside the data.
        DataNotFound: the state of the dataset names a file that is not there.

    Example:
        >>> data_files("/data", ["a.jsonl", "dataset_infos.json"])
        ['a.jsonl']
    """
    present = set(names)
    if _SPLITS in present:
        splits = _read(folder, _SPLITS).get("splits")
        some = list(splits) if isinstance(splits, list) else []
        message = (
            f"{folder!r} has the splits of a DatasetDict, {', '.join(map(repr, some))}: open one of them, as "
            f"{os.path.join(folder, str((some or ['train'])[0]))!r}"
        )
        raise UnsupportedFormat(message)
    if {_STATE, _INFO} <= present:
        return _saved(folder, present)
    if _INFO in present:
        splits = _read(folder, _INFO).get("splits")
        if isinstance(splits, dict) and (built := _built(folder, splits, names)):
            return built
    ends = tuple(_DESCRIPTIONS)
    return [name for name in names if not name.endswith(ends) or os.path.basename(name) not in _DESCRIPTIONS]


def _saved(folder: str, present: set[str]) -> list[str]:
    """Return the files of a dataset that was saved, as its state names them."""
    state = _read(folder, _STATE)
    for key, value in state.items():
        if key.startswith("_indices") and value:
            message = (
                f"{os.path.join(folder, _STATE)!r} keeps a choice of rows beside the data ({key}), as old "
                f"versions of datasets did: load the folder with datasets.load_from_disk, and save it again"
            )
            raise UnsupportedFormat(message)
    try:
        files = msgspec.convert(state.get("_data_files", []), list[_DataFile])
    except msgspec.ValidationError as error:
        raise _damaged(os.path.join(folder, _STATE), error) from None
    named = [file.filename for file in files]
    if not named:
        message = f"{os.path.join(folder, _STATE)!r} names no data file"
        raise DataNotFound(message)
    if missing := next((name for name in named if name not in present), None):
        message = (
            f"{os.path.join(folder, _STATE)!r} names {missing!r}, which is not in that folder: copy it again"
        )
        raise DataNotFound(message)
    return named


def _built(folder: str, splits: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the files of the one split that a builder wrote here; an empty list if there are none."""
    made: dict[str, list[str]] = {}
    for split in splits:
        is_of_split = re.compile(rf".+-{re.escape(split)}(-\d{{5}}-of-\d{{5}})?\{_DATA}").fullmatch
        made[split] = [name for name in names if os.sep not in name and is_of_split(name)]
    made = {split: files for split, files in made.items() if files}
    if len(made) > 1:
        globs = ", ".join(repr(os.path.join(folder, f"*-{split}*{_DATA}")) for split in made)
        message = (
            f"{folder!r} has several splits, {', '.join(map(repr, made))}: open one of them, with {globs}"
        )
        raise UnsupportedFormat(message)
    return next(iter(made.values()), [])


def _read(folder: str, name: str) -> dict[str, Any]:
    """Return the content of a JSON document.

    Raises:
        UnsupportedFormat: the file holds no JSON object.
    """
    path = os.path.join(folder, name)
    try:
        return msgspec.json.decode(paths.read_bytes(path), type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> UnsupportedFormat:
    message = f"{path!r}, which describes a dataset of Hugging Face, is damaged: {error}"
    return UnsupportedFormat(message)
