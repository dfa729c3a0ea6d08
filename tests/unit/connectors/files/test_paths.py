import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.paths import GlobPattern, PathFilter, matches_any


def parts(path: str) -> list[str]:
    return path.split("/")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.md", "a.md", True),
        ("*.md", "x/a.md", False),  # matched from the root
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("**", "x/y/a.md", True),
        ("hr/**", "hr/a.md", True),
        ("hr/**", "hr/x/a.md", True),
        ("hr/**", "hrx/a.md", False),
        ("hr/", "hr/x/a.md", True),
        ("hr", "hr/x/a.md", True),  # a plain name covers its folder
        ("hr", "x/hr/a.md", False),
        ("/hr/*", "hr/a.md", True),
        ("hr/*", "hr/x/a.md", False),  # a star stays inside a name
        ("**/drafts", "x/drafts/y/a.md", True),
        ("a/**/b/**/c", "a/b/x/b/y/c", True),
        ("a/**/b/**/c", "a/x/c", False),
        ("?.md", "a.md", True),
        ("?.md", "ab.md", False),
        ("[ab].md", "b.md", True),
        ("[!ab].md", "b.md", False),
        ("[]].md", "].md", True),
        ("A.md", "a.md", False),
        ("規程/*.md", "規程/休暇.md", True),
        # composed in the pattern, decomposed in the name, as a Mac writes it
        ("caf\u00e9/*", "cafe\u0301/a", True),
    ],
)
def test_a_glob_is_matched_from_the_root(pattern: str, path: str, expected: bool) -> None:  # noqa: FBT001
    assert GlobPattern.parse(pattern).matches(parts(path)) is expected


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("/", "empty"),
        ("a//b", "at the root"),
        ("../a", "at the root"),
        ("./a", "at the root"),
        ("a**", "must stand alone"),
        ("**.md", "must stand alone"),
        ("[ab", "not closed"),
        ("a\\b", "use /"),
        ("*.{md,txt}", "one pattern for each"),
    ],
)
def test_what_is_no_glob_is_refused_with_a_reason(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        GlobPattern.parse(pattern)


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("hr/**", "hr", True),
        ("hr", "hr/x", True),
        ("**/drafts", "x/drafts", True),
        ("hr/*", "hr", False),
        ("**/*.md", "x", False),
        ("a/*/**", "a", False),
    ],
)
def test_a_folder_is_covered_when_all_below_it_is_meant(
    pattern: str,
    folder: str,
    expected: bool,  # noqa: FBT001
) -> None:
    assert GlobPattern.parse(pattern).covers(parts(folder)) is expected


NAMES = st.text(alphabet="ab.", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=5)


@given(PATHS)
def test_a_path_written_as_a_pattern_matches_itself(path: list[str]) -> None:
    assert GlobPattern.parse("/".join(path)).matches(path)
    assert GlobPattern.parse("**").matches(path)
    assert GlobPattern.parse(f"**/{path[-1]}").matches(path)


@given(PATHS, PATHS)
def test_what_a_glob_covers_it_matches(folder: list[str], below: list[str]) -> None:
    glob = GlobPattern.parse("/".join(folder))
    assert glob.covers(folder)
    assert glob.matches([*folder, *below])


@pytest.mark.parametrize(
    ("pattern", "folders"),
    [
        ("hr/pay/*.md", ("hr", "pay")),
        ("/hr/a.md", ("hr", "a.md")),
        ("hr/**/a.md", ("hr",)),
        ("**/a.md", ()),
        ("h[r]/a/**", ()),
        ("e\u0301/**", ("\u00e9",)),
    ],
)
def test_the_first_names_of_a_pattern_are_those_of_all_paths(
    pattern: str, folders: tuple[str, ...]
) -> None:
    assert GlobPattern.parse(pattern).fixed_folders == folders


def test_many_stars_take_no_longer_than_the_path_is_long() -> None:
    glob = GlobPattern.parse("/".join(["**", "a"] * 200 + ["b"]))
    assert not glob.matches(["a"] * 2000)
    assert not GlobPattern.parse("*a" * 100 + "b").matches(["a" * 250])


def test_any_of_several() -> None:
    globs = [GlobPattern.parse("*.md"), GlobPattern.parse("*.txt")]
    assert matches_any(globs, ["a.txt"])
    assert not matches_any(globs, ["a.pdf"])


def test_a_choice_takes_what_is_included_and_not_left_out() -> None:
    choice = PathFilter.parse(["docs"], ["**/*.txt"])
    assert choice.includes(["docs", "a.md"])
    assert not choice.includes(["docs", "a.txt"])
    assert not choice.includes(["a.md"])
    assert PathFilter.parse([], ["**/*.txt"]).includes(["a.md"])
    with pytest.raises(ValueError, match="empty pattern"):
        PathFilter.parse([], [""])
