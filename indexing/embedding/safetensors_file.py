"""Reads tensors from safetensors files without copying them: a JSON header, then raw data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LENGTH_BYTES = 8
_HEADER_LIMIT = 100_000_000
"""Bytes; the limit that the format itself sets."""
_DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}


class DamagedWeightsError(ValueError):
    """Raised for a file that does not follow the safetensors format."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies in its file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class SafetensorsFile:
    """One file, mapped into memory: what is not read takes no memory."""

    path: Path
    entries: Mapping[str, TensorEntry]

    @classmethod
    def open(cls, path: Path) -> "SafetensorsFile":
        """Read the header.

        Raises:
            DamagedWeightsError: the file is truncated, or is not a safetensors file.
        """
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > min(_HEADER_LIMIT, path.stat().st_size):
                raise DamagedWeightsError(f"{path} is truncated or is not a safetensors file")
            header = file.read(length)
        try:
            entries = _parse_header(header, first=_LENGTH_BYTES + length)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedWeightsError(f"{path} has no valid safetensors header") from error
        if max((entry.end for entry in entries.values()), default=0) > path.stat().st_size:
            raise DamagedWeightsError(f"{path} is truncated")
        return cls(path, entries)

    def read(self, name: str) -> NDArray[Any]:
        """Return a tensor as float32 or float16; bfloat16, which numpy lacks, as float32.

        Raises:
            DamagedWeightsError: its values are of another type, or do not fill its shape.
        """
        entry = self.entries[name]
        if entry.dtype not in _DTYPES:
            raise DamagedWeightsError(f"{name} in {self.path} is of type {entry.dtype}")
        stored = self._bytes[entry.start : entry.end]
        try:
            tensor: NDArray[Any] = stored.view(_DTYPES[entry.dtype]).reshape(entry.shape)
        except ValueError as error:
            raise DamagedWeightsError(f"{name} in {self.path} has the wrong size") from error
        return _widen_bfloat16(tensor) if entry.dtype == "BF16" else tensor

    @cached_property
    def _bytes(self) -> NDArray[np.uint8]:
        # Copied on write, which never happens: OpenVINO shares only memory that may be written.
        return np.memmap(self.path, np.uint8, "c")


def _widen_bfloat16(halves: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Add the lower half, zeros: a bfloat16 is the upper half of a float32."""
    return np.left_shift(halves, 16, dtype=np.uint32).view(np.float32)


def _parse_header(header: bytes, first: int) -> dict[str, TensorEntry]:
    return {
        name: TensorEntry(
            dtype=str(value["dtype"]),
            shape=tuple(int(length) for length in value["shape"]),
            start=first + int(value["data_offsets"][0]),
            end=first + int(value["data_offsets"][1]),
        )
        for name, value in json.loads(header).items()
        if name != "__metadata__"
    }


class ModelWeights:
    """The tensors of a model, of one file or of several that an index file lists."""

    def __init__(self, files: Mapping[str, SafetensorsFile]) -> None:
        self._files = files

    @classmethod
    def from_folder(cls, folder: Path) -> "ModelWeights | None":
        """Return None where the folder has no safetensors file.

        Raises:
            DamagedWeightsError: a file is truncated, missing or not in this format.
        """
        opened = [SafetensorsFile.open(path) for path in _weight_files(folder)]
        return cls({name: file for file in opened for name in file.entries}) if opened else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._files[name].entries[name].shape

    def read(self, name: str) -> NDArray[Any]:
        return self._files[name].read(name)


def _weight_files(folder: Path) -> list[Path]:
    single = folder / "model.safetensors"
    index = folder / "model.safetensors.index.json"
    if single.is_file() or not index.is_file():
        return [single] if single.is_file() else []
    try:
        paths = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedWeightsError(f"{index} does not list the files of the weights") from error
    missing = [path for path in paths if not (folder / path).is_file()]
    if missing:
        raise DamagedWeightsError(f"{folder} lacks {', '.join(missing)}")
    return [folder / path for path in paths]
