"""How the program gets to a repository, and what to tell where it does not.

The host's name is looked up here, its addresses are checked, and git is told to connect to these, so
that no second look leads elsewhere.
"""

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.git_repository.credentials import Anonymous, SignIn, SshKey, Token
from connectors.git_repository.git_command import LATER, Git, GitFailed
from connectors.git_repository.remote_url import OnDisk, OnTheWeb, OverSsh, Remote, spoken
from connectors.http_client.address_guard import AllowedNetworks, resolve_addresses
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import RateLimitReader, read_standard_rate_limit
from connectors.http_client.request import MEBIBYTE, Authorization, RequestLimits
from connectors.http_client.response import NotAuthorizedError, Response, ResponseError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import request_timeout, resolve_host

_LOOKED_UP = 20.0
"""Seconds."""
_KEY_REFUSED = re.compile(r"Permission denied \(|Load key|invalid format|Too many authentication")
_HOST_UNKNOWN = re.compile(r"Host key verification failed|IDENTIFICATION HAS CHANGED")
_NO_REPOSITORY = re.compile(
    r"not found|does not appear to be a git repository|not a git repository|does not exist", re.I
)


class NoRepository(ActionRequiredError):
    """There is none at the address, or none that the credential may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """To one remote, for one source."""

    source: str
    remote: Remote
    sign_in: SignIn
    reach: AllowedNetworks
    pace: RateLimitReader = read_standard_rate_limit
    """Reads the rate limits of a web server."""

    def prepared(self, git: Git) -> Git:
        """The program with the remote, named quarry, and what it takes to get there.

        Raises:
            ActionRequiredError: the address must not be asked, or the credential does not fit it.
            TemporarilyUnavailableError: the name of the host is not known now.
        """
        match self.remote, self.sign_in:
            case OnDisk(path), _:
                return _with(git, "file", str(path), {})
            case OnTheWeb() as web, Anonymous() | Token():
                config = {**self._pin(web), **self._header(web)}
                return _with(git, web.scheme, web.url, config)
            case OverSsh() as ssh, SshKey() as key:
                found = self._addresses(ssh.host, ssh.port)
                secured = replace(git, environment=_ssh(git, ssh, key, found[0]))
                return _with(secured, "ssh", ssh.url, {})
            case OverSsh(), _:
                raise ActionRequiredError(
                    f"{spoken(self.remote)} is an ssh address, which needs a key: {self._edit}"
                )
            case _:
                raise ActionRequiredError(
                    f"{spoken(self.remote)} is a web address, to which no ssh key belongs: {self._edit}"
                )

    def trouble(self, error: GitFailed) -> TemporarilyUnavailableError | ActionRequiredError:
        """What to do about an error of the program."""
        match self.remote:
            case OnTheWeb() as web:
                return self._asked_the_web(web) or self._unclear(error)
            case OverSsh() as ssh:
                return self._told_by_ssh(ssh, str(error)) or self._unclear(error)
            case OnDisk(path):
                if _NO_REPOSITORY.search(str(error)):
                    return ActionRequiredError(
                        f"{path} is not a git repository: connect its disk, let Quarry's user read"
                        " it, or correct the path"
                    )
                return self._unclear(error)

    @property
    def _edit(self) -> str:
        return f"set it by quarry sources edit {self.source}"

    def _unclear(self, error: GitFailed) -> TemporarilyUnavailableError:
        return TemporarilyUnavailableError(f"{spoken(self.remote)} was not read: {error}", LATER)

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            with request_timeout(_LOOKED_UP):
                return resolve_addresses(host, port, self.reach, resolve_host)
        except OSError as error:
            raise TemporarilyUnavailableError(
                f"the address of {host} is not known now: {error.strerror or error}", LATER
            ) from error

    def _pin(self, web: OnTheWeb) -> Mapping[str, str]:
        """For curl: the host, the port, and all addresses to try. A host that is an address is its own."""
        found = self._addresses(web.host, web.port)
        if web.host in found:
            return {}
        shown = (f"[{address}]" if ":" in address else address for address in found)
        return {"http.curloptResolve": f"{web.host}:{web.port}:{','.join(shown)}"}

    def _header(self, web: OnTheWeb) -> Mapping[str, str]:
        """Under the repository's own address: git sends it nowhere else."""
        if not isinstance(self.sign_in, Token):
            return {}
        pair = f"{self.sign_in.user}:{self.sign_in.token.get_secret_value()}".encode()
        coded = base64.b64encode(pair).decode("ascii")
        return {f"http.{web.url}.extraHeader": f"Authorization: Basic {coded}"}

    def _asked_the_web(
        self, web: OnTheWeb
    ) -> TemporarilyUnavailableError | ActionRequiredError | None:
        """What git does not pass on: the status, and how long the server wants us to wait."""
        try:
            with WebClient(
                allowed_networks=self.reach,
                authorization=self._authorization(web),
                headers={"Git-Protocol": "version=2"},
                limits=RequestLimits(max_bytes=MEBIBYTE, max_redirects=0),
                retry_policy=RetryPolicy(max_attempts=1),
                read_rate_limit=self.pace,
            ) as client:
                answer = client.get(f"{web.url}/info/refs", params={"service": "git-upload-pack"})
        except NotAuthorizedError as error:
            return self._refused(web, error.response)
        except (TemporarilyUnavailableError, ActionRequiredError) as trouble:
            return trouble
        except ResponseError:
            return None
        if answer.not_found:
            return NoRepository(
                f"there is no repository at {web.url}, or none that this credential may see:"
                f" correct the address, or make a token that may read it and {self._edit}"
            )
        if location := answer.headers.get("location"):
            return ActionRequiredError(f"{web.url} has moved to {location}: correct the address")
        return None

    def _authorization(self, web: OnTheWeb) -> Authorization | None:
        if not isinstance(self.sign_in, Token):
            return None
        token = self.sign_in.token.get_secret_value()
        return Authorization.basic(web.url, self.sign_in.user, token)

    def _refused(self, web: OnTheWeb, answer: Response) -> ActionRequiredError:
        match self.sign_in, answer.status:
            case Anonymous(), _:
                why = "asks for a credential"
            case _, 403:
                why = "takes the token, which may not read it"
            case _:
                why = "does not take the token any more"
        return ActionRequiredError(
            f"{web.url} {why}: make an access token that may read the repository, in the settings of"
            f" your account at {web.host}, and {self._edit}"
        )

    def _told_by_ssh(self, ssh: OverSsh, said: str) -> ActionRequiredError | None:
        if _HOST_UNKNOWN.search(said):
            return ActionRequiredError(
                f"{ssh.host} does not prove to be the host whose keys are known: compare the output of"
                f" ssh-keyscan {ssh.host} with what its owner publishes, and {self._edit}"
            )
        if _KEY_REFUSED.search(said):
            return ActionRequiredError(
                f"{ssh.host} does not take the key: enter its public half there as a deploy key, or"
                f" make a new one without a passphrase and {self._edit}"
            )
        if _NO_REPOSITORY.search(said):
            return ActionRequiredError(f"there is no repository at {ssh.url}: correct the address")
        return None


