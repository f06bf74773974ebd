"""Ranks the records of a batch by how unusual they are among rows of the same source."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count
from seekable.errors import CorruptRecord
from seekable.viewer.facts.named_sources import sources_of
from seekable.viewer.facts.reading import read_pieces, read_sample, sample_rows
from seekable.viewer.facts.token_counts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node

MEASURES = ("bytes", "compressed", "letters", "distinct characters")
"""A text's bytes as UTF-8, the share that zlib leaves, its share of letters, its distinct characters."""

_NO_TEXT = -1
_SAMPLES = 4
_LOOKED_AT = 100_000
"""The positions whose sources are looked up to find rows of each source."""


@dataclass(frozen=True, slots=True)
class Oddness:
    """The measures of each record in a batch, and their percentiles among rows of its source."""

    positions: Int64s
    sources: Int64s
    values: NDArray[np.float64]
    """A row for each record, a column for each of MEASURES; NaN for a corrupt record."""
    percentiles: NDArray[np.float64]
    """As ``values``, 0 to 100: the share of the rows below it and half of those like it."""
    compared_with: Int64s
    """The number of rows of the same source that each record is compared with."""
    same_text_at: Int64s
    """The first position within the steps around that has the same text; -1 if none has."""
    done: int
    """The number of steps around whose texts were compared."""
    of: int
    made_of: str

    def order(self) -> Int64s:
        """Return the indices of the records, the oddest first.

        Records whose text comes twice are first, then those with the most extreme percentile of any measure;
        equals are sorted by how extreme all of their percentiles are.
        """
        # A record that is compared with nothing is not odd. One without measures is: it cannot be read.
        ends = np.abs(np.nan_to_num(self.percentiles, nan=50.0) - 50)
        ends[np.isnan(self.values[:, 0])] = 50.0
        return np.lexsort(
            (self.positions, -ends.sum(axis=1), -ends.max(axis=1, initial=0), self.same_text_at < 0)
        )

    def document(self) -> dict[str, Any]:
        """Return all records, the oddest first, JSON-safe: None for what a corrupt record lacks."""
        records = []
        for number in self.order().tolist():
            cells = zip(
                MEASURES, self.values[number].tolist(), self.percentiles[number].tolist(), strict=True
            )
            same = int(self.same_text_at[number])
            records.append(
                {
                    "position": int(self.positions[number]),
                    "source": int(self.sources[number]),
                    "compared_with": int(self.compared_with[number]),
                    "same_text_at": None if same < 0 else same,
                    "measures": {
                        name: None
                        if np.isnan(value)
                        else {"value": value, "percentile": None if np.isnan(percentile) else percentile}
                        for name, value, percentile in cells
                    },
                }
            )
        return {"records": records, "done": self.done, "of": self.of, "made_of": self.made_of}


