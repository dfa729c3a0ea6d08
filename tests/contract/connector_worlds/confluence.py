"""A public and a private space, restricted pages and attachments, in Confluence Cloud and Data Center."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SecretStr

from connectors.access import PUBLIC, Access
from connectors.connector import Connector
from connectors.sources.confluence.connector import ConfluenceConnector
from connectors.sources.confluence.settings import (
    Cloud,
    ConfluenceCredential,
    ConfluenceSettings,
    DataCenter,
)
from tests.contract.connector_worlds.faulty_world import FaultyWorld
from tests.contract.connector_worlds.world import (
    ANN,
    BO,
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
from tests.support.services.confluence import (
    EMAIL,
    LONG_AGO,
    TOKEN,
    Attachment,
    Comment,
    ConfluenceService,
    Page,
    Profile,
    Restriction,
    Space,
    invalid_token,
    limited,
)
from tests.support.services.confluence_cloud import CloudService
from tests.support.services.confluence_server import DataCenterService
from tests.support.services.serving import Reply, serve

_FILES = range(ITEMS - 20, ITEMS - 10)
"""Items that are attachments of the page of item `_HOLDER`."""
_HOLDER = ITEMS - 30
_TOP = ITEMS // 5
_INNER = _TOP + 5
"""Restricted pages; the second is a child of the first with a narrower restriction."""
_BELOW = range(_TOP + 1, _TOP + 11)
_REMOVED = (10, 17, 20, 23)
_COMMENTS = (
    Comment(id=9001, body="<p>Seen.</p>", replies=(Comment(id=9002, by="ann", body="Me too."),)),
)


class ConfluenceWorld(FaultyWorld, Grouped, Moves, Fails, Shifts, Crowds):
    id_on_move = IdOnMove.KEPT
    shifts = (Shift.REPEAT, Shift.REMOVED, Shift.SHORT)
    site: ClassVar[type[ConfluenceService]]
    where: ClassVar[Cloud | DataCenter]
    _service: ConfluenceService

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._public_space = Space(id=11, key="HB", groups=["staff"], is_public=True)
        self._private_space = Space(id=12, key="BRD", people=["ann"], groups=["board"])
        for number in range(ITEMS):
            if number not in _FILES:
                self._get_space(number).put(_paper(number))
        files = tuple(_file(number) for number in _FILES)
        self._change(_HOLDER, files=files, at=LONG_AGO)
        self._change(UNREADABLE, comments=_COMMENTS, comments_status=422, at=LONG_AGO)
        self._service = self.site(self._public_space, self._private_space)
        self._service.people = {
            "ann": Profile(name="Ann Lee", email="Ann@example.com"),
            "bob": Profile(name="Bo Ek", email="bo@example.com"),
            "cy": Profile(name="Cy Oh", email="cy@example.com"),
            "dee": Profile(name="Dee"),
        }
        self._service.groups = {"staff": ["ann", "bob", "cy", "dee"], "board": ["bob", "dee"]}
        self._service.groups["managers"] = ["ann", "cy"]
        self._open = ExitStack()
        self._running = self._open.enter_context(serve(self._service))

    def connect(self) -> Connector:
        return self._connector("HB", "BRD")

    def readers(self, number: int) -> Access:
        clauses = [[f"external:{SOURCE_ID}:space/{self._get_space(number).id}"]]
        if number == _TOP or number in _BELOW:
            managers = str(self._service.group("managers").get("id", "managers"))
            clauses.append([f"external:{SOURCE_ID}:group/{managers}"])
        if number == _INNER:
            clauses.append([CY, BO])
        return Access.all_of(clauses)

    def people(self, number: int) -> frozenset[str]:
        groups = self._service.groups
        if self._get_space(number) is self._private_space:
            return _people(*self._private_space.people, *groups["board"])
        if number == _INNER:
            return _people(*groups["managers"]) & {CY, BO}
        if number == _TOP or number in _BELOW:
            return _people(*groups["managers"])
        return frozenset({PUBLIC})

    def join(self) -> None:
        self._service.groups["board"].append("cy")

    def leave(self) -> None:
        self._private_space.people.remove("ann")
        self._service.groups["managers"].remove("ann")

    def edit(self, number: int) -> None:
        if number in _FILES:
            self._change_file(number)
            return
        page = self._paper(number)
        body = f"<p>{edited_text(number)}</p>"
        self._change(number, body=body, number=page.number + 1, comments_status=200)

    def remove(self, number: int) -> None:
        self._change(number, status="trashed")

    def move(self, number: int) -> None:
        page = self._paper(number)
        named = f"{title(number)}, under another title"
        self._change(number, parent=_id(0), title=named, number=page.number + 1)

    def fail(self, number: int) -> None:
        self._change(number, comments_status=500, comments=_COMMENTS)

    def heal(self, number: int) -> None:
        self._change(number, comments_status=200)

    def shift(self, how: Shift) -> frozenset[int]:
        match how:
            case Shift.REPEAT:
                self._service.repeats = True
            case Shift.SHORT:
                self._service.gaps = True
            case _:
                self._service.after_first_page = self._remove_some
                return frozenset(_REMOVED)
        return frozenset()

    def crowd(self, items: int) -> Connector:
        self._service.spaces.append(Space(id=13, key="CRW", people=["ann"], crowd=items))
        # A log of thousands of requests would count as memory of the source.
        self._service.after_each = self._running.log.clear
        return self._connector("CRW")

    def close(self) -> None:
        self._open.close()

    def _connector(self, *spaces: str) -> Connector:
        settings = ConfluenceSettings(
            url=f"{self._running.url}{self._service.get_base_path()}",
            site=self.where,
            spaces=spaces,
            private_hosts=("127.0.0.1",),
        )
        return ConfluenceConnector(
            "源", SOURCE_ID, settings, ConfluenceCredential(token=SecretStr(TOKEN))
        )

    def _get_space(self, number: int) -> Space:
        is_private = number % 7 == 3 and number not in _BELOW
        return self._private_space if is_private and number not in _FILES else self._public_space

    def _paper(self, number: int) -> Page:
        return self._get_space(number).pages[_id(number)]

    def _change(self, number: int, /, **values: Any) -> None:
        now = {} if "at" in values else {"at": self._service.now}
        self._get_space(number).change(_id(number), **{**now, **values})

    def _change_file(self, number: int) -> None:
        files = [
            replace(one, data=edited_text(number).encode(), number=2, at=self._service.now)
            if one.id == _file(number).id
            else one
            for one in self._paper(_HOLDER).files
        ]
        self._change(_HOLDER, files=tuple(files), at=LONG_AGO)

    def _rate_limit_reply(self) -> Reply:
        return limited(int(self.wait.total_seconds()))

    def _invalid_credential_reply(self) -> Reply:
        return invalid_token()

    def _remove_some(self) -> None:
        for number in _REMOVED:
            self._change(number, status="trashed")


class ConfluenceCloudWorld(ConfluenceWorld):
    name = "confluence-cloud"
    mending = "create a new token .*id.atlassian.com.*quarry sources edit 源"
    site = CloudService
    where = Cloud(email=EMAIL)


class ConfluenceServerWorld(ConfluenceWorld):
    name = "confluence-server"
    mending = "create a new token .*Personal access tokens.*quarry sources edit 源"
    site = DataCenterService
    where = DataCenter()


def _people(*names: str) -> frozenset[str]:
    tokens = {"ann": ANN, "bob": BO, "cy": CY}
    return frozenset(tokens[one] for one in names if one in tokens)


def _id(number: int) -> int:
    return number + 1000


def _paper(number: int) -> Page:
    page = Page(id=_id(number), title=title(number), body=f"<p>{text(number)}</p>")
    if number == _TOP:
        return replace(page, restriction=Restriction(groups=("managers",)))
    if number == _INNER:
        return replace(page, parent=_id(_TOP), restriction=Restriction(people=("cy", "bob")))
    if number in _BELOW:
        return replace(page, parent=_id(_TOP))
    if number % 10 == 8:
        return replace(page, kind="blogpost", labels=("news",))
    return replace(page, comments=_COMMENTS) if number % 30 == 12 else page


def _file(number: int) -> Attachment:
    return Attachment(id=5000 + number, title=f"{title(number)}.txt", data=text(number).encode())
