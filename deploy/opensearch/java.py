"""Finding a Java that runs a release of OpenSearch."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from deploy.opensearch.releases import Refused, Release

COMPILER = ("-m", "jdk.compiler/com.sun.tools.javac.Main")


class NoJava(Refused):
    """No Java of this machine fits."""


@dataclass(frozen=True)
class Java:
    home: Path
    version: int

    @property
    def program(self) -> str:
        return str(self.home / "bin" / "java")


def java_for(release: Release) -> Java:
    """JAVA_HOME where that fits, else the best of what is found."""
    named = os.environ.get("JAVA_HOME")
    if named and (java := java_in(Path(named))) and java.version in release.java:
        return java
    found = {java.version: java for home in java_homes() if (java := java_in(home))}
    fitting = [version for version in found if version in release.java]
    if not fitting:
        there = ", ".join(f"{version} in {java.home}" for version, java in found.items())
        raise NoJava(f"{release} needs {release.install}. Found here: {there or 'none'}.")
    return found[release.best_java(fitting)]


def java_homes() -> list[Path]:
    """Where a Java may be, each place once."""
    places: list[str | Path] = [os.environ.get("JAVA_HOME", "")]
    if java := shutil.which("java"):
        places.append(Path(java).resolve().parents[1])
    if lister := shutil.which("update-java-alternatives"):
        listed = subprocess.run([lister, "-l"], capture_output=True, text=True, check=False)
        places += [line.split()[-1] for line in listed.stdout.splitlines() if line.strip()]
    places += sorted(Path("/usr/lib/jvm").glob("*"))
    return list(dict.fromkeys(Path(place).resolve() for place in places if place))


def java_in(home: Path) -> Java | None:
    """None where there is none that runs and has its compiler, as every JDK does."""
    try:
        asked = subprocess.run(
            [str(home / "bin" / "java"), *COMPILER, "-version"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    told = re.search(r"^javac (\d+)", asked.stdout + asked.stderr, re.MULTILINE)
    return Java(home, int(told.group(1))) if told else None
