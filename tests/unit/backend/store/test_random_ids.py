"""Ids of what an address names."""

import secrets

import pytest

from backend.store.random_ids import make_random_id


def test_no_id_begins_as_an_option_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(["-Gxx", "--", "a-b_c"])
    monkeypatch.setattr(secrets, "token_urlsafe", lambda _: next(made))
    assert make_random_id() == "a-b_c"


def test_ids_differ_and_have_22_characters() -> None:
    ids = {make_random_id() for _ in range(500)}
    assert len(ids) == 500
    assert {len(one) for one in ids} == {22}
