"""The checkpoints of feeds: of a content sync, what servers sent with each feed; of a listing, which feeds were listed."""

import json
from collections.abc import Collection, Mapping

from connectors.connector import Checkpoint, load_checkpoint
from connectors.sources.feed.feed_client import Validators

# To be raised when the same feed yields other documents than before.
_FORMAT_VERSION = 2


def save_validators(validators: Mapping[str, Validators]) -> Checkpoint:
    """Return the checkpoint of the feeds, by their keys, that were read to their end."""
    feeds = {key: [one.etag, one.modified] for key, one in sorted(validators.items())}
    return Checkpoint(json.dumps({"format": _FORMAT_VERSION, "feeds": feeds}))


def load_validators(since: Checkpoint | None) -> dict[str, Validators]:
    match load_checkpoint(since):
        case {"format": int(number), "feeds": dict(feeds)} if number == _FORMAT_VERSION:
            return dict(filter(None, map(_parse_item, feeds.items())))
        case _:
            return {}


def _parse_item(item: tuple[str, object]) -> tuple[str, Validators] | None:
    match item:
        case (key, [str(etag), str(modified)]):
            return key, Validators(etag, modified)
        case _:
            return None


def save_listed(keys: Collection[str]) -> Checkpoint:
    """Return the checkpoint of a listing that contains these feeds."""
    return Checkpoint(json.dumps({"listed": sorted(keys)}))


def load_listed(since: Checkpoint | None) -> frozenset[str]:
    match load_checkpoint(since):
        case {"listed": [*keys]} if all(isinstance(key, str) for key in keys):
            return frozenset(keys)
        case _:
            return frozenset()
