"""Choose the language models of a turn, once for each, from the database or the settings, and count what they use."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from backend.chat.llm.resting_models import RestingModels
from backend.settings import Settings
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError

if TYPE_CHECKING:
    from backend.chat.llm.client import ChatModel, LanguageModel
    from backend.chat.llm.metering import UsageMeter
    from backend.chat.llm.model_settings import ModelSettings
    from backend.chat.passages import PassagesReason
    from backend.conversations.fast_model import FastModel
    from backend.store.database import Database
    from backend.store.llm.language_models import StoredModel
    from backend.store.llm.model_usage import OwnUse
    from backend.store.sync.credential_vault import Vault
    from indexing.embedding.token_counting import CountTokens

LOG = logging.getLogger("quarry.language_model")
_MOST_COUNTED = 512
"""Texts whose tokens are remembered for the time of a turn; its files are counted several times."""


@dataclass(frozen=True, slots=True)
class ChosenModels:
    """The models of a turn."""

    answering: "ChatModel"
    fast: "ChatModel"
    """For queries, the selection and the judging of claims; may be the one that answers. Where it fails, that one is asked."""
    fallback: "ChatModel | None"
    """Takes over where the answering one fails before its first token; the default where the answering one is the fallback."""
    missing: str | None = None
    """The name of the one that was to answer, where there is none of this name any more."""

    def metered(self, meter: "UsageMeter", count_tokens: "CountTokens") -> "ChosenModels":
        from backend.chat.substituted_model import meter_model

        return ChosenModels(
            meter_model(self.answering, meter, count_tokens),
            meter_model(self.fast, meter, count_tokens),
            meter_model(self.fallback, meter, count_tokens) if self.fallback else None,
            self.missing,
        )


class LanguageModels:
    """The language models of a home. What an admin changes counts from the next turn on.

    Args:
        find_database: returns None where there is no database yet; none is created to look for models.
        open_vault: decrypts the keys of the models in it.
    """

    def __init__(
        self,
        settings: Settings,
        find_database: "Callable[[], Database | None]",
        open_vault: "Callable[[], Vault]",
    ) -> None:
        self._settings = settings
        self._find_database = find_database
        self._open_vault = open_vault
        self._connected: dict[ModelSettings, LanguageModel] = {}
        self._opened: dict[StoredModel, ModelSettings] = {}
        """With their keys decrypted, of models that were used."""
        self._chosen: bool | None = None
        self._live = LiveUsage()

    @property
    def answers(self) -> bool:
        """Whether a model answered the last turn, as was found then; before the first, whether the settings name one."""
        return self._settings.llm_model is not None if self._chosen is None else self._chosen

    def choose(
        self, name: str | None = None, temperature: float | None = None
    ) -> ChosenModels | None:
        """Return the models of a turn; None where none is set that could answer.

        Args:
            name: of the model that answers; where there is none of this name, the default one does.
            temperature: of the model that answers, also where the fallback does, and of no other.
        """
        from backend.store.llm.language_models import ModelRole

        stored = self.list_stored()
        by_role = {role: model for model in stored for role in model.roles}
        named = next((model for model in stored if model.name == name), None)
        default = self._open(by_role.get(ModelRole.DEFAULT)) or self.settings_model
        answering = self._open(named) or default
        self._chosen = answering is not None
        if answering is None:
            return None
        fast = self._open(by_role.get(ModelRole.FAST)) or answering
        fallback = self._open(by_role.get(ModelRole.FALLBACK))
        if fallback == answering:
            fallback = default if default != answering else None
        chosen = ChosenModels(
            self._connect(answering).with_temperature(temperature),
            self._connect_fast(fast, answering),
            self._connect(fallback).with_temperature(temperature) if fallback else None,
            name if named is None else None,
        )
        self._forget_all_but(stored, {answering, default, fast, fallback, self.settings_model})
        return chosen

    def list_stored(self) -> "list[StoredModel]":
        """Return the models of the database by name."""
        from backend.store.llm import language_models

        database = self._find_database()
        return [] if database is None else language_models.list_models(database)

    def open_model(self, name: str) -> "LanguageModel":
        """Return a model of the database, or that of the settings, to try it.

        Raises:
            NotFoundError: there is none of this name.
            NotConfiguredError: its key cannot be decrypted.
        """
        from backend.chat.llm.stored_models import make_settings, open_key
        from backend.store.llm import language_models

        database, usual = self._find_database(), self.settings_model
        if database is None or (usual and usual.shown_name == name and self._is_free(name)):
            if usual is None or usual.shown_name != name:
                raise language_models.is_missing(name)
            return self._connect(usual)
        model = language_models.find(database, name)
        return self._connect(make_settings(model, open_key(model, self._open_vault)))

    def _is_free(self, name: str) -> bool:
        return all(one.name != name for one in self.list_stored())

    @property
    def settings_model(self) -> "ModelSettings | None":
        """The model of the environment, which answers where the database has no default."""
        settings = self._settings
        if settings.llm_model is None:
            return None
        from backend.chat.llm.model_settings import ModelSettings

        key = settings.llm_key
        return ModelSettings(
            base_url=settings.llm_url or "https://api.openai.com/v1",
            model=settings.llm_model,
            api_key=key.get_secret_value() if key else None,
            context_window=settings.llm_window,
        )

    def find_used_budget(self, person_id: int) -> "PassagesReason | None":
        """Return the budget of today's tokens that is used up, if one is.

        What turns under way have used counts, those of other processes aside; no turn is broken off. So a budget is
        exceeded at most by what the turns that run when it is used up still use. Of several, the narrowest is returned.
        """
        from backend.chat.passages import PassagesReason
        from backend.store.accounts.people import NOBODY

        database = self._find_database()
        if database is None:
            return None
        general, shared = self._settings.llm_person_tokens, self._settings.llm_total_tokens
        live = self._live.by_person()
        own, total = self._sum_of_day(database, person_id)
        budget = own.budget or (general if person_id != NOBODY else 0)
        if budget and own.tokens + live.get(person_id, 0) >= budget:
            return PassagesReason.BUDGET_USED
        if _is_group_budget_used(database, person_id, live):
            return PassagesReason.GROUP_BUDGET_USED
        is_used = shared and total + sum(live.values()) >= shared
        return PassagesReason.SHARED_BUDGET_USED if is_used else None

    def _sum_of_day(self, database: "Database", person_id: int) -> "tuple[OwnUse, int]":
        """Return what a person has used today, and the tokens of all; both are summed only where a budget needs them."""
        from backend.store.llm import model_usage

        if self._settings.llm_person_tokens or self._settings.llm_total_tokens:
            return model_usage.sum_of_day(database, person_id, _today())
        found = model_usage.find_budgeted(database, person_id, _today())
        return found or model_usage.OwnUse(0, None), 0

    @contextmanager
    def metering(self, person_id: int) -> "Iterator[UsageMeter]":
        """Yield what counts the calls of a turn; the sums are recorded at the end of the block."""
        from backend.chat.llm.metering import UsageMeter

        meter = UsageMeter()
        self._live.add(person_id, meter)
        try:
            yield meter
        finally:
            self._record(person_id, meter)
            self._live.remove(meter)

    def _record(self, person_id: int, meter: "UsageMeter") -> None:
        from backend.store.llm import model_usage

        database = self._find_database()
        if database is None:
            return
        try:
            model_usage.add(database, person_id, _today(), meter.read())
        except TemporarilyUnavailableError as error:
            # The answer is there; it is not taken back because it was not counted.
            LOG.warning("Tokens were not counted: %s", error)

    def _open(self, model: "StoredModel | None") -> "ModelSettings | None":
        """Return what a model of the database is reached by; its key is decrypted once, and anew when it was changed."""
        from backend.chat.llm.stored_models import make_settings, open_key

        if model is None:
            return None
        if (opened := self._opened.get(model)) is not None:
            return opened
        try:
            settings = make_settings(model, open_key(model, self._open_vault))
        except NotConfiguredError as error:
            # Its endpoint then refuses the turn, as it would a wrong key, and the fallback takes over.
            LOG.warning("The key of the model %s is not used: %s", model.name, error)
            return make_settings(model, None)
        self._opened[model] = settings
        return settings

    def _connect(self, settings: "ModelSettings") -> "LanguageModel":
        from backend.chat.llm.client import LanguageModel

        connected = self._connected.get(settings)
        if connected is None:
            connected = self._connected[settings] = LanguageModel(settings)
        return connected

    @cached_property
    def _resting(self) -> RestingModels:
        return RestingModels()

    def _connect_fast(self, fast: "ModelSettings", answering: "ModelSettings") -> "ChatModel":
        """Return the model for small tasks. Where it fails, the one that answers does them: it reads the question anyway."""
        from backend.chat.substituted_model import SubstitutedModel

        if fast == answering:
            return self._connect(fast)
        return SubstitutedModel(self._connect(fast), self._connect(answering), self._resting)

    def _forget_all_but(
        self, stored: "Sequence[StoredModel]", chosen: "set[ModelSettings | None]"
    ) -> None:
        """Let go of models that were changed; turns that still use them hold them."""
        for model in [one for one in list(self._opened) if one not in stored]:
            self._opened.pop(model, None)
        used = chosen.union(list(self._opened.values()))
        for settings in [one for one in list(self._connected) if one not in used]:
            self._connected.pop(settings, None)


@dataclass(frozen=True, slots=True)
class TurnModels:
    chosen: ChosenModels | None
    """None where no language model is set."""
    count_tokens: "CountTokens"
    """Counts each text once."""
    _models: LanguageModels

    @contextmanager
    def open_fast(self, person_id: int) -> Iterator["FastModel | None"]:
        """Yield the model for small tasks, its use counted as a person's; None where none is set, or a budget is used up."""
        from backend.chat.llm.client import make_complete
        from backend.conversations.fast_model import FastModel

        if self.chosen is None or self._models.find_used_budget(person_id):
            yield None
            return
        with self._models.metering(person_id) as meter:
            metered = self.chosen.metered(meter, self.count_tokens)
            yield FastModel(
                complete=make_complete(metered.fast),
                count_tokens=self.count_tokens,
                window=min(
                    metered.fast.settings.prompt_tokens, metered.answering.settings.prompt_tokens
                ),
                answering_window=metered.answering.settings.prompt_tokens,
            )


