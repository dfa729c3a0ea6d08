"""The manifest: one small file that names the folders of an index's versions.

Versions change only by replacing this file; a folder that it does not name is a leftover.
"""

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from connectors.errors import DamagedDataError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.versions import IndexVersion

FILE = "editions.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class VersionFolder:
    """An index version and the name of its folder. A name is never used twice."""

    folder: str
    index_version: IndexVersion


@dataclass(frozen=True, slots=True)
class Manifest:
    active: VersionFolder | None = None
    building: VersionFolder | None = None

    @property
    def folders(self) -> frozenset[str]:
        return frozenset(each.folder for each in (self.active, self.building) if each)


def read_manifest(home: Path) -> Manifest:
    """Read the manifest in `home`; it is empty where there is no file.

    Raises:
        DamagedDataError: it cannot be read, or has another format.
    """
    return parse_manifest(home, read_bytes(home))


def read_bytes(home: Path) -> bytes:
    """Return the content of the file; empty where there is none."""
    try:
        return (home / FILE).read_bytes()
    except FileNotFoundError:
        return b""


def parse_manifest(home: Path, content: bytes) -> Manifest:
    """Parse what `read_bytes` returned; raises as `read_manifest` does."""
    if not content:
        return Manifest()
    try:
        fields = json.loads(content)
        if fields["format"] != _FORMAT:
            raise ValueError(f"format {fields['format']}")
        return Manifest(_from_json(fields["active"]), _from_json(fields["building"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedDataError(
            f"The file {home / FILE}, which names the folders of the index, cannot be read: {error}. Remove"
            f" {home} and sync again; nothing is lost but the time to index."
        ) from error


def write_manifest(home: Path, manifest: Manifest) -> None:
    """Replace the file atomically; it is on disk when this returns."""
    content = {
        "format": _FORMAT,
        "active": manifest.active and _to_json(manifest.active),
        "building": manifest.building and _to_json(manifest.building),
    }
    partial = home / f"{FILE}.partial"
    with partial.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(home / FILE)
    _flush_directory(home)


def new_version_folder(index_version: IndexVersion) -> VersionFolder:
    """Choose a folder name that shows the model and was never used before.

    A hash of the embedder would not do: an index that was opened before a rebuild for the same embedder
    must not take the new folder for its own.
    """
    slug = re.sub(r"[^A-Za-z0-9]+", "-", index_version.embedder.model).strip("-").lower()[-40:]
    return VersionFolder(f"{slug or 'model'}-{os.urandom(4).hex()}", index_version)


def _to_json(version: VersionFolder) -> dict[str, Any]:
    described = {
        "embedder": asdict(version.index_version.embedder),
        "called": version.index_version.model_name,
    }
    return {"folder": version.folder, "edition": described}


def _from_json(fields: dict[str, Any] | None) -> VersionFolder | None:
    if fields is None:
        return None
    described = fields["edition"]
    embedder = EmbedderIdentity(**described["embedder"])
    return VersionFolder(fields["folder"], IndexVersion(embedder, described["called"]))


def _flush_directory(folder: Path) -> None:
    """Make a rename survive a power cut, on systems where a directory can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
