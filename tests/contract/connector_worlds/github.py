"""A public and a private repository with issues and discussions in GitHub's API, files and a wiki in git."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from connectors.access import PUBLIC, Access
from connectors.connector import Connector
from connectors.sources.github.connector import GitHubConnector
from connectors.sources.github.settings import GitHubCredential, GitHubSettings
from tests.contract.connector_worlds.faulty_world import FaultyWorld
from tests.contract.connector_worlds.world import (
    ANN,
    CY,
    ITEMS,
    SOURCE_ID,
    UNREADABLE,
    Crowds,
    Fails,
    Grouped,
    IdOnMove,
    Moves,
    Shift,
    Shifts,
    edited_text,
    text,
    title,
)
from tests.support.repository import Delete, Repository, Write
from tests.support.services.github import (
    TOKEN,
    GitHub,
    bad_credentials,
    primary_limit,
    slice_by_page,
)
from tests.support.services.github_state import LONG_AGO, Comment, Discussion, Issue, Repo
from tests.support.services.serving import ReceivedRequest, Reply, serve

_ONE_SECOND = range(ITEMS // 5, ITEMS - ITEMS // 15)
"""Items with the same time, more than a page of them, as after an import."""
_REMOVED = (11, 17, 21, 23)
_COMMENTS = (Comment(by="bob", body="Seen."),)


class GitHubWorld(FaultyWorld, Grouped, Moves, Fails, Shifts, Crowds):
    name = "github"
    id_on_move = IdOnMove.KEPT
    mending = "create a new token .*quarry sources edit 源"
    shifts = (Shift.REPEAT, Shift.REMOVED, Shift.SHORT)
    _service: GitHub

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._public = Repo(id=1001, name="acme/handbook")
        self._private = Repo(
            id=1002,
            name="acme/board",
            visibility="private",
            has_wiki=True,
            collaborators=["Ann", "bob"],
        )
        self._files = _create_repository(root / "acme/handbook.git")
        self._pages = _create_repository(root / "acme/board.wiki.git")
        _create_repository(root / "acme/board.git")
        self._fill()
        self._get_repository(UNREADABLE).change(_number(UNREADABLE), comments=_COMMENTS, status=422)
        self._service = GitHub(self._public, self._private, folder=root)
        self._service.profiles = {"ann": "Ann@example.com", "bob": None, "cy": "cy@example.com"}
        self._open = ExitStack()
        self._running = self._open.enter_context(serve(self._service))

    def connect(self) -> Connector:
        return self._connector("acme/handbook", "acme/board")

    def readers(self, number: int) -> Access:
        return Access.to([f"external:{SOURCE_ID}:repository/{self._get_repository(number).id}"])

    def people(self, number: int) -> frozenset[str]:
        if self._get_repository(number) is self._public:
            return frozenset({PUBLIC})
        known = {"Ann": ANN, "cy": CY}
        return frozenset(known[one] for one in self._private.collaborators if one in known)

    def join(self) -> None:
        self._private.collaborators.append("cy")

    def leave(self) -> None:
        self._private.collaborators.remove("Ann")

    def edit(self, number: int) -> None:
        match _kind(number):
            case "discussion":
                now = self._service.now
                self._get_repository(number).update_discussion(
                    _number(number), body=edited_text(number), at=now
                )
            case "file" | "page":
                self._get_git(number).commit(_create_write(number, edited_text(number)))
            case _:
                self._change(number, body=edited_text(number), status=200)

    def remove(self, number: int) -> None:
        match _kind(number):
            case "discussion":
                del self._get_repository(number).discussions[_number(number)]
            case "file" | "page":
                self._get_git(number).commit(Delete(_path(number)))
            case _:
                del self._get_repository(number).issues[_number(number)]

    def move(self, number: int) -> None:
        self._change(number, title=f"{title(number)}, under another title")

    def fail(self, number: int) -> None:
        self._get_repository(number).change(_number(number), status=500, comments=_COMMENTS)

    def heal(self, number: int) -> None:
        self._get_repository(number).change(_number(number), status=200)

    def shift(self, how: Shift) -> frozenset[int]:
        match how:
            case Shift.REPEAT:
                self._service.pages = _overlapping
            case Shift.SHORT:
                self._service.pages = _short
            case _:
                self._service.after_first_page = self._remove_some
                return frozenset(_REMOVED)
        return frozenset()

    def crowd(self, items: int) -> Connector:
        self._service.repositories.append(Repo(id=2000, name="acme/crowd", crowd=items))
        _create_repository(self.root / "acme/crowd.git")
        # A log of thousands of requests would count as memory of the source.
        self._service.after_each = self._running.log.clear
        return self._connector("acme/crowd")

    def close(self) -> None:
        self._open.close()

    def _connector(self, *repositories: str) -> Connector:
        settings = GitHubSettings(
            repositories=repositories,
            contents=("issues", "pull requests", "discussions", "wiki", "files"),
            api_url=self._running.url,
            private_hosts=("127.0.0.1",),
        )
        return GitHubConnector("源", SOURCE_ID, settings, GitHubCredential(token=SecretStr(TOKEN)))

    def _get_repository(self, number: int) -> Repo:
        """Return the repository of an item: the wiki is private, the files are public."""
        match _kind(number):
            case "file":
                return self._public
            case "page":
                return self._private
            case _:
                return self._private if number % 7 == 3 else self._public

    def _get_git(self, number: int) -> Repository:
        return self._files if _kind(number) == "file" else self._pages

    def _fill(self) -> None:
        written: dict[str, list[Write]] = {"file": [], "page": []}
        for number in range(ITEMS):
            match _kind(number):
                case "discussion":
                    self._get_repository(number).add_discussions(_discussion(number))
                case "file" | "page" as kind:
                    written[kind].append(_create_write(number, text(number)))
                case _:
                    self._get_repository(number).put(_issue(number))
        self._files.commit(*written["file"])
        self._pages.commit(*written["page"])

    def _change(self, number: int, **values: object) -> None:
        self._get_repository(number).change(_number(number), **values, at=self._service.now)

    def _rate_limit_reply(self) -> Reply:
        return primary_limit(self._service.now + self.wait)

    def _invalid_credential_reply(self) -> Reply:
        return bad_credentials()

    def _remove_some(self) -> None:
        for number in _REMOVED:
            self._get_repository(number).issues.pop(_number(number), None)


def _number(number: int) -> int:
    """Return the number at GitHub, counted from 1."""
    return number + 1


def _kind(number: int) -> str:
    match number % 10:
        case 0:
            return "file"
        case 5:
            return "discussion"
        case 6:
            return "page"
        case _:
            return "issue"


def _create_repository(folder: Path) -> Repository:
    repository = Repository(folder)
    repository.git("config", "uploadpack.allowFilter", "true")
    return repository


def _create_write(number: int, says: str) -> Write:
    return Write(_path(number), f"# {title(number)}\n\n{says}".encode())


def _path(number: int) -> str:
    return f"docs/{number:03}.md" if _kind(number) == "file" else f"Item-{number}.md"


def _discussion(number: int) -> Discussion:
    return Discussion(
        number=_number(number),
        title=title(number),
        body=text(number),
        comments=_COMMENTS if number % 50 == 5 else (),
        at=LONG_AGO + timedelta(seconds=number),
    )


def _issue(number: int) -> Issue:
    seconds = _ONE_SECOND.start if number in _ONE_SECOND else number
    issue = Issue(
        number=_number(number),
        title=title(number),
        body=text(number),
        at=LONG_AGO + timedelta(seconds=seconds),
    )
    if number % 30 == 12:
        verdict = (Comment(by="bob", body="", state="APPROVED"),)
        return replace(issue, is_pull=True, comments=_COMMENTS, reviews=verdict)
    return issue


def _overlapping(request: ReceivedRequest, size: int, total: int) -> tuple[int, int]:
    """Return pages that each repeat the last five items of the previous one."""
    start, end = slice_by_page(request, size, total)
    back = 5 * (start // size)
    return start - back, end - back


def _short(request: ReceivedRequest, size: int, total: int) -> tuple[int, int]:
    """Return pages of at most 60 items; every second page, beginning with the first, is empty."""
    del total
    size = min(size, 60)
    page = int(request.param("page", "1")) - 1
    start = page // 2 * size
    return (start, start + size) if page % 2 else (start, start)
