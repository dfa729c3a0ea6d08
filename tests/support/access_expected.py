"""How a route is expected to answer: its rule, the object that a request to it names, and what is sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from backend.api.authorization import Permission

OBJECT = "OBJECT"
"""Stands in what is sent for what names the object."""
MODEL_ADDRESS = "http://127.0.0.1:8080/v1"
ISSUER = "https://idp.example.com"
QUESTION = "How long is parental leave?"


class Kind(StrEnum):
    """What the path, the query or the body of a request names."""

    NOTHING = "nothing"
    DOCUMENT = "document"
    SOURCE = "source"
    INGEST_SOURCE = "source of programs"
    """That takes documents."""
    PUSHED_DOCUMENT = "pushed document"
    """That a program put in."""
    FILTERED_SOURCE = "filtered source"
    """By which documents are filtered: it exists for whoever may read one of its documents."""
    PERSON = "person"
    GROUP = "group"
    INVITATION = "invitation"
    INVITATION_CODE = "invitation code"
    RESET_CODE = "reset code"
    TOKEN = "token"
    OWN_TOKEN = "own token"
    SESSION = "session"
    IDENTITY = "identity"
    CONVERSATION = "conversation"
    MESSAGE = "message"
    """Together with its conversation."""
    MESSAGE_IN_OWN = "message in an own conversation"
    """The conversation is the asker's; where the message stands is what differs."""
    MODEL = "language model"
    WEB_PROVIDER = "provider of web search"
    DOCUMENT_SET = "document set"
    """Wholly of sources of its owner."""
    MIXED_SET = "mixed set"
    """A document set of sources of its owner and of another person."""
    SET_BY_OWN_SOURCE = "document set by an own source"
    """Which set is named is what differs; the source is the asker's."""
    SOURCE_OF_OWN_SET = "source of an own set"
    """The set is the asker's; which source is named is what differs."""
    FILTERED_SET = "filtered set"
    """By which documents are filtered: it exists for those to whom it is shown."""
    ASSISTANT = "assistant"
    """For nobody but its owner."""
    GROUP_ASSISTANT = "assistant of a group"
    """For the members of a group, of which its owner here is one."""
    SHARED_ASSISTANT = "shared assistant"
    """For all."""
    ASSISTANT_IN_OWN = "assistant in an own conversation"
    """The conversation is the asker's; which assistant answers is what differs."""
    PROJECT = "project"
    JOINED_PROJECT = "joined project"
    """Of somebody else, with its owner here as a member."""
    PROJECT_CONVERSATION = "project conversation"
    """Of a member, together with its project."""
    PROJECT_CONVERSATION_IN_OWN = "project conversation in an own project"
    """The project is the asker's; where the conversation stands is what differs."""
    PROJECT_MESSAGE = "project message"
    """Of a member, together with its project."""
    PROJECT_MESSAGE_IN_OWN = "project message in an own project"
    """The project is the asker's; where the message stands is what differs."""
    PROJECT_OF_OWN_CONVERSATION = "project of an own conversation"
    """The conversation is the asker's; which project it is moved into is what differs."""
    PROJECT_MEMBER = "project member"
    """Together with the project."""
    PROJECT_MEMBER_IN_OWN = "project member in an own project"
    """The project is the asker's; whether the person is in it is what differs."""
    SHARE = "share"
    FILE = "file"
    """That was uploaded and read."""
    PROJECT_FILE = "project file"
    """Together with its project."""
    JOINED_PROJECT_FILE = "file of a joined project"
    """Of the project's owner, together with the project."""
    FILE_FOR_OWN_PROJECT = "file for an own project"
    """The project is the asker's; whose the file is is what differs."""
    ASSISTANT_FILE = "assistant file"
    """Together with its assistant."""
    FILE_FOR_OWN_ASSISTANT = "file for an own assistant"
    """The assistant is the asker's; whose the file is is what differs."""
    MEMORY = "memory"
    RESEARCH = "research"
    """That has ended with a report."""
    OAUTH_CLIENT = "client of OAuth"
    CONNECTED_PROGRAM = "connected program"
    """What a person granted to a client of OAuth."""
    KNOWLEDGE = "knowledge"
    """Of its owner alone."""
    SOURCE_ACCOUNT = "source account"
    """That its owner asks for, at a source that its owner looks after."""
    ENDED_SHARE = "ended share"
    """Taken back: it exists for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How a route answers who has its permission."""

    permission: Permission
    of_people: bool = False
    """Tokens of services are refused, which belong to nobody."""
    kind: Kind = Kind.NOTHING
    found: int = 200
    """The status for an object that the asker may know of, and for a route that names none."""
    missing: int = 404
    signed_in: int | None = None
    """The status for a session, where that is another."""
    admin: int | None = None
    """The status for the session of an admin who may know of the object, where that is another."""
    managers_own: int | None = None
    """The status for a manager of sources whose own the object is, where that is another."""
    query: Mapping[str, str] | None = None
    json: Any = None
    form: Mapping[str, str] | None = None


def answers(
    permission: Permission, kind: Kind = Kind.NOTHING, found: int = 200, **more: Any
) -> Expected:
    return Expected(permission=permission, kind=kind, found=found, **more)


def answers_people(kind: Kind = Kind.NOTHING, found: int = 200, **more: Any) -> Expected:
    """What belongs to people who ask."""
    return answers(Permission.ASK, kind, found, of_people=True, **more)
