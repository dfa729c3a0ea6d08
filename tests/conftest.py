"""No test reaches beyond this machine, and none is judged by how busy it is."""

import pytest
from hypothesis import settings
from pytest_socket import socket_allow_hosts

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _loopback_only() -> None:
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
