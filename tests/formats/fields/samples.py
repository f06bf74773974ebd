"""Bytes of fields, made without the code that is tested."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np
from PIL import Image

__all__ = ["npy", "npz", "png", "tenbin"]


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def tenbin(arrays: list[Any]) -> bytes:
    return bytes(importlib.import_module("webdataset.tenbin").encode_buffer(arrays))


def png(mode: str) -> bytes:
    """A PNG of 5 x 7 pixels of noise."""
    noise = np.random.default_rng(0).integers(0, 256, (5, 7, 4), dtype=np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[:, :, 0].astype(np.uint16) * 256)
    elif mode != "RGBA":
        image = image.convert("RGB").convert(mode)
    stream = io.BytesIO()
    image.save(stream, "png")
    return stream.getvalue()
