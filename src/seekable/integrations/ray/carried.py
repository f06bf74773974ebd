"""Objects that Ray pickles: for its own processes with the secrets of storage options, else without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray

from seekable.parallel.pickling import deserialized, serialized

__all__ = ["WAY_OUT", "Carried"]

WAY_OUT = "Ray sends it to other processes, so all of it must be possible to pickle"


@dataclass(frozen=True, slots=True)
class Carried:
    """Something that Ray sends to the processes of its cluster.

    Pickled on the way to them, through Ray's sockets and its store in memory, it has its secrets. Pickled by
    anyone else, such as for ``ray_dataset.serialize_lineage()``, it has none that can be read.
    """

    thing: Any

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the thing, in clear on the way to a process of the cluster."""
        worker = ray._private.worker.global_worker  # noqa: SLF001 - Ray has no public name for it
        if worker.connected and worker.get_serialization_context().is_in_band_serialization():
            return _carried, (serialized(self.thing, way_out=WAY_OUT),)
        return Carried, (self.thing,)


def _carried(data: bytes) -> Carried:
    return Carried(deserialized(data))
