"""Mail servers: a real one (Dovecot), a proxy that injects responses, and a scripted one.

Dovecot is from Debian's package dovecot-imapd. It is started once, in 30 ms, with its own configuration and
folders, and stopped with the test process; every test has its own mailbox.
"""

import atexit
import grp
import itertools
import os
import pwd
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import cache
from pathlib import Path

import trustme

HOST = "127.0.0.1"
PASSWORD = "correct-horse"
_START_SECONDS = 20.0
_NUMBERS = itertools.count(1)

_CONFIGURATION = """
base_dir = {root}/run
state_dir = {root}/state
log_path = {root}/log
protocols = imap
listen = {host}
mail_location = maildir:{root}/mail/%u
mail_fsync = never
auth_failure_delay = 0
disable_plaintext_auth = no
ssl = yes
ssl_cert = <{root}/server.pem
ssl_key = <{root}/server.pem
# No delay after failed sign-ins.
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
{users}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={root}/mail/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {plain}
  }}
  inet_listener imaps {{
    port = {tls}
  }}
}}
"""
_ROOT_CONFIGURATION = """
first_valid_uid = 1
first_valid_gid = 1
"""
_USER_CONFIGURATION = """
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
}}
"""


def message(subject: str, text: str, number: str, **headers: str) -> bytes:
    """Make a message with `number` in its Message-ID; headers are written with _ for -."""
    made = EmailMessage()
    made["From"] = headers.pop("From", "Ann Lee <ann@example.com>")
    made["Date"] = headers.pop("Date", "Mon, 05 Jan 2026 10:00:00 +0000")
    made["Subject"] = subject
    made["Message-ID"] = f"<{number}@mail.example.com>"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made.as_bytes()


class Maildir:
    """The mailbox of one user on the server's disk."""

    def __init__(self, root: Path, user: str, owner: tuple[int, int]) -> None:
        self.user = user
        self._root = root
        self._owner = owner
        self._created: set[str] = set()

    def put(self, data: bytes, folder: str = "INBOX") -> Path:
        """Store a message, and return the path of its file."""
        number = next(_NUMBERS)
        path = self._folder(folder) / f"{1_700_000_000 + number}.M{number}P1.quarry:2,S"
        path.write_bytes(data.replace(b"\r\n", b"\n"))
        return path

    def move(self, path: Path, folder: str) -> Path:
        number = next(_NUMBERS)
        name = f"{1_700_000_000 + number}.M{number}P1.quarry:2,S"
        return path.rename(self._folder(folder) / name)

    def reset_uids(self) -> None:
        """Make the server assign new UIDs, with another UIDVALIDITY."""
        for path in (*self._root.rglob("dovecot*"),):
            path.unlink()

    def _folder(self, name: str) -> Path:
        top = self._root if name == "INBOX" else self._root / f".{name}"
        if name not in self._created:
            for path in (self._root, top, *(top / one for one in ("cur", "new", "tmp"))):
                path.mkdir(exist_ok=True)
                os.chown(path, *self._owner)
            self._created.add(name)
        return top / "cur"


class Dovecot:
    """A server for this process; call `stop` at the end."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="quarry-imap-"))
        self.root.chmod(0o755)
        self.plain, self.tls = _free_port(), _free_port()
        self.authority = self.root / "authority.pem"
        self._owner = _owner()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        authority.issue_cert(HOST, "localhost").private_key_and_cert_chain_pem.write_to_path(
            self.root / "server.pem"
        )
        (self.root / "mail").mkdir()
        os.chown(self.root / "mail", *self._owner)
        (self.root / "dovecot.conf").write_text(self._configuration())
        self._process = subprocess.Popen(
            [_program(), "-F", "-c", self.root / "dovecot.conf"], stderr=subprocess.DEVNULL
        )
        self._wait_until_ready()

    def maildir(self) -> Maildir:
        """Return an empty mailbox of a new user."""
        user = f"user{next(_NUMBERS)}@example.com"
        made = Maildir(self.root / "mail" / user, user, self._owner)
        made._folder("INBOX")
        return made

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def _configuration(self) -> str:
        uid, gid = self._owner
        user, group = pwd.getpwuid(uid).pw_name, grp.getgrgid(gid).gr_name
        is_root = os.getuid() == 0
        return _CONFIGURATION.format(
            root=self.root,
            host=HOST,
            password=PASSWORD,
            users=_ROOT_CONFIGURATION
            if is_root
            else _USER_CONFIGURATION.format(user=user, group=group),
            uid=uid,
            gid=gid,
            plain=self.plain,
            tls=self.tls,
        )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, self.plain), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    log = self.root / "log"
                    output = log.read_text() if log.exists() else ""
                    raise RuntimeError(f"Dovecot does not start: {output}") from None
                time.sleep(0.005)


@cache
def dovecot() -> Dovecot:
    """Return the server that all tests of this process share."""
    server = Dovecot()
    atexit.register(server.stop)
    return server


def _program() -> str:
    found = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        raise RuntimeError("no mail server: apt-get install --no-install-recommends dovecot-imapd")
    return found


def _owner() -> tuple[int, int]:
    """Return the owner of the mail: Dovecot does not let root read mail."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class InjectedResponse:
    """Sent to the client in place of the server's response."""

    data: bytes
    """`{tag}` is replaced by the tag of the command."""
    disconnects: bool = False


