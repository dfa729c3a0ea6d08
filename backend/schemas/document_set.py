"""JSON of document sets: for those who look after them, and for those who search in them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.store.documents.document_set_rules import SetRule
    from backend.store.documents.document_sets import DocumentSet


class DocumentSetResponse(Schema):
    """A document set, as those see it who look after it."""

    model_config = with_example(
        name="Policies",
        description="What everybody has to know",
        readers=["public"],
        sources=["policies"],
        folders=["handbook:people/"],
        tags=["type=policy"],
        documents=["wiki:12345"],
        is_applied=False,
        done=1_000,
        total=4_200,
        count=None,
        trouble=None,
    )

    name: str
    description: str
    readers: tuple[str, ...]
    """Reader tokens: to whom the set is shown. `public`: to everybody."""
    sources: tuple[str, ...]
    folders: tuple[str, ...]
    """Each as SOURCE:FOLDER: what lies below."""
    tags: tuple[str, ...]
    """Each as key=value, or SOURCE:key=value."""
    documents: tuple[str, ...]
    """Each by its id."""
    is_applied: bool
    """Whether all documents are updated with the last change."""
    done: int
    """Documents that were updated so far, of `total`."""
    total: int | None
    count: int | None
    """Documents of the set, whoever may read them: in a list those of when it was last applied."""
    trouble: str | None
    """Why the last attempt to update the documents ended; it is tried again."""

    @property
    def has_rules(self) -> bool:
        """Return whether it still has any: those of a deleted source are gone with it."""
        return bool(self.sources or self.folders or self.tags or self.documents)

    @classmethod
    def from_set(cls, found: "DocumentSet") -> Self:
        values, progress = found.values, found.progress
        return cls(
            name=values.name,
            description=values.description,
            readers=tuple(sorted(values.readers)),
            **cls.describe_rules(values.rules),
            is_applied=progress.is_applied,
            done=progress.done,
            total=progress.total,
            count=progress.documents,
            trouble=progress.trouble,
        )

    @staticmethod
    def describe_rules(rules: Iterable["SetRule"]) -> Mapping[str, tuple[str, ...]]:
        """Return the rules by kind, as people write them."""
        found: dict[str, list[str]] = {"source": [], "folder": [], "tag": [], "document": []}
        for rule in rules:
            found[rule.kind].append(str(rule))
        return {f"{kind}s": tuple(texts) for kind, texts in found.items()}


class VisibleSetResponse(Schema):
    """A document set, as those see it to whom it is shown."""

    model_config = with_example(
        name="Policies", description="What everybody has to know", documents=42
    )

    name: str
    """What a search names in its filter `sets`."""
    description: str
    documents: int
    """Of the set, that the asker may read."""


class MatchingResponse(Schema):
    model_config = with_example(documents=4_200, unmatched=["type=polcy"])

    documents: int
    unmatched: tuple[str, ...]
    """The rules that select nothing now, of at most 200 rules; of more, it is not looked up."""
