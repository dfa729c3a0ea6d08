"""Finds a Java that runs a release of OpenSearch."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from deploy.opensearch.releases import Release, SetupError

COMPILER = ("-m", "jdk.compiler/com.sun.tools.javac.Main")


class JavaNotFoundError(SetupError):
    """No suitable Java is installed."""


@dataclass(frozen=True)
class Java:
    home: Path
    version: int

    @property
    def program(self) -> str:
        return str(self.home / "bin" / "java")


def find_java(release: Release) -> Java:
    """Return JAVA_HOME if it is suitable, otherwise the best installation found."""
    configured = os.environ.get("JAVA_HOME")
    if configured and (java := read_java(Path(configured))) and java.version in release.java:
        return java
    found = {java.version: java for home in java_homes() if (java := read_java(home))}
    suitable = [version for version in found if version in release.java]
    if not suitable:
        installed = ", ".join(f"{version} in {java.home}" for version, java in found.items())
        raise JavaNotFoundError(
            f"{release} needs {release.install}. Installed: {installed or 'none'}."
        )
    return found[release.best_java(suitable)]


def java_homes() -> list[Path]:
    """List the folders where a Java may be installed, each once."""
    places: list[str | Path] = [os.environ.get("JAVA_HOME", "")]
    if java := shutil.which("java"):
        places.append(Path(java).resolve().parents[1])
    if lister := shutil.which("update-java-alternatives"):
        listed = subprocess.run([lister, "-l"], capture_output=True, text=True, check=False)
        places += [line.split()[-1] for line in listed.stdout.splitlines() if line.strip()]
    places += sorted(Path("/usr/lib/jvm").glob("*"))
    return list(dict.fromkeys(Path(place).resolve() for place in places if place))


def read_java(home: Path) -> Java | None:
    """Return the Java in a folder, or `None` if it does not run or has no compiler, as a JRE."""
    try:
        done = subprocess.run(
            [str(home / "bin" / "java"), *COMPILER, "-version"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    version = re.search(r"^javac (\d+)", done.stdout + done.stderr, re.MULTILINE)
    return Java(home, int(version.group(1))) if version else None