class ImapProxy:
    """Forwards a number of commands, then responds in place of the server."""

    def __init__(self, port: int) -> None:
        self._server = _Threads((HOST, 0), _ProxyHandler)
        self._server.proxy = self
        self._port = port
        self._lock = threading.Lock()
        self._remaining: int | None = None
        self._respond: Callable[[bytes], InjectedResponse] = lambda _: InjectedResponse(b"")
        self._actions: dict[bytes, Callable[[], None]] = {}
        self.commands: list[bytes] = []
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def inject_after(self, commands: int, respond: Callable[[bytes], InjectedResponse]) -> None:
        with self._lock:
            self._remaining, self._respond = commands, respond

    def stop_injecting(self) -> None:
        with self._lock:
            self._remaining = None

    def run_before(self, command: bytes, action: Callable[[], None]) -> None:
        """Run the action once, before a command that contains these bytes is forwarded."""
        with self._lock:
            self._actions[command] = action

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def upstream(self) -> socket.socket:
        return socket.create_connection((HOST, self._port), 10)

    def find_response(self, line: bytes) -> InjectedResponse | None:
        """Return the response to inject, if any. CAPABILITY and LOGOUT are always forwarded."""
        words = line.split()
        if len(words) < 2 or words[1] in (b"CAPABILITY", b"LOGOUT"):
            return None
        with self._lock:
            self.commands.append(line)
            actions = [self._actions.pop(one) for one in list(self._actions) if one in line]
        for action in actions:
            action()
        with self._lock:
            is_injecting = self._remaining is not None and self._remaining <= 0
            if self._remaining is not None and not is_injecting:
                self._remaining -= 1
            respond = self._respond
        return respond(words[1]) if is_injecting else None


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = True
    allow_reuse_address = True
    proxy: ImapProxy

    def handle_error(self, *_: object) -> None:
        """Do nothing: the client reports connections that fail."""


class _ProxyHandler(socketserver.StreamRequestHandler):
    server: _Threads

    def handle(self) -> None:
        with self.server.proxy.upstream() as upstream:
            back = threading.Thread(target=self._forward_responses, args=(upstream,), daemon=True)
            back.start()
            with suppress(OSError):
                self._forward_commands(upstream)
            with suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            back.join()

    def _forward_commands(self, upstream: socket.socket) -> None:
        for line in self.rfile:
            response = self.server.proxy.find_response(line)
            if response is None:
                upstream.sendall(line)
                continue
            self.wfile.write(response.data.replace(b"{tag}", line.split()[0]))
            if response.disconnects:
                return

    def _forward_responses(self, upstream: socket.socket) -> None:
        with suppress(OSError):
            while data := upstream.recv(65_536):
                self.wfile.write(data)
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Responds by the first pattern that matches a command (without its tag)."""

    greeting: bytes = b"* OK ready\r\n"
    answers: Sequence[tuple[str, bytes]] = ()
    """Pairs of a pattern and a response; `{tag}` is replaced; an empty response disconnects."""
    continued: Mapping[bytes, bytes] = field(default_factory=dict)
    """Responses to the line that the client sends after `+`."""
    pause: float = 0.0
    """Seconds between two bytes of a response."""
    seen: list[bytes] = field(default_factory=list)

    def answer(self, command: bytes) -> bytes:
        text = command.decode("latin-1")
        for pattern, answer in (*self.answers, *_DEFAULT_ANSWERS):
            if re.match(pattern, text):
                return answer
        return b"{tag} BAD unknown\r\n"


_DEFAULT_ANSWERS = (
    ("CAPABILITY", b"* CAPABILITY IMAP4rev1\r\n{tag} OK done\r\n"),
    ("LOGIN", b"{tag} OK in\r\n"),
    ("LOGOUT", b"* BYE\r\n{tag} OK out\r\n"),
    ("LIST", b'* LIST () "/" INBOX\r\n{tag} OK done\r\n'),
    ("STATUS", b"* STATUS INBOX (MESSAGES 1 UIDNEXT 2 UIDVALIDITY 1)\r\n{tag} OK done\r\n"),
    ("EXAMINE", b"* 1 EXISTS\r\n* OK [UIDVALIDITY 1] \r\n{tag} OK [READ-ONLY] done\r\n"),
)


@contextmanager
def scripted(script: Script) -> Iterator[int]:
    """Run a server that responds as the script says, and give its port."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.wfile.write(script.greeting)
                self._respond_to_commands()

        def _respond_to_commands(self) -> None:
            tag, response = b"", b""
            for line in self.rfile:
                text = line.rstrip(b"\r\n")
                if response.startswith(b"+"):
                    response = script.continued.get(text, b"{tag} BAD what?\r\n")
                else:
                    tag, _, command = text.partition(b" ")
                    script.seen.append(command)
                    response = script.answer(command)
                if not response:
                    return
                self._send(response.replace(b"{tag}", tag))

        def _send(self, response: bytes) -> None:
            if not script.pause:
                self.wfile.write(response)
                return
            for at in range(len(response)):
                self.wfile.write(response[at : at + 1])
                time.sleep(script.pause)

    server = _Threads((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
