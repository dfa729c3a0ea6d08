"""All that can be done to document sets. Each action is one transaction that includes its audit entry.

People write what belongs to a set as documents are named: `SOURCE`, `SOURCE:FOLDER`, `SOURCE:ID` for a document, and
`key=value` or `SOURCE:key=value` for a tag.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from backend.schemas.document_set import DocumentSetResponse, MatchingResponse
from backend.store import audit
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.documents import document_sets
from backend.store.documents.document_set_rules import RuleKind, SetRule
from backend.store.documents.document_sets import DocumentSet, SetValues
from backend.store.sync import sources
from backend.store.sync.sources import EVERY_SOURCE, SourceChoice
from connectors.access import PUBLIC, parse_reader_token
from connectors.errors import (
    ActionRequiredError,
    InvalidInputError,
    TemporarilyUnavailableError,
)
from indexing.index.protocols import LABEL_SIGN, Selection
from indexing.text.normalization import is_storable

LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_RULE = 100, 1_000, 1_000
MOST_RULES, MOST_READERS = 2_000, 100
MOST_TRIED = 20
"""Rules of a set of which it is told whether each selects anything: the index is asked of one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDraft:
    """What somebody writes of a set."""

    name: str
    description: str = ""
    readers: tuple[str, ...] = ()
    """Reader tokens of those who see it; none: everybody."""
    sources: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentSetService:
    """Methods that take a name raise NotFoundError for a set that does not exist for the asker."""

    database: Database
    count: Callable[[Sequence[Selection]], int]
    """Counts documents of the index, whoever may read them."""
    actor: Actor = audit.OWNER
    choice: SourceChoice = EVERY_SOURCE
    """The sources that exist for the asker, who looks after the sets wholly of these."""

    def list_sets(self) -> list[DocumentSetResponse]:
        found = document_sets.list_sets(self.database, self.choice)
        return list(map(DocumentSetResponse.from_set, found))

    def get(self, name: str) -> DocumentSetResponse:
        """Return a set with the number of documents that it has now, where the index answers."""
        found = self.find(name)
        shown = DocumentSetResponse.from_set(found)
        if not shown.is_applied:
            return shown
        with suppress(ActionRequiredError, TemporarilyUnavailableError):
            now = self.count([Selection(in_set=found.label)])
            return shown.model_copy(update={"count": now})
        return shown

    def find(self, name: str) -> DocumentSet:
        return document_sets.find(self.database, name, self.choice)

    def count_matching(self, draft: SetDraft) -> MatchingResponse:
        """Count the documents that a set of these rules would have. Raises as `add`."""
        rules = self._read_rules(draft)
        _check_has_rules(rules)
        return MatchingResponse(
            documents=self.count([rule.to_selection() for rule in rules]),
            unmatched=self._list_unmatched(rules),
        )

    def list_unmatched(self, name: str) -> tuple[str, ...]:
        """Return the rules of a set that select nothing now, as people write them; none where the index does not answer."""
        rules = self.find(name).values.rules
        with suppress(ActionRequiredError, TemporarilyUnavailableError):
            return self._list_unmatched(rules)
        return ()

    def _list_unmatched(self, rules: Sequence[SetRule]) -> tuple[str, ...]:
        tried = rules if len(rules) <= MOST_TRIED else ()
        return tuple(str(rule) for rule in tried if not self.count([rule.to_selection()]))

    def add(self, draft: SetDraft) -> DocumentSetResponse:
        """Add a set; its documents are updated in the background.

        Raises:
            InvalidInputError: something of it is not valid.
            NotFoundError: it names a source that does not exist for the asker.
            ConflictError: there is a set of this name.
        """
        values = self._validate(draft)
        _check_has_rules(values.rules)
        with self.database.transaction() as database:
            document_sets.add(database, values)
            self._record(database, "add_set", values.name, _describe(values))
        return self.get(values.name)

    def change(self, name: str, draft: SetDraft) -> DocumentSetResponse:
        """Replace all that is said of a set. One whose sources were all deleted may stay without rules. Raises as `add`."""
        values = self._validate(draft)
        with self.database.transaction() as database:
            before = document_sets.find(database, name, self.choice)
            if before.values.rules:
                _check_has_rules(values.rules)
            document_sets.change(database, before.id, values)
            details = {"before": _describe(before.values), "after": _describe(values)}
            self._record(database, "change_set", name, details)
        return self.get(values.name)

    def remove(self, name: str) -> None:
        """Remove a set, for everybody at once."""
        with self.database.transaction() as database:
            found = document_sets.find(database, name, self.choice)
            document_sets.remove(database, found.id)
            self._record(database, "remove_set", name, _describe(found.values))

    def _record(
        self, database: Database, action: str, name: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, f"set:{name}", details, self.actor)

    def _validate(self, draft: SetDraft) -> SetValues:
        name = " ".join(draft.name.split())
        if not 0 < len(name) <= LONGEST_NAME or name.startswith(LABEL_SIGN):
            raise InvalidInputError(
                f"The name of a set has up to {LONGEST_NAME} characters and begins with no {LABEL_SIGN}."
            )
        if "/" in name or not name.strip("."):
            raise InvalidInputError(
                "The name of a set contains no slash, and more than dots: it is a part of addresses."
            )
        if not (name.isprintable() and is_storable(name)):
            raise InvalidInputError("The name of a set contains a character that is not printed.")
        description = draft.description.strip()
        if len(description) > LONGEST_DESCRIPTION or not is_storable(description):
            raise InvalidInputError(f"A description has up to {LONGEST_DESCRIPTION:,} characters.")
        return SetValues(
            name=name,
            description=description,
            readers=_parse_readers(draft.readers),
            rules=self._read_rules(draft),
        )

    def _read_rules(self, draft: SetDraft) -> tuple[SetRule, ...]:
        known = {one.name for one in sources.list_sources(self.database, self.choice)}
        reader = _RuleReader(self.database, self.choice, known)
        rules = tuple(dict.fromkeys(reader.read(draft)))
        if len(rules) > MOST_RULES:
            raise InvalidInputError(
                f"A set has at most {MOST_RULES:,} rules. Gather single documents by a folder or a tag."
            )
        return rules


