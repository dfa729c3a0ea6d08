"""The versions that a report of a problem should name."""

import platform
from importlib.metadata import version


def read_version() -> str:
    """Read the version of Quarry from the metadata of the installed distribution."""
    return version("quarry-search")


def describe_version() -> str:
    return f"quarry {read_version()} (Python {platform.python_version()})"
