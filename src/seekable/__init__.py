"""Any record of the data you already have in constant time, and training that resumes exactly.

    import seekable as sk

    ds = sk.open("corpus/*.jsonl").shuffle(seed=7)
    loader = sk.Loader(ds, batch_size=32)

Names are loaded when they are first used, so that ``seekable --help`` does not wait for numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from seekable._version import __version__

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.dataset.concat import concat
    from seekable.dataset.hole import HOLE
    from seekable.dataset.mix import mix
    from seekable.dataset.open import open
    from seekable.dataset.sequence import from_sequence
    from seekable.dataset.zip import zip
    from seekable.errors import (
        AmbiguousKey,
        AmbiguousRank,
        BadKey,
        CacheTooSmall,
        CorruptRecord,
        CorruptState,
        DataNotFound,
        DuplicateKeys,
        EndlessDataset,
        ForkUnsafe,
        IndexStale,
        InvalidArgument,
        KeyNotFound,
        MissingDependency,
        NothingPassed,
        OutOfRange,
        SeekableError,
        StateMismatch,
        StoppedIterator,
        TooManyHoles,
        UnsupportedFormat,
        WorkerDied,
        WorkerHung,
        WrongType,
    )
    from seekable.index.location import Location
    from seekable.loader.checkpoint import load_state, save_state
    from seekable.loader.loader import Loader
    from seekable.loader.ranks import distributed

__all__ = [
    "AmbiguousKey",
    "AmbiguousRank",
    "BadKey",
    "CacheTooSmall",
    "CorruptRecord",
    "CorruptState",
    "DataNotFound",
    "Dataset",
    "DuplicateKeys",
    "EndlessDataset",
    "ForkUnsafe",
    "HOLE",
    "IndexStale",
    "InvalidArgument",
    "KeyNotFound",
    "Loader",
    "Location",
    "MissingDependency",
    "NothingPassed",
    "OutOfRange",
    "SeekableError",
    "StateMismatch",
    "StoppedIterator",
    "TooManyHoles",
    "UnsupportedFormat",
    "WorkerDied",
    "WorkerHung",
    "WrongType",
    "__version__",
    "concat",
    "distributed",
    "from_sequence",
    "load_state",
    "mix",
    "open",
    "save_state",
    "zip",
]

_HOMES = {
    "Dataset": "dataset.base",
    "HOLE": "dataset.hole",
    "Loader": "loader.loader",
    "Location": "index.location",
    "concat": "dataset.concat",
    "distributed": "loader.ranks",
    "from_sequence": "dataset.sequence",
    "load_state": "loader.checkpoint",
    "mix": "dataset.mix",
    "open": "dataset.open",
    "save_state": "loader.checkpoint",
    "zip": "dataset.zip",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    if name not in __all__:
        message = f"module 'seekable' has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(importlib.import_module(f"seekable.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