def remember_counts(count_tokens: "CountTokens") -> "CountTokens":
    return lru_cache(_MOST_COUNTED)(count_tokens)


def _today() -> date:
    return datetime.now(UTC).date()


def _is_group_budget_used(database: "Database", person_id: int, live: Mapping[int, int]) -> bool:
    """Return whether the members of a group that a person is in have used the tokens of the day."""
    from backend.store.llm import group_budgets

    budgets = group_budgets.list_of_person(database, person_id, _today())
    if not budgets:
        return False
    members = group_budgets.find_members(database, (one.group_id for one in budgets), live)
    return any(
        one.used + sum(live[member] for member in members.get(one.group_id, ())) >= one.tokens
        for one in budgets
    )


class LiveUsage:
    """What the turns under way in this process have used: it is recorded only at the end of each. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._people: dict[UsageMeter, int] = {}
        """Whose turn each meter counts."""

    def add(self, person_id: int, meter: "UsageMeter") -> None:
        with self._lock:
            self._people[meter] = person_id

    def remove(self, meter: "UsageMeter") -> None:
        with self._lock:
            del self._people[meter]

    def by_person(self) -> Mapping[int, int]:
        """Return the tokens that the turns of each person have used."""
        with self._lock:
            people = dict(self._people)
        used: Counter[int] = Counter()
        for meter, person_id in people.items():
            used[person_id] += _count_tokens(meter)
        return used


def _count_tokens(meter: "UsageMeter") -> int:
    return sum(one.input_tokens + one.output_tokens for one in meter.read().values())
