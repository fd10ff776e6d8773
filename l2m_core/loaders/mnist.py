"""MNIST: pictures of handwritten digits, from the files as published or from an .npz."""

from __future__ import annotations

import gzip
import struct
import zipfile
from pathlib import Path

import numpy as np

from l2m_core.errors import CohortError
from l2m_core.loaders.sources import MNIST

IMAGES, LABELS = 0x803, 0x801
"""Magic numbers: unsigned bytes in three dimensions, and in one."""
STEMS = ("train-images", "train-labels"), ("t10k-images", "t10k-labels")


def load_mnist(path: str | Path, part: str = "train") -> dict[str, np.ndarray]:
    """{"images": (M, 28, 28) uint8, "labels": (M,) int64}. path: a folder with the published files, or an .npz.

    part: "train", or "test" for the 10,000 test images (a folder only).
    """
    path = MNIST.require(Path(path))
    if path.is_dir():
        images_stem, labels_stem = STEMS[part == "test"]
        images, labels = _read_idx(_find(path, images_stem), IMAGES), _read_idx(_find(path, labels_stem), LABELS)
    else:
        images, labels = _read_npz(path)
    if images.ndim != 3 or len(images) != len(labels):
        raise CohortError(
            f"{path.name} holds {len(labels)} labels and images of shape {images.shape}; they must match."
        )
    return {"images": images, "labels": labels.astype(np.int64)}


def _find(folder: Path, stem: str) -> Path:
    found = sorted(file for file in folder.iterdir() if file.name.startswith(stem))
    return found[0] if found else MNIST.require(folder / f"{stem}-ubyte.gz")


def _read_idx(path: Path, magic: int) -> np.ndarray:
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise CohortError(f"{path.name} is damaged: {error}. Download it again.") from error
    dimensions = magic & 0xFF
    header = 4 * (1 + dimensions)
    if len(content) < header or struct.unpack(">I", content[:4])[0] != magic:
        raise CohortError(f"{path.name} is not an MNIST file: its first bytes do not say so.")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) - header != int(np.prod(shape)):
        raise CohortError(f"{path.name} is cut short or damaged: it promises {shape}. Download it again.")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["images"], arrays["labels"]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CohortError(f"{path.name} must be an .npz with the arrays images and labels: {error}.") from error
