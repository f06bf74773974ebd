"""The journal of a run: what its owner changed while it ran, each change with the step from which it holds.

A journal is a tuple of entries, ordered by their steps. A run with one consists of *pieces*: the batch of a
step is made by the pipeline to which all entries up to that step are applied. In a state it is a list of
objects:

    [{"at": 1000, "steer": [9, 1], "mixture": 0, "position": 32000},
     {"at": 4000, "exclude": {"rows": 2, "files": [...]}, "fill": "replace"}]

``position`` is that of the step's first record, from which the weights count. It is fixed when the step
comes, because only then it is known: a batch size may change before.

In a folder of states a long list of rows is a file of its own, and the entry has ``{"rows": 50000, "digest":
"xxh3:..."}`` instead. The ``check`` of a state is the same with either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import structs

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import CorruptState, StateMismatch
from seekable.state.canonical import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seekable.state import excluded_rows
else:
    excluded_rows = lazy("seekable.state.excluded_rows")

__all__ = [
    "Entry",
    "Exclude",
    "Journal",
    "Steer",
    "added",
    "check_same_journal",
    "described_upto",
    "exclusions",
    "in_brief",
    "joined",
    "journal_document",
    "parse_journal",
    "placed",
    "steers",
    "unplaced",
    "without_steers",
]

_MOST = 1 << 63
"""Steps and positions are int64."""


class Steer(Value, frozen=True):
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
    def place(self) -> tuple[int, str, str]:
        """The key of the entry, of which there is one: the weights of a mixture at a step."""
        return (self.at, "steer", f"{self.mixture:09d}")

    @property
    def change(self) -> tuple[Any, ...]:
        """The change and its step, without the position that follows from it."""
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


class Exclude(Value, frozen=True):
    """Rows that are left out from a step on.

    Example:
        >>> import numpy as np
        >>> from seekable.state.excluded_rows import ExcludedFile, ExcludedRows
        >>> rows = ExcludedRows.of([(ExcludedFile("a.jsonl", "xxh3:1"), np.array([7, 3]))])
        >>> Exclude.parse(Exclude(1000, rows).document()) == Exclude(1000, rows)
        True
    """

    at: int
    """The first step without the rows."""

    rows: excluded_rows.ExcludedRows
    """The rows, by file."""

    fill: Literal["replace", "hole"] = "replace"
    """What comes in their places: other rows, or holes."""

    position: int | None = None
    """The slot of a stream at which the step begins; None for a dataset."""

    @property
    def place(self) -> tuple[int, str, str]:
        """The key of the entry, of which there is one: a list of rows at a step."""
        return (self.at, "exclude", f"{self.fill} {self.rows.digest}")

    @property
    def change(self) -> tuple[Any, ...]:
        """The change, and its step."""
        return self.place

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        place = {} if self.position is None else {"position": self.position}
        return {"at": self.at, "exclude": self.rows.document(), "fill": self.fill, **place}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Exclude:
        """Return the entry of a document.

        Raises:
            CorruptState: it is not what ``document`` returned, or has the digest of rows and not the rows.
        """
        fill, listed = document.get("fill"), document.get("exclude")
        if fill not in ("replace", "hole"):
            message = f"an entry of a journal has 'replace' or 'hole' as its 'fill' (got {fill!r:.100})"
            raise CorruptState(message)
        position = document.get("position")
        if not (position is None or _is_count(position)):
            message = f"an entry of a journal has a count as its 'position' (got {position!r:.100})"
            raise CorruptState(message)
        if isinstance(listed, dict) and "digest" in listed:
            message = (
                f"the rows that the journal leaves out lie in a file beside the state, and here is their "
                f"digest alone ({listed['digest']!r:.60}): load the folder, sk.load_state(folder, loader)"
            )
            raise CorruptState(message)
        rows = excluded_rows.ExcludedRows.from_document(listed)
        return cls(_step_of(document), rows, cast("Literal['replace', 'hole']", fill), position)

    def __str__(self) -> str:
        """Return what was changed from which step on."""
        fill = "" if self.fill == "replace" else f", fill={self.fill!r}"
        return f"exclude({len(self.rows)} rows of {len(self.rows.files)} files, at={self.at}{fill})"


Entry = Steer | Exclude
"""A change of a run."""

Journal = tuple[Entry, ...]
"""The changes of a run, ordered by their steps."""


def added(journal: Sequence[Entry], *entries: Entry) -> Journal:
    """Return a journal with more entries; equal ones are one, and of a mixture's at one step the last counts.

    Example:
        >>> journal = added((), Steer(9, (1, 1)), Steer(5, (1, 0)))
        >>> [entry.at for entry in added(journal, Steer(5, (0, 1)), Steer(9, (1, 1)))]
        [5, 9]
    """
    kept = {entry.place: entry for entry in (*journal, *entries)}
    return tuple(kept[key] for key in sorted(kept))


def steers(journal: Journal) -> tuple[Steer, ...]:
    """Return the entries with weights."""
    return tuple(entry for entry in journal if isinstance(entry, Steer))


def exclusions(journal: Journal) -> tuple[Exclude, ...]:
    """Return the entries with rows that are left out."""
    return tuple(entry for entry in journal if isinstance(entry, Exclude))


def placed(
    journal: Journal,
    position_of: Callable[[int], int],
    *,
    before: int | None = None,
    kinds: tuple[type[Entry], ...] = (Steer,),
) -> Journal:
    """Return a journal in which the entries of the steps before ``before``, or all, have positions.

    Args:
        journal: the entries; a position that is there stays.
        position_of: returns the position at which a step begins.
        before: the step; None for all entries.
        kinds: the entries that need one: of datasets those with weights alone.

    Example:
        >>> placed((Steer(5, (1, 0)), Steer(9, (1, 1))), lambda step: 32 * step, before=9)[0].position
        160
    """
    return tuple(
        structs.replace(entry, position=position_of(entry.at))
        if isinstance(entry, kinds) and entry.position is None and (before is None or entry.at < before)
        else entry
        for entry in journal
    )


def unplaced(journal: Journal, step: int) -> Journal:
    """Return a journal whose entries from a step on, which has not come, have no positions."""
    return tuple(structs.replace(entry, position=None) if entry.at >= step else entry for entry in journal)


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
    wrong = [str(entry) for change, entry in own_past.items() if change not in past]
    lacking = [str(entry) for change, entry in past.items() if own_past and change not in own_past]
    if wrong or lacking:
        raise StateMismatch(_differ(wrong, lacking, step))
    coming = {entry.place: entry for entry in saved if entry.at >= step}
    for entry in own:
        other = coming.get(entry.place, entry)
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
    return position if all(entry.position is None for entry in steers(journal)) else None


def without_steers(journal: Journal) -> str:
    """Return the line of the log for a run that goes on by rows, where steers do not hold any more."""
    texts = ", ".join(map(str, steers(journal)))
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


def in_brief(document: Any, *, most: int = 0) -> Any:
    """Return a journal, as JSON has it, with digests in the place of long lists of rows.

    Args:
        document: the journal.
        most: the most rows that stay in an entry.
    """
    if not isinstance(document, list):
        return document
    brief = []
    for entry in document:
        listed = entry.get("exclude") if isinstance(entry, dict) else None
        if isinstance(listed, dict) and "files" in listed and listed.get("rows", 0) > most:
            brief.append({**entry, "exclude": {"rows": listed["rows"], "digest": fingerprint_of(listed)}})
        else:
            brief.append(entry)
    return brief


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
    if "exclude" in document:
        return Exclude.parse(document)
    if "steer" not in document:
        message = (
            f"an entry of a journal has 'at', and 'steer' or 'exclude' (got {document!r:.100}): it was "
            f"written by a newer seekable, or by another program"
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
