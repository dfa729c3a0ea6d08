"""The files of a repository and the pages of its wiki, which are read with git.

The wiki is a repository of its own beside the one it belongs to, from its first page on. Both are at the
web address of the service, and accept the token of its API; who may read the repository may read both
(docs.github.com, "About wikis").
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, quote_from_bytes

from pydantic import SecretStr

from connectors.connector import (
    Change,
    Deletion,
    DocumentCount,
    DocumentListing,
    KnownVersions,
    parse_checkpoint_value,
)
from connectors.errors import ActionRequiredError
from connectors.extraction.result import ExtractionResult
from connectors.files.paths import PathParts, make_title
from connectors.git_repository.branch_sync import Branch, FileFilter
from connectors.git_repository.connection import Connection, RepositoryNotFoundError
from connectors.git_repository.credentials import Token
from connectors.git_repository.file_documents import DocumentOptions
from connectors.git_repository.mirror import BranchNotFoundError
from connectors.git_repository.progress import (
    Completed,
    InProgress,
    SyncProgress,
    progress_from_json,
    progress_to_json,
)
from connectors.git_repository.remote_url import parse_remote
from connectors.http_client.address_guard import validate_url
from connectors.http_client.api_client import AccessDeniedError, ApiAccount
from connectors.sources.github.client import read_github_rate_limit
from connectors.sources.github.content_reader import (
    PartCompleted,
    PartPosition,
    PartStart,
    RepositoryContext,
)
from connectors.sources.github.repositories import Repository
from connectors.sources.github.settings import GitHubSettings

_PAGE_SUFFIXES = {
    *(".md", ".mkd", ".mkdn", ".mdown", ".markdown", ".txt", ".textile", ".rdoc", ".org"),
    *(".creole", ".mediawiki", ".wiki", ".rst", ".asciidoc", ".adoc", ".asc", ".pod"),
}
_SIDEBARS = {"_sidebar", "_footer", "_header"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPart:
    """Implements `connectors.sources.github.content_reader.Part`. A document is named by the part and its path."""

    name: str
    open_branch: Callable[[RepositoryContext], Branch | None]
    """Returns None if the repository has no such part."""
    absent_errors: tuple[type[ActionRequiredError], ...]
    """The errors that mean that there is nothing yet."""

    def owns(self, name: str) -> bool:
        return name.startswith(f"{self.name}/")

    def changes(
        self, context: RepositoryContext, start: PartStart, known: KnownVersions
    ) -> Iterator[Change | PartPosition | PartCompleted]:
        """Yield what changed, with a position every 200 files."""
        end_state = ""
        with self._branch(context) as branch:
            for change in branch.changes(_parse_progress(start), known) if branch else ():
                match change:
                    case InProgress() | Completed():
                        # The next run begins with the commit that was read completely.
                        end_state = change.commit if isinstance(change, Completed) else end_state
                        yield PartPosition(json.dumps(progress_to_json(change)))
                    case DocumentCount():
                        pass  # of this part of the source alone
                    case _:
                        yield change
        yield PartCompleted(end_state)

    def refetch(self, context: RepositoryContext, document_ids: Sequence[str]) -> Iterator[Change]:
        with self._branch(context) as branch:
            if branch is not None:
                yield from branch.refetch(document_ids)
                return
        yield from map(Deletion, document_ids)

    def listing(self, context: RepositoryContext, position: str) -> Iterator[DocumentListing]:
        """Yield all files, which a few requests fetch: there is no position to resume from."""
        del position
        with self._branch(context) as branch:
            if branch is not None:
                yield from branch.listing()

    def probe(self, context: RepositoryContext) -> None:
        with self._branch(context) as branch:
            if branch is not None:
                branch.probe()

    @contextmanager
    def _branch(self, context: RepositoryContext) -> Iterator[Branch | None]:
        """Open the branch; if it does not exist, the block ends quietly."""
        try:
            yield self.open_branch(context)
        except self.absent_errors:
            return
        except ActionRequiredError as error:
            raise AccessDeniedError(str(error)) from error


def _parse_progress(start: PartStart) -> SyncProgress | None:
    progress = progress_from_json(parse_checkpoint_value(start.position))
    return progress or (Completed(start.end_state) if start.end_state else None)


def create_wiki_part(account: ApiAccount, settings: GitHubSettings) -> GitPart:
    """Read the pages of the wiki, without the bars beside every page."""

    def open_branch(context: RepositoryContext) -> Branch | None:
        repository = context.repository
        if not repository.has_wiki:
            return None
        options = DocumentOptions(
            source=context.source,
            id_prefix=context.to_document_id("wiki/"),
            parents=(*repository.parents, "wiki"),
            metadata={"repository": repository.name, "kind": "wiki page"},
            accepts=_is_wiki_page,
            link=lambda parts, _: f"{repository.link}/wiki/{_quote_page_name(parts)}",
            item_prefix=f"{repository.name}/wiki/",
            title=_get_page_title,
            largest_file=settings.largest_file,
        )
        return _open_branch(account, settings, context, ".wiki.git", options)

    absent_errors = (RepositoryNotFoundError, BranchNotFoundError)
    return GitPart(name="wiki", open_branch=open_branch, absent_errors=absent_errors)


def create_files_part(account: ApiAccount, settings: GitHubSettings) -> GitPart:
    """Read the files of the default branch."""
    selected = FileFilter.of(settings.include_files, settings.exclude_files)

    def open_branch(context: RepositoryContext) -> Branch:
        repository = context.repository
        options = DocumentOptions(
            source=context.source,
            id_prefix=context.to_document_id("files/"),
            parents=repository.parents,
            metadata={"repository": repository.name, "kind": "file"},
            accepts=selected.accepts,
            link=lambda parts, name: f"{repository.link}/blob/{quote(name)}/{_quote_path(parts)}",
            item_prefix=f"{repository.name}/",
            largest_file=settings.largest_file,
        )
        return _open_branch(account, settings, context, ".git", options)

    return GitPart(name="files", open_branch=open_branch, absent_errors=(BranchNotFoundError,))


def get_web_url(api_url: str) -> str:
    """Return the URL of the pages and of git: https://github.com for https://api.github.com.

    A GitHub Enterprise Server has its API below /api on the same host.
    """
    url = validate_url(api_url)
    host = url.host if url.path.strip("/") else url.host.removeprefix("api.")
    return str(url.copy_with(host=host, path="/", query=None)).rstrip("/")


def _open_branch(
    account: ApiAccount,
    settings: GitHubSettings,
    context: RepositoryContext,
    suffix: str,
    options: DocumentOptions,
) -> Branch:
    url = f"{get_web_url(account.api_url)}/{context.repository.name}{suffix}"
    connection = Connection(
        source=account.source,
        remote=parse_remote(url),
        sign_in=Token(token=SecretStr(account.token)),
        allowed_networks=account.allowed_networks,
        read_rate_limit=read_github_rate_limit,
    )
    return Branch(
        connection=connection,
        name="",
        mirror_folder=_get_mirror_path(account, settings, context.repository, suffix),
        options=options,
        load_access=lambda repository, commit: lambda parts: context.access,  # noqa: ARG005
    )


def _get_mirror_path(
    account: ApiAccount, settings: GitHubSettings, repository: Repository, suffix: str
) -> Path | None:
    # By the id of the repository, which survives a rename, and by the server: several may share the
    # folder.
    server = hashlib.sha256(account.api_url.encode()).hexdigest()[:20]
    return settings.mirror and settings.mirror / f"github-{server}-{repository.id}{suffix}"


def _is_wiki_page(parts: PathParts) -> bool:
    name = PurePosixPath(parts[-1])
    hidden = any(one.startswith(".") for one in parts)
    return (
        not hidden and name.suffix.lower() in _PAGE_SUFFIXES and name.stem.lower() not in _SIDEBARS
    )


def _quote_page_name(parts: PathParts) -> str:
    # The URL of a page has its name only, not its folder.
    return _quote_path([PurePosixPath(parts[-1]).stem.replace(" ", "-")])


def _get_page_title(parts: PathParts, extracted: ExtractionResult) -> str:
    """Return the name of the file, which GitHub shows above the page."""
    del extracted
    return make_title(parts[-1])


def _quote_path(parts: Sequence[str]) -> str:
    return quote_from_bytes(os.fsencode("/".join(parts)))
