"""What a person does about a source, mostly by one word: for terminals, programs and pages alike.

Nothing waits for the work: it is said in the database what is wanted, and done within seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from backend.schemas.models import DoneWire
from backend.sources.intervals import NEVER, check, spoken
from backend.sources.status_text import several
from backend.store.database import Database
from backend.sync import source_control

_DOING: Mapping[str, str] = MappingProxyType(
    {
        "incremental": "what changed is read",
        "permissions": "who may read is asked",
        "prune": "what is gone is looked for",
    }
)


@dataclass(frozen=True, slots=True)
class Word:
    help: str
    """What it does, as the summary of its route says it."""
    does: Callable[[Database, str], str]
    """To the source of this name; tells what was done.

    Raises:
        ActionRequiredError: there is no such source, or it cannot be done as it stands.
    """


def steer(database: Database, word: str, name: str) -> DoneWire:
    """
    Raises:
        ActionRequiredError: there is no such source, or it cannot be done as it stands.
    """
    return DoneWire(source=name, told=WORDS[word].does(database, name))


def retry(database: Database, name: str, document_ids: Sequence[str] | None) -> DoneWire:
    """Try failed documents again, all of them by default.

    Raises:
        ActionRequiredError: there is no such source, it is paused, or none of them has failed.
    """
    count = source_control.retry(database, name, document_ids)
    return DoneWire(
        source=name, told=f"{several(count, 'document')} of {name} will be read again now."
    )


def reschedule(database: Database, name: str, every: Mapping[str, timedelta | None]) -> DoneWire:
    """How often its runs begin by themselves: zero is never, `None` as usual; a kind left out stays.

    Raises:
        ActionRequiredError: there is no such source.
        ValueError: an interval is too short or too long, or the kind has none.
    """
    for each in every.values():
        check(each or NEVER)
    source_control.reschedule(database, name, every)
    plan = source_control.status(database, name).every
    told = "; ".join(f"{_DOING[kind]} {spoken(each)}" for kind, each in plan.items())
    return DoneWire(source=name, told=f"{name}: {told}.")


def _pause(database: Database, name: str) -> str:
    source_control.pause(database, name)
    return f"{name} is paused. What it holds can be searched."


def _resume(database: Database, name: str) -> str:
    source_control.resume(database, name)
    return f"{name} is kept in step again."


def _cancel(database: Database, name: str) -> str:
    source_control.cancel(database, name)
    return f"The run of {name} ends within seconds. What was done is kept; the next one goes on from there."


def _accept(database: Database, name: str) -> str:
    missing = source_control.accept(database, name).get("missing", 0)
    return f"Accepted: the next run of {name} deletes {several(missing, 'document')} that it does not list any more."


def _delete(database: Database, name: str) -> str:
    source_control.delete(database, name)
    return f"{name} is being removed, with all documents that it alone brought."


def _asking(kind: str, told: str) -> Callable[[Database, str], str]:
    def ask(database: Database, name: str) -> str:
        source_control.request(database, name, kind)
        return told.format(name)

    return ask


WORDS: Mapping[str, Word] = MappingProxyType(
    {
        "pause": Word("Stop what goes on, and begin nothing until it is resumed.", _pause),
        "resume": Word("Keep a paused source in step again.", _resume),
        "cancel": Word("Stop the run that goes on; what it did is kept.", _cancel),
        "refresh": Word(
            "Read what changed, as soon as can be.",
            _asking("incremental", "What changed in {} is read as soon as can be."),
        ),
        "prune": Word(
            "Look for what the source does not list any more, and remove it.",
            _asking("prune", "What {} does not list any more is looked for as soon as can be."),
        ),
        "permissions": Word(
            "Ask the source anew who may read what.",
            _asking("permissions", "Who may read what in {} is asked as soon as can be."),
        ),
        "accept": Word(
            "Agree to what the last run asks about, such as many documents that are gone.", _accept
        ),
        "delete": Word("Remove the source, with all documents that it alone brought.", _delete),
    }
)