@dataclass(frozen=True, slots=True)
class _RuleReader:
    """Reads rules as people write them."""

    database: Database
    choice: SourceChoice
    known: set[str]
    """The names of the sources that exist for the asker."""

    def read(self, draft: SetDraft) -> Iterator[SetRule]:
        for text in draft.sources:
            self._check_source(text)
            yield SetRule(RuleKind.SOURCE, "", text)
        for text in draft.folders:
            source, path = self._split(text, "A folder is written as handbook:people/")
            yield SetRule(RuleKind.FOLDER, path, source)
        for text in draft.tags:
            yield self._read_tag(text)
        for text in draft.documents:
            source, _ = self._split(text, "A document is written as handbook:people/leave.md")
            yield SetRule(RuleKind.DOCUMENT, text, source)

    def _read_tag(self, text: str) -> SetRule:
        _check_text(text)
        source, _, rest = text.partition(":")
        tag, limit = (rest, source) if source in self.known else (text, None)
        if "=" not in tag:
            raise InvalidInputError(
                f"A tag is written as team=people or handbook:team=people, not {text!r}."
            )
        if limit is None and self.choice != EVERY_SOURCE:
            raise InvalidInputError(
                f"Name the source of each tag, such as handbook:{tag}: you look after some sources only."
            )
        return SetRule(RuleKind.TAG, tag, limit)

    def _split(self, text: str, how: str) -> tuple[str, str]:
        _check_text(text)
        source, colon, rest = text.partition(":")
        if not colon or not rest.strip("/"):
            raise InvalidInputError(f"{how}, not {text!r}.")
        self._check_source(source)
        return source, rest

    def _check_source(self, name: str) -> None:
        """Raise NotFoundError if there is no source of this name for the asker."""
        if name not in self.known:
            sources.find(self.database, name, self.choice)


def _check_has_rules(rules: Sequence[SetRule]) -> None:
    if not rules:
        raise InvalidInputError(
            "Say what belongs to the set: a source, a folder, a tag or a document."
        )


def _check_text(text: str) -> None:
    if len(text) > LONGEST_RULE or not is_storable(text):
        raise InvalidInputError(
            f"A folder, a tag and the id of a document have up to {LONGEST_RULE:,} characters."
        )


def _parse_readers(tokens: Sequence[str]) -> frozenset[str]:
    if len(tokens) > MOST_READERS:
        raise InvalidInputError(f"A set is shown to at most {MOST_READERS} groups and people.")
    try:
        return frozenset(map(parse_reader_token, tokens)) or frozenset({PUBLIC})
    except ValueError as error:
        raise InvalidInputError(f"To whom the set is shown: {error}.") from error


def _describe(values: SetValues) -> dict[str, object]:
    written = DocumentSetResponse.describe_rules(values.rules)
    return {
        "name": values.name,
        "description": values.description,
        "readers": sorted(values.readers),
        **{kind: list(texts) for kind, texts in written.items() if texts},
    }
