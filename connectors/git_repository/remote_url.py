"""The address of a repository: over HTTP, over SSH, or on this machine."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from connectors.http_client.address_guard import AddressNotAllowedError, validate_host, validate_url

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REMOTE_HELPER = re.compile(r"\w+::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_SCP_STYLE = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]/]+\]|[^@/:\[\]]+):(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class HttpRemote:
    url: str
    """http or https, without a user name, a query or a trailing slash."""
    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class SshRemote:
    url: str
    user: str
    host: str
    port: int
    path: str
    """Without leading and trailing slashes."""


@dataclass(frozen=True, slots=True)
class LocalRemote:
    path: Path
    """Absolute."""


Remote: TypeAlias = HttpRemote | SshRemote | LocalRemote


def parse_remote(text: str) -> Remote:
    """Parse an address. Raises ValueError: not an address that is supported; the message says why."""
    address = text.strip()
    if address.startswith("-") or _CONTROL.search(address) or _REMOTE_HELPER.match(address):
        raise ValueError(f"{address!r} is not the address of a repository")
    if match := _SCHEME.match(address):
        return _parse_url(match[1].lower(), address)
    if address.startswith(("/", "./", "../", "~/")) or address in {".", ".."}:
        return LocalRemote(Path(address).expanduser().absolute())
    if match := _SCP_STYLE.fullmatch(address):
        host = match["host"].strip("[]")
        return _make_ssh_remote(address, match["user"], host, 22, match["path"])
    raise ValueError(
        f"{address!r} is not the address of a repository: write https://HOST/PATH,"
        " ssh://USER@HOST/PATH, USER@HOST:PATH or /A/FOLDER"
    )


def _parse_url(scheme: str, address: str) -> Remote:
    match scheme:
        case "http" | "https":
            return _parse_http_url(address)
        case "ssh":
            parts = urlsplit(address)
            if parts.password is not None or parts.query or parts.fragment:
                raise ValueError("the address contains a password or a query: remove it")
            return _make_ssh_remote(
                address, parts.username, parts.hostname or "", parts.port or 22, parts.path
            )
        case "file":
            return _parse_file_url(address)
        case _:
            raise ValueError(f"{scheme}:// is not supported: write https://, ssh:// or a path")


def _parse_http_url(address: str) -> HttpRemote:
    try:
        url = validate_url(address)
    except AddressNotAllowedError as error:
        raise ValueError(f"{error}; a token belongs to the credential") from error
    if url.query:
        raise ValueError(
            "the address of a repository has no '?'; a token belongs to the credential"
        )
    port = url.port or (443 if url.scheme == "https" else 80)
    return HttpRemote(str(url).rstrip("/"), url.scheme, url.host, port)


def _make_ssh_remote(url: str, user: str | None, host: str, port: int, path: str) -> SshRemote:
    try:
        valid_host = validate_host(host)
    except AddressNotAllowedError as error:
        raise ValueError(str(error)) from error
    # ssh would take a leading '-' for an option.
    if not _USER.fullmatch(user or "git") or path.startswith("-") or not path.strip("/"):
        raise ValueError(f"{url!r} is not the address of a repository")
    return SshRemote(url, user or "git", valid_host, port, path.strip("/"))


def _parse_file_url(address: str) -> LocalRemote:
    parts = urlsplit(address)
    if parts.netloc not in {"", "localhost"}:
        raise ValueError("file:// is for this machine only: write file:///PATH")
    return LocalRemote(Path(unquote(parts.path)).absolute())


def repository_name(remote: Remote) -> str:
    """Return the last part of the path, without `.git`."""
    match remote:
        case HttpRemote(url):
            path = urlsplit(url).path
        case SshRemote():
            path = remote.path
        case LocalRemote(folder):
            path = str(folder.parent if folder.name == ".git" else folder)
    return path.rstrip("/").rpartition("/")[2].removesuffix(".git") or "repository"


def display_url(remote: Remote) -> str:
    return str(remote.path) if isinstance(remote, LocalRemote) else remote.url
