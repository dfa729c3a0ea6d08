"""The messages of OpenAI's chat completions, read as a turn: what is asked, what was said before, instructions, pictures."""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.api.openai.refusals import refuse_parameter
from backend.chat.pictures import Picture
from backend.chat.readable_ids import make_sent_picture_id
from backend.files.attached_files import MOST_PICTURES
from backend.files.file_types import UploadedFile, check_file, is_picture
from backend.schemas.openai_request import Role
from backend.search.llm_protocol import ChatMessage
from connectors.errors import InvalidInputError
from indexing.text.normalization import is_visible

LONGEST_QUESTION = 8_000
_INSTRUCTING = {"system", "developer"}
_DATA_URL = re.compile(r"data:image/([a-z.+-]{1,20});base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SaidMessage:
    role: Role
    text: str
    images: tuple[str, ...] = ()
    """Their URLs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMessages:
    parameter: str
    """Which holds them."""
    question: str
    history: tuple[ChatMessage, ...]
    instructions: str
    """Of the client; empty where it gives none."""
    images: tuple[str, ...]
    """The URLs of those that come with the question."""


def read_messages(messages: Sequence[SaidMessage], parameter: str) -> ReadMessages:
    """Take messages apart by what they are to the question. Raises Problem: the last message is no question."""
    said = [one for one in messages if one.role not in _INSTRUCTING]
    if not said or said[-1].role != "user":
        raise refuse_parameter(parameter, "The last message must be one of the user.")
    _check_question(said[-1].text, parameter)
    instructions = [one.text for one in messages if one.role in _INSTRUCTING]
    return ReadMessages(
        parameter=parameter,
        question=said[-1].text,
        history=tuple(_read_history(said[:-1])),
        instructions="\n\n".join(filter(None, instructions)),
        images=said[-1].images,
    )


def read_pictures(said: ReadMessages) -> tuple[Picture, ...]:
    """Read the pictures. Raises Problem: one is no picture that models are shown, or there are too many."""
    if len(said.images) > MOST_PICTURES:
        raise refuse_parameter(said.parameter, f"A message may have {MOST_PICTURES} pictures.")
    try:
        return tuple(_read_picture(number, url) for number, url in enumerate(said.images, start=1))
    except InvalidInputError as error:
        raise refuse_parameter(said.parameter, str(error)) from error


def _check_question(text: str, parameter: str) -> None:
    if not is_visible(text):
        message = "The last message has no text. Write a question, with visible characters."
        raise refuse_parameter(parameter, message)
    if len(text) > LONGEST_QUESTION:
        message = f"The last message is longer than {LONGEST_QUESTION:,} characters."
        raise refuse_parameter(parameter, message)


def _read_history(messages: Sequence[SaidMessage]) -> Iterator[ChatMessage]:
    for one in messages:
        if one.text:
            yield ChatMessage("assistant" if one.role == "assistant" else "user", one.text)


def _read_picture(number: int, url: str) -> Picture:
    """Read a picture of a data URL. Raises InvalidInputError: it is none that models are shown."""
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise InvalidInputError(
            "image_url must be a data URL of a picture in Base64; no address is opened."
        )
    try:
        data = base64.b64decode(found[2], validate=True)
    except binascii.Error as error:
        raise InvalidInputError(f"Picture {number} is not Base64.") from error
    name, media_type = check_file(UploadedFile(f"picture {number}.{found[1]}", data))
    if not is_picture(media_type):
        raise InvalidInputError(f"Picture {number} is no PNG, JPEG, GIF or WebP picture.")
    return Picture(make_sent_picture_id(number), name, media_type, data)
