"""Forms that a browser sends without a script."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, TypeAlias
from urllib.parse import parse_qsl

from fastapi import Depends, Request

Form: TypeAlias = Mapping[str, str]
NO_FORM: Form = MappingProxyType({})
_MOST_FIELDS = 50


async def read_form(request: Request) -> Form:
    """Return the fields of a form; what is no form has none."""
    return dict(await read_fields(request, _MOST_FIELDS))


async def read_fields(request: Request, most: int) -> list[tuple[str, str]]:
    """Return the fields of a form with their values, in order; what is no form, or has more fields, has none."""
    body = (await request.body()).decode(errors="replace")
    try:
        return parse_qsl(body, keep_blank_values=True, max_num_fields=most)
    except ValueError:
        return []


FormDependency = Annotated[Form, Depends(read_form)]
