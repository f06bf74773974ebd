"""Where two pipeline descriptions differ: the node, the argument, the old value and the new, or the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["difference"]

_MOST = 8
"""Lines of difference that a message shows."""


def difference(old: Mapping[str, Any], new: Mapping[str, Any], *, most: int | None = _MOST) -> str:
    """Return lines that say how a saved pipeline differs from the present one, "" if it does not.

    Args:
        old: the description that was saved.
        new: the present one.
        most: how many lines are enough; None for all.

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
