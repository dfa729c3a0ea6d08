"""Every source that the contract suite runs on: one line each."""

from tests.contract.connector_worlds.confluence import (
    ConfluenceCloudWorld,
    ConfluenceServerWorld,
)
from tests.contract.connector_worlds.feed import FeedWorld
from tests.contract.connector_worlds.folder import FolderWorld
from tests.contract.connector_worlds.git import GitWorld
from tests.contract.connector_worlds.github import GitHubWorld
from tests.contract.connector_worlds.imap import ImapWorld
from tests.contract.connector_worlds.ingest import IngestWorld
from tests.contract.connector_worlds.mbox import MboxWorld
from tests.contract.connector_worlds.slack import SlackExportWorld, SlackWorld
from tests.contract.connector_worlds.website import WebsiteWorld
from tests.contract.connector_worlds.world import World

WORLDS: tuple[type[World], ...] = (
    ConfluenceCloudWorld,
    ConfluenceServerWorld,
    FeedWorld,
    FolderWorld,
    GitWorld,
    GitHubWorld,
    ImapWorld,
    IngestWorld,
    MboxWorld,
    SlackWorld,
    SlackExportWorld,
    WebsiteWorld,
)
