"""Images in fields, by Pillow: to arrays, tensors and images of Pillow, and back to files.

The names of what an image becomes are webdataset's: ``rgb8`` and ``l8`` are uint8 of shape (height, width,
channels) and (height, width), ``rgb`` and ``l`` float32 from 0 to 1, ``torchrgb`` and so on tensors of shape
(channels, height, width), ``pil`` and ``pill`` images of Pillow.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._optional import optional
from seekable.formats.fields.values import Bytes, beginning

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from PIL import Image
else:
    Image = optional("PIL.Image", extra="images")
    torch = optional("torch", extra="torch")

__all__ = ["IMAGES_WRITTEN", "IMAGE_SPECS", "IMAGE_SUFFIXES", "ImageDecoder", "is_image", "to_image"]

IMAGE_SUFFIXES = frozenset(
    {
        *("apng", "blp", "bmp", "bufr", "bw", "cur", "dcx", "dds", "dib", "emf", "eps", "fit"),
        *("fits", "flc", "fli", "ftc", "ftu", "gbr", "gif", "grib", "h5", "hdf", "icb", "icns"),
        *("ico", "iim", "im", "j2c", "j2k", "jfif", "jp2", "jpc", "jpe", "jpeg", "jpf", "jpg", "jpx"),
        *("mpeg", "mpg", "msp", "pbm", "pcd", "pcx", "pgm", "png", "pnm", "ppm", "ps", "psd", "pxr"),
        *("ras", "rgb", "rgba", "sgi", "tga", "tif", "tiff", "vda", "vst", "webp", "wmf", "xbm"),
        "xpm",
    }
)
"""The fields that are images."""

_PROGRAMS = frozenset({"EPS"})
"""Formats of Pillow whose files are programs, which an interpreter would run."""

_FLOAT_TOLERANCE = 0.001

_SHAPES = ((2,), (3, 3), (3, 4))
"""The number of dimensions and the number of channels of arrays that are images."""

IMAGES_WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    **dict.fromkeys(("jpg", "jpeg", "img", "image"), ("JPEG", {"quality": 100})),
    **dict.fromkeys(("pbm", "pgm", "ppm"), ("PPM", {})),
    **dict.fromkeys(("tif", "tiff"), ("TIFF", {"quality": 100})),
    "png": ("PNG", {}),
    "webp": ("WEBP", {"lossless": True}),
}
"""The format of Pillow, and its options, for each field that images are written to."""


@dataclass(frozen=True, slots=True)
class ImageDecoder:
    """A function from the bytes of an image file to an image.

    Example:
        >>> IMAGE_SPECS["rgb8"](to_image("png", np.zeros((2, 3, 3), np.uint8))).shape
        (2, 3, 3)
    """

    made: Literal["array", "tensor", "image"]
    mode: Literal["L", "RGB", "RGBA"]
    dtype: Literal["uint8", "float32"] = "uint8"

    def __call__(self, data: Bytes) -> Any:
        """Return the image.

        Raises:
            ValueError: the bytes are no image that Pillow reads, or are cut short.
            MissingDependency: Pillow or torch is not installed.
        """
        image = _opened(data).convert(self.mode)
        if self.made == "image":
            return image
        array: NDArray[Any] = np.array(image)
        if self.dtype == "float32":
            array = array.astype(np.float32) / np.float32(255.0)
        if self.made == "array":
            return array
        return torch.from_numpy(array.transpose(2, 0, 1).copy() if self.mode != "L" else array)


_MODES: tuple[tuple[str, Literal["L", "RGB", "RGBA"]], ...] = (("l", "L"), ("rgb", "RGB"), ("rgba", "RGBA"))

IMAGE_SPECS: dict[str, ImageDecoder] = {
    **{f"{name}8": ImageDecoder("array", mode) for name, mode in _MODES},
    **{name: ImageDecoder("array", mode, "float32") for name, mode in _MODES},
    **{f"torch{name}8": ImageDecoder("tensor", mode) for name, mode in _MODES},
    **{f"torch{name}": ImageDecoder("tensor", mode, "float32") for name, mode in _MODES},
    "torch": ImageDecoder("tensor", "RGB", "float32"),
    **{f"pil{name}": ImageDecoder("image", mode) for name, mode in _MODES},
    "pil": ImageDecoder("image", "RGB"),
}
"""The decoders of images by the names that users give."""


def _opened(data: Bytes) -> Image.Image:
    """Return an image whose pixels are in memory."""
    formats = _formats()
    try:
        image = Image.open(io.BytesIO(data), formats=formats)
        image.load()
    except Exception as error:
        # Pillow's plug-ins raise OSError, SyntaxError, struct.error, IndexError and others for damaged files.
        reason = f"; {error}" if "BytesIO" not in str(error) else ""
        if bytes(data[:4]) in (b"%!PS", b"\xc5\xd0\xd3\xc6"):
            reason = "; PostScript is a program, and is not run"
        message = f"expected an image that Pillow reads, found {beginning(data)}{reason}"
        raise ValueError(message) from error
    return image


@cache
def _formats() -> tuple[str, ...]:
    Image.init()
    return tuple(name for name in Image.ID if name not in _PROGRAMS)


def is_image(value: object) -> bool:
    """Return True for an image of Pillow; Pillow is not imported for it."""
    return any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__)


def to_image(suffix: str, value: Any) -> bytes:
    """Return an image file.

    Args:
        suffix: one of the fields that images are written to, such as "jpg" or "png".
        value: an image of Pillow, or an array of uint8, or of floats from 0 to 1, of shape (height, width) or
            (height, width, 1, 3 or 4).

    Raises:
        ValueError: the value is no image, or one that the format cannot hold.
        MissingDependency: Pillow is not installed.
    """
    image = value if is_image(value) else Image.fromarray(_pixels(value))
    format_name, options = IMAGES_WRITTEN[suffix]
    stream = io.BytesIO()
    try:
        image.save(stream, format=format_name, **options)
    except OSError as error:
        message = f"{format_name} cannot hold an image of mode {image.mode} ({error})"
        raise ValueError(message) from error
    return stream.getvalue()


def _pixels(value: Any) -> NDArray[np.uint8]:
    if not isinstance(value, np.ndarray):
        message = f"expected an array, or an image of Pillow (got {type(value).__name__})"
        raise ValueError(message)  # noqa: TRY004 - the caller adds the field
    if value.dtype in (np.float32, np.float64):
        low, high = (float(value.min()), float(value.max())) if value.size else (0.0, 0.0)
        if not -_FLOAT_TOLERANCE < low <= high < 1 + _FLOAT_TOLERANCE:
            message = f"expected floats from 0 to 1 (got values from {low} to {high})"
            raise ValueError(message)
        value = (np.clip(value, 0.0, 1.0) * 255.0).astype(np.uint8)
    if value.shape[2:] == (1,):
        value = value[:, :, 0]
    good = (value.ndim, *value.shape[2:]) in _SHAPES
    if value.dtype != np.uint8 or not good or not value.size:
        message = (
            f"expected pixels of uint8, or floats, of shape (height, width) or (height, width, 1, 3 or 4) "
            f"(got {value.dtype} of shape {value.shape})"
        )
        raise ValueError(message)
    return np.ascontiguousarray(value)
