"""Where a repository is: what its owner writes, as one of three kinds of place."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from connectors.http_client.address_guard import AddressNotAllowedError, validate_host, validate_url

_UNSAID = re.compile(r"[\x00-\x1f\x7f]")
_HELPER = re.compile(r"\w+::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_USER = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_SHORT_SSH = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]/]+\]|[^@/:\[\]]+):(?P<path>.+)")


@dataclass(frozen=True, slots=True)
class OnTheWeb:
    url: str
    """http or https, without a user name, a query or a slash at its end."""
    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class OverSsh:
    url: str
    user: str
    host: str
    port: int
    path: str
    """Without slashes at its ends."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    path: Path
    """Absolute."""


Remote: TypeAlias = OnTheWeb | OverSsh | OnDisk


def remote_of(text: str) -> Remote:
    """
    Raises:
        ValueError: it is not an address of a repository that is read; the message says why.
    """
    address = text.strip()
    if address.startswith("-") or _UNSAID.search(address) or _HELPER.match(address):
        raise ValueError(f"{address!r} is not the address of a repository")
    if match := _SCHEME.match(address):
        return _by_scheme(match[1].lower(), address)
    if address.startswith(("/", "./", "../", "~/")) or address in {".", ".."}:
        return OnDisk(Path(address).expanduser().absolute())
    if match := _SHORT_SSH.fullmatch(address):
        host = match["host"].strip("[]")
        return _over_ssh(address, match["user"], host, 22, match["path"])
    raise ValueError(
        f"{address!r} is not the address of a repository: write https://HOST/PATH,"
        " ssh://USER@HOST/PATH, USER@HOST:PATH or /A/FOLDER"
    )


def _by_scheme(scheme: str, address: str) -> Remote:
    match scheme:
        case "http" | "https":
            return _on_the_web(address)
        case "ssh":
            parts = urlsplit(address)
            if parts.password is not None or parts.query or parts.fragment:
                raise ValueError("the address holds a password or a query; write it without")
            return _over_ssh(
                address, parts.username, parts.hostname or "", parts.port or 22, parts.path
            )
        case "file":
            return _on_disk(address)
        case _:
            raise ValueError(f"{scheme}:// is not read; write https://, ssh:// or a path")


def _on_the_web(address: str) -> OnTheWeb:
    try:
        url = validate_url(address)
    except AddressNotAllowedError as error:
        raise ValueError(f"{error}; a token belongs to the credential") from error
    if url.query:
        raise ValueError(
            "the address of a repository has no '?'; a token belongs to the credential"
        )
    port = url.port or (443 if url.scheme == "https" else 80)
    return OnTheWeb(str(url).rstrip("/"), url.scheme, url.host, port)


def _over_ssh(url: str, user: str | None, host: str, port: int, path: str) -> OverSsh:
    try:
        checked = validate_host(host)
    except AddressNotAllowedError as error:
        raise ValueError(str(error)) from error
    # ssh reads what begins with '-' as an option.
    if not _USER.fullmatch(user or "git") or path.startswith("-") or not path.strip("/"):
        raise ValueError(f"{url!r} is not the address of a repository")
    return OverSsh(url, user or "git", checked, port, path.strip("/"))


def _on_disk(address: str) -> OnDisk:
    parts = urlsplit(address)
    if parts.netloc not in {"", "localhost"}:
        raise ValueError("file:// leads to this machine only; write file:///PATH")
    return OnDisk(Path(unquote(parts.path)).absolute())


def repository_name(remote: Remote) -> str:
    """The last part of its path, without `.git`."""
    match remote:
        case OnTheWeb(url):
            path = urlsplit(url).path
        case OverSsh():
            path = remote.path
        case OnDisk(folder):
            path = str(folder.parent if folder.name == ".git" else folder)
    return path.rstrip("/").rpartition("/")[2].removesuffix(".git") or "repository"


def spoken(remote: Remote) -> str:
    """As people are told it."""
    return str(remote.path) if isinstance(remote, OnDisk) else remote.url
