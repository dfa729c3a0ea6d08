"""JSON of a question, as people and programs ask it."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from indexing.text.normalization import INVISIBLE, is_visible

LONGEST_QUESTION = 8_000


def _check_question(text: str) -> str:
    if not is_visible(text):
        raise ValueError("write a question, with visible characters")
    return text


Question: TypeAlias = Annotated[
    str,
    Field(max_length=LONGEST_QUESTION, json_schema_extra={"pattern": rf"[^{INVISIBLE}]"}),
    AfterValidator(_check_question),
]
