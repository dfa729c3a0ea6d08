"""The secret of the machine, and what is signed with it."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.access.machine_secret import (
    LINK_LIFETIME,
    SESSION_LIFETIME,
    MachineSecret,
    read_machine_secret,
)
from connectors.errors import NotConfiguredError

SECRET, OTHER = MachineSecret("s" * 43), MachineSecret("t" * 43)
NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
A_SECOND = timedelta(seconds=1)


def test_the_file_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "machine.secret"
    first = read_machine_secret(path)
    assert re.fullmatch(r"[\w-]{43}", first.value)
    assert read_machine_secret(path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["machine.secret"]


def test_processes_that_start_at_once_have_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(read_machine_secret, [tmp_path / "machine.secret"] * 8))
    assert len(found) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "machine.secret"
    read_machine_secret(path)
    path.chmod(mode)
    with pytest.raises(NotConfiguredError, match=r"machine\.secret.*other users.*Delete it"):
        read_machine_secret(path)


@pytest.mark.parametrize("text", ["", "\n", "short", "x" * 31])
def test_a_file_without_a_secret_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "machine.secret"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(NotConfiguredError, match="too short"):
        read_machine_secret(path)


def test_a_folder_that_cannot_hold_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotConfiguredError, match=r"machine\.secret.*cannot be used"):
        read_machine_secret(tmp_path / "file" / "machine.secret")


@pytest.mark.parametrize("given", ["", "s", "s" * 42, "s" * 44, "S" * 43, "é\ud800", OTHER.value])
def test_only_the_secret_itself_is_equal(given: str) -> None:
    assert SECRET.is_equal(SECRET.value)
    assert not SECRET.is_equal(given)


def test_it_is_not_shown_where_objects_are() -> None:
    assert SECRET.value not in repr(SECRET)


def test_a_link_and_a_session_end() -> None:
    link, session = SECRET.make_link_code(NOW), SECRET.make_session(NOW)
    assert SECRET.is_link_code(link, NOW + LINK_LIFETIME - A_SECOND)
    assert not SECRET.is_link_code(link, NOW + LINK_LIFETIME)
    assert SECRET.is_session(session, NOW + SESSION_LIFETIME - A_SECOND)
    assert not SECRET.is_session(session, NOW + SESSION_LIFETIME)


def test_each_is_valid_for_its_purpose_and_its_secret_alone() -> None:
    link, session = SECRET.make_link_code(), SECRET.make_session()
    assert not SECRET.is_session(link)
    assert not SECRET.is_link_code(session)
    assert not OTHER.is_link_code(link)
    assert not OTHER.is_session(session)
    assert OTHER.cookie_name != SECRET.cookie_name


def test_each_session_is_another_with_another_proof() -> None:
    one, two = SECRET.make_session(NOW), SECRET.make_session(NOW)
    assert one != two
    assert SECRET.csrf_token(one) != SECRET.csrf_token(two)
    assert SECRET.csrf_token(one) not in one
    assert SECRET.value not in one


def test_what_was_altered_is_invalid() -> None:
    session = SECRET.make_session()
    for at, character in enumerate(session):
        other = "0" if character != "0" else "1"
        assert not SECRET.is_session(session[:at] + other + session[at + 1 :])
        assert not SECRET.is_session(session[:at] + session[at + 1 :])
        assert not SECRET.is_session(session[:at])
    for forged in ("99" + session, session + "0", f"1.{session}", "é\ud800", "..", "a.b.c", "."):
        assert not SECRET.is_session(forged)
