"""Credentials from encryption to the connector: rotated, and never shown."""

import json
import logging
import stat
import traceback
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from typer.testing import CliRunner

from backend.chat.llm.stored_models import open_key
from backend.cli import app
from backend.cli.credentials import rotate_key
from backend.container import Container
from backend.settings import Settings
from backend.sources.status import read_status
from backend.store import audit
from backend.store.audit import OWNER
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelValues
from backend.store.sync import sources
from backend.store.sync.credential_vault import Vault, new_key
from backend.web_search.service import open_credential
from connectors.errors import ActionRequiredError

TOKEN = "ghp_16C7e42F292c6912E7"
MODEL = ModelValues(
    name="large",
    base_url="https://llm.example.com/v1",
    model="m",
    context_window=32_000,
    sees_pictures=False,
    calls_tools=True,
    reasons=False,
    input_price=None,
    output_price=None,
)


def open_container(home: Path, *keys: str) -> Container:
    """With these keys; without any, with the file of the home."""
    given = {"credential_keys": ", ".join(keys)} if keys else {}
    return Container(Settings.model_validate({"home": home, **given}))


def with_sources(home: Path, *keys: str) -> Container:
    """Three of them; `handbook` needs no credential."""
    made = open_container(home, *keys)
    for name in ("wiki", "tickets"):
        sealed = made.vault.seal({"token": f"{TOKEN} of {name}"})
        sources.add(made.database, name, "folder", {"path": "/srv"}, sealed)
    sources.add(made.database, "handbook", "folder", {"path": "/srv"})
    return made


def opened(home: Path, *keys: str) -> dict[str, object]:
    made = open_container(home, *keys)
    return {
        source.name: made.vault.open(source.credential)["token"]
        for source in sources.list_sources(made.database)
        if source.credential
    }


def _rotate_key(made: Container) -> int:
    return rotate_key(made.database, made.vault)


WHOLE = {"wiki": f"{TOKEN} of wiki", "tickets": f"{TOKEN} of tickets"}


