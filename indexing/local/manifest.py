"""Which folders hold the index versions of an index: one small file, exchanged whole.

Whatever is to happen to index versions happens by exchanging this file; a folder that it does not name is rubbish.
"""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from connectors.errors import ActionRequiredError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.versions import IndexVersion

FILE = "editions.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Placed:
    """An index version and the name of its folder. A name is never used again."""

    folder: str
    index_version: IndexVersion


@dataclass(frozen=True, slots=True)
class Register:
    active: Placed | None = None
    building: Placed | None = None

    @property
    def folders(self) -> frozenset[str]:
        return frozenset(placed.folder for placed in (self.active, self.building) if placed)


def read(home: Path) -> Register:
    """The register in `home`; an empty one where there is none.

    Raises:
        ActionRequiredError: it cannot be read, or is of another format.
    """
    return parsed(home, read_bytes(home))


def read_bytes(home: Path) -> bytes:
    """As it stands on the disk; nothing where there is none."""
    try:
        return (home / FILE).read_bytes()
    except FileNotFoundError:
        return b""


def parsed(home: Path, content: bytes) -> Register:
    """As `read`, from what `read_bytes` gave."""
    if not content:
        return Register()
    try:
        fields = json.loads(content)
        if fields["format"] != _FORMAT:
            raise ValueError(f"format {fields['format']}")
        return Register(_placed(fields["active"]), _placed(fields["building"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ActionRequiredError(
            f"{home / FILE}, which names the folders of the index, cannot be understood: {error}. Remove"
            f" {home} and sync again; nothing but the time to index is lost."
        ) from error


def write(home: Path, register: Register) -> None:
    """Exchange the file; it is on the disk when this returns."""
    content = {
        "format": _FORMAT,
        "active": register.active and _to_json(register.active),
        "building": register.building and _to_json(register.building),
    }
    partial = home / f"{FILE}.partial"
    with partial.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(home / FILE)
    _flush_names(home)


def new_folder(index_version: IndexVersion) -> str:
    """A name that tells the model to a person, and was never used before.

    A digest of the embedder would not do: an index that was opened before a rebuild for the same embedder
    must not take the new folder for its own.
    """
    slug = re.sub(r"[^A-Za-z0-9]+", "-", index_version.embedder.model).strip("-").lower()[-40:]
    return f"{slug or 'model'}-{os.urandom(4).hex()}"


def _to_json(placed: Placed) -> dict[str, Any]:
    return {"folder": placed.folder, "edition": asdict(placed.index_version)}


def _placed(fields: dict[str, Any] | None) -> Placed | None:
    if fields is None:
        return None
    index_version = fields["edition"]
    return Placed(
        fields["folder"],
        IndexVersion(EmbedderIdentity(**index_version["embedder"]), index_version["called"]),
    )


def _flush_names(folder: Path) -> None:
    """A renamed file survives a power cut once its folder is on the disk, where a folder can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
