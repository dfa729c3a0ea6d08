"""The messages of OpenAI's chat completions, read as a turn: what is asked, what was said before, instructions, pictures."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass

from backend.api.openai_refusals import refuse_parameter
from backend.chat.pictures import Picture
from backend.files.attached_files import MOST_PICTURES
from backend.files.file_types import UploadedFile, check_file, is_picture
from backend.schemas.openai_request import CompletionMessage, list_images, read_text
from backend.search.llm_protocol import ChatMessage
from connectors.errors import InvalidInputError
from indexing.text.normalization import is_visible

LONGEST_QUESTION = 8_000
_MESSAGES = "messages"
_INSTRUCTING = {"system", "developer"}
_DATA_URL = re.compile(r"data:image/([a-z.+-]{1,20});base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMessages:
    question: str
    history: tuple[ChatMessage, ...]
    instructions: str
    """Of the client; empty where it gives none."""
    images: tuple[str, ...]
    """The URLs of those that come with the question."""


def read_messages(messages: Sequence[CompletionMessage]) -> ReadMessages:
    """Raises Problem: the last message is no question."""
    said = [one for one in messages if one.role not in _INSTRUCTING]
    if not said or said[-1].role != "user":
        raise refuse_parameter(_MESSAGES, "The last message must be one of the user.")
    instructions = [read_text(one) for one in messages if one.role in _INSTRUCTING]
    return ReadMessages(
        question=_check_question(read_text(said[-1])),
        history=tuple(_read_history(said[:-1])),
        instructions="\n\n".join(filter(None, instructions)),
        images=tuple(list_images(said[-1])),
    )


def read_pictures(urls: Sequence[str]) -> tuple[Picture, ...]:
    """Raises Problem: one is no picture that models are shown, or there are too many."""
    if len(urls) > MOST_PICTURES:
        raise refuse_parameter(_MESSAGES, f"A message may have {MOST_PICTURES} pictures.")
    return tuple(_read_picture(number, url) for number, url in enumerate(urls, start=1))


def _check_question(text: str) -> str:
    if not is_visible(text):
        message = "The last message has no text. Write a question, in characters that can be seen."
        raise refuse_parameter(_MESSAGES, message)
    if len(text) > LONGEST_QUESTION:
        message = f"The last message is longer than {LONGEST_QUESTION:,} characters."
        raise refuse_parameter(_MESSAGES, message)
    return text


def _read_history(messages: Sequence[CompletionMessage]) -> list[ChatMessage]:
    texts = [(one.role, read_text(one)) for one in messages]
    return [
        ChatMessage("assistant" if role == "assistant" else "user", text)
        for role, text in texts
        if text
    ]


def _read_picture(number: int, url: str) -> Picture:
    found = _DATA_URL.fullmatch(url)
    if found is None:
        message = "image_url must be a data URL of a picture in Base64; no address is opened."
        raise refuse_parameter(_MESSAGES, message)
    try:
        data = base64.b64decode(found[2], validate=True)
        name, media_type = check_file(UploadedFile(f"picture {number}.{found[1]}", data))
    except (binascii.Error, InvalidInputError) as error:
        raise refuse_parameter(_MESSAGES, f"Picture {number} cannot be read: {error}") from error
    if not is_picture(media_type):
        message = f"Picture {number} is no PNG, JPEG, GIF or WebP picture."
        raise refuse_parameter(_MESSAGES, message)
    return Picture("", name, media_type, data)
