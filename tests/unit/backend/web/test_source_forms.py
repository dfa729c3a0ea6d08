"""Forms of sources: each setting has its field, what is stored stands in it, secrets never do."""

from collections.abc import Iterator, Sequence

import pytest

from backend.web.source_forms import Field, build_form, list_kinds
from connectors.errors import ActionRequiredError
from connectors.registry import SOURCE_KINDS
from connectors.settings_form import Form, SecretField


def _all(fields: Sequence[Field]) -> Iterator[Field]:
    for field in fields:
        yield field
        for group in field.groups:
            yield from _all(group.fields)


def _fields(kind: str, **settings: object) -> dict[str, Field]:
    form = build_form(kind, settings)
    return {one.path: one for one in _all((*form.needed, *form.more, *form.credential))}


def test_every_kind_can_be_chosen() -> None:
    assert [one.kind for one in list_kinds()] == list(SOURCE_KINDS)
    assert all(one.title and one.help for one in list_kinds())


@pytest.mark.parametrize("kind", SOURCE_KINDS)
def test_every_value_of_a_kind_has_one_field(kind: str) -> None:
    known = SOURCE_KINDS[kind]
    named = [f"settings.{'.'.join(one.path)}" for one in Form.from_model(known.settings).entries()]
    named += [
        f"credential.{'.'.join(one.path)}" for one in Form.from_model(known.credential).entries()
    ]
    fields = _fields(kind)
    assert set(named) <= set(fields)
    assert len({one.id for one in fields.values()}) == len(fields)


@pytest.mark.parametrize("kind", SOURCE_KINDS)
def test_every_secret_is_a_password_and_empty(kind: str) -> None:
    secret = {
        f"credential.{'.'.join(one.path)}"
        for one in Form.from_model(SOURCE_KINDS[kind].credential).entries()
        if isinstance(one.field, SecretField)
    }
    fields = _fields(kind)
    assert {path for path, one in fields.items() if one.control == "secret"} == secret
    assert all(not fields[path].value for path in secret)


def test_what_is_stored_stands_in_the_fields() -> None:
    fields = _fields("git", url="/srv/a.git", readers=["public", "group:dev"], hosting="gitlab")
    assert fields["settings.url"].value == "/srv/a.git"
    assert fields["settings.readers"].value == "public\ngroup:dev"
    assert [one.name for one in fields["settings.hosting"].options if one.is_chosen] == ["gitlab"]
    size = fields["settings.largest_file"]
    assert (size.control, size.value, size.default) == ("number", "", "100000000")


def test_what_must_be_given_stands_first_and_a_variant_is_chosen() -> None:
    form = build_form("git")
    assert [one.path for one in form.needed] == ["settings.url", "settings.readers"]
    (sign_in,) = form.credential
    assert (sign_in.path, sign_in.control) == ("credential.sign_in.kind", "variants")
    assert [one.option.name for one in sign_in.groups if one.option.is_chosen] == ["none"]


@pytest.mark.parametrize("kind", SOURCE_KINDS)
def test_what_must_be_chosen_is_chosen_and_its_fields_are_shown(kind: str) -> None:
    for one in _fields(kind).values():
        if one.control == "variants" and one.is_required:
            assert sum(group.option.is_chosen for group in one.groups) == 1


def test_there_is_no_form_of_what_is_no_kind() -> None:
    with pytest.raises(ActionRequiredError):
        build_form("fax")
