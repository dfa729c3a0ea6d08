"""Why somebody does not find a document: what it takes to read it, what they hold, and by which way.

It tells of documents that the person who asks may not read: only an administrator may be shown it.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TypeAlias

from backend.access.own_readers import list_groups_of_accounts
from backend.store import audit
from backend.store.accounts import membership_paths, people
from backend.store.accounts.membership_paths import Membership
from backend.store.accounts.people import Person
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.documents.documents import HeldDocument
from backend.store.sync import failures, listings, memberships, source_accounts
from backend.store.sync.failures import Failure
from connectors.access import Access, Clause, Readers, parse_account_token

_USER = "user:"
_Paths: TypeAlias = dict[str, tuple[str, ...]]
_Dates: TypeAlias = Mapping[tuple[str, str], datetime]
"""Of memberships, by member and token."""


class Reason(StrEnum):
    """What keeps somebody from a document; the first that applies."""

    UNKNOWN = "unknown"
    FAILED = "failed"
    NO_READERS = "no_readers"
    LACKS_TOKEN = "lacks_token"
    PENDING = "pending"
    NO_TEXT = "no_text"
    READABLE = "readable"


@dataclass(frozen=True, slots=True)
class HeldToken:
    """A token of a clause that somebody holds."""

    path: tuple[str, ...]
    """From what they hold by themselves, through groups, to the token."""
    is_pending: bool
    """A membership on the way does not count yet."""
    since: datetime | None
    """When the last membership on the way began or was first listed; None without one, or where that was not recorded yet."""


@dataclass(frozen=True, slots=True)
class ClauseExplanation:
    needed: tuple[str, ...]
    """Reader tokens, any of which suffices."""
    held: tuple[HeldToken, ...]
    """Those that somebody holds; ways that count first."""

    @property
    def is_met(self) -> bool:
        return any(not each.is_pending for each in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    document_id: str
    readers: tuple[str, ...]
    """What somebody holds by themselves, with the groups of their account."""
    reason: Reason
    document: HeldDocument | None
    failure: Failure | None
    clauses: tuple[ClauseExplanation, ...]
    """All of which have to be met."""
    names: Mapping[str, str]
    """Of groups and scopes, as people at the source know them; and of mapped accounts."""
    source_accounts: Mapping[str, str]
    """The sources of the accounts that are mapped to somebody, by their tokens."""
    compared_at: datetime | None
    """When who may read was last compared with the source."""
    groups_listed_at: datetime | None
    """When the members of the source's groups were last listed."""
    accounts: tuple[str, ...]
    """Sentences about accounts that do not hold their address."""


def parse_readers(text: str) -> Readers:
    """Read reader tokens, separated by blanks or commas; an address alone means the person.

    Raises:
        ValueError: one is no reader token.
    """
    tokens = text.replace(",", " ").split()
    return Readers.of(*(each if ":" in each else f"{_USER}{each}" for each in tokens))


def explain(database: Database, name: str, own: Readers, actor: Actor) -> Explanation:
    """Explain to an administrator whether an asker with these tokens may read a document, and why not.

    It is in the audit: this tells of a document that the administrator may not read.

    Args:
        name: the id or the link of the document.
    """
    of_accounts = list_groups_of_accounts(database, own)
    held = own.tokens.union(each.token for each in of_accounts)
    document = documents.find_held(database, name)
    document_id = document.id if document else name
    failure = failures.find(database, document_id)
    source = document.source if document else document_id.partition(":")[0]
    detail = {"document": document_id, "readers": sorted(held)}
    audit.record(database, "explain", source, detail, actor)
    above = [*of_accounts, *membership_paths.list_above(database, held)]
    clauses = explain_clauses(document.access, own, above) if document else ()
    mapped = source_accounts.name_sources(database, (one.token for one in of_accounts))
    tokens = {token for clause in clauses for token in clause.needed}
    tokens |= {token for each in above for token in (each.member, each.token)}
    return Explanation(
        document_id=document_id,
        readers=tuple(sorted(held)),
        reason=find_reason(document, failure, clauses),
        document=document,
        failure=failure,
        clauses=clauses,
        names={
            **{token: parse_account_token(token) for token in mapped},
            **membership_paths.name_groups(database, tokens),
        },
        source_accounts=mapped,
        compared_at=listings.list_compared(database, source).get(source),
        groups_listed_at=memberships.last_listed_at(database, source),
        accounts=tuple(_describe_accounts(database, own)),
    )


