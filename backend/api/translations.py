"""The language of what people download to read it; all else that the API writes is English."""

from collections.abc import Callable
from typing import TypeAlias

from fastapi import Request

from backend.conversations.markdown_export import Translate

FindTranslation: TypeAlias = Callable[[Request], Translate]
"""Returns what says the texts of a download in the language of the one who asks."""


def keep_english(_: Request) -> Translate:
    return str
