"""Scripts and styles, under an address that changes with their content."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

_TYPES = MappingProxyType(
    {
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
        ".json": "application/json",
    }
)
_NONE: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StaticFile:
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class StaticFiles:
    """All of them, read once. Scripts import each other by relative names, so that one version
    names them all."""

    files: Mapping[str, StaticFile]
    version: str

    def url(self, name: str) -> str:
        """Return the address of a file. Raises ValueError: there is no such file."""
        if name not in self.files:
            raise ValueError(f"no such file: {name}")
        return f"/static/{self.version}/{name}"


def read_static_files(made: Mapping[str, bytes] = _NONE) -> StaticFiles:
    """Read the static files of the package.

    Args:
        made: files that are made when the server starts, by name.
    """
    found = {
        entry.name: StaticFile(entry.read_bytes(), _media_type(entry.name))
        for entry in sorted((files("backend.web") / "static").iterdir(), key=lambda each: each.name)
        if entry.is_file()
    }
    found |= {name: StaticFile(content, _media_type(name)) for name, content in made.items()}
    digest = hashlib.sha256()
    for name, file in found.items():
        digest.update(f"{name} {len(file.content)}\n".encode() + file.content)
    return StaticFiles(MappingProxyType(found), digest.hexdigest()[:12])


def _media_type(name: str) -> str:
    suffix = f".{name.rpartition('.')[2]}"
    return _TYPES.get(suffix, "application/octet-stream")
