"""From members to samples: which members make one record, by their names.

The rule is that of WebDataset: the folder and the basename up to its first dot are the key, what follows is
the field, and consecutive members of one key are a sample. It differs in three points: basenames that begin
with a dot are left out (macOS adds ``._name`` beside a file), hard links have the payload of their target,
and members of one key that are not adjacent are an error, where WebDataset delivers parts of the sample as
samples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import compress, repeat
from operator import ne
from typing import TYPE_CHECKING, Literal, TypeVar, final

import numpy as np

from seekable.errors import UnsupportedFormat
from seekable.index.digest import text_key_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tar.walk import Members, Walk

__all__ = ["SampleRule", "Samples", "group_samples", "split_name"]

_META = re.compile(rb"__[^/]*__(?:$|/)")


@final
@dataclass(frozen=True, slots=True)
class SampleRule:
    """The rule by which the names of members decide which members make a sample."""

    split: Literal["first", "last"] = "first"
    """The dot of the basename that ends the key."""

    adjacent: bool = True
    """False: members of one key are one sample wherever they lie, ``group="key"``."""

    pairs: bool = False
    """True: each two members are a sample, split at their last dots, as in Lhotse Shar."""


def split_name(name: bytes, rule: SampleRule) -> tuple[bytes, bytes] | None:
    """Return the key and the field of a member, the field in its own case; None if it is part of no sample.

    Example:
        >>> split_name(b"d.x/a.b.JPG", SampleRule()), split_name(b"d.x/a.b.JPG", SampleRule(split="last"))
        ((b'd.x/a', b'b.JPG'), (b'd.x/a.b', b'JPG'))
        >>> [split_name(name, SampleRule()) for name in (b"__meta__", b"d/._a.jpg", b"README")]
        [None, None, None]
    """
    base = name.rfind(b"/") + 1
    if rule.pairs:
        dot = name.rfind(b".", base)
        return (name[:dot], name[dot + 1 :]) if dot > base else None
    if name.startswith(b"__") and _META.match(name):
        return None
    dot = name.find(b".", base) if rule.split == "first" else name.rfind(b".", base)
    if dot <= base or name[base] == ord("."):
        return None
    return name[:dot], name[dot + 1 :]


_MOST_FIELDS = 1 << 16
_RESERVED = frozenset({"__key__", "__url__", "__local_path__"})
_MANY_FIELDS = 64
_RARE_MEMBERS = 4
"""Fields are suspect if there are more than `_MANY_FIELDS`, with fewer members than this each."""

_FIRST_CHECK = 4096
"""The samples after which keys that come again are looked for; then each time that samples have doubled."""

_NO_PREFIX = b"\0"
"""No name begins so."""

_DOTS = "if the ids of samples hold dots, open it with format=sk.formats.Tar(splitname='last')"

_Number = TypeVar("_Number", bound=np.generic)
_Grouped = tuple["list[int] | NDArray[np.int64]", list[bytes], "list[int] | NDArray[np.int64]", list[int]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """The samples of an archive, in the order of their first members."""

    starts: NDArray[np.uint64]
    """The offset of each sample's first extended header, and that of the end mark: ``n + 1`` numbers."""

    first_members: NDArray[np.int64]
    """The number of each sample's first member, and the number of members: ``n + 1`` numbers."""

    key_hashes: NDArray[np.uint64]
    """The hash of each key, as `seekable.index.digest.key_hash` of its text."""

    payloads: NDArray[np.uint64]
    """The offset of each member's payload, sample by sample. That of a hard link lies outside its sample."""

    sizes: NDArray[np.uint64]
    """The number of bytes of each payload."""

    fields: NDArray[np.uint16]
    """The field of each member: a number into ``field_names``."""

    field_names: tuple[str, ...]
    """The fields, in the order in which they come first; bytes that are not UTF-8 are surrogates."""

    header_digest: int
    """The digest of the headers of the archive, see `Walk.header_digest`."""

    warnings: tuple[str, ...]
    """Texts about what is allowed and may not be meant."""


