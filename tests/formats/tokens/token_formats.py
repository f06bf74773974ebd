"""Files of tokens as their writers write them: bytes made by hand of documents, without any of the tools."""

from __future__ import annotations

import gzip
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import seekable as sk

Files = dict[str, bytes]
Documents = Sequence[NDArray[Any]]

EOS = 7
"""The last token of each document in forms that need one."""

BOS = 3


def joined(documents: Documents, dtype: str) -> bytes:
    return b"".join(document.astype(dtype).tobytes() for document in documents)


def words(*numbers: int) -> bytes:
    return np.array(numbers, "<i8").tobytes()


def bounds(documents: Documents, width: int = 1) -> NDArray[np.int64]:
    lengths = [0, *(len(document) * width for document in documents)]
    return np.cumsum(lengths)


def megatron(documents: Documents, *, dtype: str = "<u2", code: int = 8, modes: bool = False) -> Files:
    count = len(documents)
    width = np.dtype(dtype).itemsize
    index = b"MMIDIDX\0\0" + words(1) + bytes([code]) + words(count, count + 1)
    index += np.array([len(document) for document in documents], "<i4").tobytes()
    index += words(*bounds(documents, width)[:-1]) + words(*range(count + 1)) + bytes([1] * count * modes)
    return {"a.bin": joined(documents, dtype), "a.idx": index}


def fairseq(documents: Documents) -> Files:
    index = b"MMIDIDX\0\0" + words(1) + bytes([9]) + words(len(documents))
    index += np.array([len(document) for document in documents], "<i4").tobytes()
    return {"a.bin": joined(documents, "<u4"), "a.idx": index + words(*bounds(documents, 4)[:-1])}


def old_fairseq(documents: Documents) -> Files:
    count = len(documents)
    header = b"TNTIDX\0\0" + words(1, 4, 4, count, count)
    body = words(*range(count + 1)) + words(*bounds(documents)) + words(*map(len, documents))
    return {"a.bin": joined([document + 1 for document in documents], "<i4"), "a.idx": header + body}


def neox(documents: Documents) -> Files:
    count = len(documents)
    header = b"TNTIDX\0\0" + words(1, 8, 2, count, count, count + 1)
    body = words(*range(count + 1)) + words(*bounds(documents)) + words(*map(len, documents))
    return {"a.bin": joined(documents, "<u2"), "a.idx": header + body + words(*range(count + 1))}


def llm_c(documents: Documents, *, dtype: str = "<u2", magic: int = 20240520, version: int = 1) -> Files:
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, sum(map(len, documents))
    return {"a.bin": header.tobytes() + joined(documents, dtype)}


def datatrove(documents: Documents) -> Files:
    total = sum(map(len, documents))
    loss = (np.arange(total) % 3 == 0).astype("u1")
    return {
        "a.ds": joined(documents, "<u4"),
        "a.ds.index": words(*bounds(documents)[1:]),
        "a.ds.metadata": b"gpt2|4\n%d\n%d" % (total, total),
        "a.ds.loss": loss.tobytes(),
    }


def olmo(documents: Documents) -> Files:
    ends = bounds(documents).tolist()
    lines = "".join(f"{start},{end},id,file.gz,0\n" for start, end in itertools.pairwise(ends))
    files = {"token_ids_0.npy": joined(documents, "<u4")}
    files["token_ids_0.csv.gz"] = gzip.compress(lines.encode(), mtime=0)
    return files | {"labels_mask_0.npy": (np.arange(ends[-1]) % 2).astype("u1").tobytes()}


def numpy_file(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def real_npy(documents: Documents) -> Files:
    return {"a.npy": numpy_file(np.concatenate([*documents, np.zeros(0, "<u2")]).astype("<u2"))}


@dataclass(frozen=True)
class Form:
    """A form of files of tokens."""

    write: Callable[[Documents], Files]
    """Returns the files of documents."""

    asked: str
    """What is opened, where ``DIR`` is the folder."""

    options: dict[str, Any]

    needs: str = ""
    """How documents must be: ``"eos"`` at their end, ``"bos"`` at their start, or not empty: ``"some"``."""


FORMS: dict[str, Form] = {
    "megatron": Form(megatron, "megatron:DIR/a", {}),
    "multimodal": Form(lambda some: megatron(some, dtype="<i4", code=4, modes=True), "megatron:DIR/a", {}),
    "fairseq": Form(fairseq, "megatron:DIR/a", {}),
    "old fairseq": Form(old_fairseq, "megatron:DIR/a", {}),
    "neox": Form(neox, "megatron:DIR/a", {}),
    "llm.c": Form(llm_c, "tokens:DIR/a.bin", {"format": sk.formats.Tokens(bos=BOS)}, "bos"),
    "llm.c of 32 bits": Form(
        lambda some: llm_c(some, dtype="<u4", magic=20240801, version=7),
        "tokens:DIR/*.bin",
        {"format": sk.formats.Tokens(bos=BOS)},
        "bos",
    ),
    "nanogpt": Form(
        lambda some: {"train.bin": joined(some, "<u2"), "meta.pkl": b"cos\nsystem\n(S'exit 1'\ntR."},
        "tokens:DIR",
        {"format": sk.formats.Tokens(dtype="uint16", eos=EOS)},
        "eos",
    ),
    "datatrove": Form(datatrove, "DIR", {}),
    "olmo": Form(olmo, "tokens:DIR", {"format": sk.formats.Tokens(dtype="uint32")}),
    "olmo without csv": Form(
        lambda some: {"part-0-00000.npy": joined(some, "<u4")},
        "tokens:DIR",
        {"format": sk.formats.Tokens(dtype="uint32", eos=EOS)},
        "eos",
    ),
    "real npy": Form(real_npy, "tokens:DIR/a.npy", {"format": sk.formats.Tokens(eos=EOS)}, "eos"),
}  # fmt: skip


def drawn(rng: np.random.Generator, form: Form, *, most: int = 12) -> list[NDArray[np.int64]]:
    """Return documents that a form can have."""
    documents = []
    for _ in range(int(rng.integers(0, most))):
        length = int(rng.choice([0, 1, 2, 5, 40]))
        document = rng.integers(8, 60_000, length)
        if form.needs == "eos":
            document = np.append(document, EOS)
        if form.needs == "bos":
            document = np.insert(document, 0, BOS)
        documents.append(document)
    return documents
