"""The base of all JSON shapes, and the types of their fields."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    model_validator,
)

MOST_KEYS = 100
"""Of an object that is sent."""


class Schema(BaseModel):
    """A JSON shape; `model_validate` takes an object with attributes of the same names."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def example(cls) -> Self:
        """Return the example that the OpenAPI description shows."""
        extra: Any = cls.model_config["json_schema_extra"]
        return cls.model_validate(extra["examples"][0])


class RequestObject(BaseModel):
    """An object of a request that may be long: unknown keys are refused, and not one by one where they are many."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: object) -> object:
        if isinstance(value, Mapping) and len(value) > MOST_KEYS:
            raise ValueError(f"an object has at most {MOST_KEYS} keys here")
        return value


def with_example(**values: JsonValue) -> ConfigDict:
    """Return the configuration of a model with an example for the OpenAPI description."""
    return ConfigDict(json_schema_extra={"examples": [values]})


def dump_all(models: Iterable[BaseModel]) -> list[dict[str, object]]:
    return [model.model_dump(mode="json") for model in models]


def _to_pair(span: object) -> object:
    start, end = getattr(span, "start", None), getattr(span, "end", None)
    return span if start is None else (start, end)


SpanPair: TypeAlias = Annotated[tuple[int, int], BeforeValidator(_to_pair)]
"""Start and end, in code points; made from a `Span`, too."""
Rate: TypeAlias = Annotated[float, AfterValidator(lambda rate: round(rate, 2))]
