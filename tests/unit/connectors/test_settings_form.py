"""Forms are read off models: what is asked, how, and where a fault belongs."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from connectors.registry import SOURCE_KINDS
from connectors.settings_form import (
    BooleanField,
    ChoiceField,
    Entry,
    Form,
    JsonField,
    ListField,
    NumberField,
    SecretField,
    TextField,
    Variants,
    first_sentence,
    get_path,
    nest_values,
    to_label,
)


class Nothing(BaseModel):
    """Nobody signs in."""

    kind: Literal["none"] = "none"


class Token(BaseModel):
    """By a token. It may end."""

    kind: Literal["token"] = "token"
    token: SecretStr = Field(description="Of the service.")
    user: str = "me"


class Password(BaseModel):
    kind: Literal["password"] = "password"
    user: str
    password: SecretStr


class Paging(BaseModel):
    size: int = 50


class Everything(BaseModel):
    """What is read. And more: see elsewhere."""

    model_config = ConfigDict(extra="forbid")

    root_url: str = Field(description="Where it is.")
    folder: Path | None = Field(default=None, title="A folder")
    words: tuple[str, ...] = ()
    colours: list[Literal["red", "blue"]] = Field(default_factory=list)
    most: int | None = None
    share: float = 0.5
    deep: bool = True
    order: Literal["new", "old"] = "new"
    extra: dict[str, int] = Field(default_factory=dict)
    key: SecretStr | None = None
    paging: Paging = Paging()
    sign_in: Annotated[Nothing | Token | Password, Field(discriminator="kind")] = Nothing()


FORM = Form.from_model(Everything)


def _entry(*path: str) -> Entry:
    (found,) = (one for one in FORM.entries() if one.path == path)
    return found


def test_each_value_has_the_shape_that_its_type_says() -> None:
    shapes = {".".join(one.path): one.field for one in FORM.entries() if len(one.path) == 1}
    assert shapes == {
        "root_url": TextField(),
        "folder": TextField("path"),
        "words": ListField(),
        "colours": ListField(("red", "blue")),
        "most": NumberField(is_integer=True),
        "share": NumberField(is_integer=False),
        "deep": BooleanField(),
        "order": ChoiceField(("new", "old")),
        "extra": JsonField(),
        "key": SecretField(),
    }


def test_labels_help_and_defaults_are_the_models() -> None:
    assert _entry("root_url") == Entry(
        path=("root_url",),
        label="Root URL",
        help="Where it is.",
        is_required=True,
        default=None,
        field=TextField(),
    )
    assert (_entry("folder").label, _entry("share").default) == ("A folder", 0.5)
    assert not _entry("share").is_required
    assert FORM.help == "What is read."


def test_values_of_an_inner_model_stand_where_it_stands() -> None:
    assert _entry("paging", "size").default == 50


def test_variants_are_those_of_the_union_in_its_order() -> None:
    (union,) = (part for part in FORM.parts if isinstance(part, Variants))
    assert (union.path, union.tag) == (("sign_in",), ("sign_in", "kind"))
    assert union.default == "none"
    assert [one.name for one in union.options] == ["none", "token", "password"]
    assert [one.help for one in union.options] == ["Nobody signs in.", "By a token.", ""]
    assert [[part.path[-1] for part in one.parts] for one in union.options] == [
        [],
        ["token", "user"],
        ["user", "password"],
    ]


def test_a_fault_is_placed_at_its_value_also_within_a_variant() -> None:
    values = {
        "words": ["a", 1],
        "most": "many",
        "sign_in": {"kind": "token"},
        "paging": {"size": "x"},
    }
    try:
        Everything.model_validate(values)
    except ValidationError as error:
        places = [FORM.locate_error(fault["loc"]) for fault in error.errors()]
    assert places == [
        ("root_url",),
        ("words", "1"),
        ("most",),
        ("paging", "size"),
        ("sign_in", "token"),
    ]


def test_values_by_paths_become_objects_and_back() -> None:
    values = {("a",): 1, ("b", "c"): 2, ("b", "d", "e"): 3}
    whole = nest_values(values)
    assert whole == {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert {path: get_path(whole, path) for path in values} == values
    assert get_path(whole, ("a", "x")) is None


def test_what_is_given_takes_the_place_of_what_is_stored() -> None:
    stored = {
        "root_url": "a",
        "words": ["x"],
        "sign_in": {"kind": "token", "token": "t", "user": "u"},
    }
    given = {"root_url": "b", "words": [], "sign_in": {"user": "v"}}
    merged = FORM.merge_values(stored, given)
    assert merged == {"root_url": "b", "sign_in": {"kind": "token", "token": "t", "user": "v"}}


def test_another_variant_leaves_nothing_of_the_one_before() -> None:
    stored = {"sign_in": {"kind": "token", "token": "t", "user": "u"}}
    given = {"sign_in": {"kind": "password", "password": "p"}}
    assert FORM.merge_values(stored, given) == {"sign_in": {"kind": "password", "password": "p"}}


def test_names_and_sentences_as_people_write_them() -> None:
    assert [to_label(name) for name in ("largest_file", "url", "ssh_key", "sign-in")] == [
        "Largest file",
        "URL",
        "SSH key",
        "Sign in",
    ]
    assert first_sentence("One of 3.5 parts.\nTwo.\n\nThree.") == "One of 3.5 parts."
    assert first_sentence("No end") == "No end"


def test_every_kind_explains_all_that_it_asks() -> None:
    unexplained = [
        (kind, one.path)
        for kind, known in SOURCE_KINDS.items()
        for model in (known.settings, known.credential)
        for one in Form.from_model(model).entries()
        if not one.help
    ]
    assert unexplained == []


def test_no_kind_asks_for_a_secret_among_its_settings() -> None:
    """The owner of the sources is shown settings, but not credentials."""
    shown = [
        (kind, one.path)
        for kind, known in SOURCE_KINDS.items()
        for one in Form.from_model(known.settings).entries()
        if isinstance(one.field, SecretField)
    ]
    assert shown == []
