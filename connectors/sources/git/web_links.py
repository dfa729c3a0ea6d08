"""Where a person reads a file of a repository: the page of its host, at the branch."""

import os
from typing import Literal, TypeAlias
from urllib.parse import quote, quote_from_bytes

from connectors.files.paths import Parts
from connectors.git_repository.remote_url import OnDisk, OnTheWeb, OverSsh, Remote

Hosting: TypeAlias = Literal["github", "gitlab", "bitbucket", "gitea", "other"]

_BEFORE_THE_BRANCH = {
    "github": "blob",
    "gitlab": "-/blob",
    "bitbucket": "src",
    "gitea": "src/branch",
}
_GITEA_HOSTS = {"gitea", "forgejo", "codeberg"}


def hosting_of(remote: Remote) -> Hosting:
    """By the host's name: one of its labels says which program it runs."""
    if isinstance(remote, OnDisk):
        return "other"
    labels = set(remote.host.split("."))
    for name in ("github", "gitlab", "bitbucket"):
        if name in labels:
            return name
    return "gitea" if labels & _GITEA_HOSTS else "other"


def file_link(remote: Remote, hosting: Hosting, branch: str, parts: Parts) -> str:
    path = quote_from_bytes(os.fsencode("/".join(parts)))
    match remote:
        case OnDisk(folder):
            root = folder.parent if folder.name == ".git" else folder
            return f"{root.as_uri()}/{path}"
        case OnTheWeb(url):
            base = url
        case OverSsh():
            base = f"https://{remote.host}/{quote(remote.path)}"
    if hosting == "other":
        return f"{base}/{path}"
    return f"{base.removesuffix('.git')}/{_BEFORE_THE_BRANCH[hosting]}/{quote(branch)}/{path}"
