"""Where `quarry serve` listens, and under which conditions others may reach it."""

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from backend.api.public_address import PublicAddress
from backend.settings import Settings, variable
from connectors.errors import InvalidInputError, NotConfiguredError


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    address: str
    public_address: PublicAddress | None = None
    """Under which others reach the server; None where this machine alone does."""
    certificate: Path | None = None
    key: Path | None = None
    trusted_proxies: str = ""


def plan_listening(host: str, settings: Settings) -> Listening:
    """Check that nobody can read along, or come in by another name.

    Raises:
        InvalidInputError: `host` is no address, or others could reach it without what that needs.
        NotConfiguredError: the settings for that are not complete.
    """
    address, site = _parse_host(host), find_public_address(settings)
    if site is None and not ipaddress.ip_address(address).is_loopback:
        raise InvalidInputError(_REACHABLE.format(host=host))
    _check_certificate(settings)
    if site is not None and not (settings.tls_certificate or settings.tls_terminated):
        raise NotConfiguredError(
            f"With {variable('public_url')}, passwords and documents pass through the network, so that it needs"
            f" TLS: set {variable('tls_certificate')} and {variable('tls_key')} to the files of a certificate, or"
            f" {variable('tls_terminated')}=true where a proxy in front of quarry serve speaks it."
        )
    return Listening(
        address=address,
        public_address=site,
        certificate=settings.tls_certificate,
        key=settings.tls_key,
        trusted_proxies=_check_proxies(settings.trusted_proxies),
    )


_REACHABLE = (
    "{host} can be reached from other machines. For that, set QUARRY_PUBLIC_URL to the address that people will open,"
    " such as https://quarry.example.com, and QUARRY_TLS_CERTIFICATE and QUARRY_TLS_KEY to the files of its"
    " certificate (or QUARRY_TLS_TERMINATED=true where a proxy speaks TLS); people then sign in. For you alone, from"
    " another machine, use a tunnel, such as: ssh -L 8321:127.0.0.1:8321 this-machine"
)


def find_public_address(settings: Settings) -> PublicAddress | None:
    """Return the address of the site, if one is set. Raises NotConfiguredError: the setting is not valid."""
    if settings.public_url is None:
        return None
    try:
        return PublicAddress.parse(settings.public_url)
    except ValueError as error:
        raise NotConfiguredError(
            f"{variable('public_url')} is not the address of a site ({error}). Write it like"
            " https://quarry.example.com or https://quarry.example.com:8443."
        ) from error


def _parse_host(host: str) -> str:
    named = "127.0.0.1" if host.lower() == "localhost" else host
    try:
        return str(ipaddress.ip_address(named))
    except ValueError as error:
        raise InvalidInputError(
            f"{host} is not an IP address of this machine. Such are 127.0.0.1 (this machine alone), and 0.0.0.0 or"
            " :: (every network that it is in)."
        ) from error


def _check_certificate(settings: Settings) -> None:
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return
    if certificate is None or key is None or settings.public_url is None:
        raise NotConfiguredError(
            f"TLS needs all of {variable('public_url')}, {variable('tls_certificate')} and {variable('tls_key')}."
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise NotConfiguredError(
            f"The certificate {certificate} with the key {key} cannot be used: {error}."
            " Both are files in the PEM format that belong together, the key without a password."
        ) from error


def _check_proxies(proxies: str) -> str:
    names = [name.strip() for name in proxies.split(",") if name.strip()]
    try:
        networks = [ipaddress.ip_network(name) for name in names]
    except ValueError as error:
        raise NotConfiguredError(
            f"{variable('trusted_proxies')} holds what is no address or network: {error}."
            " Write them like 10.0.0.5, 10.1.0.0/16."
        ) from error
    return ",".join(form for network in networks for form in _list_forms(network))


def _list_forms(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> list[str]:
    """Return the addresses of a network also as a socket for both protocols states those of IPv4."""
    if isinstance(network, ipaddress.IPv6Network):
        return [str(network)]
    return [str(network), f"::ffff:{network.network_address}/{96 + network.prefixlen}"]
