"""The networks of the servers that tests run: this machine alone."""

from ipaddress import IPv4Network, IPv6Network

from connectors.http_client.address_guard import AllowedNetworks

LOOPBACK = AllowedNetworks(networks=(IPv4Network("127.0.0.0/8"), IPv6Network("::1/128")))
