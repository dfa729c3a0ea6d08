"""The service for sources, behind the command line, the API and the pages.

Each action is one transaction that includes its audit entry. None waits for the work: the database records
what is wanted, and the workers act on it within seconds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

from backend.access.source_owners import find_new_owner
from backend.composition.sources import SourceParts, limit_owner
from backend.schemas.run import RunResponse
from backend.schemas.source import (
    AuditEntryResponse,
    CapabilityResponse,
    DecisionResponse,
    FailureResponse,
    SourceActionResponse,
    SourceResponse,
)
from backend.sources import status
from backend.sources.audited_settings import describe_change, describe_settings
from backend.sources.deletion_decisions import read_decision
from backend.sources.intervals import NEVER, check_interval, format_interval
from backend.sources.status_text import describe_no_decision, run_label
from backend.store import audit
from backend.store.audit import EVERY_ENTRY, Actor, AuditFilter
from backend.store.database import Database
from backend.store.documents.source_removal import list_sets_losing_rules
from backend.store.sync import failures, run_transitions, runs, schedule, sources, workers
from backend.store.sync.credential_vault import Vault
from backend.store.sync.runs import Process, Run
from backend.store.sync.sources import EVERY_SOURCE, UNCHANGED, Source, SourceChoice, SourcesOf
from backend.sync import wakeup_messages
from backend.sync.run_lease import find_current_run
from connectors.connector import Capability, FindObjection
from connectors.errors import ActionRequiredError, ConflictError, InvalidInputError, NotFoundError
from connectors.registry import (
    FieldError,
    InvalidSourceError,
    ValidatedSource,
    create_connector,
    find_source_objection,
    get_source_kind,
    has_fixed_access,
    validate_source,
)
from indexing.text.normalization import pluralize

if TYPE_CHECKING:
    from indexing.ingestion.pipeline import EmptyListing

Values: TypeAlias = Mapping[str, object]
Details: TypeAlias = dict[str, object]
Followed_co = TypeVar("Followed_co", covariant=True)

_ADMINS = "admins"
"""What the audit calls the owner of a source that no single person owns."""
_NOTHING: Values = MappingProxyType({})
_STARTED: Mapping[str, str] = MappingProxyType(
    {
        "incremental": "A content sync of {} starts as soon as possible.",
        "prune": "A deletion check of {} starts as soon as possible.",
        "permissions": "A permission sync of {} starts as soon as possible.",
    }
)


class Syncs(Protocol[Followed_co]):
    """The syncs that a server carries out, which are followed while they go on."""

    def running(self, source: str) -> Followed_co | None:
        """Return the run of the source that this process carries out or follows."""

    def other_servers(self) -> Collection[Process]:
        """Return the other processes of the server, whose runs can be followed."""

    def follow(self, run: Run) -> Followed_co: ...

    def begin(self, source: Source, when_empty: "EmptyListing") -> Followed_co: ...


@dataclass(frozen=True, slots=True)
class SourceService:
    """All methods that take a name raise NotFoundError for a source that does not exist.

    ConflictError means that the present state of the source does not allow the action; this is in the audit too.
    """

    database: Database
    open_vault: Callable[[], Vault]
    """Called only where a credential is stored or read: it creates a key file where there is none."""
    find_objection: FindObjection
    """Says what a source whose owner is no admin may not reach."""
    actor: Actor = audit.OWNER
    choice: SourceChoice = EVERY_SOURCE
    """The sources that exist for the asker: another's is found no more than one that does not exist."""

    @classmethod
    def of(
        cls, parts: SourceParts, actor: Actor = audit.OWNER, choice: SourceChoice = EVERY_SOURCE
    ) -> Self:
        return cls(parts.open_database(), parts.open_vault, parts.find_objection, actor, choice)

    def get(self, name: str) -> Source:
        return self._find(self.database, name)

    def status(self, name: str) -> SourceResponse:
        return status.read_status(self.database, name, self.choice)

    def list_statuses(self) -> list[SourceResponse]:
        """Return all sources by name."""
        return status.read_statuses(self.database, self.choice)

    def list_runs(self, name: str, limit: int) -> list[RunResponse]:
        """Return the last runs, newest first."""
        history = runs.history(self.database, self.get(name).name, limit)
        return [RunResponse.model_validate(run) for run in history]

    def list_failures(self, name: str, limit: int | None = None) -> list[FailureResponse]:
        """Return the documents that could not be read, by id."""
        found = failures.list_failures(self.database, self.get(name).name)
        return [FailureResponse.model_validate(each) for each in islice(found, limit)]

    def list_all_failures(self, name: str | None, limit: int) -> list[FailureResponse]:
        """Return those of all sources, or of one, by id; none where there is no such source."""
        found = failures.list_failures(self.database, name, self.choice)
        return [FailureResponse.model_validate(each) for each in islice(found, limit)]

    def list_audit(
        self, which: AuditFilter = EVERY_ENTRY, *, before: int | None = None, limit: int = 100
    ) -> list[AuditEntryResponse]:
        """Return the last actions, newest first; `before` is the id of the last entry of the page before."""
        found = audit.list_entries(self.database, which, before=before, limit=limit)
        return [AuditEntryResponse.from_entry(entry) for entry in found]

    def iterate_audit(self, which: AuditFilter) -> Iterator[AuditEntryResponse]:
        """Yield all actions, newest first, whatever their number."""
        return map(AuditEntryResponse.from_entry, audit.iterate_entries(self.database, which))

    def list_audited_actions(self) -> list[str]:
        """Return the names of the actions in the audit."""
        return audit.list_actions(self.database)

    def list_audited_sources(self) -> list[str]:
        """Return the names of all sources in the audit, those that were deleted too."""
        return audit.list_sources(self.database)

    def add(
        self, kind: str, settings: Values, credential: Values = _NOTHING, name: str | None = None
    ) -> SourceResponse:
        """Store a source; the workers sync it as soon as possible.

        Raises:
            InvalidSourceError: the settings or the credential are not valid; it names each fault.
            InvalidInputError: there is no such kind.
            ConflictError: there is a source of this name.
        """
        limit = limit_owner(self.database, self._person_id, self.find_objection)
        checked = validate_source(kind, settings, credential, name, limit)
        with self._audited("add", checked.name) as (database, details):
            details.update(kind=kind, settings=describe_settings(checked.settings))
            sealed = self._sealed(checked)
            sources.add(
                database, checked.name, kind, checked.settings, sealed, owner_id=self._person_id
            )
        return self._saved(checked.name)

    def edit(self, name: str, settings: Values | None, credential: Values | None) -> SourceResponse:
        """Replace the settings, the credential or both; None keeps what is stored.

        What was saved is tried as soon as possible, by a new run. Other settings let what was unreadable for good be tried again;
        readers in them apply to all documents at once.

        Raises:
            InvalidSourceError: the settings or the credential are not valid; nothing is changed.
            NotConfiguredError: no key opens the stored credential.
        """
        with self._on_source("edit", name) as (database, source, details):
            checked = validate_source(
                source.kind,
                source.settings if settings is None else settings,
                self._opened(source) if credential is None else credential,
                name,
                self._limit(database, source),
            )
            if credential is None and checked.settings != source.settings:
                self._check_own_credential(source)
            sealed = UNCHANGED if credential is None else self._sealed(checked)
            edited = sources.edit(database, name, checked.settings, sealed, self._person_id)
            if edited.settings != source.settings:
                failures.forget_versions(database, source.id)
                if has_fixed_access(source.kind):
                    # Before the content sync: that may take hours to read again what it has read.
                    schedule.request_run(database, name, "permissions")
            run_transitions.interrupt(database, name)
            if source.paused_at is None:
                schedule.request_run(database, name, "incremental")
            given = {"settings": settings, "credential": credential}
            details["changed"] = [part for part, values in given.items() if values is not None]
            details.update(describe_change(source.settings, checked.settings))
        return self._saved(name)

    def test(self, name: str) -> list[CapabilityResponse]:
        """Connect to the source and try what sources of its kind can do: content, listing, access."""
        source = self.get(name)
        able = get_source_kind(source.kind).capabilities
        try:
            limit = self._limit(self.database, source)
            connector = create_connector(
                source.kind, name, source.settings, self._opened(source), source.id, limit
            )
            faults = {one.capability: one.fault for one in connector.check()}
        except ActionRequiredError as error:
            faults = dict.fromkeys(Capability, str(error))
        found = [
            CapabilityResponse(
                capability=each.value,
                works=each in able and faults.get(each) is None,
                supported=each in able,
                fault=faults.get(each) or (None if each in able else _explain_unable(each)),
            )
            for each in Capability
        ]
        with self._audited("test", name) as (_, details):
            details.update({one.capability: one.works for one in found})
        return found

    def pause(self, name: str) -> SourceActionResponse:
        """Stop the current run, and start nothing until the source is resumed."""
        with self._on_source("pause", name) as (database, _, _):
            sources.set_paused(database, name, datetime.now(UTC))
            run_transitions.stop(database, name, "paused")
        return SourceActionResponse(
            source=name, told=f"{name} is paused. Its documents stay searchable."
        )

    def resume(self, name: str) -> SourceActionResponse:
        """Sync a paused source again; an interrupted run continues from its last checkpoint."""
        with self._on_source("resume", name) as (database, _, _):
            last = runs.latest(database, name).get(name)
            sources.set_paused(database, name, None)
            if last is not None and last.state == "paused":
                schedule.request_run(
                    database, name, schedule.schedule_kind(last.kind), last.accepted
                )
        return self._requested(name, f"Syncing of {name} is resumed.")

    def cancel(self, name: str) -> SourceActionResponse:
        """Stop the current or waiting run. What it did is kept; the next one continues from there."""
        with self._on_source("cancel", name) as (database, _, details):
            last = runs.latest(database, name).get(name)
            if last is None or last.state not in runs.OPEN:
                raise ConflictError(f"{name!r} has no current run.")
            details.update(run=last.id, kind=last.kind)
            schedule.record_end(
                database, name, [schedule.schedule_kind(last.kind)], datetime.now(UTC)
            )
            run_transitions.stop(database, name, "cancelled")
        message = f"The run of {name} stops within seconds. The next one continues from its last checkpoint."
        return SourceActionResponse(source=name, told=message)

    def sync(self, name: str) -> SourceActionResponse:
        """Have a content sync start as soon as possible."""
        return self._request("sync", name, "incremental")

    def follow_or_begin(
        self, name: str, when_empty: "EmptyListing", syncs: Syncs[Followed_co]
    ) -> Followed_co:
        """Follow the run of the source that a process of this server is working on, or begin one.

        Raises ConflictError: the source is paused, or another process works on it.
        """
        source = self.get(name)
        followed = syncs.running(name)
        if followed is not None:
            return followed
        current = find_current_run(self.database, name)
        if current is not None and current.holder in syncs.other_servers():
            return syncs.follow(current)
        self._record_sync(name, when_empty, current)
        return syncs.begin(source, when_empty)

    def record_sync(self, name: str, when_empty: "EmptyListing") -> None:
        """Record who begins a sync that this process carries out, and waits for.

        Raises ConflictError: the source is paused, or a process works on it.
        """
        self._record_sync(name, when_empty, find_current_run(self.database, name))

    def _record_sync(self, name: str, when_empty: "EmptyListing", current: Run | None) -> None:
        # Who waits for another process has begun nothing that could be recorded.
        if current is not None:
            raise ConflictError(f"{current.description}. Wait until it is done, or stop it.")
        with self._on_source("sync", name) as (_, source, details):
            sources.check_not_paused(source)
            details["empty_listing"] = when_empty.name.lower()

    def prune(self, name: str) -> SourceActionResponse:
        """Have a deletion check start as soon as possible."""
        return self._request("prune", name, "prune")

    def permissions(self, name: str) -> SourceActionResponse:
        """Have a permission sync start as soon as possible.

        Raises ConflictError: the settings of the source say who may read it.
        """
        with self._on_source("permissions", name) as (database, source, _):
            sources.check_not_paused(source)
            _check_asks_for_readers(source)
            schedule.request_run(database, name, "permissions")
        return self._requested(name, _STARTED["permissions"].format(name))

    def decision(self, name: str, after: str = "", limit: int = 100) -> DecisionResponse:
        """Return what is to be decided. Raises NotFoundError: nothing is."""
        return read_decision(self.database, self.get(name), after, limit)

    def accept(self, name: str, missing: int | None = None) -> SourceActionResponse:
        """Agree to the deletions that the last run held back.

        A run that starts as soon as possible carries them out. It asks again where the source lists even
        fewer documents by then.

        Args:
            missing: how many deletions the person was shown; ConflictError if it is another number by now.
        """
        with self._on_source("accept", name) as (database, source, details):
            decision = _find_decision(database, source)
            if missing not in (None, decision["missing"]):
                raise ConflictError(
                    f"By now {pluralize(decision['missing'], 'document')} of {name!r} are missing, not"
                    f" {missing:,}. Look at the list again."
                )
            details.update(decision)
            documents = pluralize(decision["missing"], "document")
            message = (
                f"{documents} of {name} will be deleted, if they are still missing from the source."
            )
            run_transitions.settle_decisions(database, name, message)
            schedule.request_run(database, name, "prune", accepted=decision["missing"])
        return self._requested(name, message)

    def keep(self, name: str) -> SourceActionResponse:
        """Delete nothing that the last run held back, and list the source again as soon as possible."""
        with self._on_source("keep", name) as (database, source, details):
            details.update(_find_decision(database, source))
            message = f"All documents of {name} are kept. The source is listed again."
            run_transitions.settle_decisions(database, name, message)
            schedule.request_run(database, name, "prune")
        return self._requested(name, message)

    def retry(self, name: str, document_ids: Sequence[str] | None = None) -> SourceActionResponse:
        """Try these failed documents again now, or all of them."""
        with self._on_source("retry", name) as (database, source, details):
            sources.check_not_paused(source)
            count = failures.retry_now(database, name, document_ids)
            if not count:
                raise ConflictError(_nothing_failed(database, name))
            details["documents"] = count
            schedule.request_run(database, name, "retry")
        message = f"{pluralize(count, 'document')} of {name} will be tried again now."
        return self._requested(name, message)

    def describe_schedule(self, name: str) -> SourceActionResponse:
        plan = schedule.read_plans(self.database, self.get(name).name)[name]
        intervals = "; ".join(
            f"{run_label(kind).lower()} {format_interval(every)}"
            for kind, every in plan.every.items()
        )
        return SourceActionResponse(source=name, told=f"{name}: {intervals}.")

    def reschedule(self, name: str, every: Mapping[str, timedelta | None]) -> SourceActionResponse:
        """Change how often runs of these kinds start; zero is never, None the default.

        Raises:
            ValueError: an interval is out of bounds, or runs of a kind have none.
            ConflictError: of permission syncs, where the settings of the source say who may read it.
        """
        for interval in every.values():
            check_interval(interval or NEVER)
        if unknown := set(every) - set(schedule.SCHEDULED_KINDS):
            raise ValueError(f"runs of the kind {min(unknown)!r} have no interval")
        with self._on_source("reschedule", name) as (database, source, details):
            if "permissions" in every:
                _check_asks_for_readers(source)
            details["before"] = _read_intervals(database, name, every)
            for kind, interval in every.items():
                schedule.set_interval(database, name, kind, interval)
            details["after"] = _read_intervals(database, name, every)
        return self.describe_schedule(name)

    def delete(self, name: str) -> SourceActionResponse:
        """Cancel the current run and have the source removed, with all documents that it alone brought."""
        with self._on_source("delete", name) as (database, source, details):
            if losing := list_sets_losing_rules(database, source):
                details["sets_losing_rules"] = losing
            run_transitions.stop(database, name, "cancelled")
            schedule.request_run(database, name, "removal")
        message = f"{name} is being removed, with all documents that it alone brought."
        return self._requested(name, message)

    def set_owner(self, name: str, email: str | None) -> SourceResponse:
        """Have another person look after the source, or with None the admins.

        Raises:
            InvalidInputError: it is not an address.
            ConflictError: the account of this address is disabled, its role is member, or the source reaches what
                sources of that person may not.
        """
        with self._on_source("set_owner", name) as (database, source, details):
            owner = None if email is None else find_new_owner(database, email)
            self._check_reach(database, source, owner.id if owner else None)
            details["before"] = sources.list_owners(database).get(source.id, _ADMINS)
            sources.set_owner(database, name, owner.id if owner else None)
            details["after"] = owner.email if owner else _ADMINS
        return self.status(name)

    def _request(self, action: str, name: str, kind: str) -> SourceActionResponse:
        with self._on_source(action, name) as (database, source, _):
            sources.check_not_paused(source)
            schedule.request_run(database, name, kind)
        return self._requested(name, _STARTED[kind].format(name))

    def _requested(self, name: str, message: str) -> SourceActionResponse:
        """Say what was asked for, and why it does not start where no worker is there to do it."""
        waits = wakeup_messages.explain_no_worker(workers.list_live(self.database))
        return SourceActionResponse(source=name, told=f"{message} {waits}" if waits else message)

    def _saved(self, name: str) -> SourceResponse:
        """Return the state, and why what was saved is not synced where no worker is there to do it."""
        waits = wakeup_messages.explain_no_worker(workers.list_live(self.database))
        return self.status(name).model_copy(update={"notice": waits})

    @property
    def _person_id(self) -> int | None:
        """Whose sources they are; None: of the admins."""
        return self.choice.person_id if isinstance(self.choice, SourcesOf) else None

    def _find(self, database: Database, name: str) -> Source:
        return sources.find(database, name, self.choice)

    def _limit(self, database: Database, source: Source) -> FindObjection:
        return limit_owner(database, source.owner_id, self.find_objection)

    def _check_reach(self, database: Database, source: Source, owner_id: int | None) -> None:
        """Raise ConflictError if a source reaches what sources of this owner may not."""
        limit = limit_owner(database, owner_id, self.find_objection)
        if objection := find_source_objection(source.kind, source.settings, limit):
            raise ConflictError(objection)

    def _check_own_credential(self, source: Source) -> None:
        """Let nobody send the credential of somebody else to another place.

        Raises InvalidSourceError: an asker who is no admin did not enter the stored one.
        """
        is_own = self._person_id in (None, source.credential_person_id)
        if source.credential and not is_own:
            reason = "Enter it again: somebody else entered the stored one, which other settings could send elsewhere."
            raise InvalidSourceError([FieldError(("credential",), reason)])

    @contextmanager
    def _on_source(self, action: str, name: str) -> Iterator[tuple[Database, Source, Details]]:
        """Begin an action on a source that exists for the asker, as `_audited` does."""
        with self._audited(action, name) as (database, details):
            yield database, self._find(database, name), details

    @contextmanager
    def _audited(self, action: str, name: str) -> Iterator[tuple[Database, Details]]:
        """Run the block as one transaction that ends with its audit entry.

        A refusal rolls the block back, so its entry is a transaction of its own.
        """
        details: Details = {}
        try:
            with self.database.transaction() as database:
                yield database, details
                audit.record(database, action, name, details, self.actor)
        except (NotFoundError, InvalidInputError):
            raise
        except ActionRequiredError as error:
            audit.record_refusal(self.database, action, name, str(error), self.actor)
            raise

    def _opened(self, source: Source) -> Values:
        return self.open_vault().open(source.credential) if source.credential else _NOTHING

    def _sealed(self, checked: ValidatedSource) -> str | None:
        return self.open_vault().seal(checked.credential) if checked.credential else None


