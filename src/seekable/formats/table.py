"""What the core knows of the subjects without importing them: literals alone."""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["NODE_HOMES"]

NODE_HOMES = MappingProxyType(
    {
        "megatron_blend": "seekable.packing.nodes.blend:MegatronBlend",
        "pack": "seekable.packing.nodes.pack:Pack",
        "samples": "seekable.formats.tar.sample_source:SampleSource",
        "shar": "seekable.formats.shar.shar_source:SharSource",
        "siblings": "seekable.formats.tar.siblings:Siblings",
        "table": "seekable.formats.tables.tables:TableSource",
        "tokens": "seekable.formats.tokens.source.token_source:TokenSource",
        "windows": "seekable.packing.nodes.windows:Windows",
    }
)
"""The class of each kind of node that a subject brings, ``module:name``."""
