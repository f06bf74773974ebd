"""Write the corpus: ``python -m tests.corpus.write``.

Only a change of a format that a line of CHANGELOG.md names is a reason to write it anew.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.corpus import far, formats, nodes, saved, streams, written
from tests.corpus.held import HOME, at_one_moment, pack, write_document


def write(home: Path) -> None:
    """Write the archive and the documents of the corpus into a folder."""
    with tempfile.TemporaryDirectory(prefix="seekable-corpus-") as folder, at_one_moment():
        root = Path(folder).resolve()
        write_document("formats", _formats(root), root, home)
        write_document("nodes", _nodes(root), root, home)
        write_document("streams", _streams(root), root, home)
        write_document("saved", _saved(root), root, home)
        write_document("far", _far(root), root, home)
        for name in written.WRITES:
            written.write(name, root)
        pack(root, home)


def _formats(root: Path) -> dict[str, dict[str, object]]:
    found = {}
    for name in formats.FORMATS:
        formats.write_data(name, root)
        # Twice: the first time records are read for their keys, and tables of pages come with reading.
        for _ in range(2):
            with formats.opened(name, root) as ds:
                found[name] = formats.known(ds)
    return found


def _far(root: Path) -> dict[str, dict[str, object]]:
    with tempfile.TemporaryDirectory() as cache, far.in_a_store(root):
        os.environ["SEEKABLE_REMOTE_DIR"] = cache
        return {name: formats.known(far.opened(name, root)) for name in far.NAMES for _ in range(2)}


def _nodes(root: Path) -> dict[str, dict[str, object]]:
    parts, found = nodes.Parts(root), {}
    parts.kept("any").parent.mkdir(parents=True)
    for name, (_, build) in nodes.CASES.items():
        build(parts).save(nodes.pipeline_file(name, root))
        file, earlier = nodes.pipeline_file(name, root), nodes.EARLIER.get(name)
        file.write_bytes(nodes.pipeline_text(file, root))
        found[name] = nodes.known(nodes.load(name, root), earlier and earlier(parts))
    return found


def _streams(root: Path) -> dict[str, dict[str, object]]:
    return {name: nodes.known(build(root)) for name, build in streams.CASES.items()}


def _saved(root: Path) -> dict[str, dict[str, object]]:
    for name in saved.RUNS:
        saved.save(name, root)
    return {
        **{name: saved.known(name, root) for name in saved.RUNS},
        "checkpoints": saved.checkpoint(root),
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HOME)