def test_after_a_rotation_the_new_key_is_enough(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    with_sources(tmp_path, old)
    rotated = open_container(tmp_path, new, old)
    assert _rotate_key(rotated) == 2
    entry = audit.list_entries(rotated.database)[0]
    assert (entry.action, entry.actor, entry.detail) == ("rotate_key", "owner", {"resealed": 2})
    assert opened(tmp_path, new) == WHOLE
    with pytest.raises(ActionRequiredError, match="cannot be decrypted"):
        opened(tmp_path, old)


def test_a_rotation_may_be_repeated(tmp_path: Path) -> None:
    made = with_sources(tmp_path)
    assert [_rotate_key(made) for _ in range(3)] == [2, 2, 2]
    assert opened(tmp_path) == WHOLE


def test_without_credentials_there_is_nothing_to_rotate(tmp_path: Path) -> None:
    assert _rotate_key(open_container(tmp_path)) == 0


def test_a_rotation_that_cannot_open_one_changes_none(tmp_path: Path) -> None:
    old, new, other = new_key(), new_key(), new_key()
    made = with_sources(tmp_path, old)
    foreign = Vault([other]).seal({"token": TOKEN})
    sources.edit(made.database, "wiki", {"path": "/srv"}, foreign)
    before = sources.list_sources(made.database)
    with pytest.raises(ActionRequiredError, match=r"'wiki': .* Nothing was changed"):
        _rotate_key(open_container(tmp_path, new, old))
    assert sources.list_sources(made.database) == before


def test_the_command_says_how_many_were_sealed_anew(tmp_path: Path) -> None:
    with_sources(tmp_path)
    key = (tmp_path / "credentials.key").read_text().strip()
    environment = {"QUARRY_HOME": str(tmp_path)}
    result = CliRunner().invoke(app, ["credentials", "rotate"], env=environment)
    assert result.output.strip() == "Encrypted 2 credentials with the newest key."
    made = CliRunner().invoke(app, ["credentials", "key"], env=environment).output.strip()
    keys = {**environment, "QUARRY_CREDENTIAL_KEYS": f"{made},{key}"}
    result = CliRunner().invoke(app, ["credentials", "rotate", "--json"], env=keys)
    assert json.loads(result.output) == {"resealed": 2}
    assert opened(tmp_path, made) == WHOLE
    failed = CliRunner().invoke(app, ["credentials", "rotate"], env=environment)
    assert failed.exit_code == 1


def test_the_file_of_keys_lies_in_the_home_for_its_owner_only(tmp_path: Path) -> None:
    with_sources(tmp_path)
    assert stat.S_IMODE((tmp_path / "credentials.key").stat().st_mode) == 0o600


def test_keys_that_are_set_leave_no_file(tmp_path: Path) -> None:
    with_sources(tmp_path, new_key())
    assert not (tmp_path / "credentials.key").exists()


def test_a_source_without_a_credential_needs_no_key(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    made = open_container(tmp_path, "this is no key")
    source = sources.add(made.database, "desk", "folder", {"path": str(tmp_path / "files")})
    made.sources.connector(source)


def test_a_stored_credential_is_not_read_without_its_key(tmp_path: Path) -> None:
    with_sources(tmp_path)
    for path in tmp_path.glob("quarry.db*"):
        assert TOKEN.encode() not in path.read_bytes()


def test_what_people_and_programs_are_shown_of_a_source_holds_no_credential(tmp_path: Path) -> None:
    made = with_sources(tmp_path)
    source = sources.find(made.database, "wiki")
    assert source.credential is not None
    wire = read_status(made.database, "wiki")
    listed = CliRunner().invoke(app, ["sources", "--json"], env={"QUARRY_HOME": str(tmp_path)})
    output = f"{source!r} {source} {wire.model_dump_json()} {listed.output}"
    assert "wiki" in output
    assert source.credential not in output
    assert TOKEN not in output
    assert "gAAAA" not in output  # what every sealed text begins with


def test_errors_and_logs_of_the_database_hold_no_credential(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "sqlalchemy"):
        with_sources(tmp_path)
        with pytest.raises(ActionRequiredError) as reported:
            with_sources(tmp_path)
    assert isinstance(reported.value.__cause__, IntegrityError)
    trace = "".join(traceback.format_exception(reported.value))
    for seen in (trace, caplog.text):
        assert "INSERT INTO sources" in seen
        assert "gAAAA" not in seen


def test_a_credential_that_does_not_fit_its_source_is_not_reported(tmp_path: Path) -> None:
    made = with_sources(tmp_path)
    with pytest.raises(ActionRequiredError, match="wiki are not valid: token") as reported:
        made.sources.connector(sources.find(made.database, "wiki"))
    assert TOKEN not in "".join(traceback.format_exception(reported.value))


def test_the_settings_tell_neither_keys_nor_the_password_of_the_database(tmp_path: Path) -> None:
    key, url = new_key(), "postgresql://quarry:hunter2@127.0.0.1/quarry"
    given = {"home": tmp_path, "credential_keys": key, "database_url": url}
    settings = Settings.model_validate(given)
    output = f"{settings!r} {settings.model_dump_json()}"
    assert key not in output
    assert "hunter2" not in output
    assert Container(settings).home_database.url == url


def test_a_credential_is_kept_changed_or_taken_away(tmp_path: Path) -> None:
    made = with_sources(tmp_path)
    kept = sources.edit(made.database, "wiki", {"path": "/srv/wiki"})
    assert kept.settings == {"path": "/srv/wiki"}
    assert kept.credential is not None
    assert made.vault.open(kept.credential) == {"token": WHOLE["wiki"]}
    changed = sources.edit(made.database, "wiki", {}, made.vault.seal({"token": "other"}))
    assert opened(tmp_path) == {**WHOLE, "wiki": "other"}
    assert changed.credential != kept.credential
    assert sources.edit(made.database, "wiki", {}, None).credential is None
    with pytest.raises(ActionRequiredError, match="no source named 'nowhere'"):
        sources.edit(made.database, "nowhere", {})


def test_a_credential_is_a_column_of_text(tmp_path: Path) -> None:
    made = with_sources(tmp_path)
    with made.database.reading() as connection:
        held = connection.scalars(text("SELECT credential FROM sources ORDER BY name")).all()
    assert held[0] is None
    assert all(str(each).startswith("gAAAA") for each in held[1:])


def test_keys_of_language_models_are_encrypted_anew_too(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    made = with_sources(tmp_path, old)
    made.model_service(OWNER).add(MODEL, TOKEN, frozenset())
    assert _rotate_key(open_container(tmp_path, new, old)) == 3
    (model,) = language_models.list_models(made.database)
    assert open_key(model, lambda: Vault([new])) == TOKEN


def test_where_one_key_is_unknown_nothing_is_changed(tmp_path: Path) -> None:
    old, new, other = new_key(), new_key(), new_key()
    made = with_sources(tmp_path, old)
    open_container(tmp_path, other).model_service(OWNER).add(MODEL, TOKEN, frozenset())
    with pytest.raises(ActionRequiredError, match="cannot be decrypted"):
        _rotate_key(open_container(tmp_path, new, old))
    assert opened(tmp_path, old) == WHOLE
    (model,) = language_models.list_models(made.database)
    assert open_key(model, lambda: Vault([other])) == TOKEN


def test_keys_of_providers_of_web_search_are_encrypted_anew_too(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    made = open_container(tmp_path, old)
    made.web.service(OWNER).add("tavily", {}, {"key": TOKEN})
    assert _rotate_key(open_container(tmp_path, new, old)) == 1
    (provider,) = open_container(tmp_path, new).web.service(OWNER).list_providers()
    assert open_credential(provider.values, lambda: Vault([new])) == {"key": TOKEN}
