"""A git repository behind git's own HTTP server, which requires a token."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from pydantic import SecretStr

from connectors.access import EVERYBODY, PUBLIC, Access
from connectors.connector import Connector, ReaderGroup
from connectors.git_repository.credentials import GitCredential, Token
from connectors.sources.git.connector import GitConnector, GitSettings
from tests.contract.connector_worlds.held import list_groups
from tests.contract.connector_worlds.world import (
    ITEMS,
    SOURCE_ID,
    UNREADABLE,
    Crowds,
    Expires,
    Garbles,
    IdOnMove,
    Limits,
    Moves,
    RuleReaders,
    Skews,
    World,
    edited_text,
    text,
    title,
)
from tests.support.repository import Delete, Move, Repository, Write, data
from tests.support.services.git_http import TOKEN, GitHttp, web_page
from tests.support.services.serving import Reply, serve

_CREDENTIAL = GitCredential(sign_in=Token(token=SecretStr(TOKEN)))


class GitWorld(World, RuleReaders, Moves, Skews, Limits, Expires, Garbles, Crowds):
    name = "git"
    id_on_move = IdOnMove.CHANGED
    wait = timedelta(minutes=20)
    mending = "make an access token .* quarry sources edit 源"
    garblings = ("html", "cut")

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._clock_offset = timedelta()
        self._repository = Repository(root / "served/handbook.git")
        self._repository.git("config", "uploadpack.allowFilter", "true")
        self._commit(
            self._write_rules(),
            *(self._write_item(number, text(number)) for number in range(ITEMS)),
        )
        self._commit(Write(_path(UNREADABLE), b""))
        self._server = GitHttp(root / "served")
        self._open = ExitStack()
        self._url = self._open.enter_context(serve(self._server)).url

    @cached_property
    def _group(self) -> ReaderGroup:
        """That of the rules, whose token stays the same whoever is in it. To ask for it takes as long as a run."""
        (group,) = list_groups(self.connect())
        return group

    def connect(self) -> Connector:
        settings = GitSettings(
            url=f"{self._url}/handbook.git", readers=(), private_hosts=("127.0.0.1",)
        )
        return GitConnector("源", SOURCE_ID, settings, _CREDENTIAL)

    def readers(self, number: int) -> Access:
        return Access.to([self._group.token]) if number % 7 == 3 else EVERYBODY

    def people(self, number: int) -> frozenset[str]:
        return frozenset(self.rule_readers if number % 7 == 3 else {PUBLIC})

    def write_rules(self) -> None:
        self._commit(self._write_rules())

    def edit(self, number: int) -> None:
        self._commit(self._write_item(number, edited_text(number)))

    def remove(self, number: int) -> None:
        self._commit(Delete(_path(number)))

    def move(self, number: int) -> None:
        folder, _, name = _path(number).rpartition("/")
        self._commit(Move(_path(number), f"{folder}/moved {name}"))

    def skew(self, by: timedelta) -> None:
        self._clock_offset = by

    def limit(self, after: int) -> None:
        retry = {"Retry-After": str(int(self.wait.total_seconds()))}
        self._server.requests_before_error, self._server.error_reply = (
            after,
            Reply(status=429, headers=retry),
        )

    def relent(self) -> None:
        self._server.error_reply = None

    def expire(self, after: int) -> None:
        basic = {"WWW-Authenticate": 'Basic realm="git"'}
        self._server.requests_before_error, self._server.error_reply = (
            after,
            Reply(status=401, headers=basic),
        )

    def renew(self) -> None:
        self._server.error_reply = None

    def garble(self, how: str, after: int) -> None:
        self._server.requests_before_error = after
        if how == "html":
            self._server.error_reply = web_page()
        else:
            self._server.truncate_to = 100

    def mend(self) -> None:
        self._server.error_reply = self._server.truncate_to = None

    def crowd(self, items: int) -> Connector:
        repository = Repository(self.root / "crowd.git")
        repository.import_(_crowd(items))
        settings = GitSettings(url=str(repository.folder), readers=("public",))
        return GitConnector("crowd", SOURCE_ID, settings, GitCredential())

    def close(self) -> None:
        self._open.close()

    def _commit(self, *steps: Write | Delete | Move) -> None:
        at = time.time() + self._clock_offset.total_seconds()
        self._repository.commit(*steps, at=int(at))

    def _write_rules(self) -> Write:
        return Write("access.yaml", self.format_rules("3/**").encode())

    def _write_item(self, number: int, content: str) -> Write:
        return Write(_path(number), f"# {title(number)}\n\n{content}".encode())


def _path(number: int) -> str:
    return f"{number % 7}/項目 {number:03}.md"


def _crowd(items: int) -> Iterator[bytes]:
    yield b"blob\nmark :1\n" + data(b"Crowd.")
    yield b"commit refs/heads/main\ncommitter Ann <ann@example.com> 1700000000 +0000\n"
    yield data(b"Many.")
    for number in range(items):
        yield f"M 100644 :1 {number // 1000}/{number}.txt\n".encode()
