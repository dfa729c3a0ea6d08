"""Settings that cannot work are refused before anything is sent."""

from pathlib import Path

import pytest

from connectors.errors import ActionRequiredError
from indexing.opensearch.client import (
    AwsSigning,
    ClientCertificate,
    OpenSearchSettings,
    Password,
    connect,
)


def refused(**settings: object) -> str:
    with pytest.raises(ActionRequiredError) as raised:
        connect(OpenSearchSettings(**settings))  # type: ignore[arg-type]
    return str(raised.value)


def test_a_missing_or_invalid_address_is_refused() -> None:
    assert "No OpenSearch address" in refused(urls=())
    for url in ("search.example.com:9200", "ftp://search", "https://", "localhost"):
        assert "Use https://host:port" in refused(urls=(url,))


def test_an_address_with_a_password_is_refused() -> None:
    message = refused(urls=("https://quarry:s3cret@search.example.com",))
    assert "Configure them separately" in message
    assert "s3cret" not in message


def test_a_password_does_not_go_over_the_network_unencrypted() -> None:
    secret = Password("quarry", "s3cret")
    assert "unencrypted" in refused(urls=("http://search.example.com:9200",), sign_in=secret)
    assert "s3cret" not in repr(secret)
    for url in (
        "http://localhost:9200",
        "http://127.8.9.1",
        "http://[::1]:9200",
        "https://search.example.com",
    ):
        connect(OpenSearchSettings(urls=(url,), sign_in=secret)).close()
    connect(
        OpenSearchSettings(
            urls=("http://search.example.com",), sign_in=secret, verification="never"
        )
    ).close()


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("")
    for file in (missing, empty):
        assert str(file) in refused(urls=("https://search.example.com",), ca_file=file)
        certificate = ClientCertificate(file)
        assert str(file) in refused(urls=("https://search.example.com",), sign_in=certificate)


def test_signing_for_aws_needs_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    message = refused(urls=("https://search.example.com",), sign_in=AwsSigning("eu-central-1"))
    assert "No AWS credentials" in message


@pytest.mark.parametrize(
    ("url", "port", "prefix"),
    [
        ("https://search.example.com", 443, ""),
        ("https://search.example.com:9243/cluster/", 9243, "/cluster"),
        ("http://localhost", 9200, ""),
    ],
)
def test_an_address_may_leave_out_its_port_and_have_a_path(
    url: str, port: int, prefix: str
) -> None:
    client = connect(OpenSearchSettings(urls=(url,)))
    (connection,) = client.transport.connection_pool.connections
    assert (connection.port, connection.url_prefix) == (port, prefix)
    # Traffic on the same machine is not worth compressing.
    assert connection.http_compress == ("localhost" not in url)
    client.close()
