"""The journal of a run: what its owner changed while it ran, each change with the step from which it holds.

A journal is a tuple of entries, ordered by their steps. A run with one consists of *pieces*: the batch of a
step is made by the pipeline to which all entries up to that step are applied. In a state it is a list of
objects:

    [{"at": 1000, "steer": [9, 1], "mixture": 0, "position": 32000}, {"at": 4000, "steer": [1, 1], ...}]

``position`` is that of the step's first record, from which the weights count. It is fixed when the step
comes, because only then it is known: a batch size may change before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState, StateMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Entry",
    "Journal",
    "Steer",
    "added",
    "check_same_journal",
    "described_upto",
    "joined",
    "journal_document",
    "parse_journal",
    "placed",
    "unplaced",
    "without_steers",
]

_MOST = 1 << 63
"""Steps and positions are int64."""


@dataclass(frozen=True, slots=True)
class Steer:
    """Other weights of a mixture, from a step on.

    Example:
        >>> entry = Steer(1000, (9, 1))
        >>> Steer.parse(entry.document()) == entry
        True
    """

    at: int
    """The first step with these weights."""

    weights: tuple[int, ...]
    """Integers, one for each part of the mixture in its order."""

    mixture: int = 0
    """The number of the mixture among those without end, counted from the top of the pipeline."""

    position: int | None = None
    """The position, or the slot of a stream, at which the step begins; None until it has come."""

    @property
    def change(self) -> tuple[Any, ...]:
        """What the entry changes and when, without the position that follows from it."""
        return (self.at, "steer", self.mixture, self.weights)

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        place = {} if self.position is None else {"position": self.position}
        return {"at": self.at, "steer": list(self.weights), "mixture": self.mixture, **place}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Steer:
        """Return the entry of a document.

        Raises:
            CorruptState: it is not what ``document`` returned.
        """
        weights: Any = document.get("steer")
        mixture: Any = document.get("mixture")
        if (
            not isinstance(weights, list)
            or not weights
            or not all(map(_is_count, weights))
            or not any(weights)
        ):
            message = f"an entry of a journal has integer weights as its 'steer' (got {weights!r:.100})"
            raise CorruptState(message)
        position = document.get("position")
        if not _is_count(mixture) or not (position is None or _is_count(position)):
            message = f"an entry of a journal has counts as 'mixture' and 'position' (got {document!r:.100})"
            raise CorruptState(message)
        return cls(_step_of(document), tuple(weights), mixture, position)

    def __str__(self) -> str:
        """Return what was changed from which step on."""
        return f"steer(at={self.at}, weights={list(self.weights)}, mixture={self.mixture})"


Entry = Steer
"""A change of a run."""

Journal = tuple[Entry, ...]
"""The changes of a run, ordered by their steps."""


def added(journal: Sequence[Entry], *entries: Entry) -> Journal:
    """Return a journal with more entries; equal ones are one, and the last one of a mixture at a step counts.

    Example:
        >>> journal = added((), Steer(9, (1, 1)), Steer(5, (1, 0)))
        >>> [entry.at for entry in added(journal, Steer(5, (0, 1)), Steer(9, (1, 1)))]
        [5, 9]
    """
    kept = {(entry.at, entry.mixture): entry for entry in (*journal, *entries)}
    return tuple(kept[key] for key in sorted(kept))


def placed(journal: Journal, position_of: Callable[[int], int], *, before: int) -> Journal:
    """Return a journal in which the entries of the steps before ``before`` have positions.

    Args:
        journal: the entries; a position that is there stays.
        position_of: returns the position at which a step begins.
        before: the step.

    Example:
        >>> placed((Steer(5, (1, 0)), Steer(9, (1, 1))), lambda step: 32 * step, before=9)[0].position
        160
    """
    return tuple(
        replace(entry, position=position_of(entry.at))
        if entry.at < before and entry.position is None
        else entry
        for entry in journal
    )


def unplaced(journal: Journal, step: int) -> Journal:
    """Return a journal whose entries from a step on, which has not come, have no positions."""
    return tuple(replace(entry, position=None) if entry.at >= step else entry for entry in journal)


def joined(own: Journal, saved: Journal, step: int) -> Journal:
    """Return the journal of a loader that goes on from a state.

    Entries before the state's step belong to the run that was saved: a loader that has some has just these,
    and one that has none takes them over. Later ones are put together.

    Args:
        own: the journal of the loader.
        saved: that of the state.
        step: the step of the state.

    Raises:
        StateMismatch: entries before the step differ, or later ones give a mixture different weights at one
            step; the message names them.

    Example:
        >>> [entry.at for entry in joined((Steer(9, (1, 1)),), (Steer(5, (1, 0), position=7),), 8)]
        [5, 9]
    """
    past = {entry.change: entry for entry in saved if entry.at < step}
    own_past = {entry.change: entry for entry in own if entry.at < step}
    wrong = [str(entry) for change, entry in own_past.items() if not _same_place(entry, past.get(change))]
    lacking = [str(entry) for change, entry in past.items() if own_past and change not in own_past]
    if wrong or lacking:
        raise StateMismatch(_differ(wrong, lacking, step))
    coming = {(entry.at, entry.mixture): entry for entry in saved if entry.at >= step}
    for entry in own:
        other = coming.get((entry.at, entry.mixture), entry)
        if entry.at >= step and entry.change != other.change:
            message = (
                f"the loader has {entry} in its journal, and the state has {other}: make the loader with one "
                f"of them, journal=state['journal'] for that of the state"
            )
            raise StateMismatch(message)
    later = [entry for entry in own if entry.at >= step]
    return unplaced(added((), *past.values(), *coming.values(), *later), step)


def described_upto(position: int, journal: Journal) -> int | None:
    """Return the position up to which the fingerprint of a state says what a schedule of weights is.

    A run that was steered may have come further in a mixture below another one than its plain pipeline says.
    So all of a schedule counts there, and None is returned.
    """
    return position if all(entry.position is None for entry in journal) else None


def without_steers(journal: Journal) -> str:
    """Return the line of the log for a run that goes on by rows, where steers do not hold any more."""
    texts = ", ".join(map(str, journal))
    return f"resume: the weights are those of the new pipeline: {texts} of the state's journal are left out"


def check_same_journal(name: str, journal: Any, other: str, others: Any) -> None:
    """Compare the journals of the states of two ranks, as JSON has them.

    Raises:
        CorruptState: they differ; the message names the entries that one of them lacks.
    """
    if journal != others:
        here, there = parse_journal(journal or []), parse_journal(others or [])
        texts = [f"{name} has {entry}" for entry in here if entry not in there]
        texts += [f"{other} has {entry}" for entry in there if entry not in here]
        message = (
            f"the ranks were steered differently: {', '.join(texts)}, and the other has not. Each rank is to "
            f"call steer with the same arguments; remove the files of this step to resume from the one before"
        )
        raise CorruptState(message)


def journal_document(journal: Journal) -> list[dict[str, Any]]:
    """Return the entries as new JSON-safe dicts."""
    return [entry.document() for entry in journal]


def parse_journal(document: Any) -> Journal:
    """Return the journal of a document.

    Raises:
        CorruptState: it is not what ``journal_document`` returned.

    Example:
        >>> parse_journal([{"at": 5, "steer": [1, 0], "mixture": 0}])
        (Steer(at=5, weights=(1, 0), mixture=0, position=None),)
    """
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        message = f"a journal is a list of objects (got {document!r:.100})"
        raise CorruptState(message)
    return added((), *(_parsed(entry) for entry in document))


def _parsed(document: Mapping[str, Any]) -> Entry:
    if "steer" not in document:
        message = (
            f"an entry of a journal has 'at' and 'steer' (got {document!r:.100}): it was written by a newer "
            f"seekable, or by another program"
        )
        raise CorruptState(message)
    return Steer.parse(document)


def _step_of(document: Mapping[str, Any]) -> int:
    at: Any = document.get("at")
    if not _is_count(at):
        message = f"an entry of a journal has a step as its 'at' (got {at!r:.100})"
        raise CorruptState(message)
    return int(at)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _same_place(own: Entry, saved: Entry | None) -> bool:
    """Return True if an entry is that of a state, and does not say another position."""
    return saved is not None and own.position in (None, saved.position)


def _differ(wrong: Sequence[str], lacking: Sequence[str], step: int) -> str:
    texts = []
    if wrong:
        texts.append(f"the loader has {', '.join(wrong)}, which the state has not")
    if lacking:
        texts.append(f"the state has {', '.join(lacking)}, which the loader has not")
    return (
        f"the journals differ before step {step}, where the state was taken: {'; '.join(texts)}. Load it "
        f"into a loader without journal=, which takes the journal of the state"
    )
