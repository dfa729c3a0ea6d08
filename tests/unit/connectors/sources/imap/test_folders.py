import pytest

from connectors.files.paths import GlobPattern
from connectors.sources.imap.folders import parse_folder, select_folders
from connectors.sources.imap.response_parser import MalformedResponseError


def listed(*answers: bytes) -> list[str]:
    return names(answers)


def names(answers: tuple[bytes, ...], include: str = "", exclude: str = "") -> list[str]:
    found = [parse_folder([one]) for one in answers]
    includes = [GlobPattern.parse(include)] if include else []
    excludes = [GlobPattern.parse(exclude)] if exclude else []
    return ["/".join(one.path) for one in select_folders(found, includes, excludes)]


LEVELS = (b'() "." Zoo', b'() "." "Work.Old"', b'(\\Noselect) "." Work', b'() "." INBOX')


def test_the_inbox_first_then_by_name_whatever_stands_between_levels() -> None:
    assert names(LEVELS) == ["INBOX", "Work/Old", "Zoo"]
    assert names(LEVELS, include="Work/**") == ["Work/Old"]
    assert names(LEVELS, exclude="Work") == ["INBOX", "Zoo"]


def test_a_name_may_be_a_literal_and_a_server_without_levels() -> None:
    assert parse_folder([(b'() "/" {3}', b"a/b"), b""]).path == ("a", "b")
    assert parse_folder([b"() NIL a/b"]).path == ("a/b",)


def test_thrown_away_and_unsent_mail_is_left_out_by_mark_or_by_name() -> None:
    marked = (b'(\\Trash) "/" Bin', b'(\\Sent) "/" Sent', b'() "/" Spam')
    assert listed(*marked) == ["Sent", "Spam"]
    assert listed(b'() "/" Trash', b'() "/" Sent', b'() "/" Spam') == ["Sent"]
    assert names(marked, include="Bin") == ["Bin"]


def test_where_one_folder_holds_all_it_alone_is_read() -> None:
    assert listed(b'(\\All) "/" All', b'() "/" INBOX', b'(\\Junk) "/" Spam') == ["All"]


@pytest.mark.parametrize("answer", [b"", b"() INBOX", b'() "/" "a', b'(\\Seen "/" a'])
def test_what_is_no_folder_is_malformed(answer: bytes) -> None:
    with pytest.raises(MalformedResponseError):
        parse_folder([answer])


def test_a_name_that_would_end_a_command_is_never_sent() -> None:
    with pytest.raises(MalformedResponseError):
        _ = parse_folder([(b'() "/" {9}', b"a\r\nLOGOUT"), b""]).quoted_name
    assert parse_folder([b'() "/" "a\\"b"']).quoted_name == '"a\\"b"'