def _with(git: Git, protocol: str, url: str, config: Mapping[str, str]) -> Git:
    return replace(
        git,
        config={f"protocol.{protocol}.allow": "always", "remote.quarry.url": url, **config},
        environment={**git.environment, "GIT_ALLOW_PROTOCOL": protocol},
    )


def _ssh(git: Git, ssh: OverSsh, key: SshKey, address: str) -> Mapping[str, str]:
    """The command of ssh, with files of the private folder, whose names hold no quote."""
    key_file, hosts = git.home / "key", git.home / "known_hosts"
    key_file.touch(mode=0o600)
    key_file.write_text(key.private_key.get_secret_value().strip() + "\n")
    hosts.write_text(key.known_hosts.strip() + "\n")
    name = ssh.host if ssh.port == 22 else f"[{ssh.host}]:{ssh.port}"
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": hosts,
        "GlobalKnownHostsFile": os.devnull,
        "IdentityFile": key_file,
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "HostName": address,
        "HostKeyAlias": name,
        "ProxyCommand": "none",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ConnectTimeout": "20",
        "ServerAliveInterval": "30",
    }
    words = " ".join(f"-o '{option}={value}'" for option, value in options.items())
    return {"GIT_SSH_COMMAND": f"ssh -F {os.devnull} {words}", "GIT_SSH_VARIANT": "ssh"}
