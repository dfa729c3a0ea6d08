"""Connecting git to a remote repository, and explaining why a connection fails.

The host name is resolved here, its addresses are checked, and git connects to these addresses: if git
resolved the name again, a second answer could lead into the private network.
"""

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from connectors.errors import (
    ActionRequiredError,
    NotFoundError,
    SourceAuthError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.git_repository.credentials import Anonymous, SignIn, SshKey, Token
from connectors.git_repository.git_command import RETRY_AFTER, Git, GitError
from connectors.git_repository.remote_url import (
    HttpRemote,
    LocalRemote,
    Remote,
    SshRemote,
    display_url,
)
from connectors.http_client.address_guard import AllowedNetworks, resolve_addresses
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import RateLimitReader, read_standard_rate_limit
from connectors.http_client.request import MEBIBYTE, Authorization, RequestLimits
from connectors.http_client.response import NotAuthorizedError, Response, ResponseError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import request_timeout, resolve_host

_RESOLVE_SECONDS = 20.0
_KEY_REFUSED = re.compile(r"Permission denied \(|Load key|invalid format|Too many authentication")
_HOST_UNKNOWN = re.compile(r"Host key verification failed|IDENTIFICATION HAS CHANGED")
_NO_REPOSITORY = re.compile(
    r"not found|does not appear to be a git repository|not a git repository|does not exist", re.I
)


class RepositoryNotFoundError(NotFoundError):
    """There is no repository at the address, or none that the credential may read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a source reaches its remote."""

    source: str
    remote: Remote
    sign_in: SignIn
    allowed_networks: AllowedNetworks
    read_rate_limit: RateLimitReader = read_standard_rate_limit

    def configure(self, git: Git) -> Git:
        """Return git with the remote `quarry`, its addresses, and its credential.

        Raises:
            AddressNotAllowedError: the address is in a network that the settings do not allow.
            SourceAuthError: the credential is of the wrong kind for the address.
            TemporarilyUnavailableError: the host name cannot be resolved now.
        """
        match self.remote, self.sign_in:
            case LocalRemote(path), _:
                return _add_remote(git, "file", str(path), {})
            case HttpRemote() as remote, Anonymous() | Token():
                config = {**self._pinned_addresses(remote), **self._authorization_header(remote)}
                return _add_remote(git, remote.scheme, remote.url, config)
            case SshRemote() as remote, SshKey() as key:
                addresses = self._resolve(remote.host, remote.port)
                environment = _ssh_environment(git, remote, key, addresses[0])
                return _add_remote(replace(git, environment=environment), "ssh", remote.url, {})
            case SshRemote(), _:
                raise SourceAuthError(
                    f"{display_url(self.remote)} is an SSH address, which needs a key: {self._hint}"
                )
            case _:
                raise SourceAuthError(
                    f"{display_url(self.remote)} is a web address, for which an SSH key cannot be used:"
                    f" {self._hint}"
                )

    def explain_error(self, error: GitError) -> TemporarilyUnavailableError | ActionRequiredError:
        """Turn an error of git into one that says what to do."""
        match self.remote:
            case HttpRemote() as remote:
                return self._explain_http_error(remote) or self._unknown_error(error)
            case SshRemote() as remote:
                return self._explain_ssh_error(remote, str(error)) or self._unknown_error(error)
            case LocalRemote(path):
                if _NO_REPOSITORY.search(str(error)):
                    return RepositoryNotFoundError(
                        f"{path} is not a git repository: connect its disk, make it readable for"
                        " Quarry's user, or correct the path"
                    )
                return self._unknown_error(error)

    @property
    def _hint(self) -> str:
        return f"set it by quarry sources edit {self.source}"

    def _unknown_error(self, error: GitError) -> TemporarilyUnavailableError:
        return TemporarilyUnavailableError(
            f"{display_url(self.remote)} could not be read: {error}", RETRY_AFTER
        )

    def _resolve(self, host: str, port: int) -> list[str]:
        try:
            with request_timeout(_RESOLVE_SECONDS):
                return resolve_addresses(host, port, self.allowed_networks, resolve_host)
        except OSError as error:
            raise TemporarilyUnavailableError(
                f"the host name {host} cannot be resolved: {error.strerror or error}", RETRY_AFTER
            ) from error

    def _pinned_addresses(self, remote: HttpRemote) -> Mapping[str, str]:
        """Make curl connect to the addresses that were checked."""
        addresses = self._resolve(remote.host, remote.port)
        if remote.host in addresses:
            return {}
        joined = ",".join(f"[{one}]" if ":" in one else one for one in addresses)
        return {"http.curloptResolve": f"{remote.host}:{remote.port}:{joined}"}

    def _authorization_header(self, remote: HttpRemote) -> Mapping[str, str]:
        """Set the header for the URL of the repository only: git sends it nowhere else."""
        if not isinstance(self.sign_in, Token):
            return {}
        pair = f"{self.sign_in.user}:{self.sign_in.token.get_secret_value()}".encode()
        encoded = base64.b64encode(pair).decode("ascii")
        return {f"http.{remote.url}.extraHeader": f"Authorization: Basic {encoded}"}

    def _explain_http_error(
        self, remote: HttpRemote
    ) -> TemporarilyUnavailableError | ActionRequiredError | None:
        """Repeat git's request, to learn the status and Retry-After, which git does not report."""
        try:
            with WebClient(
                allowed_networks=self.allowed_networks,
                authorization=self._authorization(remote),
                headers={"Git-Protocol": "version=2"},
                limits=RequestLimits(max_bytes=MEBIBYTE, max_redirects=0),
                retry_policy=RetryPolicy(max_attempts=1),
                read_rate_limit=self.read_rate_limit,
            ) as client:
                response = client.get(
                    f"{remote.url}/info/refs", params={"service": "git-upload-pack"}
                )
        except NotAuthorizedError as error:
            return self._explain_refusal(remote, error.response)
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            return error
        except ResponseError:
            return None
        if response.not_found:
            return RepositoryNotFoundError(
                f"there is no repository at {remote.url}, or the credential may not read it:"
                f" correct the address, or make a token that may read it and {self._hint}"
            )
        if location := response.headers.get("location"):
            return SourceError(f"{remote.url} has moved to {location}: correct the address")
        return None

    def _authorization(self, remote: HttpRemote) -> Authorization | None:
        if not isinstance(self.sign_in, Token):
            return None
        token = self.sign_in.token.get_secret_value()
        return Authorization.basic(remote.url, self.sign_in.user, token)

    def _explain_refusal(self, remote: HttpRemote, response: Response) -> SourceAuthError:
        match self.sign_in, response.status:
            case Anonymous(), _:
                reason = "needs a credential"
            case _, 403:
                reason = "accepts the token, but does not allow it to read the repository"
            case _:
                reason = "does not accept the token"
        return SourceAuthError(
            f"{remote.url} {reason}: make an access token that may read the repository, in the"
            f" settings of your account at {remote.host}, and {self._hint}"
        )

    def _explain_ssh_error(self, remote: SshRemote, message: str) -> ActionRequiredError | None:
        if _HOST_UNKNOWN.search(message):
            return SourceError(
                f"the host key of {remote.host} is not among the known hosts: compare the output of"
                f" ssh-keyscan {remote.host} with what its owner publishes, and {self._hint}"
            )
        if _KEY_REFUSED.search(message):
            return SourceAuthError(
                f"{remote.host} does not accept the key: add its public key there as a deploy key, or"
                f" make a new one without a passphrase and {self._hint}"
            )
        if _NO_REPOSITORY.search(message):
            return RepositoryNotFoundError(
                f"there is no repository at {remote.url}: correct the address"
            )
        return None


def _add_remote(git: Git, protocol: str, url: str, config: Mapping[str, str]) -> Git:
    return replace(
        git,
        config={f"protocol.{protocol}.allow": "always", "remote.quarry.url": url, **config},
        environment={**git.environment, "GIT_ALLOW_PROTOCOL": protocol},
    )


def _ssh_environment(git: Git, remote: SshRemote, key: SshKey, address: str) -> Mapping[str, str]:
    """Write the key and the known hosts into git's home, and return the variables that use them.

    The path of that folder contains no quotes, so that it can be quoted in the command.
    """
    key_file, hosts = git.home / "key", git.home / "known_hosts"
    key_file.touch(mode=0o600)
    key_file.write_text(key.private_key.get_secret_value().strip() + "\n")
    hosts.write_text(key.known_hosts.strip() + "\n")
    alias = remote.host if remote.port == 22 else f"[{remote.host}]:{remote.port}"
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": hosts,
        "GlobalKnownHostsFile": os.devnull,
        "IdentityFile": key_file,
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "HostName": address,
        "HostKeyAlias": alias,
        "ProxyCommand": "none",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ConnectTimeout": "20",
        "ServerAliveInterval": "30",
    }
    arguments = " ".join(f"-o '{option}={value}'" for option, value in options.items())
    return {"GIT_SSH_COMMAND": f"ssh -F {os.devnull} {arguments}", "GIT_SSH_VARIANT": "ssh"}
