"""What the asker is told of the files of a question."""

import pytest

from backend.chat.file_use import FilesGiven, FileUse, GivenFile, UnreadFiles

ONE, TWO = GivenFile("f:1", "one.md"), GivenFile("f:2", "two.png")


@pytest.mark.parametrize(
    ("use", "count", "has_model", "sentence"),
    [
        ("whole", 2, True, ""),
        (
            "scope",
            1,
            True,
            "Only this file is searched: it is too long to be read whole.",
        ),
        (
            "scope",
            30,
            True,
            "Only these 30 files are searched: together they are too long to be read whole.",
        ),
        ("scope", 3, False, "Only these 3 files are searched."),
        ("scope", 0, False, ""),
        ("everything", 1, False, "Everything is searched, with this file."),
    ],
)
def test_the_search_is_said(use: FileUse, count: int, has_model: bool, sentence: str) -> None:  # noqa: FBT001 (a parameter of a test)
    given = FilesGiven(use=use, files=(ONE,) * count, has_model=has_model)
    assert given.sentence == sentence


@pytest.mark.parametrize(
    ("unread", "sentence"),
    [
        (
            UnreadFiles("project", "reading", 1),
            "Of this project, one file was still being read and was not used.",
        ),
        (
            UnreadFiles("assistant", "failed", 1_200),
            "Of this assistant, 1,200 files could not be read and were not used.",
        ),
    ],
)
def test_files_that_were_not_ready_are_said(unread: UnreadFiles, sentence: str) -> None:
    nothing = FilesGiven(use="whole", has_model=True, unread=(unread,))
    assert nothing.sentence == sentence
    given = FilesGiven(use="scope", files=(ONE,), has_model=False, unread=(unread,))
    assert given.sentence == f"Only this file is searched. {sentence}"
    assert given.names == ("one.md",)


@pytest.mark.parametrize(
    ("deleted", "sentence"),
    [
        (1, "Of the files that came with questions, one was deleted and is not used."),
        (1_200, "Of the files that came with questions, 1,200 were deleted and are not used."),
    ],
)
def test_files_that_were_deleted_are_said(deleted: int, sentence: str) -> None:
    assert FilesGiven(use="whole", has_model=True, deleted=deleted).sentence == sentence
    given = FilesGiven(use="scope", files=(ONE,), has_model=False, deleted=deleted)
    assert given.sentence == f"Only this file is searched. {sentence}"


def test_pictures_that_nobody_looked_at_are_said() -> None:
    given = FilesGiven(use="whole", files=(ONE,), has_model=True, unseen=(TWO,))
    assert given.sentence == (
        "The language model does not accept images: two.png was not looked at."
    )
    assert given.document_ids == ["f:1"]
    # It is kept with the answer: it stays true where a model is set later.
    without = FilesGiven(use="whole", files=(ONE,), has_model=False, unseen=(TWO,))
    assert without.sentence.endswith("No language model was set: two.png was not looked at.")
