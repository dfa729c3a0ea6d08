"""What admins may set of language models, and what the audit keeps of it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backend.chat.llm.stored_models import ModelChange, ModelService, make_settings, open_key
from backend.store import audit
from backend.store.audit import Actor
from backend.store.database import open_database
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelRole, ModelValues
from backend.store.sync.credential_vault import Vault, new_key
from connectors.errors import ConflictError, InvalidInputError, NotConfiguredError, NotFoundError
from tests.support.databases import sqlite_in

SECRET = "sk-" + "0123456789" * 3
VALUES = ModelValues(
    name="large",
    base_url="https://llm.example.com/v1/",
    model=" large-2026 ",
    context_window=128_000,
    sees_pictures=True,
    calls_tools=True,
    reasons=False,
    input_price=2.5,
    output_price=10.0,
)
VAULT = Vault([new_key()])
DEFAULT = frozenset({ModelRole.DEFAULT})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ModelService]:
    with closing(open_database(sqlite_in(tmp_path))) as database:
        yield ModelService(database, lambda: VAULT, Actor("user:ann@example.com", "192.0.2.7"))


def _audited(service: ModelService) -> list[tuple[str, str, str]]:
    entries = audit.list_entries(service.database)
    assert all(one.actor == "user:ann@example.com" for one in entries)
    assert SECRET not in str(entries)
    return [(one.action, one.subject, str(one.detail)) for one in entries]


def test_a_model_is_added_with_its_key_sealed(service: ModelService) -> None:
    service.add(VALUES, SECRET, DEFAULT)
    (model,) = language_models.list_models(service.database)
    assert model.values == replace(
        VALUES, base_url="https://llm.example.com/v1", model="large-2026"
    )
    assert model.roles == DEFAULT
    assert model.sealed_key
    assert SECRET not in model.sealed_key
    settings = make_settings(model, open_key(model, lambda: VAULT))
    assert (settings.api_key, settings.shown_name) == (SECRET, "large")
    assert SECRET not in repr(settings)
    ((action, subject, detail),) = _audited(service)
    assert (action, subject) == ("add_model", "model:large")
    assert "'has_key': True" in detail


def test_a_change_keeps_what_is_not_named(service: ModelService) -> None:
    service.add(VALUES, SECRET, DEFAULT)
    changed = service.change("large", ModelChange(values={"name": "huge", "input_price": None}))
    assert (changed.name, changed.values.input_price, changed.roles) == ("huge", None, DEFAULT)
    assert open_key(changed, lambda: VAULT) == SECRET
    removed = service.change("huge", ModelChange(values={}, key="", roles=frozenset()))
    assert (removed.sealed_key, removed.roles) == (None, frozenset())
    details = [detail for _, _, detail in _audited(service)[:2]]
    assert details == [
        "{'before': {}, 'after': {}, 'key': 'removed', 'roles': {'before': ['default'], 'after': []}}",
        "{'before': {'name': 'large', 'input_price': 2.5}, 'after': {'name': 'huge', 'input_price': None}}",
    ]


@pytest.mark.parametrize(
    "address",
    [
        "https://other.example.com/v1",
        "http://llm.example.com/v1",
        "https://llm.example.com:8443/v1",
    ],
)
def test_a_key_is_not_sent_to_another_server(service: ModelService, address: str) -> None:
    service.add(VALUES, SECRET, DEFAULT)
    with pytest.raises(InvalidInputError, match="Enter the key again"):
        service.change("large", ModelChange(values={"base_url": address}))
    assert (
        open_key(
            service.change("large", ModelChange(values={"base_url": address}, key="new")),
            lambda: VAULT,
        )
        == "new"
    )


def test_a_path_of_the_same_server_keeps_the_key(service: ModelService) -> None:
    service.add(VALUES, SECRET, DEFAULT)
    change = ModelChange(values={"base_url": "https://llm.example.com/openai/v1"})
    assert open_key(service.change("large", change), lambda: VAULT) == SECRET


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:11434/v1",
        "http://10.1.2.3/v1",
        "http://[::1]:8000/v1",
        "https://llm.internal/v1",
    ],
)
def test_an_admin_may_name_private_addresses(service: ModelService, address: str) -> None:
    service.add(replace(VALUES, base_url=address), None, DEFAULT)
    assert language_models.find(service.database, "large").values.base_url == address


@pytest.mark.parametrize(
    "values",
    [
        {"name": ""},
        {"name": "."},
        {"name": ".."},
        {"name": "-"},
        {"name": "--json"},
        {"name": "a/b"},
        {"name": "a" * 101},
        {"name": "a\0"},
        {"model": " "},
        {"model": "a\nb"},
        {"model": "a" * 501},
        {"context_window": 3_999},
        {"context_window": 10**9},
        {"input_price": -1.0},
        {"output_price": float("nan")},
        {"output_price": float("inf")},
        {"base_url": ""},
        {"base_url": "llm.example.com/v1"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://user:password@llm.example.com/v1"},
        {"base_url": "https://llm.example.com/v1?key=1"},
        {"base_url": "http://169.254.169.254/v1"},
        {"base_url": "http://[::ffff:169.254.169.254]/v1"},
        {"base_url": "http://0.0.0.0/v1"},
        {"base_url": "http://localhost:6379/v1"},
        {"base_url": "http://2130706433/v1"},
        {"base_url": f"https://llm.example.com/{'a' * 600}"},
    ],
)
def test_what_is_not_valid_is_refused(service: ModelService, values: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        service.add(replace(VALUES, **values), None, DEFAULT)  # type: ignore[arg-type]
    assert language_models.list_models(service.database) == []
    assert audit.list_entries(service.database) == []


@pytest.mark.parametrize("key", ["a b", "a\nb", "é", "a\0", "a" * 10_001])
def test_a_key_that_no_server_takes_is_refused(service: ModelService, key: str) -> None:
    with pytest.raises(InvalidInputError, match="key") as refused:
        service.add(VALUES, key, DEFAULT)
    assert key not in str(refused.value)


def test_what_is_refused_leaves_no_trace(service: ModelService) -> None:
    service.add(VALUES, None, DEFAULT)
    service.add(replace(VALUES, name="small"), None, frozenset())
    before = _audited(service)
    with pytest.raises(ConflictError):
        service.add(VALUES, None, DEFAULT)
    with pytest.raises(ConflictError):
        service.change("small", ModelChange(values={"name": "large"}, roles=DEFAULT))
    for act in (
        lambda: service.use("none", ModelRole.FAST),
        lambda: service.remove("none"),
        lambda: service.change("none", ModelChange(values={})),
    ):
        with pytest.raises(NotFoundError):
            act()
    assert _audited(service) == before
    assert language_models.find(service.database, "large").roles == DEFAULT


def test_models_are_used_and_removed(service: ModelService) -> None:
    service.add(VALUES, None, DEFAULT)
    service.use("large", ModelRole.FAST)
    assert language_models.find(service.database, "large").roles == {"default", "fast"}
    service.remove("large")
    assert language_models.list_models(service.database) == []
    removed, used, added = _audited(service)
    assert (removed[0], added[0]) == ("remove_model", "add_model")
    details = {"role": "fast", "before": ["default"], "after": ["default", "fast"]}
    assert used == ("use_model", "model:large", str(details))


def test_who_loses_a_role_to_another_model_is_in_the_audit(service: ModelService) -> None:
    service.add(VALUES, None, frozenset(ModelRole))
    small = replace(VALUES, name="small")
    service.add(small, None, frozenset({ModelRole.FAST}))
    service.use("small", ModelRole.FALLBACK)
    service.change("small", ModelChange(values={}, roles=DEFAULT))
    taken = [one for one in _audited(service) if one[0] == "take_model_role"]
    assert [(subject, detail) for _, subject, detail in taken] == [
        ("model:large", str({"role": role, "to": "small"}))
        for role in ("default", "fallback", "fast")
    ]
    roles = {"before": ["fallback", "fast"], "after": ["default"]}
    assert f"'roles': {roles}" in _audited(service)[0][2]
    assert language_models.find(service.database, "large").roles == frozenset()


def test_a_key_of_another_vault_is_not_opened(service: ModelService) -> None:
    service.add(VALUES, SECRET, DEFAULT)
    (model,) = language_models.list_models(service.database)
    with pytest.raises(NotConfiguredError):
        open_key(model, lambda: Vault([new_key()]))
