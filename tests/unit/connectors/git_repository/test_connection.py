import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.git_repository.connection import Connection
from connectors.git_repository.credentials import Anonymous, GitCredential, SshKey, Token
from connectors.git_repository.git_command import GitError, find_git
from connectors.git_repository.remote_url import parse_remote
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    parse_allowed_networks,
)
from tests.support.loopback import LOOPBACK

TOKEN = Token(token=SecretStr("right-token"))
KEY = SshKey(
    private_key=SecretStr("-----BEGIN\nsecret\n-----END"), known_hosts="example.com ssh-x y"
)


def connection(url: str, **more: object) -> Connection:
    plain = Connection(
        source="kb", remote=parse_remote(url), sign_in=Anonymous(), allowed_networks=LOOPBACK
    )
    return replace(plain, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/kb",
        "https://[::1]/kb",
        "https://[::ffff:127.0.0.1]/kb",
        "https://localhost/kb",
        "https://169.254.169.254/kb",
    ],
)
def test_an_address_inside_is_refused_before_git_runs(tmp_path: Path, url: str) -> None:
    with pytest.raises(AddressNotAllowedError):
        connection(url, allowed_networks=PUBLIC_ONLY).configure(find_git(tmp_path))


def test_so_is_one_behind_ssh(tmp_path: Path) -> None:
    inside = connection("git@127.0.0.1:kb", allowed_networks=PUBLIC_ONLY, sign_in=KEY)
    with pytest.raises(AddressNotAllowedError):
        inside.configure(find_git(tmp_path))
    assert not (tmp_path / "key").exists()


def test_git_connects_to_the_address_that_was_checked(tmp_path: Path) -> None:
    here = connection(
        "http://localhost:8080/kb", allowed_networks=parse_allowed_networks(["localhost"])
    )
    pinned = here.configure(find_git(tmp_path)).config["http.curloptResolve"]
    host, port, addresses = pinned.split(":", 2)
    assert (host, port) == ("localhost", "8080")
    assert set(addresses.split(",")) <= {"127.0.0.1", "[::1]"}


def test_one_protocol_is_open(tmp_path: Path) -> None:
    git = connection("https://127.0.0.1/kb").configure(find_git(tmp_path))
    assert git.environment["GIT_ALLOW_PROTOCOL"] == "https"


def test_a_token_is_for_its_own_repository_and_not_shown(tmp_path: Path) -> None:
    git = connection("https://127.0.0.1/kb", sign_in=TOKEN).configure(find_git(tmp_path))
    # base64 of x-access-token:right-token
    sent = "Authorization: Basic eC1hY2Nlc3MtdG9rZW46cmlnaHQtdG9rZW4="
    assert git.config["http.https://127.0.0.1/kb.extraHeader"] == sent
    assert "eC1hY2" not in repr(git)
    assert "right-token" not in repr(TOKEN)


def test_ssh_trusts_the_given_keys_alone(tmp_path: Path) -> None:
    git = connection("ssh://me@127.0.0.1:2222/kb", sign_in=KEY).configure(find_git(tmp_path))
    command = git.environment["GIT_SSH_COMMAND"]
    for words in (
        "ssh -F /dev/null ",
        "'StrictHostKeyChecking=yes'",
        "'HostName=127.0.0.1'",
        "'HostKeyAlias=[127.0.0.1]:2222'",
        f"'UserKnownHostsFile={tmp_path}/known_hosts'",
        f"'IdentityFile={tmp_path}/key'",
    ):
        assert words in command
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert (tmp_path / "key").read_text() == "-----BEGIN\nsecret\n-----END\n"


def test_an_ssh_server_that_is_away_is_asked_later(tmp_path: Path) -> None:
    away = connection("ssh://me@127.0.0.1:1/kb", sign_in=KEY)
    with pytest.raises(GitError) as caught:
        away.configure(find_git(tmp_path)).run("ls-remote", "quarry", seconds=20)
    assert isinstance(away.explain_error(caught.value), TemporarilyUnavailableError)
    assert "Connection refused" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "sign_in", "says"),
    [
        ("git@127.0.0.1:kb", Anonymous(), "needs a key: set it by quarry sources edit kb"),
        ("git@127.0.0.1:kb", TOKEN, "needs a key: set it by quarry sources edit kb"),
        (
            "https://127.0.0.1/kb",
            KEY,
            "an SSH key cannot be used: set it by quarry sources edit kb",
        ),
    ],
)
def test_a_credential_fits_its_address(
    tmp_path: Path, url: str, sign_in: Token | SshKey, says: str
) -> None:
    with pytest.raises(ActionRequiredError, match=says):
        connection(url, sign_in=sign_in).configure(find_git(tmp_path))


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("Host key verification failed.", "ssh-keyscan 127.0.0.1"),
        ("git@127.0.0.1: Permission denied (publickey).", "deploy key"),
        ("Load key: invalid format", "without a passphrase"),
        ("ERROR: Repository not found.", "there is no repository at git@127.0.0.1:kb"),
    ],
)
def test_what_ssh_says_is_reported_with_what_to_do(said: str, says: str) -> None:
    trouble = connection("git@127.0.0.1:kb", sign_in=KEY).explain_error(GitError(said))
    assert isinstance(trouble, ActionRequiredError)
    assert says in str(trouble)


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "token", "token": "a\r\nX-Header: b"},
        {"kind": "token", "token": ""},
        {"kind": "token", "token": "a", "user": "a:b"},
        {"kind": "ssh_key", "private_key": "a"},
        {"kind": "password"},
    ],
)
def test_what_is_no_credential_is_refused(stored: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        GitCredential.model_validate({"sign_in": stored})
