"""Packed samples: documents and samples in another order each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from seekable.order.blocks import default_blocks
from seekable.packing.nodes.packed_node import PackedNode
from seekable.packing.nodes.sample_cut import usual_order

if TYPE_CHECKING:
    from seekable._typing import Int64s

__all__ = ["Pack"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pack(PackedNode):
    """Samples of documents that change places each epoch: concatenated and cut, or fitted together."""

    kind: ClassVar[str] = "pack"

    @property
    def blocks(self) -> Int64s:
        """The default blocks of ``size`` rows: pieces of neighbours come from anywhere in the child."""
        return default_blocks(self.size)

    def call(self) -> str:
        """Return the call of ``pack``, with the arguments that are not the default ones."""
        cut, form = self.cut, self.form
        given = [f"{cut.length}, seed={cut.seed}"]
        usual = usual_order(self.child.size or 0) if cut.method == "concat" else None
        shown = {
            "method": (cut.method, "concat"),
            "order": (cut.order, usual),
            "most": (cut.most, None),
            "long": (cut.long, "split"),
            "fim": (cut.fim, None),
            "samples": (cut.samples, None),
            "next_token": (form.next_token, False),
            "labels": (form.labels, None),
            "align": (form.align, ()),
            "positions": (form.positions, "piece"),
            "pad": (form.pad, 0),
        }
        given += [f"{name}={value!r}" for name, (value, default) in shown.items() if value != default]
        return f"pack({', '.join(given)})"
