"""A profile is read as it stands, and a wrong field is refused by file and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.endpoint.profile import BUILT_IN, Profile, ProfileError, check_profile, load_profile


def test_the_built_in_profiles_differ_in_batching_and_slots_only() -> None:
    continuous, static = load_profile("continuous"), load_profile("static")
    assert (continuous.batching, continuous.slots) == ("continuous", 16)
    assert (static.batching, static.slots) == ("static", 8)
    same = {f for f in Profile.__slots__ if getattr(continuous, f) == getattr(static, f)}
    assert set(Profile.__slots__) - same == {"name", "batching", "slots"}


@pytest.mark.parametrize("path", sorted(BUILT_IN.glob("*.toml")), ids=lambda p: p.stem)
def test_each_built_in_profile_is_named_as_its_file(path: Path) -> None:
    assert load_profile(path.stem).name == path.stem


def test_a_file_is_read_with_defaults_for_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("slots = 3\nqueue_limit = 0\n")
    assert load_profile(str(path)) == Profile(name="mine", slots=3, queue_limit=0)


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("slot = 3", "slot", "one of name, model"),
        ("slots = 0", "slots", "a whole number from 1 to 4096, not 0"),
        ("slots = 2.5", "slots", "a whole number, not 2.5"),
        ("slots = true", "slots", "a whole number, not True"),
        ('decode_base_s = "8ms"', "decode_base_s", "a number, not '8ms'"),
        ("decode_base_s = nan", "decode_base_s", "a number from 0 to 3600, not nan"),
        ("prefill_base_s = -1", "prefill_base_s", "a number from 0 to 3600, not -1"),
        ("decode_base_s = 0\ndecode_per_sequence_s = 0", "decode_base_s", "not 0 s"),
        ('batching = "magic"', "batching", "one of continuous, static, not 'magic'"),
        ("uncited_share = 1.5", "uncited_share", "a number from 0 to 1, not 1.5"),
        ("token_times = 1", "token_times", "true or false, not 1"),
        ('model = ""', "model", "text, not ''"),
    ],
)
def test_a_wrong_field_is_refused_by_file_and_name(
    tmp_path: Path, line: str, field: str, expected: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(line)
    with pytest.raises(ProfileError) as caught:
        load_profile(str(path))
    assert (caught.value.where, caught.value.field) == (str(path), field)
    assert expected in caught.value.expected
    assert str(caught.value).startswith(f"{path}: {field}: ")


@pytest.mark.parametrize("text", ["slots = ", "\xff"])
def test_what_is_not_toml_is_refused_by_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ProfileError, match=r"wrong\.toml: a readable TOML file"):
        load_profile(str(path))


def test_an_unknown_name_lists_the_built_in_ones() -> None:
    with pytest.raises(ProfileError, match="nope: a profile file or one of continuous, static"):
        load_profile("nope")


def test_every_field_is_on_the_methods_page() -> None:
    page = (Path(__file__).parents[3] / "docs/methods/reference_endpoint.md").read_text()
    assert [f for f in Profile.__slots__ if f"`{f}`" not in page] == []


def test_none_is_allowed_only_where_it_means_something() -> None:
    assert check_profile({"queue_limit": None, "api_key_env": None}, "x").queue_limit is None
    with pytest.raises(ProfileError, match="slots"):
        check_profile({"slots": None}, "x")
