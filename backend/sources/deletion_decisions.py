"""What a person must decide: documents that a source does not list any more, and why that probably is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote, urlsplit

from backend.schemas.source import DecisionResponse, MissingDocumentResponse
from backend.sources.status import find_decision
from backend.sources.status_text import describe_no_decision
from backend.store import audit
from backend.store.audit import AuditFilter
from backend.store.database import Database
from backend.store.sync import missing_documents, runs
from backend.store.sync.runs import Run
from backend.store.sync.sources import Source
from connectors.errors import NotFoundError
from connectors.registry import get_retention
from indexing.text.normalization import pluralize

_ENTRIES = 100
"""Entries of the audit that are looked through for a change of the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What suggests why documents are missing."""

    source: str
    listed: int
    place: str = ""
    """What the links of all missing documents begin with, such as a folder; empty if they have nothing in common."""
    left: int = 0
    """Documents at the same place that are still listed."""
    changed: frozenset[str] = frozenset()
    """`settings` and `credential`, if a person changed them after the documents were last listed."""
    changed_at: datetime | None = None


def read_decision(database: Database, source: Source, after: str, limit: int) -> DecisionResponse:
    """Return what is to be decided, with a page of the documents that would be deleted.

    Args:
        after: the id of the last document of the page before.

    Raises:
        NotFoundError: nothing is to be decided.
    """
    name, kept = source.name, _list_kept(source)
    with database.snapshot() as snapshot:
        run = find_decision(snapshot, name)
        if run is None or run.decision is None:
            raise NotFoundError(describe_no_decision(name))
        page = missing_documents.list_missing(snapshot, run, kept, after, limit + 1)
        evidence = _gather(snapshot, run, kept)
    return DecisionResponse(
        source=name,
        held=run.decision["held"],
        listed=run.decision["listed"],
        missing=run.decision["missing"],
        since=run.finished_at,
        cause=explain_missing(evidence),
        documents=tuple(map(MissingDocumentResponse.model_validate, page[:limit])),
        has_more=len(page) > limit,
    )


def explain_missing(evidence: Evidence) -> str:
    """Return in a sentence or two what probably happened, the surest sign first."""
    place = _describe_place(evidence.place)
    match evidence:
        case Evidence(changed_at=datetime() as at):
            return _explain_change(evidence.changed, at)
        case Evidence(listed=0):
            return (
                f"{evidence.source} listed nothing at all. Its disk or share is probably not mounted, or the"
                " account that Quarry uses has lost its access."
            )
        case Evidence(place=str(), left=0) if place:
            return (
                f"All of them are in {place}, where nothing is left. It was probably moved, renamed or deleted,"
                " or Quarry may not see it any more."
            )
        case Evidence() if place:
            return (
                f"All of them are in {place}, where {pluralize(evidence.left, 'other document')} can still be"
                " found. They were probably deleted or moved, or Quarry may not see them any more."
            )
        case _:
            return (
                "No single folder accounts for the missing documents. They were probably deleted, or the account that"
                " Quarry uses has lost its access to a part of the source."
            )


def find_common_place(links: Iterable[str]) -> str:
    """Return what all links begin with, up to a slash; empty if that is no more than a host."""
    common: str | None = None
    for link in links:
        if common is None:
            common = link[: link.rfind("/") + 1]
        while not link.startswith(common):
            common = common[: common.rstrip("/").rfind("/") + 1]
    return common if common and urlsplit(common).path.strip("/") else ""


def _list_kept(source: Source) -> tuple[str, ...]:
    """Return what the ids of documents begin with that the source need not list."""
    retention = get_retention(source.kind, source.settings)
    return tuple(f"{source.name}:{one}" for one in retention.prefixes) if retention else ()


def _gather(database: Database, run: Run, kept: Sequence[str]) -> Evidence:
    decision = run.decision or {}
    missing = decision.get("missing", 0)
    place = find_common_place(
        each.link for each in missing_documents.iterate_missing(database, run, kept)
    )
    below = missing_documents.count_below(database, run, place) if place else 0
    is_part = below < decision.get("held", 0)
    changed, changed_at = _find_change(database, run, kept)
    return Evidence(
        source=run.source,
        listed=decision.get("listed", 0),
        place=place if is_part else "",
        left=max(0, below - missing),
        changed=changed,
        changed_at=changed_at,
    )


def _find_change(
    database: Database, run: Run, kept: Sequence[str]
) -> tuple[frozenset[str], datetime | None]:
    """Return what a person changed between the last listing of the missing documents and this run, and when."""
    listing = missing_documents.find_last_listing(database, run, kept)
    before = runs.find_first_of_listing(database, run.source, listing) if listing else None
    if before is None:
        return frozenset(), None
    since = before.started_at
    for entry in audit.list_entries(database, AuditFilter(subject=run.source), limit=_ENTRIES):
        if entry.action == "edit" and entry.outcome == "done" and since < entry.at < run.started_at:
            changed = entry.detail.get("changed")
            return frozenset(map(str, changed if isinstance(changed, list) else ())), entry.at
    return frozenset(), None


def _explain_change(changed: frozenset[str], at: datetime) -> str:
    day = f"{at.astimezone():%Y-%m-%d %H:%M %Z}"
    if "settings" in changed:
        return f"The settings were changed on {day}: probably they leave these documents out."
    return f"The credential was replaced on {day}: probably its account may read less."


def _describe_place(place: str) -> str:
    """Return a file address as the path that people know, and any other as it is."""
    address = urlsplit(place)
    return unquote(address.path) if address.scheme == "file" else place
