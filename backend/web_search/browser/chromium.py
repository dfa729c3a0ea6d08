"""Chromium on this machine: where it is, how it is started, and as whom."""

import os
import resource
import shlex
import shutil
import sys
from pathlib import Path

from connectors.errors import NotConfiguredError

USER_ID = 65_530
"""As which Chromium runs where Quarry runs as root, of which Chromium's sandbox is refused. No account of a usual system has it."""

_NICENESS = 5
"""So that a page that computes does not hold up searches."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_INSTALL = (
    "Install the extra `browser` (pip install 'quarry-search[browser]') and Chromium"
    " (on Debian: apt-get install chromium)"
)
_PROFILE_OPTION = "--user-data-dir="
_PROGRAM = f"from {__name__} import become_chromium; become_chromium()"


def find_chromium(configured: Path | None) -> Path:
    """Return the browser to start.

    Args:
        configured: the path that the settings name, if any.

    Raises:
        NotConfiguredError: there is none, or this system is not one on which it can be confined.
    """
    if sys.platform != "linux":
        raise NotConfiguredError("Pages that need a browser are read on Linux only.")
    if configured is not None:
        if not os.access(configured, os.X_OK):
            raise NotConfiguredError(
                f"The browser of the settings, {configured}, is not a program. {_INSTALL}, or correct the path."
            )
        return configured
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        raise NotConfiguredError(f"Pages that need a browser cannot be read. {_INSTALL}.")
    return Path(found)


def list_flags(proxy_port: int, memory_bytes: int) -> list[str]:
    """Return the arguments of Chromium beside those that Playwright gives it."""
    return [
        # All traffic goes through the proxy, that to loopback too, and Chromium looks up no name.
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        "--proxy-bypass-list=<-loopback>",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--dns-prefetch-disable",
        # UDP passes no proxy.
        "--disable-quic",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        # Nothing is sent of its own accord.
        "--no-pings",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
        "--disable-crash-reporter",
        "--disable-notifications",
        # What no text needs.
        "--disable-gpu",
        "--disable-3d-apis",
        "--disable-speech-api",
        "--disable-remote-fonts",
        f"--js-flags=--max-old-space-size={memory_bytes // 2 >> 20}",
    ]


UNWANTED_DEFAULTS = ["--disable-popup-blocking", "--disable-ipc-flooding-protection"]
"""What Playwright tells Chromium for tests of sites."""


def write_launcher(folder: Path, chromium: Path, memory_bytes: int) -> Path:
    """Write a program into the folder that becomes Chromium: with few rights, limits, and none of our environment.

    Raises:
        NotConfiguredError: Quarry runs as root, and may not become anybody else.
    """
    profile = folder / "profile"
    profile.mkdir(mode=0o700)
    if runs_as_root():
        _give_to_browser(profile)
    words = [sys.executable, "-P", "-c", _PROGRAM, str(chromium), str(profile), str(memory_bytes)]
    launcher = folder / "launch"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    launcher.chmod(0o700)
    return launcher


def _give_to_browser(profile: Path) -> None:
    try:
        os.chown(profile, USER_ID, USER_ID)
    except OSError as error:
        raise NotConfiguredError(
            f"Quarry runs as root, and the browser must not, but cannot run as the user {USER_ID} here. Run"
            " Quarry as another user than root to read pages that need a browser."
        ) from error


def become_chromium() -> None:
    """Replace this process, which the launcher starts, by Chromium."""
    chromium, profile, memory_bytes, *options = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))
    os.nice(_NICENESS)
    if runs_as_root():
        os.setgroups([])
        os.setresgid(USER_ID, USER_ID, USER_ID)
        os.setresuid(USER_ID, USER_ID, USER_ID)
    os.chdir(profile)
    own = [option for option in options if not option.startswith(_PROFILE_OPTION)]
    os.execve(
        chromium, [chromium, *own, f"{_PROFILE_OPTION}{profile}"], clean_environment(Path(profile))
    )


def clean_environment(folder: Path) -> dict[str, str]:
    """Return an environment with nothing of this process's, in which there may be keys."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "DBUS_SESSION_BUS_ADDRESS": "disabled:",
    }


def runs_as_root() -> bool:
    return os.geteuid() == 0
