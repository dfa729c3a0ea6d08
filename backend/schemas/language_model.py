"""JSON of language models, of a try of one, of what people used of them, and of the budgets of groups and people."""

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Literal, Self

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.chat.llm.model_settings import ModelSettings
    from backend.composition.language_models import LanguageModels
    from backend.store.llm.language_models import StoredModel
    from backend.store.llm.model_usage import ModelUsage, TokenCounts

_MILLION = 1_000_000


class ModelResponse(Schema):
    """A language model. No key is in it."""

    model_config = with_example(
        name="large",
        base_url="https://llm.example.com/v1",
        model="large-2026",
        origin="database",
        has_key=True,
        context_window=128_000,
        sees_pictures=False,
        calls_tools=True,
        reasons=False,
        input_price=2.5,
        output_price=10.0,
        roles=["default"],
    )

    name: str
    base_url: str
    model: str
    """Its id at the endpoint."""
    origin: Literal["database", "settings"]
    """`settings`: QUARRY_LLM_MODEL and the settings beside it."""
    has_key: bool
    context_window: int
    sees_pictures: bool
    calls_tools: bool
    reasons: bool
    input_price: float | None
    """Of a million tokens."""
    output_price: float | None
    roles: tuple[Literal["default", "fast", "fallback"], ...]
    """What it is used for."""

    @classmethod
    def from_stored(cls, model: "StoredModel") -> Self:
        values = model.values
        return cls(
            name=values.name,
            base_url=values.base_url,
            model=values.model,
            origin="database",
            has_key=model.sealed_key is not None,
            context_window=values.context_window,
            sees_pictures=values.sees_pictures,
            calls_tools=values.calls_tools,
            reasons=values.reasons,
            input_price=values.input_price,
            output_price=values.output_price,
            roles=tuple(role.value for role in sorted(model.roles)),
        )

    @classmethod
    def from_settings(cls, settings: "ModelSettings", *, is_default: bool) -> Self:
        return cls(
            name=settings.shown_name,
            base_url=settings.base_url,
            model=settings.model,
            origin="settings",
            has_key=settings.api_key is not None,
            context_window=settings.context_window,
            sees_pictures=False,
            calls_tools=settings.calls_tools,
            reasons=settings.reasons,
            input_price=None,
            output_price=None,
            roles=("default",) if is_default else (),
        )


def list_models(models: "LanguageModels") -> list[ModelResponse]:
    """Return the models of the database by name, then that of the settings, if one is set."""
    stored = list(map(ModelResponse.from_stored, models.list_stored()))
    if models.settings_model is None:
        return stored
    is_default = not any("default" in one.roles for one in stored)
    return [*stored, ModelResponse.from_settings(models.settings_model, is_default=is_default)]


class ModelCheckResponse(Schema):
    """What a try of a model has shown."""

    model_config = with_example(
        answers=True,
        answer="One, two, three, four, five.",
        seconds=0.41,
        streams=True,
        calls_tools=True,
        takes_temperature=True,
        trouble="",
        advice="",
    )

    answers: bool
    answer: str
    """The beginning of what it wrote."""
    seconds: float
    """Until its first token."""
    streams: bool
    """Whether its text came in several pieces."""
    calls_tools: bool | None
    """Null: it did not come so far."""
    takes_temperature: bool | None
    """Whether the temperature of an assistant counts for it; null: it did not come so far."""
    trouble: str
    """What is wrong; empty if nothing is."""
    advice: str
    """What to do about it."""


class GroupBudgetResponse(Schema):
    """How many tokens the members of a group may use on a day, and have used today."""

    model_config = with_example(
        group_id=3, name="sales", members=42, tokens=2_000_000, used=350_120
    )

    group_id: int
    name: str
    members: int
    tokens: int
    """Of all members together on a day of UTC; 0: no limit."""
    used: int
    """Today, by those who are members now; what is being answered is not counted yet."""


class PersonBudgetResponse(Schema):
    """How many tokens a person with a budget of their own may use on a day, and has used today."""

    model_config = with_example(email="ann@example.com", name="Ann", tokens=500_000, used=12_300)

    email: str
    name: str
    tokens: int
    """On a day of UTC; 0: no budget of their own, but that of everybody, if one is set."""
    used: int
    """Today; what is being answered is not counted yet."""


class ModelUsageResponse(Schema):
    """What a person used of a model on a day."""

    model_config = with_example(
        day="2026-03-31",
        person="ann@example.com",
        model="large",
        input_tokens=18_200,
        output_tokens=950,
        calls=6,
        cost=0.055,
    )

    day: date
    """Of UTC."""
    person: str | None
    """Null: the person at the machine, or a service token."""
    model: str
    input_tokens: int
    output_tokens: int
    calls: int
    cost: float | None
    """By the present prices of the model; null where they are not known."""


def price_usage(
    used: "Iterable[ModelUsage]", models: "Iterable[StoredModel]"
) -> list[ModelUsageResponse]:
    """Describe what was used, with what it costs by the present prices."""
    by_name = {model.name: model for model in models}
    return [
        ModelUsageResponse(
            day=one.day,
            person=one.email,
            model=one.model,
            input_tokens=one.counts.input_tokens,
            output_tokens=one.counts.output_tokens,
            calls=one.counts.calls,
            cost=price_tokens(one.counts, by_name.get(one.model)),
        )
        for one in used
    ]


def price_tokens(counts: "TokenCounts", model: "StoredModel | None") -> float | None:
    """Return what tokens cost by the present prices of a model; None where they are not known."""
    if model is None:
        return None
    read, written = model.values.input_price, model.values.output_price
    if read is None or written is None:
        return None
    return round((counts.input_tokens * read + counts.output_tokens * written) / _MILLION, 6)
