"""Who can reach `quarry serve`, and what that needs."""

from pathlib import Path

import pytest
import trustme
from typer.testing import CliRunner

from backend.api.public_address import PublicAddress
from backend.cli import app
from backend.cli.listening import Listening, plan_listening
from backend.settings import Settings
from connectors.errors import InvalidInputError, NotConfiguredError

URL = "https://quarry.example.com"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A certificate with its key, and the key of another one."""
    folder = tmp_path_factory.mktemp("tls")
    authority, paths = trustme.CA(), {}
    for name in ("", "other_"):
        issued = authority.issue_cert("quarry.example.com")
        for kind, blob in (
            ("certificate", issued.cert_chain_pems[0]),
            ("key", issued.private_key_pem),
        ):
            paths[name + kind] = folder / f"{name}{kind}.pem"
            blob.write_to_path(paths[name + kind])
    return paths


def _settings(**values: object) -> Settings:
    return Settings.model_validate(values)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("LOCALHOST", "127.0.0.1"), ("127.8.0.1", "127.8.0.1"), ("::1", "::1")],
)  # fmt: skip
def test_this_machine_needs_nothing(host: str, address: str) -> None:
    assert plan_listening(host, _settings()) == Listening(address=address)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "2001:db8::7"])
def test_others_need_an_address_and_tls(host: str) -> None:
    with pytest.raises(InvalidInputError, match="QUARRY_PUBLIC_URL"):
        plan_listening(host, _settings(tls_terminated=True))
    with pytest.raises(NotConfiguredError, match="QUARRY_TLS_CERTIFICATE"):
        plan_listening(host, _settings(public_url=URL))
    plan = plan_listening(host, _settings(public_url=URL, tls_terminated=True))
    assert plan == Listening(address=host, public_address=PublicAddress(URL))


def test_an_address_needs_tls_on_this_machine_too() -> None:
    """A proxy that others reach may be in front of it."""
    with pytest.raises(NotConfiguredError, match="QUARRY_TLS_TERMINATED"):
        plan_listening("127.0.0.1", _settings(public_url=URL))


@pytest.mark.parametrize("host", ["", "quarry.example.com", "0.0.0.0/0", "127.1", "*"])
def test_what_is_no_address_of_the_machine_is_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match="not an IP address"):
        plan_listening(host, _settings(public_url=URL, tls_terminated=True))


def test_a_certificate_is_given_with_its_key(files: dict[str, Path]) -> None:
    given = {"tls_certificate": files["certificate"], "tls_key": files["key"]}
    plan = plan_listening("0.0.0.0", _settings(public_url=URL, **given))
    assert (plan.certificate, plan.key) == (files["certificate"], files["key"])


@pytest.mark.parametrize(
    "chosen",
    [
        {"tls_certificate": "certificate"},
        {"tls_key": "key"},
        {"tls_certificate": "certificate", "tls_key": "other_key"},
        {"tls_certificate": "key", "tls_key": "certificate"},
        {"tls_certificate": "nowhere", "tls_key": "key"},
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    files: dict[str, Path], chosen: dict[str, str]
) -> None:
    given = {name: files.get(file, Path("/nowhere")) for name, file in chosen.items()}
    with pytest.raises(NotConfiguredError):
        plan_listening("0.0.0.0", _settings(public_url=URL, **given))


def test_a_certificate_without_an_address_is_refused(files: dict[str, Path]) -> None:
    given = {"tls_certificate": files["certificate"], "tls_key": files["key"]}
    with pytest.raises(NotConfiguredError, match="QUARRY_PUBLIC_URL"):
        plan_listening("127.0.0.1", _settings(**given))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        # As a socket for both protocols states addresses of IPv4, too.
        (
            " 10.0.0.5 , 10.1.0.0/16,2001:db8::/32",
            "10.0.0.5/32,::ffff:10.0.0.5/128,10.1.0.0/16,::ffff:10.1.0.0/112,2001:db8::/32",
        ),
    ],
)
def test_proxies_are_addresses_or_networks(given: str, kept: str) -> None:
    settings = _settings(public_url=URL, tls_terminated=True, trusted_proxies=given)
    assert plan_listening("0.0.0.0", settings).trusted_proxies == kept


@pytest.mark.parametrize("given", ["*", "proxy.example.com", "10.0.0.1/8", "10.0.0.0/99"])
def test_other_proxies_are_refused(given: str) -> None:
    settings = _settings(public_url=URL, tls_terminated=True, trusted_proxies=given)
    with pytest.raises(NotConfiguredError, match="QUARRY_TRUSTED_PROXIES"):
        plan_listening("0.0.0.0", settings)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (URL, URL),
        ("https://Quarry.Example.com/", URL),
        ("https://quarry.example.com:443", URL),
        ("https://quarry.example.com:8443", "https://quarry.example.com:8443"),
        ("https://[2001:DB8::7]:8443", "https://[2001:db8::7]:8443"),
    ],
)
def test_the_address_is_written_as_browsers_write_it(url: str, kept: str) -> None:
    settings = _settings(public_url=url, tls_terminated=True)
    assert plan_listening("0.0.0.0", settings).public_address == PublicAddress(kept)


@pytest.mark.parametrize(
    "url",
    ["http://quarry.example.com", "quarry.example.com", "https://", "https://a.de/path", "https://a.de?x", "https://a.de#x", "https://u:p@a.de", "https://a.de:x", "ftp://a.de"],
)  # fmt: skip
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(NotConfiguredError, match="QUARRY_PUBLIC_URL"):
        plan_listening("0.0.0.0", _settings(public_url=url, tls_terminated=True))


@pytest.mark.parametrize(
    "hosts",
    [
        ["quarry.example.com:80"],
        ["quarry.example.com.evil.example"],
        ["evil.example"],
        ["127.0.0.1"],
        ["quarry.example.com", "quarry.example.com"],
        [],
    ],
)
def test_a_host_is_compared_as_a_whole(hosts: list[str]) -> None:
    assert not PublicAddress(URL).is_host(hosts)
    assert PublicAddress(URL).is_host(["quarry.example.com"])
    assert PublicAddress(URL).is_host(["Quarry.Example.com:443"])


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "400"})
    refused = cli.invoke(app, ["serve", "--host", "0.0.0.0", "--port", "0"])
    assert refused.exit_code == 2
    assert "QUARRY_PUBLIC_URL" in refused.output
    without_tls = cli.invoke(
        app, ["serve", "--host", "0.0.0.0", "--port", "0"], env={"QUARRY_PUBLIC_URL": URL}
    )
    assert without_tls.exit_code == 1
    assert "QUARRY_TLS_TERMINATED" in without_tls.output
    assert not (tmp_path / "quarry.db").exists()


def test_links_name_the_address_that_people_open(tmp_path: Path) -> None:
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path), "QUARRY_PUBLIC_URL": URL})
    invited = cli.invoke(app, ["users", "invite", "ann@example.com", "--role", "admin"])
    assert invited.output.startswith(f"{URL}/invitation?code=")