SOURCE_ACTIONS: Mapping[str, Callable[[SourceService, str], SourceActionResponse]] = (
    MappingProxyType(
        {
            "pause": SourceService.pause,
            "resume": SourceService.resume,
            "cancel": SourceService.cancel,
            "refresh": SourceService.sync,
            "prune": SourceService.prune,
            "permissions": SourceService.permissions,
            "keep": SourceService.keep,
            "delete": SourceService.delete,
        }
    )
)
"""Actions that need only the name of a source, by the word that commands and routes have for them."""


def _read_intervals(database: Database, name: str, kinds: Iterable[str]) -> dict[str, int]:
    """Return the seconds between runs of these kinds, the defaults too; zero is never."""
    every = schedule.read_plans(database, name)[name].every
    return {kind: int(every[kind].total_seconds()) for kind in kinds}


def _explain_unable(capability: Capability) -> str:
    if capability is Capability.ACCESS:
        return "Its settings say who may read it."
    return "Sources of this kind cannot do it."


def _check_asks_for_readers(source: Source) -> None:
    if has_fixed_access(source.kind):
        raise ConflictError(
            f"The settings of {source.name!r} say who may read it, so there is nothing to compare. To change them:"
            f" quarry sources edit {source.name}"
        )


def _find_decision(database: Database, source: Source) -> Mapping[str, int]:
    """Return what is to be decided of a source. Raises ConflictError: it is paused, or nothing is to be decided."""
    sources.check_not_paused(source)
    run = status.find_decision(database, source.name)
    if run is None or run.decision is None:
        raise ConflictError(describe_no_decision(source.name))
    return run.decision


def _nothing_failed(database: Database, name: str) -> str:
    if failures.count_by_source(database, name):
        return f"No such document of {name!r} has failed."
    return f"Source {name!r} has no failed documents."
