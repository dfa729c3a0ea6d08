"""Pictures that come with a message, for models that see."""

import base64
from dataclasses import dataclass

PICTURE_TOKENS = 1_500
"""That are reserved for each: models count them in ways of their own, seldom as more."""


@dataclass(frozen=True, slots=True)
class Picture:
    document_id: str
    """Its id in the index, by which it is known who may see it; another one if it came with the request itself."""
    name: str
    media_type: str
    data: bytes

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"
