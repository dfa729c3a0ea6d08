"""What the asker is told of the files of a question."""

import pytest

from backend.chat.file_use import FilesGiven, FileUse, GivenFile

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


def test_pictures_that_nobody_looked_at_are_said() -> None:
    given = FilesGiven(use="whole", files=(ONE,), has_model=True, unseen=(TWO,))
    assert given.sentence == (
        "The language model does not accept images: two.png was not looked at."
    )
    assert given.document_ids == ["f:1"]
