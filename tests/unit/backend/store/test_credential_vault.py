"""The vault: what is encrypted is decrypted by the right key only, and is never shown."""

import multiprocessing
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from backend.store.sync.credential_vault import Vault, keys_in, keys_in_file, new_key
from connectors.errors import ActionRequiredError

OLD, NEW = new_key(), new_key()
TOKEN = "ghp_16C7e42F292c6912E7"
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # JSON knows no half of a surrogate pair
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab é", max_size=3), inner),
    max_leaves=5,
)


@given(values=st.dictionaries(st.text("abc_ü", max_size=5), VALUES, max_size=4))
def test_what_is_sealed_comes_back(values: dict[str, object]) -> None:
    vault = Vault([NEW])
    assert vault.open(vault.seal(values)) == values


def test_secrets_of_pydantic_are_sealed_as_what_they_hide() -> None:
    vault = Vault([NEW])
    assert vault.open(vault.seal({"token": SecretStr(TOKEN)})) == {"token": TOKEN}


@pytest.mark.parametrize("value", [Path("/srv"), b"token", {1, 2}, float("nan")])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words for nan are json's own
        Vault([NEW]).seal({"token": value})


def test_a_value_that_is_refused_is_not_reported() -> None:
    with pytest.raises(ValueError, match="a bytes cannot be part of a credential") as raised:
        Vault([NEW]).seal({"token": TOKEN.encode()})
    assert TOKEN not in repr(raised.value)
    assert raised.value.__suppress_context__


def test_the_same_is_never_sealed_alike() -> None:
    vault = Vault([NEW])
    assert vault.seal({"token": TOKEN}) != vault.seal({"token": TOKEN})


def test_the_first_key_seals_and_all_open() -> None:
    before = Vault([OLD]).seal({"token": TOKEN})
    both = Vault([NEW, OLD])
    assert both.open(before) == {"token": TOKEN}
    assert Vault([NEW]).open(both.seal({"token": TOKEN})) == {"token": TOKEN}


def test_what_is_rotated_needs_the_old_key_no_more() -> None:
    rotated = Vault([NEW, OLD]).rotate(Vault([OLD]).seal({"token": TOKEN}))
    assert Vault([NEW]).open(rotated) == {"token": TOKEN}
    with pytest.raises(ActionRequiredError, match="cannot be decrypted"):
        Vault([OLD]).open(rotated)


@pytest.mark.parametrize("change", [lambda text: text[:-8] + "AAAAAAA=", lambda _: "", str.upper])
def test_what_was_altered_is_refused(change: "type[str]") -> None:
    vault = Vault([NEW])
    altered = change(vault.seal({"token": TOKEN}))
    for use in (vault.open, vault.rotate):
        with pytest.raises(
            ActionRequiredError, match=r"QUARRY_CREDENTIAL_KEYS.*enter the credential again"
        ):
            use(altered)


def test_another_s_key_opens_nothing() -> None:
    sealed = Vault([OLD]).seal({"token": TOKEN})
    for use in (Vault([NEW]).open, Vault([NEW]).rotate):
        with pytest.raises(ActionRequiredError, match="cannot be decrypted") as raised:
            use(sealed)
        assert sealed not in str(raised.value)


@pytest.mark.parametrize(
    "key", ["correct horse battery staple", "é" * 44, NEW[:-2]], ids=["words", "letters", "short"]
)
def test_a_key_that_is_none_is_reported_without_a_word_of_it(key: str) -> None:
    with pytest.raises(ActionRequiredError, match="quarry credentials key") as raised:
        Vault([NEW, key])
    assert key not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_without_a_key_there_is_no_vault() -> None:
    with pytest.raises(ActionRequiredError, match="no key"):
        Vault(keys_in(" , "))


def test_a_vault_reveals_nothing_of_its_keys() -> None:
    vault = Vault([NEW, OLD])
    output = f"{vault!r} {vault} {vars(vault)}"
    assert NEW not in output
    assert OLD not in output


def test_keys_are_parted_by_commas_and_blanks() -> None:
    assert keys_in(f"{NEW},{OLD}") == keys_in(f" {NEW}\n{OLD}\n") == (NEW, OLD)


def test_a_key_file_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "home" / "credentials.key"
    first = keys_in_file(path)
    assert keys_in_file(path) == first
    assert len(first) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["credentials.key"]
    Vault(first).seal({})


def test_a_key_file_may_be_given_a_newer_key(tmp_path: Path) -> None:
    path = tmp_path / "credentials.key"
    (old,) = keys_in_file(path)
    path.write_text(f"{NEW}\n{old}\n")
    assert keys_in_file(path) == (NEW, old)


def test_a_key_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "credentials.key").mkdir()
    with pytest.raises(ActionRequiredError, match=r"credentials\.key.*cannot be used"):
        keys_in_file(tmp_path / "credentials.key")


def _keys(path: Path) -> tuple[str, ...]:
    return keys_in_file(path)


@pytest.mark.soak("slow")
def test_processes_that_make_a_key_file_at_once_agree(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.map(_keys, [tmp_path / "credentials.key"] * 12, chunksize=1)
    assert set(found) == {keys_in_file(tmp_path / "credentials.key")}
