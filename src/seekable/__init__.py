"""Any record of the data you already have in constant time, and training that resumes exactly.

    import seekable as sk

    ds = sk.open("corpus/*.jsonl").shuffle(seed=7)
    loader = sk.Loader(ds, batch_size=32)

Names are loaded when they are first used, so that ``seekable --help`` does not wait for numpy.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from seekable._lazy import imported, imported_module
from seekable._version import __version__

if TYPE_CHECKING:
    from seekable import errors as errors
    from seekable import formats as formats
    from seekable import kaldi as kaldi
    from seekable import testing as testing
    from seekable.dataset.combine import concat, join, mix, zip
    from seekable.dataset.dataset import Dataset, from_sequence
    from seekable.dataset.load import load_pipeline
    from seekable.dataset.open import open
    from seekable.dataset.position import Position
    from seekable.errors import (
        CorruptRecord,
        DataNotFound,
        IndexStale,
        MissingDependency,
        SeekableError,
        StateMismatch,
    )
    from seekable.formats.audio.audio_decoder import audio
    from seekable.formats.audio.audio_mix import audio_mix
    from seekable.formats.lines.line_stream import open_stream
    from seekable.formats.shar.shar_writer import SharWriter
    from seekable.formats.tokens.chats.chat import Chat
    from seekable.formats.tokens.tokenizing.parts import LossMask, Part
    from seekable.formats.tokens.tokenizing.tokenize_data import tokenize
    from seekable.index.index_location import Index
    from seekable.index.location import Location
    from seekable.loader.arguments import Workers
    from seekable.loader.checkpoints import load_state, save_state
    from seekable.loader.collate import FillCollate, collate
    from seekable.loader.data_parallel import distributed
    from seekable.loader.loader import Loader
    from seekable.loader.positioned import state_from_sample_index, state_sources
    from seekable.loader.preemption import preemption
    from seekable.nodes.graph import HOLE
    from seekable.packing.order.fill_in_middle import Fim
    from seekable.packing.packing_options import Packing
    from seekable.remote.simulation.simulate import simulate
    from seekable.remote.simulation.simulation_figures import Simulation
    from seekable.storage.access import Storage
    from seekable.stream.iterable import from_iterable
    from seekable.stream.stream import Stream
    from seekable.viewer.viewer import Viewer, view

if sys.platform == "win32":
    raise ImportError("seekable does not run on Windows itself: run it in WSL, on Linux or on macOS")

__all__ = [
    "Chat",
    "CorruptRecord",
    "DataNotFound",
    "Dataset",
    "FillCollate",
    "Fim",
    "HOLE",
    "Index",
    "IndexStale",
    "Loader",
    "Location",
    "LossMask",
    "MissingDependency",
    "Packing",
    "Part",
    "Position",
    "SeekableError",
    "SharWriter",
    "Simulation",
    "StateMismatch",
    "Storage",
    "Stream",
    "Viewer",
    "Workers",
    "__version__",
    "audio",
    "audio_mix",
    "collate",
    "concat",
    "distributed",
    "from_iterable",
    "from_sequence",
    "join",
    "load_pipeline",
    "load_state",
    "mix",
    "open",
    "open_stream",
    "preemption",
    "save_state",
    "simulate",
    "state_from_sample_index",
    "state_sources",
    "tokenize",
    "view",
    "zip",
]

_HOMES = {
    "Chat": "formats.tokens.chats.chat",
    "Dataset": "dataset.dataset",
    "FillCollate": "loader.collate",
    "Fim": "packing.order.fill_in_middle",
    "HOLE": "nodes.graph",
    "Index": "index.index_location",
    "Loader": "loader.loader",
    "Location": "index.location",
    "LossMask": "formats.tokens.tokenizing.parts",
    "Packing": "packing.packing_options",
    "Part": "formats.tokens.tokenizing.parts",
    "Position": "dataset.position",
    "Simulation": "remote.simulation.simulation_figures",
    "SharWriter": "formats.shar.shar_writer",
    "Storage": "storage.access",
    "Stream": "stream.stream",
    "Viewer": "viewer.viewer",
    "Workers": "loader.arguments",
    "audio": "formats.audio.audio_decoder",
    "audio_mix": "formats.audio.audio_mix",
    "collate": "loader.collate",
    "concat": "dataset.combine",
    "distributed": "loader.data_parallel",
    "from_iterable": "stream.iterable",
    "from_sequence": "dataset.dataset",
    "join": "dataset.combine",
    "load_pipeline": "dataset.load",
    "load_state": "loader.checkpoints",
    "mix": "dataset.combine",
    "open": "dataset.open",
    "open_stream": "formats.lines.line_stream",
    "preemption": "loader.preemption",
    "save_state": "loader.checkpoints",
    "simulate": "remote.simulation.simulate",
    "state_from_sample_index": "loader.positioned",
    "state_sources": "loader.positioned",
    "tokenize": "formats.tokens.tokenizing.tokenize_data",
    "view": "viewer.viewer",
    "zip": "dataset.combine",
}


_PACKAGES = frozenset({"errors", "formats", "kaldi", "testing"})
"""The public packages, which are loaded when they are named: ``sk.formats.Tar``."""


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    if name in _PACKAGES:
        return imported_module(f"seekable.{name}")
    if name not in __all__:
        home = f": it is sk.errors.{name}" if name in imported_module("seekable.errors").__all__ else ""
        message = f"module 'seekable' has no attribute {name!r}{home}"
        raise AttributeError(message)
    value: object = imported(f"seekable.{_HOMES.get(name, 'errors')}:{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the list of the public names."""
    return __all__
