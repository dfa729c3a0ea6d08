"""A Slack workspace with its API, and the same as an export on disk."""

import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import overload

from pydantic import SecretStr

from connectors.access import PUBLIC, Access
from connectors.connector import Connector
from connectors.sources.slack.connector import SlackConnector, SlackCredential, SlackSettings
from connectors.sources.slack.settings import ApiSettings, ExportSettings
from tests.contract.connector_worlds.world import (
    ANN,
    BO,
    CY,
    ITEMS,
    SOURCE_ID,
    UNREADABLE,
    Crowds,
    Expires,
    Fails,
    Garbles,
    Grouped,
    Limits,
    Shift,
    Shifts,
    Skews,
    World,
    edited_text,
    text,
    title,
)
from tests.support.services.serving import ReceivedRequest, Reply, reply_json, reply_text, serve
from tests.support.services.slack import (
    TOKEN,
    Json,
    SlackService,
    build_export,
    person,
    rate_limited,
)

_PUBLIC, _PRIVATE = "C1", "G2"
_STEP = 60.0
"""Seconds between two items."""


class _Workspace(World, Grouped):
    """Every seventh item, from the third, is in a private channel; every fifth, from the second, has a
    reply."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.service = SlackService()
        self.service.users = [
            person("U1", "Ann Lee", "ann@example.com"),
            person("U2", "Bo Ek", "bo@example.com"),
            person("U3", "Cy Oak", "cy@example.com"),
        ]
        self.service.add_channel(_PUBLIC, "general", ["U1", "U2", "U3"])
        self.service.add_channel(_PRIVATE, "three", ["U1", "U2"])
        self.stamps: dict[int, str] = {}
        self._started_at = time.time() - (ITEMS + 10) * _STEP
        for number in range(ITEMS):
            self.post(number)

    def post(self, number: int) -> None:
        at = self._started_at + number * _STEP
        channel = self.channel(number)
        ts = self.service.post(channel, f"{title(number)}\n{text(number)}", at=at)
        self.stamps[number] = ts
        if number % 5 == 2:
            self.service.post(channel, "So it is.", to=ts, at=at + 5, user="U2")

    def channel(self, number: int) -> str:
        return _PRIVATE if number % 7 == 3 else _PUBLIC

    def readers(self, number: int) -> Access:
        return Access.to([f"external:{SOURCE_ID}:{self.channel(number)}"])

    def people(self, number: int) -> frozenset[str]:
        return frozenset({PUBLIC} if self.channel(number) == _PUBLIC else self._members)

    @property
    def _members(self) -> set[str]:
        tokens = {"U1": ANN, "U2": BO, "U3": CY}
        return {tokens[one] for one in self.service.conversations[_PRIVATE].members}

    def join(self) -> None:
        self.service.conversations[_PRIVATE].members.append("U3")

    def leave(self) -> None:
        self.service.conversations[_PRIVATE].members.remove("U1")

    def edit(self, number: int) -> None:
        said = f"{title(number)}\n{edited_text(number)}"
        self.service.edit(self.channel(number), self.stamps[number], said)

    def remove(self, number: int) -> None:
        channel = self.channel(number)
        self.service.conversations[channel].replies.pop(self.stamps[number], None)
        self.service.delete(channel, self.stamps[number])


class SlackWorld(_Workspace, Fails, Skews, Limits, Expires, Garbles, Shifts, Crowds):
    """The replies to an item may fail by themselves."""

    name = "slack"
    wait = timedelta(minutes=20)
    mending = "create a new token .*quarry sources edit 源"
    garblings = ("html", "cut", "another shape", "empty")
    shifts = tuple(Shift)

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fail(UNREADABLE)
        self._open = ExitStack()
        self._url = self._open.enter_context(serve(self.service)).url

    def connect(self) -> Connector:
        return _connector("源", self._url)

    def edit(self, number: int) -> None:
        super().edit(number)
        self.heal(number)

    def fail(self, number: int) -> None:
        assert number % 5 == 2, "only an item with replies can fail by itself"
        self.service.failing_threads.add(self.stamps[number])

    def heal(self, number: int) -> None:
        self.service.failing_threads.discard(self.stamps[number])

    def skew(self, by: timedelta) -> None:
        self.service.clock_offset = by.total_seconds()

    def limit(self, after: int) -> None:
        self._inject_fault(after, rate_limited(str(int(self.wait.total_seconds()))))

    def relent(self) -> None:
        self.service.fault = None

    def expire(self, after: int) -> None:
        self._inject_fault(after, reply_json({"ok": False, "error": "token_revoked"}))

    def renew(self) -> None:
        self.service.fault = None

    def garble(self, how: str, after: int) -> None:
        replies = {
            "html": reply_text("<html>Sign in</html>", media_type="text/html"),
            "cut": reply_text(
                '{"ok": true, "messages": [{"ts": "17', media_type="application/json"
            ),
            "another shape": reply_json({"ok": True, "messages": {"total": 0}, "members": None}),
            "empty": Reply(),
        }
        self._inject_fault(after, replies[how])

    def mend(self) -> None:
        self.service.fault = None

    def shift(self, how: Shift) -> frozenset[int]:
        removed, added = range(ITEMS - 10, ITEMS - 7), range(ITEMS, ITEMS + 3)
        match how:
            case Shift.REPEAT:
                self.service.overlap = 3
                return frozenset()
            case Shift.SHORT:
                self.service.has_gaps = True
                return frozenset()
            case Shift.REMOVED:
                self._after_the_first_page(self.remove, removed)
                return frozenset(removed)
            case Shift.ADDED:
                self._after_the_first_page(self.post, added)
                return frozenset(added)

    def crowd(self, items: int) -> Connector:
        service = SlackService()
        service.users = self.service.users
        service.add_channel(_PUBLIC, "crowd", ["U1"]).messages = _Crowd(items)
        server = self._open.enter_context(serve(service))

        def forget(request: int) -> None:
            del request
            server.log.clear()
            service.calls.clear()

        service.before_history = forget
        return _connector("crowd", server.url)

    def close(self) -> None:
        self._open.close()

    def _inject_fault(self, after: int, reply: Reply) -> None:
        def reply_always(request: ReceivedRequest) -> Reply:
            del request
            return reply

        self.service.requests_before_fault, self.service.fault = after, reply_always

    def _after_the_first_page(self, act: Callable[[int], None], numbers: Iterable[int]) -> None:
        begun: list[int] = []

        def before(request: int) -> None:
            begun.append(request)
            if len(begun) == 2:
                for number in numbers:
                    act(number)

        self.service.before_history = before


class SlackExportWorld(_Workspace):
    """A zip that is written again after each change; one item is a message of an app without text."""

    name = "slack-export"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        channel, ts = self.channel(UNREADABLE), self.stamps[UNREADABLE]
        self.service.conversations[channel].replies.pop(ts)
        (message,) = (one for one in self.service._all(channel) if one["ts"] == ts)
        message |= {"text": "", "username": title(UNREADABLE), "blocks": [{"type": "divider"}]}
        self._write()

    def connect(self) -> Connector:
        read = ExportSettings(path=self.root / "export.zip", workspace_url="https://acme.slack.com")
        settings = SlackSettings(read=read, public_channels="everybody")
        return SlackConnector("源", SOURCE_ID, settings, SlackCredential())

    def edit(self, number: int) -> None:
        super().edit(number)
        self._write()

    def join(self) -> None:
        super().join()
        self._write()

    def leave(self) -> None:
        super().leave()
        self._write()

    def remove(self, number: int) -> None:
        super().remove(number)
        self._write()

    def _write(self) -> None:
        with zipfile.ZipFile(self.root / "export.zip", "w") as archive:
            for name, content in build_export(self.service).items():
                archive.writestr(name, content)


def _connector(source: str, url: str) -> Connector:
    read = ApiSettings(api_url=f"{url}/api", private_hosts=("127.0.0.1",))
    settings = SlackSettings(read=read, public_channels="everybody")
    return SlackConnector(source, SOURCE_ID, settings, SlackCredential(token=SecretStr(TOKEN)))


class _Crowd(Sequence[Json]):
    """That many messages, generated on request."""

    def __init__(self, items: int) -> None:
        self._stamps = range(1_700_000_000, 1_700_000_000 + items)

    def __len__(self) -> int:
        return len(self._stamps)

    @overload
    def __getitem__(self, at: int) -> Json: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Json]: ...
    def __getitem__(self, at: int | slice) -> Json | Sequence[Json]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return {"type": "message", "user": "U1", "text": "Crowd.", "ts": f"{self._stamps[at]}.0001"}
