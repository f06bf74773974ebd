"""Which of several processes this one is."""

from __future__ import annotations

import os
import sys

from seekable.dataset.arguments import checked_count
from seekable.errors import AmbiguousRank, InvalidArgument

__all__ = ["checked_rank"]


def checked_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return this process's rank and the number of ranks.

    Raises:
        AmbiguousRank: neither was given, and the environment, or an initialised torch.distributed, speaks of
            several.
        InvalidArgument: only one was given, or the rank is not below the number of ranks.
    """
    if rank is None and world_size is None:
        several = _ranks_around()
        if several:
            message = (
                f"{several}, and rank= and world_size= were left out: all would read the same records. "
                f'Pass rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]), or rank=0, '
                f"world_size=1 where each rank is to read everything"
            )
            raise AmbiguousRank(message)
        return 0, 1
    if rank is None or world_size is None:
        message = f"rank and world_size must be given together (got rank={rank!r}, world_size={world_size!r})"
        raise InvalidArgument(message)
    world_size = checked_count("world_size", world_size, least=1)
    rank = checked_count("rank", rank, least=0)
    if rank >= world_size:
        message = f"rank must be below world_size={world_size} (got {rank})"
        raise InvalidArgument(message)
    return rank, world_size


def _ranks_around() -> str | None:
    """Say who speaks of several ranks, if anyone."""
    size = os.environ.get("WORLD_SIZE", "")
    if size.isdecimal() and int(size) > 1:
        return f"the environment says RANK={os.environ.get('RANK', '?')} of WORLD_SIZE={size}"
    # torch is not imported for this: where it is not, nothing of it can be initialised.
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        size = distributed.get_world_size()
        if size > 1:
            return f"torch.distributed has {size} ranks"
    return None
