import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files import walker
from connectors.files.paths import PathParts
from connectors.files.walker import (
    File,
    FileChangedError,
    FileTooLargeError,
    InaccessiblePath,
    NotRegularFileError,
    read_file,
    read_head,
    walk_files,
)


def made(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def every(_parts: PathParts) -> bool:
    return True


def walked(root: Path, after: PathParts = ()) -> list[str]:
    return ["/".join(found.parts) for found in walk_files(root, every, after)]


FILES = ["a/b/1", "a/b/2", "a/c", "a.md", "b", "c/d/e/f", "c/d.md", "ä"]


def test_files_come_in_the_order_of_their_parts(tmp_path: Path) -> None:
    made(tmp_path, *FILES)
    assert walked(tmp_path) == sorted(FILES, key=lambda path: path.split("/"))


@pytest.mark.parametrize("position", range(len(FILES)))
def test_a_walk_resumes_after_any_file(tmp_path: Path, position: int) -> None:
    made(tmp_path, *FILES)
    whole = walked(tmp_path)
    assert walked(tmp_path, tuple(whole[position].split("/"))) == whole[position + 1 :]


def test_a_walk_resumes_after_a_file_that_is_gone(tmp_path: Path) -> None:
    made(tmp_path, *FILES)
    assert walked(tmp_path, ("a", "bb", "gone")) == ["a/c", "a.md", "b", "c/d/e/f", "c/d.md", "ä"]


NAMES = st.sampled_from(["a", "b", "a.b", "Z"])


@given(st.sets(st.tuples(NAMES) | st.tuples(NAMES, NAMES) | st.tuples(NAMES, NAMES, NAMES)))
def test_what_comes_after_is_what_a_whole_walk_yields_later(
    tmp_path_factory: pytest.TempPathFactory, paths: set[tuple[str, ...]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    files = [path for path in paths if not any(p[: len(path)] == path != p for p in paths)]
    made(root, *map("/".join, files))
    for after in paths:
        later = [found.parts for found in walk_files(root, every, after)]
        # a folder that has taken the place of the last file is read as well
        assert later == sorted(path for path in files if path > after)


def test_links_are_not_followed(tmp_path: Path) -> None:
    made(tmp_path / "out", "secret")
    made(tmp_path / "root", "a/file")
    (tmp_path / "root/a/loop").symlink_to("..")
    (tmp_path / "root/again").symlink_to("a/file")
    (tmp_path / "root/out").symlink_to(tmp_path / "out")
    (tmp_path / "root/secret").symlink_to(tmp_path / "out/secret")
    (tmp_path / "root/gone").symlink_to("nowhere")
    os.mkfifo(tmp_path / "root/pipe")
    assert walked(tmp_path / "root") == ["a/file"]


def test_only_what_may_be_entered_is_looked_at(tmp_path: Path) -> None:
    made(tmp_path, *FILES)
    found = walk_files(tmp_path, lambda parts: parts[0] != "c")
    assert [item.parts[0] for item in found] == ["a", "a", "a", "a.md", "b", "ä"]


def test_a_tree_deeper_than_any_path_is_walked_as_far_as_paths_reach(tmp_path: Path) -> None:
    name = "d" * 200
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (item,) = walk_files(tmp_path, every)
    assert isinstance(item, InaccessiblePath)
    assert "too long" in str(item.error)


def test_content_and_head(tmp_path: Path) -> None:
    made(tmp_path, "a/b")
    assert read_file(tmp_path, ("a", "b"), 3).data == b"a/b"
    assert read_head(tmp_path, ("a", "b"), 1) == b"a"
    with pytest.raises(FileTooLargeError):
        read_file(tmp_path, ("a", "b"), 2)


def test_a_link_put_in_the_place_of_a_file_or_folder_leads_nowhere(tmp_path: Path) -> None:
    made(tmp_path / "out", "secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(tmp_path / "out/secret")
    (root / "folder").symlink_to(tmp_path / "out")
    for parts in (("file",), ("folder", "secret")):
        with pytest.raises(OSError, match=r"symbolic|directory"):
            read_file(root, parts, 100)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegularFileError):
        read_file(tmp_path, ("pipe",), 100)


def test_a_file_that_is_written_all_the_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 10)
    whole = walker._read

    def slow(descriptor: int, size: int) -> bytes:
        data = whole(descriptor, size)
        with path.open("ab") as log:
            log.write(b"more")
        return data

    monkeypatch.setattr(walker, "_read", slow)
    with pytest.raises(FileChangedError):
        read_file(tmp_path, ("log",), 1000)


def test_a_walk_looks_at_a_folder_when_it_comes_to_it(tmp_path: Path) -> None:
    made(tmp_path, *(f"{n}/x" for n in range(50)))
    found = walk_files(tmp_path, every)
    first = next(found)
    assert isinstance(first, File)
    made(tmp_path, "9/y")
    assert ("9", "y") in [item.parts for item in found]
