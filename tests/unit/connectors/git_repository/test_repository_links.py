"""Repositories that lead to other folders, as git follows them."""

import os
import subprocess
from pathlib import Path

import pytest

from connectors.git_repository.repository_links import find_repository_links
from tests.support.repository import Repository, Write


def leads_out(folder: Path, root: Path) -> bool:
    return not all(
        link.resolve().is_relative_to(root.resolve()) for link in find_repository_links(folder)
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def secret(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "secret.git")
    made.commit(Write("a.md", b"Secret"))
    return made


def test_a_repository_by_itself_leads_nowhere(root: Path) -> None:
    made = Repository(root / "kb.git")
    made.commit(Write("a.md", b"A"))
    assert not leads_out(root / "kb.git", root)
    assert not leads_out(root / "kb", root)
    assert not leads_out(root / "missing", root)
    work_tree = root / "work"
    work_tree.mkdir()
    subprocess.run(["git", "init", "--quiet", work_tree], check=True)
    # Nothing in the work tree is read by git.
    (work_tree / "link").symlink_to("/etc")
    assert not leads_out(work_tree, root)


def test_a_git_file_leads_to_what_it_names(root: Path, secret: Repository) -> None:
    (root / "kb").mkdir()
    for place in (secret.folder, "../../secret.git"):
        (root / "kb/.git").write_text(f"gitdir: {place}\n")
        assert leads_out(root / "kb", root)


def test_so_does_a_common_folder(root: Path, secret: Repository) -> None:
    made = Repository(root / "kb.git")
    (made.folder / "commondir").write_text(f"{secret.folder}\n")
    assert leads_out(made.folder, root)


@pytest.mark.parametrize(
    "text", ["{}/objects\n", "# a comment\n{}/objects", '"{}/objects"\n', "x" * (1 << 20) + "\n{}"]
)
def test_so_do_borrowed_objects(root: Path, secret: Repository, text: str) -> None:
    made = Repository(root / "kb.git")
    (made.folder / "objects/info/alternates").write_text(text.format(secret.folder))
    assert leads_out(made.folder, root)


def test_so_do_those_that_a_borrowed_folder_borrows(root: Path, secret: Repository) -> None:
    made, near = Repository(root / "kb.git"), root / "near"
    (made.folder / "objects/info/alternates").write_text(f"{near}\n")
    assert not leads_out(made.folder, root)
    (near / "info").mkdir(parents=True)
    assert not leads_out(made.folder, root)
    (near / "info/alternates").write_text(f"{secret.folder}/objects\n")
    assert leads_out(made.folder, root)


@pytest.mark.parametrize("name", ["objects", "refs/heads/x", "packed-refs", "objects/pack"])
def test_so_does_a_symbolic_link(root: Path, secret: Repository, name: str) -> None:
    made = Repository(root / "kb.git")
    place = made.folder / name
    if place.is_dir():
        place.rename(root / "away")
    place.symlink_to(secret.folder / name)
    assert leads_out(made.folder, root)


def test_so_does_a_repository_beside_the_root(root: Path, secret: Repository) -> None:
    """git reads `root.git` where `root` is asked for and is none."""
    assert not leads_out(root, root)
    secret.folder.rename(root.with_name("root.git"))
    assert leads_out(root, root)


def test_a_pipe_does_not_stop_it(root: Path) -> None:
    made = Repository(root / "kb.git")
    os.mkfifo(made.folder / "commondir")
    assert not leads_out(made.folder, root)


def test_folders_that_name_each_other_come_to_an_end(root: Path) -> None:
    first, second = Repository(root / "a.git"), Repository(root / "b.git")
    for one, other in ((first, second), (second, first)):
        (one.folder / "objects/info/alternates").write_text(f"{other.folder}/objects\n")
    assert not leads_out(first.folder, root)
