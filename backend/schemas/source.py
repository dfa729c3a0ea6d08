"""JSON of sources, their kinds, failures and actions."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import JsonValue

from backend.schemas.base import Schema, with_example
from backend.schemas.run import RunResponse

if TYPE_CHECKING:
    from backend.store.audit import AuditEntry

_MOMENT = "2025-11-03T09:30:00Z"
_RUN: JsonValue = RunResponse.example().model_dump(mode="json")


class FailureResponse(Schema):
    model_config = with_example(
        source="handbook",
        document_id="handbook:scans/lease.pdf",
        item="scans/lease.pdf",
        link="file:///srv/handbook/scans/lease.pdf",
        reason="it contains no text",
        tries=2,
        last_at=_MOMENT,
        next_try=_MOMENT,
    )

    source: str
    document_id: str
    item: str
    """The name that people know it by."""
    link: str | None
    reason: str
    tries: int
    last_at: datetime
    next_try: datetime | None
    """Null: with the next run."""
    waits_for_change: bool = False
    """This version can never be read: it is not tried again until the document changes, or someone asks."""


class SourceResponse(Schema):
    """A source and its present state. No credential is in it."""

    model_config = with_example(
        name="handbook",
        kind="folder",
        settings={"path": "/srv/handbook"},
        has_credential=False,
        documents=45,
        failures=1,
        state="done",
        last_run=_MOMENT,
        run=_RUN,
        rate=None,
        decision=None,
        paused_at=None,
        open_batches=0,
        next_starts={"incremental": _MOMENT, "prune": None},
        intervals={"incremental": 900, "permissions": 900, "prune": 21_600},
    )

    name: str
    kind: str
    settings: dict[str, object]
    has_credential: bool
    documents: int
    failures: int
    state: str
    """Of the last run; or `never synced`, `paused`, `being removed`."""
    last_run: datetime | None
    run: RunResponse | None
    """The last run, or the current one."""
    rate: float | None
    """Documents per second of the current run."""
    decision: dict[str, int] | None
    """What a person must decide: how many documents are `held`, `listed`, `missing`."""
    paused_at: datetime | None
    open_batches: int
    """Read from the source and not indexed yet."""
    next_starts: dict[str, datetime | None]
    """Of each kind of run; null: not by itself."""
    intervals: dict[str, int]
    """Seconds from the end of a run to the next one of its kind; 0: never by itself."""
    has_fixed_readers: bool = False
    """Whether its settings say who may read it, so that the source is never asked for it."""
    owner: str | None = None
    """E-mail address of the person who looks after it; null: the admins."""
    permissions_compared_at: datetime | None = None
    """When the last comparison of its permissions began that came to its end."""
    notice: str | None = None
    """After a change: why what was saved is not synced now, such as that no worker runs."""
    overdue: str | None = None
    """Why a run that is due does not begin."""
    activity: str = ""
    """What the current run does or waits for, in words; empty without one."""
    seconds_left: float | None = None
    """How long the current stage of the run will probably take, where that can be estimated."""


class MissingDocumentResponse(Schema):
    model_config = with_example(
        id="handbook:support/warranty.docx",
        title="Warranty",
        link="file:///srv/handbook/support/warranty.docx",
    )

    id: str
    title: str
    link: str


class DecisionResponse(Schema):
    """Documents that a source does not list any more; a person must decide whether they are deleted."""

    model_config = with_example(
        source="handbook",
        held=120,
        listed=81,
        missing=39,
        since=_MOMENT,
        cause="All of them are in /srv/handbook/support/, where nothing is left. It was probably moved,"
        " renamed or deleted, or Quarry may not see it any more.",
        documents=[MissingDocumentResponse.example().model_dump()],
        has_more=True,
    )

    source: str
    held: int
    listed: int
    missing: int
    since: datetime | None
    """When the source was listed."""
    cause: str
    """What probably happened."""
    documents: tuple[MissingDocumentResponse, ...]
    """What would be deleted, by id."""
    has_more: bool


class CapabilityResponse(Schema):
    model_config = with_example(
        capability="access",
        works=False,
        fault="The token may not list members. Grant it the scope members:read.",
    )

    capability: str
    """`content`, `listing` or `access`."""
    works: bool
    supported: bool = True
    """Whether sources of this kind can do it at all; what they cannot do is no fault of the connection."""
    fault: str | None
    """What is missing, and how to fix it."""


class SourceKindResponse(Schema):
    """A kind of source, with the JSON schemas of its settings and its credential."""

    model_config = with_example(
        kind="folder",
        title="Folder",
        help="Index the files of a folder.",
        capabilities=["access", "content", "listing"],
        settings={
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string", "format": "path"}},
        },
        credential=None,
    )

    kind: str
    title: str
    help: str
    capabilities: tuple[str, ...]
    settings: dict[str, object]
    credential: dict[str, object] | None
    """Null where none is needed. A `writeOnly` property is secret."""


class SourceActionResponse(Schema):
    """What was done to a source, in a sentence."""

    model_config = with_example(source="handbook", told="Syncing of handbook is resumed.")

    source: str
    told: str


class AuditEntryResponse(Schema):
    """An action on a source or an API token: who did what, when, and with what outcome."""

    model_config = with_example(
        id=12,
        at=_MOMENT,
        actor="owner",
        address=None,
        action="reschedule",
        subject="handbook",
        outcome="done",
        detail={"before": {"prune": 21_600}, "after": {"prune": 86_400}},
    )

    id: int
    """Grows with time."""
    at: datetime
    actor: str
    """`owner`: the person at the machine itself; `user:EMAIL`: a person; `token:NAME`: a program with that API token."""
    address: str | None
    """From where; null: from the machine itself."""
    action: str
    subject: str
    """The name of a source, or `token:NAME` for an API token."""
    outcome: Literal["done", "refused"]
    detail: dict[str, object]
    """What was changed or requested; `refused` says why an action was refused. No credential is in it."""

    @classmethod
    def from_entry(cls, entry: "AuditEntry") -> Self:
        return cls(
            id=entry.id,
            at=entry.at,
            actor=entry.actor,
            address=entry.address,
            action=entry.action,
            subject=entry.subject,
            outcome=entry.outcome,
            detail=dict(entry.detail),
        )
