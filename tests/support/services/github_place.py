"""A served fake GitHub, and connectors that read it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from connectors.access import Access
from connectors.document import Document
from connectors.sources.github.connector import GitHubConnector
from connectors.sources.github.settings import GitHubCredential, GitHubSettings
from tests.contract.connector_worlds.held import Held, documents, list_documents, list_groups, run
from tests.support.repository import Repository
from tests.support.services.github import TOKEN, GitHub
from tests.support.services.github_state import Issue, Repo
from tests.support.services.serving import RunningService, serve


@dataclass(frozen=True, slots=True)
class ServedGitHub:
    service: GitHub
    server: RunningService

    def connect(self, *repositories: str, **settings: object) -> GitHubConnector:
        return connector(self.server.url, *repositories, **settings)


def connector(url: str, *repositories: str, **settings: object) -> GitHubConnector:
    chosen = GitHubSettings.model_validate(
        {
            "repositories": repositories,
            "api_url": url,
            "private_hosts": ("127.0.0.1",),
            **settings,
        }
    )
    return GitHubConnector("hub", 1, chosen, GitHubCredential(token=SecretStr(TOKEN)))


@contextmanager
def serve_github(service: GitHub) -> Iterator[ServedGitHub]:
    with serve(service) as server:
        yield ServedGitHub(service, server)


def handbook(**values: object) -> Repo:
    repo = Repo(id=1, name="acme/handbook")
    for name, value in values.items():
        setattr(repo, name, value)
    repo.put(Issue(number=1, title="Lathe", body="It stops."))
    return repo


def board(*collaborators: str) -> Repo:
    repo = Repo(id=2, name="acme/board", visibility="private", collaborators=list(collaborators))
    repo.put(Issue(number=1, title="Salaries", body="They rise."))
    return repo


def create_repository(folder: Path, name: str) -> Repository:
    """Create the repository served as `name`: `acme/handbook` for files, `acme/handbook.wiki` for the wiki."""
    repository = Repository(folder / f"{name}.git")
    repository.git("config", "uploadpack.allowFilter", "true")
    return repository


def read(source: GitHubConnector) -> list[Document]:
    return documents(run(source, Held()))


def only(source: GitHubConnector) -> Document:
    (one,) = read(source)
    return one


def readers(source: GitHubConnector) -> dict[str, set[str]]:
    """Who may read the listed documents: accounts and their people, without the repositories between."""
    groups = {one.token: one.members for one in list_groups(source)}
    return {one.document_id: _expand(one.access, groups) for one in list_documents(source)}


def of_accounts(*logins: str) -> set[str]:
    """Accounts of the service's people at example.com."""
    return {f"external:1:account/{login}" for login in logins} | {
        f"user:{login}@example.com" for login in logins
    }


def _expand(access: Access, groups: Mapping[str, frozenset[str]]) -> set[str]:
    found: set[str] = set()
    reached = set(access.readers)
    while reached := {member for one in reached for member in groups.get(one, ())} - found:
        found |= reached
    return found