def group_samples(members: Walk, rule: SampleRule, *, path: str) -> Samples:
    """Return the samples of an archive: walk over it, and group its members.

    Args:
        members: the walk, of which nothing was taken.
        rule: which members make a sample.
        path: the name of the archive in errors and warnings.

    Raises:
        UnsupportedFormat: the archive is damaged, or its members make no samples under the rule: those of
            one key are not adjacent, a field comes twice in a sample, a pair is incomplete. The message names
            the file and the offsets, and says what to do.
    """
    grouping = _Grouping(rule, path)
    for run in members:
        grouping.add(run)
    assert members.end is not None, "a walk whose last run was taken has an end"
    return grouping.samples(members, members.end)


@final
class _Grouping:
    """Samples in the making: runs of members are added, in order."""

    def __init__(self, rule: SampleRule, path: str) -> None:
        self._rule = rule
        self._path = path
        self._numbers: dict[bytes, int] = {}
        """The number of each field, by its name in every case of letters that was met."""
        self._names: dict[str, int] = {}
        self._seen_in: list[int] = []
        """By field, the last sample that has it."""
        self._key = b""
        """The key of the last sample."""
        self._begin = 0
        """The offset of the last sample."""
        self._half: int | None = None
        """The field of the first member of a pair whose second member did not come yet."""
        self._early_keys: list[bytes] = []
        """The keys up to the first check, for messages."""
        self._checked = 0
        self._samples = 0
        self._members = 0
        self._left_out = 0
        self._starts: list[NDArray[np.uint64]] = []
        self._firsts: list[NDArray[np.int64]] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._payloads: list[NDArray[np.uint64]] = []
        self._sizes: list[NDArray[np.uint64]] = []
        self._fields: list[NDArray[np.uint16]] = []

    def add(self, run: Members) -> None:
        """Add the members that follow those of the last call."""
        grouped = self._paired(run) if self._rule.pairs else self._usual(run) or self._grouped(run)
        rows, keys, fields, left_out = grouped
        payloads, sizes = run.payloads, run.sizes
        if left_out:
            payloads, sizes = np.delete(payloads, left_out), np.delete(sizes, left_out)
        first = np.asarray(rows, np.int64)
        self._starts.append(run.starts[first])
        self._firsts.append(self._members + first - np.searchsorted(left_out, first))
        self._hashes.append(text_key_hashes(keys))
        self._payloads.append(payloads)
        self._sizes.append(sizes)
        self._fields.append(np.asarray(fields, np.uint16))
        self._members += len(fields)
        self._samples += len(keys)
        self._left_out += len(left_out)
        if not self._checked:
            self._early_keys += keys
        if self._samples > max(_FIRST_CHECK, 2 * self._checked):
            self._check_adjacent(self._samples - 1)  # The last sample may have more members.

    def samples(self, members: Walk, end: int) -> Samples:
        """Return the samples, all members having been added."""
        if self._half is not None:
            raise self._unpaired(f"{_shown(self._key)} at byte {self._begin} has one member")
        self._check_adjacent(self._samples)
        starts, hashes = _joined(self._starts, np.uint64), _joined(self._hashes, np.uint64)
        firsts = np.append(_joined(self._firsts, np.int64), self._members)
        payloads, sizes = _joined(self._payloads, np.uint64), _joined(self._sizes, np.uint64)
        fields = _joined(self._fields, np.uint16)
        if not self._rule.adjacent:
            runs, order, firsts = _by_key(hashes, np.diff(firsts))
            starts, hashes = starts[runs], hashes[runs]
            payloads, sizes, fields = payloads[order], sizes[order], fields[order]
            self._check_once(starts, firsts, payloads, fields)
        warnings = (*members.warnings, *self._warnings())
        starts = np.append(starts, np.uint64(end))
        names = tuple(self._names)
        return Samples(
            starts, firsts, hashes, payloads, sizes, fields, names, members.header_digest, warnings
        )

    def _usual(self, run: Members) -> _Grouped | None:
        """Return what `_grouped` does, several times as fast; None if a name is unusual or would be an error.

        Usual names have a field that came before, and neither their basenames nor their folders begin with a
        dot. Fields have no slash, so one that is known ends at the dot of the basename.
        """
        joined = b"\n%b" % b"\n".join(run.names)
        if b"" in self._numbers or b"/." in joined or b"\n." in joined or b"\n__" in joined:
            return None
        split = bytes.partition if self._rule.split == "first" else bytes.rpartition
        keys, _, suffixes = zip(*[split(name, b".") for name in run.names], strict=True)
        fields = np.fromiter(map(self._numbers.get, suffixes, repeat(-1)), np.int64, len(keys))
        begins = np.fromiter(map(ne, keys, (self._key, *keys)), np.bool_, len(keys))
        begins[0] |= not self._samples
        samples = begins.cumsum() + (self._samples - 1)
        places = np.sort(samples * _MOST_FIELDS + fields)
        continued = fields[samples == self._samples - 1].tolist()
        if (
            fields.min() < 0
            or (places[1:] == places[:-1]).any()
            or any(self._seen_in[field] == self._samples - 1 for field in continued)
        ):
            return None
        for field in fields[samples == samples[-1]].tolist():
            self._seen_in[field] = int(samples[-1])
        rows = begins.nonzero()[0]
        if rows.size:
            self._key, self._begin = keys[-1], int(run.starts[rows[-1]])
        return rows, list(compress(keys, begins)), fields, []

    def _grouped(self, run: Members) -> _Grouped:
        """Return the rows of first members, their keys, the fields of members, and the rows left out."""
        rows: list[int] = []
        keys: list[bytes] = []
        fields: list[int] = []
        left_out: list[int] = []
        numbers, seen_in, sample = self._numbers, self._seen_in, self._samples - 1
        prefix = _prefix(self._key) if sample >= 0 else _NO_PREFIX
        for row, name in enumerate(run.names):
            # A known field has no slash: with the prefix before it, the member is of the same sample.
            field = numbers.get(name[len(prefix) :], -1) if name.startswith(prefix) else -1
            if field < 0:
                if (parts := split_name(name, self._rule)) is None:
                    left_out.append(row)
                    continue
                key, suffix = parts
                if (field := numbers.get(suffix, -1)) < 0:
                    field = self._new_field(suffix, name, int(run.starts[row]))
                if sample < 0 or key != self._key:
                    self._key, prefix = key, _prefix(key)
                    sample += 1
                    rows.append(row)
                    keys.append(key)
                    self._begin = int(run.starts[row])
            if seen_in[field] == sample:
                raise self._twice(name, int(run.starts[row]))
            seen_in[field] = sample
            fields.append(field)
        return rows, keys, fields, left_out

    def _paired(self, run: Members) -> _Grouped:
        """Return what `_grouped` does; each two members are a sample, and none is left out."""
        rows: list[int] = []
        keys: list[bytes] = []
        fields: list[int] = []
        for row, (name, at) in enumerate(zip(run.names, run.starts.tolist(), strict=True)):
            if (parts := split_name(name, self._rule)) is None:
                raise self._unpaired(f"the name {_shown(name)} at byte {at} has no suffix")
            key, suffix = parts
            if (field := self._numbers.get(suffix, -1)) < 0:
                field = self._new_field(suffix, name, at)
            if self._half is None:
                self._key, self._begin, self._half = key, at, field
                rows.append(row)
                keys.append(key)
            elif key != self._key:
                pair = f"{_shown(self._key)} at byte {self._begin}"
                raise self._unpaired(f"{pair} has one member, and {_shown(name)} at byte {at} is behind it")
            elif field == self._half:
                raise self._twice(name, at)
            else:
                self._half = None
            fields.append(field)
        return rows, keys, fields, []

    def _new_field(self, suffix: bytes, name: bytes, at: int) -> int:
        """Return the number of a field that comes for the first time, in these letters at least."""
        text = suffix.decode("utf-8", "surrogateescape")
        text = text if self._rule.pairs else text.lower()
        number = self._numbers[suffix] = self._names.setdefault(text, len(self._names))
        what = f"{self._path}: byte {at}: the member {_shown(name)} would be"
        if text in _RESERVED:
            raise UnsupportedFormat(
                f"{what} the field {text!r}, a name that records have another use for; rename it"
            )
        if number >= _MOST_FIELDS:
            raise UnsupportedFormat(f"{what} in field {number + 1}, and {_MOST_FIELDS} are the most; {_DOTS}")
        if number == len(self._seen_in):
            self._seen_in.append(-1)
        return number

    def _check_adjacent(self, count: int) -> None:
        """Raise `UnsupportedFormat` if a sample has the key of an earlier one and other fields."""
        if not self._rule.adjacent or self._rule.pairs:
            return
        hashes = _joined(self._hashes, np.uint64)[:count]
        order = np.argsort(hashes, kind="stable")
        again = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        if again.size:
            firsts, fields = (
                np.append(np.concatenate(self._firsts), self._members),
                np.concatenate(self._fields),
            )
            pairs = zip(order[again + 1].tolist(), order[again].tolist(), strict=True)
            for later, earlier in sorted(pairs):
                one, other = (set(fields[firsts[at] : firsts[at + 1]].tolist()) for at in (earlier, later))
                if one != other:
                    raise self._torn(earlier, later)
        self._checked = count
        self._early_keys.clear()

    def _check_once(
        self,
        starts: NDArray[np.uint64],
        firsts: NDArray[np.int64],
        payloads: NDArray[np.uint64],
        fields: NDArray[np.uint16],
    ) -> None:
        """Raise `UnsupportedFormat` if a sample that was joined has a field twice."""
        samples = np.repeat(np.arange(starts.size), np.diff(firsts))
        order = np.lexsort((payloads, fields, samples))
        twice = np.flatnonzero(
            (np.diff(samples[order]) == 0) & (np.diff(fields[order].astype(np.int64)) == 0)
        )
        if twice.size:
            one, other = order[twice[0]], order[twice[0] + 1]
            raise UnsupportedFormat(
                f"{self._path}: the sample at byte {starts[samples[one]]} has the field "
                f"{tuple(self._names)[fields[one]]!r} twice: its data are at byte {payloads[one]} and "
                f"at byte {payloads[other]}; remove one of the members"
            )

    def _warnings(self) -> list[str]:
        count = len(self._names)
        if self._left_out and not self._samples:
            return [f"{self._path}: no samples: of {self._left_out} members, no name has the form KEY.FIELD"]
        if count > _MANY_FIELDS and self._members < _RARE_MEMBERS * count:
            many = f"{count} fields for {self._members} members: they may hold names of samples"
            return [f"{self._path}: {many}; {_DOTS}"]
        return []

    def _twice(self, name: bytes, at: int) -> UnsupportedFormat:
        return UnsupportedFormat(
            f"{self._path}: byte {at}: the member {_shown(name)} is the second one of its field in sample "
            f"{_shown(self._key)}, which begins at byte {self._begin}; rename or remove one of them"
        )

    def _torn(self, earlier: int, later: int) -> UnsupportedFormat:
        starts = np.concatenate(self._starts)
        key = f" {_shown(self._early_keys[later])}" if later < len(self._early_keys) else ""
        return UnsupportedFormat(
            f"{self._path}: the members of the sample{key} at byte {starts[earlier]} are not next to "
            f"each other: others are at byte {starts[later]}. Re-create the archive with tar --sort=name, or "
            f"open it with format=sk.formats.Tar(group='key')"
        )

    def _unpaired(self, what: str) -> UnsupportedFormat:
        return UnsupportedFormat(
            f"{self._path}: {what}; in an archive of Lhotse Shar each two members are a pair, whose names "
            f"are equal but for the suffix"
        )


def _by_key(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return how runs of members are joined by key.

    Args:
        hashes: the key of each run.
        counts: the number of members of each run.

    Returns:
        The first run of each sample, the members in the order of samples, and the first member of each sample
        with the number of members after the last.
    """
    _, first_runs, sample_of_run = np.unique(hashes, return_index=True, return_inverse=True)
    runs = np.sort(first_runs)
    samples = np.searchsorted(runs, first_runs)[sample_of_run].repeat(counts)
    firsts = np.zeros(runs.size + 1, np.int64)
    np.cumsum(np.bincount(samples, minlength=runs.size), out=firsts[1:])
    return runs, np.argsort(samples, kind="stable"), firsts


def _prefix(key: bytes) -> bytes:
    """Return what a name begins with that is of the sample with a key, if a known field is after it."""
    return _NO_PREFIX if key.startswith(b"__") else key + b"."  # ``__a.b__`` is left out as metadata.


def _joined(arrays: list[NDArray[_Number]], dtype: type[_Number]) -> NDArray[_Number]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "surrogateescape"))