def usual(
    node: Node,
    sources: Iterable[int],
    *,
    sample: int = 1000,
    seed: int = 0,
    text_key: str | None = None,
) -> dict[int, NDArray[np.float64]]:
    """Return the measures of sampled rows, for each source an array of shape (rows, MEASURES).

    A rare source has fewer rows, and many sources share four samples of rows.

    Args:
        node: the pipeline.
        sources: indices in ``source_names``.
        sample: the most rows of each source, from positions drawn by ``seed``.
        seed: which sample.
        text_key: the field that is measured; None for the longest text of each record.

    Raises:
        InvalidArgument: a number is negative.
    """
    checked_count("sample", sample, least=0)
    drawn = sample_rows(_LOOKED_AT if node.size is None else node.size, _LOOKED_AT, seed)
    owners = sources_of(node, drawn)
    found, wanted = {}, list(sources)
    each = min(sample, max(1, _SAMPLES * sample // max(1, len(wanted))))
    for source in wanted:
        rows = drawn[owners == source][:each]
        pieces = [
            _measured([_text(record, text_key) for record in some]) for _, some in read_pieces(node, rows)
        ]
        among = np.concatenate([np.empty((0, len(MEASURES))), *pieces])
        found[source] = among[~np.isnan(among[:, 0])]
    return found


def odd(
    node: Node,
    positions: Int64s,
    among: Mapping[int, NDArray[np.float64]],
    *,
    steps: int = 10,
    text_key: str | None = None,
) -> Iterator[Oddness]:
    """Yield the oddness of one batch: its measures first, then again after each step around it.

    Args:
        node: the pipeline; its records are read as it makes them, so functions of the user run.
        positions: those of the batch, ascending, int64.
        among: what ``usual`` returned for the sources of the batch.
        steps: how many batches before and after it are searched for the same texts.
        text_key: as that of ``usual``.

    Raises:
        InvalidArgument: ``steps`` is negative.

    Example:
        >>> import seekable as sk
        >>> lines = sk.from_sequence(["a b c", "d e f", "g h i", "x" * 100])
        >>> *_, last = odd(lines._node, np.arange(4), usual(lines._node, [0]))
        >>> last.order().tolist()[0], float(last.percentiles[3, 0])
        (3, 87.5)
    """
    checked_count("steps", steps, least=0)
    sources = sources_of(node, positions)
    texts = [_text(record, text_key) for record in read_sample(node, positions)]
    values = _measured(texts)
    percentiles = np.full_like(values, np.nan)
    compared = np.zeros(positions.size, dtype=np.int64)
    for source in np.unique(sources).tolist():
        here = sources == source
        compared[here] = len(among[source])
        percentiles[here] = _percentiles(values[here], among[source])
    around = _batches_around(node, positions, steps)
    same, first_at = _repeated(positions, texts)
    made_of = f"percentiles among {_range(compared.tolist())} rows of the same source"
    for done in range(len(around) + 1):
        if done:
            begin, end = around[done - 1]
            beside = np.arange(begin, end, dtype=np.int64)
            for position, record in zip(beside.tolist(), read_sample(node, beside), strict=True):
                for number in first_at.get(_text(record, text_key) or "", ()):
                    if same[number] < 0:
                        same[number] = position
        yield Oddness(
            positions, sources, values, percentiles, compared, same.copy(), done, len(around), made_of
        )


def _batches_around(node: Node, positions: Int64s, steps: int) -> list[tuple[int, int]]:
    """Return the batches before and after one, the nearest first, cut where the epoch of ``node`` ends."""
    if not positions.size:
        return []
    start, stop = int(positions[0]), int(positions[-1]) + 1
    batch, out = positions.size, []
    for away in range(1, steps + 1):
        for begin in (start - away * batch, stop + (away - 1) * batch):
            end = begin + batch if node.size is None or stop > node.size else min(begin + batch, node.size)
            if max(begin, 0) < end:
                out.append((max(begin, 0), end))
    return out


def _repeated(positions: Int64s, texts: list[str | None]) -> tuple[Int64s, dict[str, list[int]]]:
    """Return where else in the batch each text comes, and the indices of the records with each text."""
    numbers: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text:
            numbers.setdefault(text, []).append(number)
    same = np.full(positions.size, _NO_TEXT, dtype=np.int64)
    for alike in numbers.values():
        if len(alike) > 1:
            same[alike] = positions[alike[0]]
            same[alike[0]] = positions[alike[1]]
    return same, numbers


def _text(record: Any, key: str | None) -> str | None:
    """Return the text that is measured: the longest, or all that is nested; None for a corrupt record."""
    if isinstance(record, CorruptRecord):
        return None
    text = text_of(record, key)
    if text is not None:
        return text
    found: list[str] = []
    waiting = [record]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, bytes):
            found.append(value.decode("latin-1"))
        elif isinstance(value, dict):
            waiting.extend(reversed(list(value.values())))
        elif isinstance(value, list | tuple):
            waiting.extend(reversed(value))
    return "\n".join(found) if found else repr(record)


def _range(numbers: list[int]) -> str:
    least, most = min(numbers, default=0), max(numbers, default=0)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _measured(texts: list[str | None]) -> NDArray[np.float64]:
    rows = [_measures(text) if text is not None else (np.nan,) * len(MEASURES) for text in texts]
    return np.array(rows, dtype=np.float64).reshape(-1, len(MEASURES))


def _measures(text: str) -> tuple[float, ...]:
    data = text.encode("utf-8", "surrogatepass")
    if not data:
        return 0.0, 1.0, 0.0, 0.0
    if len(data) == len(text):
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=128)
        letters = counts[65:91].sum() + counts[97:123].sum()
        distinct = float(np.count_nonzero(counts))
    else:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        which, times = np.unique(codes, return_counts=True)
        letters = times[[chr(code).isalpha() for code in which.tolist()]].sum()
        distinct = float(which.size)
    return (
        float(len(data)),
        len(zlib.compress(data, 1)) / len(data),
        float(letters) / len(text),
        float(distinct),
    )


def _percentiles(values: NDArray[np.float64], among: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.full_like(values, np.nan)
    if not len(among):
        return out
    for column in range(values.shape[1]):
        ascending = np.sort(among[:, column])
        below = np.searchsorted(ascending, values[:, column], side="left")
        up_to = np.searchsorted(ascending, values[:, column], side="right")
        out[:, column] = 50.0 * (below + up_to) / len(among)
    out[np.isnan(values)] = np.nan
    return out
