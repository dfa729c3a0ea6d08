"""Installs the files of a release: fetched once from Maven Central, kept under .cache/opensearch/."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.opensearch.java import COMPILER, Java
from deploy.opensearch.releases import CACHE, HERE, Release, SetupError

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
LAUNCHER = HERE / "Node.java"


def ensure_installed(release: Release, java: Java) -> Path:
    """Return the folder of the release's files. If it exists it is complete: it is renamed last."""
    recipe = hashlib.sha256(release.pom.read_bytes() + LAUNCHER.read_bytes()).hexdigest()
    folder = CACHE / f"{release.number}-{recipe[:8]}"
    if folder.is_dir():
        return folder
    with exclusive_lock(CACHE / "install.lock"):
        for abandoned in CACHE.glob("unfinished-*"):
            shutil.rmtree(abandoned)
        if not folder.is_dir():
            unfinished = CACHE / f"unfinished-{os.getpid()}"
            fetch(release, java, unfinished)
            compile_launcher(java, unfinished)
            unfinished.rename(folder)
    return folder


def fetch(release: Release, java: Java, folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise SetupError(
            f"Maven is needed to fetch {release}. Install it (on Debian: apt-get install maven)."
        )
    print(f"Fetching {release} from Maven Central (60 to 80 MB, once)...", flush=True)
    command = [mvn, "-B", "-q", "-C", "-f", str(release.pom), "-Dmaven.wagon.rto=60000"]
    command += [COPY, f"-DoutputDirectory={folder / 'lib'}"]
    environment = os.environ | {"JAVA_HOME": str(java.home)}
    for _ in range(3):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return unpack_plugins(folder)
    output = "\n".join((done.stdout + done.stderr).splitlines()[:12])
    raise SetupError(f"Maven could not fetch {release}:\n{output}")


def unpack_plugins(folder: Path) -> None:
    for plugin in (folder / "lib").glob("*.zip"):
        with zipfile.ZipFile(plugin) as archive:
            archive.extractall(folder / "plugin")
        plugin.unlink()


def compile_launcher(java: Java, folder: Path) -> None:
    libraries = ":".join(map(str, (folder / "lib").glob("*.jar")))
    command = [java.program, *COMPILER, "--release", "17", "-cp", libraries]
    command += ["-d", str(folder / "classes"), str(LAUNCHER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"Java {java.version} cannot compile the launcher:\n{done.stderr}")


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Let one process at a time enter the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another process to finish the same...", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
