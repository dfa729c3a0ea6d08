"""Whose uploaded files a request is about."""

from typing import Annotated, TypeAlias

from fastapi import Depends, Path

from backend.api.conversation_dependencies import OwnerDependency
from backend.api.dependencies import AppStateDependency, DatabaseDependency
from backend.files.file_service import FileService

FileId: TypeAlias = Annotated[str, Path(max_length=100)]


def get_files(
    owner: OwnerDependency, database: DatabaseDependency, state: AppStateDependency
) -> FileService:
    return FileService(database, owner, state.files)


FilesDependency = Annotated[FileService, Depends(get_files)]
