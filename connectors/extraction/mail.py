"""E-mail (EML): headers, the body that a person reads, and attachments by the readers of their own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import TypeAlias

from connectors.document import Metadata, Place, Section
from connectors.extraction.decoding import decode
from connectors.extraction.extracted import (
    CannotRead,
    Extracted,
    one_line,
    people,
    section,
    utc,
)
from connectors.extraction.foreign import parsing
from connectors.extraction.hypertext import html_sections
from connectors.extraction.media_types import EML, HEAD, UNKNOWN, media_type_of

Extract: TypeAlias = Callable[[bytes, str], Extracted]

_WHAT = "e-mail"
_DEEPEST = 5
_MOST_ATTACHMENTS = 200
_MOST_ATTACHED = 200_000_000
