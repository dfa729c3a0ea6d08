from pathlib import Path

import pytest

from connectors.git_repository.remote_url import (
    HttpRemote,
    LocalRemote,
    SshRemote,
    parse_remote,
    repository_name,
)
from connectors.sources.git.web_links import Hosting, detect_hosting, file_link


@pytest.mark.parametrize(
    ("text", "remote"),
    [
        (
            "https://Example.com/a/kb.git/",
            HttpRemote("https://example.com/a/kb.git", "https", "example.com", 443),
        ),
        (
            "http://example.com:8080/kb",
            HttpRemote("http://example.com:8080/kb", "http", "example.com", 8080),
        ),
        (
            "ssh://me@example.com:2222/a/kb.git",
            SshRemote("ssh://me@example.com:2222/a/kb.git", "me", "example.com", 2222, "a/kb.git"),
        ),
        (
            "git@example.com:a/kb.git",
            SshRemote("git@example.com:a/kb.git", "git", "example.com", 22, "a/kb.git"),
        ),
        ("/srv/kb.git", LocalRemote(Path("/srv/kb.git"))),
        ("file:///srv/my%20kb.git", LocalRemote(Path("/srv/my kb.git"))),
    ],
)
def test_an_address_is_one_of_three_kinds_of_place(
    text: str, remote: HttpRemote | SshRemote | LocalRemote
) -> None:
    assert parse_remote(text) == remote


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kb",
        "-oProxyCommand=touch /tmp/x",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c touch% /tmp/x",
        "fd::17",
        "git://example.com/kb",
        "ftp://example.com/kb",
        "https://ann:secret@example.com/kb",
        "https://token@example.com/kb",
        "https://example.com/kb?private_token=secret",
        "https://0177.0.0.1/kb",
        "https:///kb",
        "ssh://-oProxyCommand=x/kb",
        "ssh://-l@example.com/kb",
        "ssh://git:secret@example.com/kb",
        "git@-oProxyCommand=x:kb",
        "git@example.com:-x",
        "git@example.com:",
        "file://elsewhere/kb",
        "https://example.com/kb\nb",
        "/srv/k\0b",
    ],
)
def test_what_is_no_address_or_would_steer_git_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        parse_remote(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("https://example.com/a/kb.git", "kb"),
        ("git@example.com:kb", "kb"),
        ("/srv/kb/.git", "kb"),
        ("/", "repository"),
    ],
)
def test_a_repository_is_called_by_the_end_of_its_path(text: str, name: str) -> None:
    assert repository_name(parse_remote(text)) == name


@pytest.mark.parametrize(
    ("text", "hosting", "link"),
    [
        ("https://github.com/o/r.git", "github", "https://github.com/o/r/blob/a/b/d%C3%A9j%C3%A0%20vu/%25.md"),
        ("git@gitlab.example.com:g/s/r.git", "gitlab", "https://gitlab.example.com/g/s/r/-/blob/a/b/d%C3%A9j%C3%A0%20vu/%25.md"),
        ("ssh://git@bitbucket.org/o/r.git", "bitbucket", "https://bitbucket.org/o/r/src/a/b/d%C3%A9j%C3%A0%20vu/%25.md"),
        ("https://codeberg.org/o/r", "gitea", "https://codeberg.org/o/r/src/branch/a/b/d%C3%A9j%C3%A0%20vu/%25.md"),
        ("https://notgithub.example/r.git", "other", "https://notgithub.example/r.git/d%C3%A9j%C3%A0%20vu/%25.md"),
        ("/srv/kb/.git", "other", "file:///srv/kb/d%C3%A9j%C3%A0%20vu/%25.md"),
    ],
)  # fmt: skip
def test_a_link_opens_where_a_person_reads_the_file(text: str, hosting: Hosting, link: str) -> None:
    remote = parse_remote(text)
    assert detect_hosting(remote) == hosting
    assert file_link(remote, hosting, "a/b", ("déjà vu", "%.md")) == link
