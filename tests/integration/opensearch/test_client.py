"""Sign-in and TLS, through a proxy in front of a real server."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.opensearch.client import (
    AwsSigning,
    ClientCertificate,
    OpenSearchSettings,
    Password,
    Verification,
    connect,
    request_timeout,
)
from indexing.opensearch.errors import translate_errors
from indexing.runtime.deadline import Deadline
from tests.support.tls_proxy import Proxy, Request, tls_proxy

AUTHORITY = trustme.CA()
STRANGER = trustme.CA()


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    file = tmp_path / "authority.pem"
    AUTHORITY.cert_pem.write_to_path(file)
    return file


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with tls_proxy(url, AUTHORITY) as proxy:
        yield proxy


def ask(settings: OpenSearchSettings) -> str:
    """Return the name that the server reports."""
    client = connect(settings)
    try:
        with translate_errors():
            name: str = client.info()["version"]["distribution"]
    finally:
        client.close()
    return name


def checked(proxy: Proxy, ca_file: Path) -> OpenSearchSettings:
    return OpenSearchSettings(urls=(proxy.url,), ca_file=ca_file, verification="always")


def test_a_certificate_of_the_authority_that_is_set_is_trusted(proxy: Proxy, ca_file: Path) -> None:
    assert ask(checked(proxy, ca_file)) == "opensearch"


def test_a_certificate_of_an_unknown_authority_is_refused(proxy: Proxy, tmp_path: Path) -> None:
    with pytest.raises(ActionRequiredError, match="not trusted"):
        ask(OpenSearchSettings(urls=(proxy.url,), verification="always"))
    file = tmp_path / "stranger.pem"
    STRANGER.cert_pem.write_to_path(file)
    with pytest.raises(ActionRequiredError, match="not trusted"):
        ask(checked(proxy, file))
    assert proxy.seen == []


def test_a_certificate_for_another_host_is_refused(url: str, ca_file: Path) -> None:
    with (
        tls_proxy(url, AUTHORITY, name="search.example.com") as proxy,
        pytest.raises(ActionRequiredError, match="host name"),
    ):
        ask(checked(proxy, ca_file))


@pytest.mark.parametrize("verification", ["unless-loopback", "never"])
def test_on_loopback_any_certificate_will_do(proxy: Proxy, verification: Verification) -> None:
    settings = OpenSearchSettings(urls=(proxy.url,))
    assert ask(replace(settings, verification=verification)) == "opensearch"


def test_a_client_certificate_is_shown_where_one_is_demanded(
    url: str, ca_file: Path, tmp_path: Path
) -> None:
    own, key, strange = tmp_path / "own.pem", tmp_path / "own.key", tmp_path / "strange.pem"
    issued = AUTHORITY.issue_cert("quarry@example.com")
    issued.cert_chain_pems[0].write_to_path(own)
    issued.private_key_pem.write_to_path(key)
    STRANGER.issue_cert("quarry@example.com").private_key_and_cert_chain_pem.write_to_path(strange)
    with tls_proxy(url, AUTHORITY, clients=AUTHORITY) as proxy:
        settings = checked(proxy, ca_file)
        assert ask(replace(settings, sign_in=ClientCertificate(own, key))) == "opensearch"
        with pytest.raises(ActionRequiredError, match="client certificate"):
            ask(settings)
        with pytest.raises(ActionRequiredError, match="client certificate"):
            ask(replace(settings, sign_in=ClientCertificate(strange)))
        assert len(proxy.seen) == 1


def test_user_and_password_are_sent_as_they_are_set(url: str, ca_file: Path) -> None:
    wanted = "Basic " + base64.b64encode("quarry:pässwörd:1".encode()).decode()

    def gate(request: Request) -> int:
        return 0 if request.headers.get("authorization") == wanted else 401

    with tls_proxy(url, AUTHORITY, gate=gate) as proxy:
        settings = checked(proxy, ca_file)
        assert ask(replace(settings, sign_in=Password("quarry", "pässwörd:1"))) == "opensearch"
        for wrong in (settings, replace(settings, sign_in=Password("quarry", "other"))):
            with pytest.raises(ActionRequiredError, match="refused the sign-in"):
                ask(wrong)


def test_a_user_without_permissions_gets_an_error_that_says_so(url: str, ca_file: Path) -> None:
    with (
        tls_proxy(url, AUTHORITY, gate=lambda _: 403) as proxy,
        pytest.raises(ActionRequiredError, match="does not permit"),
    ):
        ask(checked(proxy, ca_file))


def test_requests_are_signed_for_aws_as_botocore_signs_them(
    proxy: Proxy, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret/of+the=key")
    client = connect(replace(checked(proxy, ca_file), sign_in=AwsSigning("eu-central-1")))
    client.count(index="t-none-*", body={"query": {"match_all": {}}}, params={"preference": "a/ü"})
    client.close()
    (request,) = proxy.seen
    assert request.body == b'{"query":{"match_all":{}}}'
    assert request.headers["authorization"] == _signed_by_botocore(proxy, request)


def _signed_by_botocore(proxy: Proxy, request: Request) -> str:
    """Return the signature header for the received request at the time that it names."""
    names = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names.split(";"))
    signed = AWSRequest(
        request.method,
        proxy.url + request.path,
        {name: request.headers[name] for name in names.split(";")},
        request.body,
    )
    signed.context["timestamp"] = request.headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKEXAMPLE", "secret/of+the=key"), "es", "eu-central-1")
    to_sign = signer.string_to_sign(signed, signer.canonical_request(signed))
    return (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(signed)}, SignedHeaders={names},"
        f" Signature={signer.signature(to_sign, signed)}"
    )


def test_if_one_node_is_gone_the_next_is_used(url: str) -> None:
    gone = "http://127.0.0.1:9"
    for urls in ((gone, url), (url, gone)):
        settings = OpenSearchSettings(urls=urls)
        assert [ask(settings) for _ in range(4)] == ["opensearch"] * 4
    with pytest.raises(TemporarilyUnavailableError, match="cannot be reached"):
        ask(OpenSearchSettings(urls=(gone,)))


def test_a_request_may_be_given_the_time_that_is_left(url: str) -> None:
    client = connect(OpenSearchSettings(urls=(url,)))
    assert client.info(params=request_timeout(Deadline.after(30)))["version"]["number"]
    client.close()
