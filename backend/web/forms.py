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
    body = (await request.body()).decode(errors="replace")
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}


FormDependency = Annotated[Form, Depends(read_form)]
