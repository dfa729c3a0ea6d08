"""Issues and pull requests of a repository, each with all that was said on it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.checkpoints import is_stamp
from connectors.connector import Change, Deletion, Known, Listed, Unreadable
from connectors.document import Document
from connectors.http_client.response import Answer
from connectors.sources.github.client import needed
from connectors.sources.github.content_reader import At, Home, Read, Start, read
from connectors.sources.github.issue_document import document, is_of, item_name, mark, said_until
from connectors.sources.github.issue_pagination import Gone, Item, talked, walk
from connectors.sources.github.repositories import Repository
from connectors.sources.github.settings import Content


@dataclass(frozen=True, slots=True)
class Conversations:
    """Implements `connectors.sources.github.content_reader.Part`. A document is called by its number."""

    contents: tuple[Content, ...]
    name: str = "issues"

    def owns(self, own: str) -> bool:
        return re.fullmatch(r"\d{1,10}", own) is not None

    def changes(self, home: Home, start: Start, known: Known) -> Iterator[Change | At | Read]:
        """A checkpoint for each page of 100."""
        before: Mapping[int, str] = {}
        begin = start.at if is_stamp(start.at) else start.since
        for items, then in self._leaves(home, begin):
            fresh = [one for one in items if before.get(one.number) != mark(one)]
            yield from self._batch(home, fresh, known)
            before = {one.number: mark(one) for one in items}
            yield At(then)
        if start.since:
            yield from self._talked(home, start.since, known)
        yield Read()

    def again(self, home: Home, document_ids: Sequence[str]) -> Iterator[Change]:
        for one in document_ids:
            yield self._anew(home, int(home.own_of(one)))

    def listing(self, home: Home) -> Iterator[Listed]:
        """Each once, although what changes meanwhile is told again."""
        seen = bytearray()
        for items, _ in self._leaves(home, ""):
            for item in items:
                place, bit = item.number >> 3, 1 << (item.number & 7)
                seen.extend(bytes(max(0, place + 1 - len(seen))))
                if not seen[place] & bit:
                    seen[place] |= bit
                    yield Listed(home.id_of(str(item.number)), home.rights.access)

    def probe(self, home: Home) -> None:
        next(self._leaves(home, ""), None)

    def _talked(self, home: Home, since: str, known: Known) -> Iterator[Change]:
        """Items with comments that are newer than those in the documents that are held."""
        of_pulls = ["pulls"] if "pull requests" in self.contents else []
        for list_of in ["issues", *of_pulls]:
            with needed(f"the comments of {home.repository.name}"):
                for latest in talked(home.api, home.repository, list_of, since):
                    ids = {home.id_of(str(one)): one for one in latest}
                    for held_id, held in (known(list(ids)) if ids else {}).items():
                        if said_until(held) < latest[ids[held_id]]:
                            yield self._anew(home, ids[held_id])

    def _leaves(self, home: Home, since: str) -> Iterator[tuple[list[Item], str]]:
        """Items that the settings take in, page by page, and from where in time to go on after each.
        Nothing of a repository that went away meanwhile."""
        with needed(f"the issues of {home.repository.name}"):
            try:
                for leaf in walk(home.api, home.repository, since):
                    yield list(filter(self._includes, leaf.items)), leaf.then
            except Gone:
                home.check_gone(f"the issues of {home.repository.name}")

    def _includes(self, item: Item) -> bool:
        return ("pull requests" if item.is_pull else "issues") in self.contents

    def _batch(self, home: Home, items: Sequence[Item], known: Known) -> Iterator[Change]:
        ids = {one.number: home.id_of(str(one.number)) for one in items}
        held = known(list(ids.values())) if ids else {}
        for item in items:
            if not is_of(held.get(ids[item.number], ""), item):
                yield self._read(home, item)

    def _read(self, home: Home, item: Item) -> Document | Unreadable:
        unread = Unreadable(
            document_id=home.id_of(str(item.number)),
            item=item_name(home.repository, item),
            reason="",
            link=item.link,
        )
        return read(lambda: document(home, item), unread)

    def _anew(self, home: Home, number: int) -> Change:
        api, repository = home.api, home.repository
        with needed(f"{repository.name}#{number}"):
            answer = api.get(f"{repository.path}/issues/{number}")
            if answer.status == 410:
                answer = api.get(f"{repository.path}/pulls/{number}")
            item = _item(answer, repository, number)
        if item is None or not self._includes(item):
            return Deletion(home.id_of(str(number)))
        return self._read(home, item)


def _item(answer: Answer, repository: Repository, number: int) -> Item | None:
    """Nothing where it is gone, or was transferred to another repository, to which GitHub leads on."""
    if answer.gone:
        return None
    item = Item.of(answer.json_object())
    home = f"{repository.link}/".lower()
    return item if item.number == number and item.link.lower().startswith(home) else None
