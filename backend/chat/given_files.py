"""What became of the files of a question, as the asker is told."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

FileUse: TypeAlias = Literal["whole", "scope", "everything"]
"""Read whole; or too long for that: they alone are searched, or everything is."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    document_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesGiven:
    use: FileUse
    files: tuple[GivenFile, ...]
    """Of text."""
    has_model: bool
    seen: tuple[GivenFile, ...] = ()
    """Pictures that the language model is shown."""
    unseen: tuple[GivenFile, ...] = ()

    @property
    def document_ids(self) -> list[str]:
        """Those that the model is given whole."""
        whole = self.files if self.use == "whole" else ()
        return [file.document_id for file in (*whole, *self.seen)]

    @property
    def sentence(self) -> str:
        """What to say to the asker; empty where all is as they expect."""
        return " ".join(filter(None, (self._describe_search(), self._describe_pictures())))

    def _describe_search(self) -> str:
        count = len(self.files)
        these, are = ("this file", "is") if count == 1 else (f"these {count} files", "are")
        why = f": {'it is' if count == 1 else 'together they are'} too long to be read whole"
        reason = why if self.has_model else ""
        match self.use:
            case "scope" if count:
                return f"Only {these} {are} searched{reason}."
            case "everything" if count:
                return f"Everything is searched, with {these}{reason}."
            case _:
                return ""

    def _describe_pictures(self) -> str:
        if not self.unseen:
            return ""
        names = ", ".join(file.name for file in self.unseen)
        was = "was" if len(self.unseen) == 1 else "were"
        who = (
            "The language model does not see pictures"
            if self.has_model
            else "No language model is set"
        )
        return f"{who}: {names} {was} not looked at."
