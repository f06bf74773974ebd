"""The rooms of ``src/seekable``: a core, and the subjects that plug into it.

Imports point back along this list: tests/test_architecture.py holds the code to it, and ``make test
ROOM=...`` finds with it whom a change of a room can harm.
"""

from __future__ import annotations

# The core, in the order in which data flows through it: a room may import those before it.
CORE = (
    *("errors", "order", "state", "storage", "parallel", "index", "formats", "nodes", "writing", "stream"),
    *("dataset", "resume", "loader"),
)

# Each subject may import the core, lines, and what stands after its name. Those that show or carry the others
# may import them all.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "lines": (),
    "audio": (),
    "tables": (),
    "tar": (),
    "shar": ("audio", "tar"),
    "kaldi": ("audio",),
    "tokens": (),
    "packing": (),
    "remote": (),
    "viewer": ("audio", "tables", "tar", "shar", "kaldi", "tokens", "packing", "remote"),
    "integrations": ("audio", "tables", "tar", "shar", "kaldi", "tokens", "packing", "remote", "viewer"),
    "testing": ("audio", "tables", "tar", "shar", "kaldi", "tokens", "packing", "remote", "viewer"),
    "cli": (
        *("audio", "tables", "tar", "shar", "kaldi", "tokens", "packing", "remote", "viewer", "integrations"),
        "testing",
    ),
}

FLOW = (*CORE, *SUBJECTS)

# Subjects that are folders of formats/; the other rooms are named as their folders.
IN_FORMATS = frozenset({"lines", "audio", "tables", "tar", "shar", "kaldi", "tokens"})

# Small modules beside the rooms, which every room may import; they themselves import errors alone.
SHARED = frozenset(
    {
        "_arguments",
        "_cached",
        "_collector",
        "_lazy",
        "_log",
        "_optional",
        "_other_words",
        "_spans",
        "_typing",
    }
)

MAY_IMPORT: dict[str, frozenset[str]] = {room: frozenset(CORE[:number]) for number, room in enumerate(CORE)}
MAY_IMPORT |= {room: frozenset({*CORE, "lines", *others}) for room, others in SUBJECTS.items()}
MAY_IMPORT |= {
    "order": frozenset(),
    "state": frozenset({"errors"}),
    "storage": frozenset({"errors"}),
    "parallel": frozenset({"_version", "errors", "order", "storage"}),
    "index": frozenset({"errors", "storage", "parallel"}),
    "formats": frozenset({"errors", "storage", "parallel", "index"}),
    "cli": MAY_IMPORT["cli"] | {"_version"},
    "__main__": frozenset({"cli"}),
    "_version": frozenset(),
}
MAY_IMPORT |= dict.fromkeys(SHARED, frozenset({"errors"}))

# Folders of tests of rooms whose tests do not lie in a folder of the room's name.
_TESTS: dict[str, tuple[str, ...]] = {
    "nodes": ("nodes", "dataset"),
    "writing": ("dataset", "stream"),
    "lines": ("formats",),
    "audio": ("sound", "formats/fields"),
    "tables": ("formats/arrow", "formats/parquet", "formats", "dataset"),
    "tar": ("formats/tar", "formats/fields", "formats", "dataset"),
    "shar": ("formats/shar", "formats", "dataset"),
    "kaldi": ("kaldi", "formats"),
    "tokens": ("formats/tokens", "tokens", "nodes", "dataset"),
    "packing": ("order/packing", "nodes", "loader", "dataset"),
    "remote": ("remote", "dataset", "index"),
    "viewer": ("viewer", "facts", "charts"),
}


def room_of(module: str) -> str:
    """Return the room of a module; of the package itself an empty string."""
    parts = [*module.split("."), "", ""]
    return parts[2] if parts[1] == "formats" and parts[2] in IN_FORMATS else parts[1]


def with_importers(room: str) -> list[str]:
    """Return a room and those that may import it, in the order of the list.

    Raises:
        ValueError: there is no such room.
    """
    if room not in FLOW:
        raise ValueError(f"there is no room {room!r}; the rooms are {', '.join(FLOW)}")
    return [other for other in FLOW if other == room or room in MAY_IMPORT[other]]


def tests_of(room: str) -> tuple[str, ...]:
    """Return the folders below ``tests`` that have the tests of a room; they need not exist."""
    return _TESTS.get(room, (room,))
