"""The files of a repository and the pages of its wiki, which git brings.

The wiki is a repository of its own beside the one it belongs to, from its first page on. Both are reached
at the web address of the service itself, with the token that its API takes; who may read the repository
may read both (docs.github.com, "About wikis").
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

from connectors.checkpoints import value_of
from connectors.connector import Change, Deletion, Known, Listed
from connectors.errors import ActionRequiredError
from connectors.extraction.result import Extracted
from connectors.files.paths import Parts, titled
from connectors.git_repository.branch_sync import Branch
from connectors.git_repository.choosing import PlainFiles
from connectors.git_repository.connection import NoRepository, Way
from connectors.git_repository.credentials import Token
from connectors.git_repository.file_documents import Shelf
from connectors.git_repository.mirror import NoSuchBranch
from connectors.git_repository.progress import Arrived, Place, Stage, place_of, stored
from connectors.git_repository.remote_url import remote_of
from connectors.http_client.address_guard import checked_url
from connectors.http_client.rate_limits import github_pace
from connectors.http_client.token_account import Account
from connectors.sources.github.client import Refused
from connectors.sources.github.content_reader import At, Home, Read, Start
from connectors.sources.github.repositories import Repository
from connectors.sources.github.settings import GitHubSettings

_PAGES = {
    *(".md", ".mkd", ".mkdn", ".mdown", ".markdown", ".txt", ".textile", ".rdoc", ".org"),
    *(".creole", ".mediawiki", ".wiki", ".rst", ".asciidoc", ".adoc", ".asc", ".pod"),
}
_BARS = {"_sidebar", "_footer", "_header"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByGit:
    """Implements `connectors.sources.github.content_reader.Part`. A document is called by the part's name and its path."""

    name: str
    branch: Callable[[Home], Branch | None]
    """None where the repository has no such part."""
    absent: tuple[type[ActionRequiredError], ...]
    """What says that there is nothing yet, and no trouble."""

    def owns(self, own: str) -> bool:
        return own.startswith(f"{self.name}/")

    def changes(self, home: Home, start: Start, known: Known) -> Iterator[Change | At | Read]:
        """A checkpoint every 200 files."""
        until = ""
        with self._found(home) as branch:
            for change in branch.changes(_place(start), known) if branch else ():
                match change:
                    case Stage() | Arrived():
                        # Only with what was read to its end the next run begins.
                        until = change.commit if isinstance(change, Arrived) else until
                        yield At(json.dumps(stored(change)))
                    case _:
                        yield change
        yield Read(until)

    def again(self, home: Home, document_ids: Sequence[str]) -> Iterator[Change]:
        with self._found(home) as branch:
            if branch is not None:
                yield from branch.again(document_ids)
                return
        yield from map(Deletion, document_ids)

    def listing(self, home: Home) -> Iterator[Listed]:
        with self._found(home) as branch:
            if branch is not None:
                yield from branch.listing()

    def probe(self, home: Home) -> None:
        with self._found(home) as branch:
            if branch is not None:
                branch.probe()

    @contextmanager
    def _found(self, home: Home) -> Iterator[Branch | None]:
        """What is asked of a branch that is not there has no answer, and is left quietly."""
        try:
            yield self.branch(home)
        except self.absent:
            return
        except ActionRequiredError as error:
            raise Refused(str(error)) from error


def _place(start: Start) -> Place | None:
    return place_of(value_of(start.at)) or (Arrived(start.until) if start.until else None)


def wiki(account: Account, settings: GitHubSettings) -> ByGit:
    """Its pages, without the bars beside every page."""

    def branch(home: Home) -> Branch | None:
        repository = home.repository
        if not repository.has_wiki:
            return None
        shelf = Shelf(
            source=home.source,
            prefix=home.id_of("wiki/"),
            parents=(*repository.parents, "wiki"),
            metadata={"repository": repository.name, "kind": "wiki page"},
            takes=_is_page,
            link=lambda parts, _: f"{repository.link}/wiki/{_page_name(parts)}",
            within=f"{repository.name}/wiki/",
            title=_page_title,
            largest_file=settings.largest_file,
        )
        return _branch(account, settings, home, ".wiki.git", shelf)

    return ByGit(name="wiki", branch=branch, absent=(NoRepository, NoSuchBranch))


def files(account: Account, settings: GitHubSettings) -> ByGit:
    """Of the default branch."""
    plain = PlainFiles.of(settings.include_files, settings.exclude_files)

    def branch(home: Home) -> Branch:
        repository = home.repository
        shelf = Shelf(
            source=home.source,
            prefix=home.id_of("files/"),
            parents=repository.parents,
            metadata={"repository": repository.name, "kind": "file"},
            takes=plain.takes,
            link=lambda parts, name: f"{repository.link}/blob/{quote(name)}/{_quoted(parts)}",
            within=f"{repository.name}/",
            largest_file=settings.largest_file,
        )
        return _branch(account, settings, home, ".git", shelf)

    return ByGit(name="files", branch=branch, absent=(NoSuchBranch,))


def web_url(api_url: str) -> str:
    """Where people and git go: https://github.com for https://api.github.com, and the host itself of a
    GitHub Enterprise Server, whose API is below /api."""
    url = checked_url(api_url)
    host = url.host if url.path.strip("/") else url.host.removeprefix("api.")
    return str(url.copy_with(host=host, path="/", query=None)).rstrip("/")


def _branch(
    account: Account, settings: GitHubSettings, home: Home, suffix: str, shelf: Shelf
) -> Branch:
    address = f"{web_url(account.api_url)}/{home.repository.name}{suffix}"
    way = Way(
        source=account.source,
        remote=remote_of(address),
        sign_in=Token(token=SecretStr(account.token)),
        reach=account.reach,
        pace=github_pace,
    )
    return Branch(
        way=way,
        name="",
        kept=_kept(account, settings, home.repository, suffix),
        shelf=shelf,
        rules=lambda copy, commit: lambda parts: home.rights.access,  # noqa: ARG005
    )


def _kept(
    account: Account, settings: GitHubSettings, repository: Repository, suffix: str
) -> Path | None:
    """By the number of the repository: it stays when that is renamed. One folder may serve several
    servers."""
    server = hashlib.sha256(account.api_url.encode()).hexdigest()[:20]
    return settings.mirror and settings.mirror / f"github-{server}-{repository.id}{suffix}"


def _is_page(parts: Parts) -> bool:
    name = PurePosixPath(parts[-1])
    hidden = any(one.startswith(".") for one in parts)
    return not hidden and name.suffix.lower() in _PAGES and name.stem.lower() not in _BARS


def _page_name(parts: Parts) -> str:
    """A page is read by its name alone, whatever folder it lies in."""
    return _quoted([PurePosixPath(parts[-1]).stem.replace(" ", "-")])


def _page_title(parts: Parts, extracted: Extracted) -> str:
    """Its name, as GitHub shows it above the page."""
    del extracted
    return titled(parts[-1])


def _quoted(parts: Sequence[str]) -> str:
    return quote_from_bytes(os.fsencode("/".join(parts)))
