"""The rooms of ``src/seekable`` in the order in which data flows through them.

Imports point back along the flow: tests/test_architecture.py holds the code to this list, and ``make test
ROOM=...`` finds with it whom a change of a room can harm.
"""

from __future__ import annotations

# A room may import the rooms before it. Of these, the first four know as little of each other as `state`
# does: errors alone.
FLOW = (
    *("errors", "order", "state", "storage", "remote", "parallel", "index", "sound", "kaldi", "tokens"),
    *("formats", "nodes", "writing", "stream", "dataset", "resume", "loader", "charts", "facts", "viewer"),
    *("integrations", "testing", "cli"),
)

# Small modules beside the rooms, which every room may import; they themselves import errors alone.
SHARED = frozenset(
    {
        "_arguments",
        "_cached",
        "_collector",
        "_html",
        "_lazy",
        "_log",
        "_optional",
        "_secrets",
        "_typing",
        "_viewable",
    }
)

MAY_IMPORT: dict[str, frozenset[str]] = {room: frozenset(FLOW[:number]) for number, room in enumerate(FLOW)}
MAY_IMPORT |= {
    "order": frozenset(),
    "state": frozenset({"errors"}),
    "charts": frozenset({"errors"}),
    "storage": frozenset({"errors"}),
    "remote": frozenset({"errors", "storage"}),
    "parallel": frozenset({"_version", "errors", "order", "storage"}),
    "index": frozenset({"errors", "storage", "remote", "parallel"}),
    "kaldi": frozenset({"errors", "storage", "remote", "index", "sound"}),
    "sound": frozenset({"errors", "storage"}),
    "tokens": frozenset({"errors", "state", "storage", "remote", "parallel"}),
    "formats": frozenset({"errors", "storage", "remote", "parallel", "index", "kaldi", "sound", "tokens"}),
    "cli": frozenset(FLOW) | {"_version"},
    "__main__": frozenset({"cli"}),
    "_version": frozenset(),
}
MAY_IMPORT |= dict.fromkeys(SHARED, frozenset({"errors"}))


def with_importers(room: str) -> list[str]:
    """Return a room and those that may import it, in the order of the flow.

    Raises:
        ValueError: there is no such room.
    """
    if room not in FLOW:
        raise ValueError(f"there is no room {room!r}; the rooms are {', '.join(FLOW)}")
    return [other for other in FLOW if other == room or room in MAY_IMPORT[other]]
