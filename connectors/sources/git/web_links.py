"""Links to the page of a file on the website that hosts its repository."""

import os
from typing import Literal, TypeAlias
from urllib.parse import quote, quote_from_bytes

from connectors.files.paths import PathParts
from connectors.git_repository.remote_url import HttpRemote, LocalRemote, Remote, SshRemote

Hosting: TypeAlias = Literal["github", "gitlab", "bitbucket", "gitea", "other"]

_PATHS_BEFORE_BRANCH = {
    "github": "blob",
    "gitlab": "-/blob",
    "bitbucket": "src",
    "gitea": "src/branch",
}
_GITEA_HOSTS = {"gitea", "forgejo", "codeberg"}


def detect_hosting(remote: Remote) -> Hosting:
    """Infer the software from the labels of the host name."""
    if isinstance(remote, LocalRemote):
        return "other"
    labels = set(remote.host.split("."))
    for name in ("github", "gitlab", "bitbucket"):
        if name in labels:
            return name
    return "gitea" if labels & _GITEA_HOSTS else "other"


def file_link(remote: Remote, hosting: Hosting, branch: str, parts: PathParts) -> str:
    path = quote_from_bytes(os.fsencode("/".join(parts)))
    match remote:
        case LocalRemote(folder):
            root = folder.parent if folder.name == ".git" else folder
            return f"{root.as_uri()}/{path}"
        case HttpRemote(url):
            base = url
        case SshRemote():
            base = f"https://{remote.host}/{quote(remote.path)}"
    if hosting == "other":
        return f"{base}/{path}"
    return f"{base.removesuffix('.git')}/{_PATHS_BEFORE_BRANCH[hosting]}/{quote(branch)}/{path}"
