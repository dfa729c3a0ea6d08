"""What became of the files of a question, of its project and of its assistant, as the asker is shown it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

FileUse: TypeAlias = Literal["whole", "scope", "everything", "added"]
"""Read whole; or too long for that: they alone are searched, or everything is, or they besides what the assistant is limited to."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    document_id: str
    name: str


Holder: TypeAlias = Literal["project", "assistant"]
UnreadStatus: TypeAlias = Literal["reading", "failed"]
"""They were still being read; or could not be."""


@dataclass(frozen=True, slots=True)
class UnreadFiles:
    """Files of a project or an assistant that the answer goes without, without their names."""

    holder: Holder
    status: UnreadStatus
    number: int

    @property
    def sentence(self) -> str:
        number = "one file" if self.number == 1 else f"{self.number:,} files"
        was = "was" if self.number == 1 else "were"
        why = f"{was} still being read" if self.status == "reading" else "could not be read"
        return f"Of this {self.holder}, {number} {why} and {was} not used."


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesGiven:
    use: FileUse
    files: tuple[GivenFile, ...] = ()
    """Of text, that came with questions."""
    of_project: tuple[GivenFile, ...] = ()
    of_assistant: tuple[GivenFile, ...] = ()
    has_model: bool
    seen: tuple[GivenFile, ...] = ()
    """Pictures that the language model is shown."""
    unseen: tuple[GivenFile, ...] = ()
    """Of those that came with questions."""
    unread: tuple[UnreadFiles, ...] = ()
    deleted: int = 0
    """How many came with questions and were deleted since."""

    @property
    def whole(self) -> tuple[GivenFile, ...]:
        """Those of text that the model is given."""
        every = (*self.of_project, *self.of_assistant, *self.files)
        return every if self.use == "whole" else ()

    @property
    def document_ids(self) -> list[str]:
        """Those that the model is given whole."""
        return [file.document_id for file in (*self.whole, *self.seen)]

    @property
    def names(self) -> tuple[str, ...]:
        """What may be kept with the answer: of projects and assistants, nobody reads more later than what the answer rests on."""
        return tuple(file.name for file in self.whole or self.files)

    @property
    def sentence(self) -> str:
        """What to say to the asker; empty where all is as they expect."""
        unread = (one.sentence for one in self.unread)
        said = (
            self._describe_search(),
            self._describe_pictures(),
            self._describe_deleted(),
            *unread,
        )
        return " ".join(filter(None, said))

    def _describe_search(self) -> str:
        named = self._name_files()
        if not named:
            return ""
        is_one = named == "this file"
        these, are = named, "is" if is_one else "are"
        why = f": {'it is' if is_one else 'together they are'} too long to be read whole"
        reason = why if self.has_model else ""
        match self.use:
            case "scope":
                return f"Only {these} {are} searched{reason}."
            case "everything":
                return f"Everything is searched, with {these}{reason}."
            case "added":
                return f"What this assistant is limited to is searched, with {these}{reason}."
            case "whole":
                return ""

    def _name_files(self) -> str:
        """Say whose they are. Of projects and assistants, no number of what is read is kept with an answer."""
        count = len(self.files)
        own = "this file" if count == 1 else f"these {count} files"
        parts = [own] if count else []
        if self.of_project:
            parts.append("the files of this project")
        if self.of_assistant:
            parts.append("the files of this assistant")
        return ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + "".join(parts[-1:])

    def _describe_deleted(self) -> str:
        if not self.deleted:
            return ""
        if self.deleted == 1:
            return "Of the files that came with questions, one was deleted and is not used."
        return f"Of the files that came with questions, {self.deleted:,} were deleted and are not used."

    def _describe_pictures(self) -> str:
        if not self.unseen:
            return ""
        names = ", ".join(file.name for file in self.unseen)
        was = "was" if len(self.unseen) == 1 else "were"
        who = (
            "The language model does not accept images"
            if self.has_model
            else "No language model was set"
        )
        return f"{who}: {names} {was} not looked at."