def explain_clauses(
    access: Access, own: Readers, above: Sequence[Membership]
) -> tuple[ClauseExplanation, ...]:
    """Explain each clause of a document; the shortest first, since it is the most telling."""
    counting = _find_paths(own.tokens, [each for each in above if not each.is_pending])
    all_paths = _find_paths(own.tokens, above)
    dates = {(each.member, each.token): each.since for each in above if each.since}
    return tuple(
        ClauseExplanation(tuple(sorted(clause)), _find_held(clause, counting, all_paths, dates))
        for clause in sorted(access.clauses, key=lambda each: (len(each), sorted(each)))
    )


def _find_held(
    clause: Clause, counting: _Paths, all_paths: _Paths, dates: _Dates
) -> tuple[HeldToken, ...]:
    met = [counting[token] for token in sorted(clause & counting.keys())]
    pending = [all_paths[token] for token in sorted(clause & all_paths.keys() - counting.keys())]
    return (
        *(HeldToken(path, is_pending=False, since=_find_last(path, dates)) for path in met),
        *(HeldToken(path, is_pending=True, since=_find_last(path, dates)) for path in pending),
    )


def _find_last(path: Sequence[str], dates: _Dates) -> datetime | None:
    """Return when the last membership on the way began; one without a date is older than those with one."""
    return max((dates[step] for step in pairwise(path) if step in dates), default=None)


def _find_paths(own: Iterable[str], above: Sequence[Membership]) -> _Paths:
    """Return a shortest way to each token that is held, by the token."""
    groups: dict[str, list[str]] = {}
    for each in above:
        groups.setdefault(each.member, []).append(each.token)
    paths: _Paths = {token: (token,) for token in sorted(own)}
    ahead = deque(paths)
    while ahead:
        member = ahead.popleft()
        for token in groups.get(member, ()):
            if token not in paths:
                paths[token] = (*paths[member], token)
                ahead.append(token)
    return paths


def find_reason(
    document: HeldDocument | None,
    failure: Failure | None,
    clauses: Sequence[ClauseExplanation],
) -> Reason:
    """Return the first thing that keeps somebody from the document."""
    if document is None:
        return Reason.UNKNOWN if failure is None else Reason.FAILED
    if not clauses:
        return Reason.NO_READERS
    if not all(clause.held for clause in clauses):
        return Reason.LACKS_TOKEN
    if not all(clause.is_met for clause in clauses):
        return Reason.PENDING
    return Reason.READABLE if document.chunks else Reason.NO_TEXT


def _describe_accounts(database: Database, own: Readers) -> Iterable[str]:
    """Say of each address why its account does not hold it; the tokens were given as if it did."""
    if not people.has_people(database):
        return
    for token in sorted(own.tokens):
        if token.startswith(_USER):
            email = token.removeprefix(_USER)
            problem = _find_account_problem(people.find_by_email(database, email))
            if problem:
                yield f"{email} {problem}"


def _find_account_problem(person: Person | None) -> str | None:
    match person:
        case None:
            return "has no account in this Quarry."
        case Person(disabled_at=datetime()):
            return "has a disabled account: it finds nothing at all."
        case Person(verified=None):
            return (
                "has an account whose address nobody has verified: it finds no document for which this address"
                " is needed."
            )
        case _:
            return None
