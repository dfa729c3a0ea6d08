"""One client is one network, however a socket states its address."""

import pytest

from backend.access.networks import find_network, normalize_address


@pytest.mark.parametrize(
    ("address", "normalized", "network"),
    [
        ("203.0.113.5", "203.0.113.5", "203.0.113.5"),
        ("::ffff:203.0.113.5", "203.0.113.5", "203.0.113.5"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("testclient", "testclient", "testclient"),
    ],
)
def test_what_one_client_has_all_addresses_of(address: str, normalized: str, network: str) -> None:
    assert normalize_address(address) == normalized
    assert find_network(address) == network


def test_an_unknown_address_is_a_network_too() -> None:
    assert find_network(None) == ""
