"""Settings of a folder as a source."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from connectors.server_access import ServerAccess
from connectors.setting_types import GlobPatterns


class FolderSettings(BaseModel):
    """Index the files of a folder on this machine. Patterns are matched from the folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(
        title="Folder on this machine",
        description="Read with all its subfolders. An access.yaml in it defines who may read what.",
    )
    include: GlobPatterns = Field(
        default=(),
        description="Glob patterns of the files to read, such as **/*.md. If empty, all files.",
    )
    exclude: GlobPatterns = Field(
        default=(), description="Glob patterns of the files to leave out."
    )
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Maximum file size in bytes. Larger files are reported as unreadable.",
    )

    @field_validator("path")
    @classmethod
    def _make_absolute(cls, path: Path) -> Path:
        """Expand no ~name: it would tell whether the server has a user of that name."""
        first = path.parts[0] if path.parts else ""
        if first.startswith("~") and first != "~":
            raise ValueError(f"{path}: write the whole path, from /")
        try:
            return path.expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(
                f"{path}: the server has no home folder; write the whole path, from /"
            ) from error


def folder_access(settings: FolderSettings) -> ServerAccess:
    return ServerAccess(paths=(settings.path,))


def find_missing_folder(settings: FolderSettings) -> str | None:
    """Return what is wrong if the folder does not exist. Asked only when a source is added: a folder
    whose disk is not mounted later is still a source."""
    try:
        exists = settings.path.is_dir()
    except OSError:
        exists = False
    return None if exists else "There is no such folder on this machine."
