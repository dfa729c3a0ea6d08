"""Open what people and the owner of the machine prove with who they are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backend.settings import Settings

if TYPE_CHECKING:
    from backend.access.machine_secret import MachineSecret
    from backend.access.openid.provider import Provider


@dataclass(frozen=True)
class SignInParts:
    """The ways into a home."""

    settings: Settings
    find_home: Callable[[], Path]

    @property
    def machine_secret_file(self) -> Path:
        return self.find_home() / "machine.secret"

    @cached_property
    def machine_secret(self) -> "MachineSecret":
        """What the owner of the home proves to the server that they are; created where there is none.

        Raises:
            NotConfiguredError: its file cannot be used, or others may read it.
        """
        from backend.access.machine_secret import read_machine_secret

        return read_machine_secret(self.machine_secret_file)

    @cached_property
    def openid_provider(self) -> "Provider | None":
        """The identity provider by which people may sign in, if one is set.

        Raises:
            NotConfiguredError: its settings are not valid.
        """
        issuer = self.settings.oidc_issuer
        if issuer is None:
            return None
        from backend.access.openid.provider import Provider, ProviderSettings, parse_domains

        secret = self.settings.oidc_client_secret
        return Provider(
            ProviderSettings(
                issuer=issuer,
                client_id=self.settings.oidc_client_id,
                client_secret=secret.get_secret_value() if secret else None,
                scopes=tuple(dict.fromkeys(["openid", *self.settings.oidc_scopes.split()])),
                groups_claim=self.settings.oidc_groups_claim,
                domains=parse_domains(self.settings.oidc_domains),
                authority=self.settings.oidc_ca,
            )
        )
