"""Ray: an executor for the heavy jobs of this library, exact resumption under Ray Train, and Ray Data."""

from __future__ import annotations

from seekable.integrations.ray.data import from_ray, sk_sink, sk_source
from seekable.integrations.ray.ray_executor import RayExecutor
from seekable.integrations.ray.train import check_world_sizes, loader, report, restore

__all__ = [
    "RayExecutor",
    "check_world_sizes",
    "from_ray",
    "loader",
    "report",
    "restore",
    "sk_sink",
    "sk_source",
]
