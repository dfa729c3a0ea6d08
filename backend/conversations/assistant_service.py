"""The assistants of one asker: who may use, see and change which.

Everybody makes assistants for themselves; admins share theirs, and look after all that are shared. One that the
asker may not use does not exist for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from backend.access.own_readers import make_group_token
from backend.chat.turn_settings import AssistantSettings, make_settings
from backend.conversations.assistant_values import (
    check_set_names,
    check_sources,
    find_labels,
    validate_values,
)
from backend.store import audit
from backend.store.audit import Actor
from backend.store.chat import assistants
from backend.store.chat.assistants import DEFAULT_ID, AssistantValues, StoredAssistant, Visibility
from backend.store.chat.shared_files import FileHolders
from backend.store.database import Database
from backend.store.documents import document_sets
from backend.store.documents.document_sets import DocumentSet
from backend.store.llm import language_models
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import (
    ConflictError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
)

_NEW = AssistantValues(name="New assistant")
_LIMITS = frozenset({"sources", "sets"})
_CHANGED_OF_DEFAULT = frozenset({"description", "instructions", "starters"})


class AssistantRefusedError(NotAllowedError):
    """The asker may use an assistant, but not do this with it."""


class AssistantGoneError(ConflictError):
    """The assistant of a conversation was deleted, or is not for the asker any more."""

    def __init__(self) -> None:
        super().__init__(
            "This assistant is no longer available. Use the default assistant, or begin another conversation."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantUser:
    """Somebody who uses assistants."""

    owner: ConversationOwner | None
    """None for a service token: it owns none."""
    readers: Readers
    """With the tokens of the groups that the asker is in now."""
    is_admin: bool
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAssistant:
    id: str
    owner_name: str
    values: AssistantValues
    """Without the sources and document sets that the asker may not see, and for those who may not change it without its groups."""
    is_default: bool
    is_mine: bool
    is_limited: bool
    """Whether it searches a part of the documents only."""
    hides_limits: bool
    """Whether it is limited to more than is shown to the asker, who may change it: what they may not see, or what is gone."""
    finds_nothing: bool
    """Whether this part is empty for the asker: they may read nothing of its sources, or its document sets are gone, or have
    nothing of these sources."""
    model_removed: bool
    """Whether there is no language model any more of the name that it has: the default one answers instead."""
    may_change: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class AssistantService:
    database: Database
    user: AssistantUser
    find_sources: Callable[[], frozenset[str]]
    """Returns the names of the sources that the asker may now read something of."""

    def list_usable(self) -> list[ShownAssistant]:
        """Return those that the asker may use: the default one, then their own, then the others, by name."""
        known = assistants.list_known_to(self.database, self.user.owner)
        shown = [self._show(one) for one in known if self._may_use(one)]
        return sorted(shown, key=lambda one: (not one.is_default, not one.is_mine))

    def get(self, assistant_id: str) -> ShownAssistant:
        """Return an assistant as the asker sees it. Raises NotFoundError: there is none, or it is not for the asker."""
        return self._show(self._find(assistant_id, self.database))

    def find_settings(self, assistant_id: str) -> AssistantSettings:
        """Return how an assistant answers. Raises as `get`."""
        found = self._find(assistant_id, self.database)
        return replace(make_settings(found.values), holders=_make_holders(found.id))

    def find_settings_of_conversation(self, assistant_id: str | None) -> AssistantSettings:
        """Return the settings of an assistant; None is the default one. Raises AssistantGoneError."""
        try:
            return self.find_settings(assistant_id or DEFAULT_ID)
        except NotFoundError as error:
            raise AssistantGoneError from error

    def find_changed_settings(
        self, assistant_id: str | None, changes: Mapping[str, Any]
    ) -> AssistantSettings:
        """Return how an assistant would answer if these values were changed; None for a new one. Nothing is kept.

        Raises:
            NotFoundError: there is no such assistant, or it is not for the asker.
            InvalidInputError: a value is not valid.
        """
        before = _NEW if assistant_id is None else self._find(assistant_id, self.database).values
        changed = {**changes, **self._read_limits(changes, before), "visibility": Visibility.MINE}
        settings = make_settings(self._validate(replace(before, **changed), before))
        return replace(settings, holders=_make_holders(assistant_id))

    def create(self, values: AssistantValues) -> ShownAssistant:
        """Add an assistant of the asker.

        Raises:
            InvalidInputError: a value is not valid.
            AssistantRefusedError: the asker may not share assistants, or have any.
        """
        owner = self.user.owner
        if owner is None:
            raise AssistantRefusedError("Assistants belong to people; a service token has none.")
        limits = self._read_limits({"sources": values.sources, "sets": values.sets}, _NEW)
        values = self._validate(replace(values, **limits), _NEW)
        with self.database.transaction() as database:
            added = assistants.add(database, owner, values, datetime.now(UTC))
            self._record(database, "add_assistant", added, values, values)
        return self.get(added)

    def change(self, assistant_id: str, changes: Mapping[str, Any]) -> ShownAssistant:
        """Change values by their names; the next question is answered so.

        Raises:
            NotFoundError: there is none, or it is not for the asker.
            InvalidInputError: a value is not valid.
            AssistantRefusedError: the asker may not change it, or not share it.
        """
        self._find_own(assistant_id, self.database)
        # Before the transaction, for which others wait: this asks the index.
        if not _LIMITS.isdisjoint(changes):
            check_sources(changes.get("sources", ()), self._sources)
        with self.database.transaction() as database:
            stored = self._find_own(assistant_id, database)
            values = self._apply(stored, changes)
            assistants.change(database, stored.id, values, datetime.now(UTC))
            self._record(database, "change_assistant", stored.id, stored.values, values)
        return self.get(assistant_id)

    def _apply(self, stored: StoredAssistant, changes: Mapping[str, Any]) -> AssistantValues:
        if stored.is_default and (others := changes.keys() - _CHANGED_OF_DEFAULT):
            raise InvalidInputError(
                "Of the default assistant, its description, instructions and starters can be changed, not"
                f" {', '.join(sorted(others))}. Make an assistant of your own for that."
            )
        before = stored.values
        changed = {**changes, **self._read_limits(changes, before)}
        return self._validate(replace(before, **changed), before)

    def _read_limits(self, changes: Mapping[str, Any], before: AssistantValues) -> dict[str, Any]:
        """Return the changed limits: document sets by their labels, and with those of before that the asker may not see.

        These stay until nothing that is seen is a limit any more: then everything is to be searched. Sets that are gone do
        not stay, as nothing that is chosen now would be found beside them.
        """
        if _LIMITS.isdisjoint(changes):
            return {}
        given = {name: tuple(changes[name]) for name in _LIMITS if name in changes}
        check_sources(given.get("sources", ()), self._sources)
        if sets := given.get("sets"):
            given["sets"] = find_labels(check_set_names(sets), self.set_names)
        still = replace(before, sets=tuple(one for one in before.sets if one in self._set_labels))
        hidden = self._hide(still)
        stored = {"sources": before.sources, "sets": still.sets}
        seen = {name: [one for one in stored[name] if one not in hidden[name]] for name in _LIMITS}
        if not any((seen | given).values()):
            return {"sources": (), "sets": ()}
        kept = {name: (*names, *hidden[name]) for name, names in given.items()}
        return {"sets": still.sets} | kept

    def _hide(self, values: AssistantValues) -> dict[str, tuple[str, ...]]:
        """Return the limits that the asker may not see, or that are gone: sources by name, document sets by label."""
        # Of one without limits, nobody asks the index for sources.
        return {
            "sources": tuple(name for name in values.sources if name not in self._sources),
            "sets": tuple(label for label in values.sets if label not in self.set_names),
        }

    def delete(self, assistant_id: str) -> None:
        """Delete an assistant; conversations with it stay.

        Raises:
            NotFoundError: there is none, or it is not for the asker.
            AssistantRefusedError: the asker may not delete it; nobody may delete the default one.
        """
        with self.database.transaction() as database:
            stored = self._find_own(assistant_id, database)
            if stored.is_default:
                raise AssistantRefusedError("The default assistant cannot be deleted.")
            assistants.remove(database, stored.id)
            self._record(database, "delete_assistant", stored.id, stored.values, stored.values)

    def _find(self, assistant_id: str, database: Database) -> StoredAssistant:
        found = assistants.find(database, assistant_id)
        if found is None or not self._may_use(found):
            raise NotFoundError("There is no such assistant.")
        return found

    def _find_own(self, assistant_id: str, database: Database) -> StoredAssistant:
        found = self._find(assistant_id, database)
        if not self._may_change(found):
            raise AssistantRefusedError(
                "Only its owner or an admin may change this assistant. Make one of your own."
            )
        return found

    def _may_use(self, found: StoredAssistant) -> bool:
        match found.values.visibility:
            case Visibility.ALL:
                return True
            case Visibility.GROUPS:
                tokens = {make_group_token(name) for name in found.values.groups}
                return self._may_change(found) or not tokens.isdisjoint(self.user.readers.tokens)
            case Visibility.MINE:
                return self._is_mine(found)

    def _is_mine(self, found: StoredAssistant) -> bool:
        return found.owner == self.user.owner and not found.is_default

    def _may_change(self, found: StoredAssistant) -> bool:
        is_shared = found.values.visibility is not Visibility.MINE
        return self._is_mine(found) or (is_shared and self.user.is_admin)

    def _validate(self, values: AssistantValues, before: AssistantValues) -> AssistantValues:
        """Check the values, whose limits were read; what is as before is kept."""
        if values.visibility is not Visibility.MINE and not self.user.is_admin:
            raise AssistantRefusedError(
                "Only an admin may share an assistant. Keep it for yourself, or ask an admin to share one like it."
            )
        values = validate_values(values, before)
        # One that was removed stays until another is chosen: its absence is said with each answer.
        if values.model is not None and values.model != before.model:
            self._check_model(values.model)
        if unknown := assistants.list_unknown_groups(self.database, values.groups):
            raise InvalidInputError(f"There is no group {unknown[0]}.")
        return values

    def _check_model(self, name: str) -> None:
        stored = language_models.list_models(self.database)
        if all(one.name != name for one in stored):
            raise InvalidInputError(f"There is no language model named {name}.")

    @cached_property
    def _models(self) -> frozenset[str]:
        return frozenset(one.name for one in language_models.list_models(self.database))

    @cached_property
    def _sources(self) -> frozenset[str]:
        return self.find_sources()

    @cached_property
    def set_names(self) -> Mapping[str, str]:
        """The names of the document sets that are shown to the asker, by label."""
        return document_sets.list_visible(self.database, self.user.readers)

    @cached_property
    def _set_labels(self) -> frozenset[str]:
        return document_sets.list_labels(self.database)

    @cached_property
    def _document_sets(self) -> list[DocumentSet]:
        return document_sets.list_sets(self.database)

    def _show(self, found: StoredAssistant) -> ShownAssistant:
        values, may_change = found.values, self._may_change(found)
        if values.sources:
            readable = tuple(name for name in values.sources if name in self._sources)
            values = replace(values, sources=readable)
        if values.sets:
            names = self.set_names
            shown = tuple(names[label] for label in values.sets if label in names)
            values = replace(values, sets=shown)
        return ShownAssistant(
            id=found.id,
            owner_name=found.owner_name,
            values=values if may_change else replace(values, groups=()),
            is_default=found.is_default,
            is_mine=self._is_mine(found),
            is_limited=bool(found.values.sources or found.values.sets),
            hides_limits=may_change and any(self._hide(found.values).values()),
            finds_nothing=self._finds_nothing(found.values),
            model_removed=values.model is not None and values.model not in self._models,
            may_change=may_change,
            created_at=found.created_at,
            updated_at=found.updated_at,
        )

    def _finds_nothing(self, values: AssistantValues) -> bool:
        if not values.searches:
            return False
        if values.sources and self._sources.isdisjoint(values.sources):
            return True
        if not values.sets:
            return False
        if values.sources:
            return not self._share_documents(values)
        if not self.set_names.keys().isdisjoint(values.sets):
            return False
        # One that is not shown to the asker may hold documents that they may read.
        return self._set_labels.isdisjoint(values.sets)

    def _share_documents(self, values: AssistantValues) -> bool:
        """Return whether a rule of its sets is about one of its sources, of those that the asker may read something of."""
        found = [one for one in self._document_sets if one.label in values.sets]
        named = {rule.source for one in found for rule in one.values.rules}
        # A tag may be one of any source.
        return None in named or not named.isdisjoint(self._sources.intersection(values.sources))

    def _record(
        self,
        database: Database,
        action: str,
        assistant_id: str,
        before: AssistantValues,
        after: AssistantValues,
    ) -> None:
        """Record a change in the audit, but for what people keep for themselves."""
        visibilities = {before.visibility, after.visibility}
        if visibilities == {Visibility.MINE}:
            return
        details = _describe(after)
        if before != after:
            details = {"before": _describe(before), "after": details}
        subject = f"assistant:{assistant_id}"
        audit.record(database, action, subject, details, self.user.actor)


def _describe(values: AssistantValues) -> dict[str, object]:
    """Return what the audit says of an assistant: who may use it, and of which documents it speaks."""
    return {
        "name": values.name,
        "visibility": values.visibility,
        "groups": list(values.groups),
        "sources": list(values.sources),
        "sets": list(values.sets),
    }


def _make_holders(assistant_id: str | None) -> FileHolders:
    return FileHolders(assistant_id=None if assistant_id == DEFAULT_ID else assistant_id)
