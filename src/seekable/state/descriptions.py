"""Descriptions of pipelines as text: the differences between two, and one as a tree of its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.errors import StateMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["difference", "mismatch", "outline"]

_MOST = 8
"""The most lines of difference that an error message shows."""


def difference(old: Mapping[str, Any], new: Mapping[str, Any], *, most: int | None = _MOST) -> str:
    """Return the differences between two descriptions, one a line, and "" for equal ones.

    A line names the node, the argument, the old value and the new one; or the file.

    Args:
        old: the description that was saved.
        new: the present one.
        most: the most lines; None for all.

    Example:
        >>> source = {"kind": "sequence", "length": 3}
        >>> shuffles = [{"kind": "shuffle", "seed": seed, "of": [source]} for seed in (1, 2)]
        >>> print(difference(*shuffles))
        shuffle: seed was 1, is 2
    """
    lines = _node(old, new, path="")
    if most is not None and len(lines) > most:
        lines = [*lines[:most], f"and {len(lines) - most} more"]
    return "\n".join(lines)


def mismatch(
    saved: str, present: str, *, old: Mapping[str, Any] | None, new: Mapping[str, Any]
) -> StateMismatch:
    """Return the error for a state of another pipeline than the present one.

    Args:
        saved: the fingerprint in the state.
        present: the fingerprint of the present pipeline.
        old: the description of the saved pipeline, None if the state carries none.
        new: the description of the present pipeline.
    """
    changes = "a state that carries its description (rows=True) makes this message say what changed"
    if old is not None:
        changes = difference(old, new)
    return StateMismatch(
        f"the state is of another pipeline: its fingerprint is {saved}, this one's is {present}\n{changes}"
    )


def _node(old: Mapping[str, Any], new: Mapping[str, Any], *, path: str) -> list[str]:
    kind = str(new.get("kind"))
    here = f"{path}{kind}"
    if old.get("kind") != new.get("kind"):
        return [f"{path or 'the pipeline: '}was {old.get('kind')}, is {kind}"]
    keys = sorted((old.keys() | new.keys()) - {"kind", "of", "files"})
    lines = [
        f"{here}: {key} was {_shown(old, key)}, is {_shown(new, key)}"
        for key in keys
        if old.get(key) != new.get(key)
    ]
    lines += _files(old.get("files", []), new.get("files", []), here=here)
    was, now = old.get("of", []), new.get("of", [])
    if len(was) != len(now):
        return [*lines, f"{here}: had {len(was)} sources, has {len(now)}"]
    for i, (a, b) in enumerate(zip(was, now, strict=True)):
        step = f"{here}[{i}] > " if len(now) > 1 else f"{here} > "
        lines += _node(a, b, path=step)
    return lines


def _shown(node: Mapping[str, Any], key: str) -> str:
    return repr(node[key]) if key in node else "not given"


def _files(old: list[dict[str, Any]], new: list[dict[str, Any]], *, here: str) -> list[str]:
    if old == new:
        return []
    was, now = {f["name"]: f for f in old}, {f["name"]: f for f in new}
    lines = [f"{here}: file {name!r} is gone" for name in was if name not in now]
    lines += [f"{here}: file {name!r} is new" for name in now if name not in was]
    for name in (name for name in now if name in was):
        changed = [key for key in sorted(now[name]) if was[name].get(key) != now[name][key]]
        if changed:
            what = ", ".join(f"{key} was {was[name].get(key)!r}, is {now[name][key]!r}" for key in changed)
            lines.append(f"{here}: file {name!r}: {what}")
    return lines or [f"{here}: the same files in another order"]


_MOST_CHILDREN = 10

_MOST_CHARACTERS = 60


def outline(description: Mapping[str, Any], *, indent: str = "") -> list[str]:
    r"""Return the lines of the tree: each node with its arguments, each source with its files and records.

    Example:
        >>> file = {"name": "a.jsonl", "records": 3, "size": 40}
        >>> source = {"kind": "files", "format": "jsonl", "decode": "json", "files": [file]}
        >>> print("\n".join(outline({"kind": "shuffle", "seed": 1, "of": [source]})))
        shuffle(seed=1)
          files(format='jsonl', decode='json'): 3 records in 1 file, 40 bytes
    """
    arguments = {key: value for key, value in description.items() if key not in ("kind", "of", "files")}
    given = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    lines = [f"{indent}{description['kind']}({given}){_contents(description)}"]
    below = description.get("of", [])
    for child in below[:_MOST_CHILDREN]:
        lines += outline(child, indent=f"{indent}  ")
    if len(below) > _MOST_CHILDREN:
        lines.append(f"{indent}  and {len(below) - _MOST_CHILDREN:,} more sources")
    return lines


def _contents(description: Mapping[str, Any]) -> str:
    files = description.get("files")
    if files is None:
        return ""
    records, size = (sum(file[key] for file in files) for key in ("records", "size"))
    return f": {records:,} records in {len(files):,} file{'s' * (len(files) != 1)}, {size:,} bytes"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
