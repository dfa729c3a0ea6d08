"""Language models, what each is used for, and the tokens that people use."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta

import pytest

from backend.access.roles import Role
from backend.store.accounts import people
from backend.store.accounts.people import NOBODY
from backend.store.database import Database, open_database
from backend.store.llm import language_models, model_usage
from backend.store.llm.language_models import ModelRole, ModelValues
from backend.store.llm.model_usage import DAYS_KEPT, OwnUse, TokenCounts
from connectors.errors import ConflictError, NotFoundError
from tests.support.accounts import add_person

TODAY = date(2026, 3, 31)
ANN = "ann@example.com"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


def _values(name: str, **values: object) -> ModelValues:
    usual: dict[str, object] = {
        "name": name,
        "base_url": "https://llm.example.com/v1",
        "model": "m",
        "context_window": 32_000,
        "sees_pictures": False,
        "calls_tools": True,
        "reasons": False,
        "input_price": None,
        "output_price": 2.5,
    }
    return ModelValues(**(usual | values))  # type: ignore[arg-type]


def _roles(database: Database) -> dict[str, set[str]]:
    return {one.name: {*one.roles} for one in language_models.list_models(database)}


def test_models_are_kept_as_they_were_given(database: Database) -> None:
    given = _values("b", sees_pictures=True, calls_tools=False, reasons=True, input_price=0.25)
    language_models.add(database, given, "sealed")
    language_models.add(database, _values("a"), None)
    first, second = language_models.list_models(database)
    assert (first.values, first.sealed_key, first.roles) == (_values("a"), None, frozenset())
    assert (second.values, second.sealed_key) == (given, "sealed")
    assert language_models.find(database, "b") == second
    assert "sealed" not in repr(second)


def test_a_role_is_of_one_model_at_a_time(database: Database) -> None:
    for name in "ab":
        language_models.add(database, _values(name), None)
    first, second = language_models.list_models(database)
    language_models.set_roles(database, first.id, [ModelRole.DEFAULT, ModelRole.FAST])
    assert _roles(database) == {"a": {"default", "fast"}, "b": set()}
    language_models.set_roles(database, second.id, [ModelRole.FAST, ModelRole.FALLBACK])
    assert _roles(database) == {"a": {"default"}, "b": {"fast", "fallback"}}
    language_models.set_roles(database, first.id, [])
    assert _roles(database) == {"a": set(), "b": {"fast", "fallback"}}
    language_models.remove(database, second.id)
    assert _roles(database) == {"a": set()}


@pytest.mark.parametrize("name", ["none", "a\0", "\ud800"], ids=["none", "zero", "surrogate"])
def test_one_that_is_not_there_is_not_found(database: Database, name: str) -> None:
    language_models.add(database, _values("a"), None)
    with pytest.raises(NotFoundError):
        language_models.find(database, name)


def test_a_name_is_of_one_model(database: Database) -> None:
    for name in "ab":
        language_models.add(database, _values(name), None)
    with pytest.raises(ConflictError, match="'a'"):
        language_models.add(database, _values("a"), None)
    first, _ = language_models.list_models(database)
    with pytest.raises(ConflictError, match="'b'"):
        language_models.change(database, first.id, _values("b"), None)
    with pytest.raises(NotFoundError, match="quarry models list"):
        language_models.find(database, "c")


def test_all_keys_are_encrypted_anew(database: Database) -> None:
    for name, key in (("a", "1"), ("b", None), ("c", "3")):
        language_models.add(database, _values(name), key)
    assert language_models.reencrypt_keys(database, lambda sealed: f"new {sealed}") == 2
    keys = [one.sealed_key for one in language_models.list_models(database)]
    assert keys == ["new 1", None, "new 3"]


def test_tokens_add_up_by_day_person_and_model(database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    ann = people.get_by_email(database, ANN)
    used = TokenCounts(input_tokens=100, output_tokens=10, calls=2)
    for _ in range(2):
        model_usage.add(database, ann.id, TODAY, {"large": used, "small": used})
    model_usage.add(database, NOBODY, TODAY, {"large": used})
    model_usage.add(database, ann.id, TODAY - timedelta(days=1), {"large": used})
    model_usage.add(database, ann.id, TODAY, {})
    assert model_usage.sum_of_day(database, ann.id, TODAY) == (OwnUse(440, None), 550)
    tomorrow = TODAY + timedelta(days=1)
    assert model_usage.sum_of_day(database, ann.id, tomorrow) == (OwnUse(0, None), 0)
    found = model_usage.list_since(database, TODAY)
    rows = {(one.email, one.model): one.counts for one in found}
    assert rows == {
        (ANN, "large"): used + used,
        (ANN, "small"): used + used,
        (None, "large"): used,
    }
    assert [(one.email, one.model) for one in found] == [
        (ANN, "large"),
        (ANN, "small"),
        (None, "large"),
    ]
    assert model_usage.list_since(database, TODAY, 2) == found[:2]
    everything = model_usage.list_since(database, TODAY - timedelta(days=1))
    assert [one.day for one in everything][-1] == TODAY - timedelta(days=1)


def test_tokens_of_a_day_are_summed_by_model_and_by_the_people_who_used_most(
    database: Database,
) -> None:
    used = TokenCounts(input_tokens=100, output_tokens=10, calls=2)
    spent = {NOBODY: 1}
    for number in range(1, 5):
        add_person(database, f"p{number}@example.com", Role.ADMIN)
        spent[people.get_by_email(database, f"p{number}@example.com").id] = number
    for who, times in spent.items():
        for _ in range(times):
            model_usage.add(database, who, TODAY, {"large": used, "small": used})
    before = TODAY - timedelta(days=1)
    model_usage.add(database, NOBODY, before, {"large": used})
    model_usage.add(database, NOBODY, before - timedelta(days=1), {"large": used})

    by_model = model_usage.list_days_by_model(database, before)
    assert [(one.day, one.model, one.counts.calls) for one in by_model] == [
        (before, "large", 2),
        (TODAY, "large", 22),
        (TODAY, "small", 22),
    ]
    assert by_model[1].counts.input_tokens == 1_100
    by_person = model_usage.list_days_by_person(database, before, 2)
    ids = {one.email: one.person_id for one in by_person}
    assert {(one.day, one.email, one.tokens) for one in by_person} == {
        (before, None, 110),
        (TODAY, "p4@example.com", 880),
        (TODAY, "p3@example.com", 660),
        (TODAY, None, 880),
    }
    assert ids[None] is None
    everybody = model_usage.list_days_by_person(database, before, 9)
    assert sum(one.tokens for one in everybody) == sum(one.tokens for one in by_person)
    assert {one.person_id for one in everybody} == set(spent)


def test_turns_that_end_at_once_are_all_counted(database: Database) -> None:
    used = TokenCounts(input_tokens=1, output_tokens=1, calls=1)

    def count() -> None:
        for _ in range(5):
            model_usage.add(database, NOBODY, TODAY, {"b": used, "a": used})

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model_usage.sum_of_day(database, NOBODY, TODAY) == (OwnUse(80, None), 80)


def test_counts_are_forgotten_when_they_are_kept_no_longer(database: Database) -> None:
    used, oldest = TokenCounts(input_tokens=1), TODAY - timedelta(days=DAYS_KEPT - 1)
    for day in (oldest - timedelta(days=1), oldest, TODAY):
        for model in ("large", "small"):
            model_usage.add(database, NOBODY, day, {model: used})
    found = model_usage.list_since(database, oldest - timedelta(days=9))
    assert [(one.day, one.model) for one in found] == [
        (TODAY, "large"),
        (TODAY, "small"),
        (oldest, "large"),
        (oldest, "small"),
    ]


def test_what_was_used_of_a_model_is_counted_under_its_new_name(database: Database) -> None:
    """Its name is what usage, and with it the price, is found by."""
    language_models.add(database, _values("old"), None)
    used = TokenCounts(input_tokens=3, output_tokens=2, calls=1)
    left = TokenCounts(input_tokens=10, output_tokens=20, calls=2)
    yesterday = TODAY - timedelta(days=1)
    for day, counts in (
        (yesterday, {"old": used, "other": left}),
        (TODAY, {"old": used, "new": left}),
    ):
        model_usage.add(database, NOBODY, day, counts)
    model = language_models.find(database, "old")
    language_models.change(database, model.id, _values("new"), None)
    found = [
        (one.day, one.model, one.counts) for one in model_usage.list_since(database, yesterday)
    ]
    assert found == [
        (TODAY, "new", used + left),
        (yesterday, "new", used),
        (yesterday, "other", left),
    ]


def test_usage_stays_with_a_model_that_cannot_be_renamed(database: Database) -> None:
    for name in ("a", "b"):
        language_models.add(database, _values(name), None)
    model_usage.add(database, NOBODY, TODAY, {"a": TokenCounts(calls=1)})
    model = language_models.find(database, "a")
    with pytest.raises(ConflictError):
        language_models.change(database, model.id, _values("b"), None)
    assert [one.model for one in model_usage.list_since(database, TODAY)] == ["a"]
