"""Images in fields, by Pillow: to arrays, tensors and images of Pillow, and back to files.

The names of what an image becomes are webdataset's: ``rgb8`` and ``l8`` are uint8 of shape (height, width,
channels) and (height, width), ``rgb`` and ``l`` float32 from 0 to 1, ``torchrgb`` and so on tensors of shape
(channels, height, width), ``pil`` and ``pill`` images of Pillow. Pixels of 16 bits are scaled to 8, and those
that have no range, of floats or of 32 bits, are refused. ``native``, ``torchnative`` and ``pilnative`` leave
pixels as the file has them. Behind each name, ``-upright`` turns an image as its EXIF orientation says.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seekable._optional import optional
from seekable.formats.tar.field_values import Bytes, beginning

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from PIL import Image, ImageOps
else:
    Image = optional("PIL.Image", extra="images")
    ImageOps = optional("PIL.ImageOps", extra="images")
    torch = optional("torch", extra="torch")

__all__ = [
    "IMAGES_WRITTEN",
    "IMAGE_DECODERS",
    "IMAGE_SPECS",
    "IMAGE_SUFFIXES",
    "UPRIGHT",
    "ImageDecoder",
    "is_image",
    "to_image",
]

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

_SIXTEEN_BITS_IN_32 = frozenset({"PNG", "PPM"})
"""Formats whose pixels of 16 bits Pillow may give as integers of 32 (mode "I")."""

_BITS_PER_SAMPLE = 258
"""The tag of TIFF."""

UPRIGHT = "-upright"
"""The end of the names of decoders that turn images as their EXIF orientation says."""

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
    mode: Literal["L", "RGB", "RGBA"] | None
    """The channels; None for the pixels of the file, of any number of channels and of any type."""
    dtype: Literal["uint8", "float32"] = "uint8"
    upright: bool = False
    """True to turn and mirror the image as its EXIF orientation says."""

    def __call__(self, data: Bytes) -> Any:
        """Return the image.

        Raises:
            ValueError: the bytes are not an image that Pillow reads, or are cut short, or the pixels have no
                range that could be scaled.
            MissingDependency: Pillow or torch is not installed.
        """
        image = _opened(data, upright=self.upright)
        if self.mode is not None:
            image = _with_range(image).convert(self.mode)
        if self.made == "image":
            return image
        array = _pixels_of(image)
        if self.dtype == "float32":
            array = array.astype(np.float32) / np.float32(255.0)
        if self.made == "array":
            return array
        return torch.from_numpy(array.transpose(2, 0, 1).copy() if array.ndim > 2 else array)  # noqa: PLR2004


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
"""The decoders of images by the names that webdataset has too."""

_NATIVE = {
    "native": ImageDecoder("array", None),
    "torchnative": ImageDecoder("tensor", None),
    "pilnative": ImageDecoder("image", None),
}

IMAGE_DECODERS: dict[str, ImageDecoder] = {
    name + ending: replace(decoder, upright=bool(ending))
    for ending in ("", UPRIGHT)
    for name, decoder in (IMAGE_SPECS | _NATIVE).items()
}
"""The decoders of images by the names that users give."""


def _with_range(image: Image.Image) -> Image.Image:
    """Return an image whose pixels have a known range, scaled to 8 bits where they have 16.

    Raises:
        ValueError: the pixels are floats, or integers of 32 bits.
    """
    is_long = image.mode == "I" and image.format in _SIXTEEN_BITS_IN_32
    if is_long or image.mode.startswith("I;16"):
        most = (1 << _bits(image)) - 1
        scaled = (np.array(image).astype(np.uint32) * 255 + most // 2) // most
        return Image.fromarray(scaled.astype(np.uint8))
    if image.mode in {"I", "F"}:
        kind = "floats" if image.mode == "F" else "integers of 32 bits"
        message = (
            f"expected pixels of 8 or 16 bits, found {kind}, which have no range that could be scaled: take "
            f"the pixels as they are, with decode='native' (or 'pilnative', 'torchnative')"
        )
        raise ValueError(message)
    return image


def _bits(image: Image.Image) -> int:
    """Return how many bits the pixels of an image have: 16, or 12 in some TIFF files."""
    (bits,) = getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE, (16,))
    return int(bits)


def _pixels_of(image: Image.Image) -> NDArray[Any]:
    """Return the pixels as an array, in the byte order of this machine."""
    array = np.array(image)
    if image.mode == "I" and image.format in _SIXTEEN_BITS_IN_32:
        return array.astype(np.uint16)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _opened(data: Bytes, *, upright: bool) -> Image.Image:
    """Return an image whose pixels are in memory."""
    formats = _formats()
    try:
        image = Image.open(io.BytesIO(data), formats=formats)
        image.load()
        if upright:
            ImageOps.exif_transpose(image, in_place=True)
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
        ValueError: the value is not an image, or one that the format cannot hold.
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
