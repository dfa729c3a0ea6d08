"""JSON of assistants."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Schema, with_example
from backend.store.chat.assistants import Visibility

if TYPE_CHECKING:
    from backend.conversations.assistant_service import ShownAssistant


class AssistantResponse(Schema):
    model_config = with_example(
        id="kD3vT0cWqXe2mYbR9sLhGg",
        name="Travel desk",
        description="Answers questions on trips and expenses.",
        owner="Ann Lee",
        instructions="Answer in two sentences, and name the form to use.",
        starters=["How do I book a train?"],
        sources=["handbook"],
        sets=[],
        limited=True,
        hides_limits=False,
        finds_nothing=False,
        model=None,
        model_removed=False,
        temperature=0.2,
        searches=True,
        searches_web=True,
        allowed_domains=["example.com"],
        blocked_domains=[],
        visibility="all",
        groups=[],
        default=False,
        mine=True,
        may_change=True,
        created_at="2026-03-02T09:30:00Z",
        updated_at="2026-03-02T09:30:00Z",
    )

    id: str
    name: str
    description: str
    owner: str
    """The name or the address of a person; nothing where it is of the owner of the machine, or of nobody."""
    instructions: str
    """Given to the language model with each question; they cannot change the rules on citations."""
    starters: tuple[str, ...]
    """Questions to begin with."""
    sources: tuple[str, ...]
    """Those of the searched sources of which you may read something."""
    sets: tuple[str, ...]
    """The searched document sets."""
    limited: bool
    """Whether it searches some sources or document sets only. If so, these may be ones that are gone, or of which you may
    read nothing."""
    hides_limits: bool
    """Whether it is limited to more sources or document sets than these: ones that are gone, or that you may not see. Told to
    those who may change it. They stay in it while any of its sources and sets do; with both of them empty it searches everything."""
    finds_nothing: bool
    """Whether it finds none of the documents that it is limited to: all of that is gone, or of sources of which you may
    read nothing, or its document sets have nothing of its sources."""
    model: str | None
    """Null for the default language model."""
    model_removed: bool
    """Whether the language model was removed: the default one answers instead, and each answer in a conversation says so."""
    temperature: float | None
    """Null for that of the model."""
    searches: bool
    searches_web: bool
    """Whether it may search the web, where that is switched on; one that does not search never does."""
    allowed_domains: tuple[str, ...]
    """Of the web, with their subdomains; none: all that the admins allow."""
    blocked_domains: tuple[str, ...]
    visibility: Visibility
    """Who besides its owner may use it."""
    groups: tuple[str, ...]
    """Those whose members may use it; shown to those who may change it."""
    default: bool
    """Whether it is the one that is always there."""
    mine: bool
    may_change: bool
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_shown(cls, shown: "ShownAssistant") -> Self:
        values = shown.values
        return cls(
            id=shown.id,
            name=values.name,
            description=values.description,
            owner=shown.owner_name,
            instructions=values.instructions,
            starters=values.starters,
            sources=values.sources,
            sets=values.sets,
            limited=shown.is_limited,
            hides_limits=shown.hides_limits,
            finds_nothing=shown.finds_nothing,
            model=values.model,
            model_removed=shown.model_removed,
            temperature=values.temperature,
            searches=values.searches,
            searches_web=values.searches_web,
            allowed_domains=values.allowed_domains,
            blocked_domains=values.blocked_domains,
            visibility=values.visibility,
            groups=values.groups,
            default=shown.is_default,
            mine=shown.is_mine,
            may_change=shown.may_change,
            created_at=shown.created_at,
            updated_at=shown.updated_at,
        )


class AssistantsResponse(Schema):
    model_config = with_example(assistants=[AssistantResponse.example().model_dump(mode="json")])

    assistants: tuple[AssistantResponse, ...]
    """The default one, then your own, then the others, by name."""
