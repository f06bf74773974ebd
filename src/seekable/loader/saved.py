"""Saved states read again, without the pipeline that they are of."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, DataNotFound
from seekable.loader.whereabouts import whereabouts_name
from seekable.state.canonical import fingerprint_of
from seekable.state.description_text import Description
from seekable.state.generations import Generation, generations
from seekable.state.stream import State, StreamState, merged, parse_state

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Saved", "description_name", "generations_in", "read_generation", "read_json", "read_saved"]


@dataclass(frozen=True, slots=True)
class Saved:
    """What lies in a folder of states, or what one file of it holds."""

    path: str
    """The file, or the folder of the generation."""

    state: State | None
    """The state; None of a description alone."""

    description: Mapping[str, Any] | None
    """The description of the pipeline, if the state carries one or one lies beside it."""

    noted: Mapping[str, Any] | None
    """Where its files were, if that lies beside the state; see `seekable.loader.whereabouts`."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the pipeline."""
        return self.state.fingerprint if self.state else fingerprint_of(self.description)


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """Return what was saved: the newest complete generation of a folder, a state file, or a description.

    Raises:
        DataNotFound: there is nothing, or the folder has no complete generation.
        CorruptState: it cannot be read, or is something else.
    """
    path = os.path.abspath(path)
    if os.path.isdir(path):
        complete = [generation for generation in generations_in(path) if generation.complete]
        if not complete:
            message = f"there is no complete saved state in {path!r}: sk.save_state writes them"
            raise DataNotFound(message)
        return _beside(path, path, read_generation(path, complete[-1]))
    if not os.path.exists(path):
        message = f"there is no {path!r}: a state is a file, or a folder that sk.save_state wrote into"
        raise DataNotFound(message)
    document, folder = read_json(path), os.path.dirname(path)
    if "kind" in document:
        return Saved(path, None, document, _read_if_there(folder, whereabouts_name(fingerprint_of(document))))
    return _beside(path, folder, _parsed(document, path))


def generations_in(folder: str) -> list[Generation]:
    """Return the generations of states in a folder, oldest first; none where there is no such folder."""
    return generations(os.listdir(folder)) if os.path.isdir(folder) else []


def read_generation(folder: str, generation: Generation) -> State:
    """Return the state that all ranks' files of one step hold; of a stream, the one that they make together.

    Raises:
        CorruptState: one of the files cannot be read, or they differ.
    """
    states = {name: read_json(os.path.join(folder, name)) for name in generation.names}
    first, *others = states
    if len(states) > 1 and "lanes" in states[first]:
        shares = {name: _parsed(state, os.path.join(folder, name)) for name, state in states.items()}
        return merged({name: share for name, share in shares.items() if isinstance(share, StreamState)})
    for other in others:
        if states[other] != states[first]:
            message = (
                f"the ranks' states of step {generation.step} in {folder} differ ({first} and {other}): they "
                f"came to it by different ways; remove the files of this step to resume from the one before"
            )
            raise CorruptState(message)
    return _parsed(states[first], os.path.join(folder, first))


def read_json(path: str) -> dict[str, Any]:
    """Return the object that a file of JSON holds.

    Raises:
        CorruptState: it holds something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except ValueError as error:
        message = f"{path} is not JSON ({error}): remove it to resume from the state before"
        raise CorruptState(message) from error
    if not isinstance(document, dict):
        message = f"{path} holds no object but a {type(document).__name__}: remove it to use the state before"
        raise CorruptState(message)
    return document


def description_name(fingerprint: str) -> str:
    """Return the file name of the description of the pipeline with this fingerprint.

    Example:
        >>> description_name("xxh3:0123")
        'pipeline-0123.json'
    """
    return f"pipeline-{fingerprint.rpartition(':')[2]}.json"


def _beside(path: str, folder: str, state: State) -> Saved:
    description = _read_if_there(folder, description_name(state.fingerprint))
    if description is None and state.pipeline is not None:
        description = dict(Description.parse(state.pipeline).tree)
    return Saved(path, state, description, _read_if_there(folder, whereabouts_name(state.fingerprint)))


def _read_if_there(folder: str, name: str) -> dict[str, Any] | None:
    path = os.path.join(folder, name)
    return read_json(path) if os.path.exists(path) else None


def _parsed(document: Mapping[str, Any], path: str) -> State:
    try:
        return parse_state(document)
    except CorruptState as error:
        message = f"{path}: {error}"
        raise CorruptState(message) from error
