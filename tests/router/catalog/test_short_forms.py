"""Derived values: kept, of one version, and worth no error."""

from __future__ import annotations

from pathlib import Path

from capdex_router.home.derived import Derived


def test_values_are_kept_and_replaced(tmp_path: Path) -> None:
    derived = Derived(tmp_path / "derived.sqlite", "1")
    assert derived.read() == {}
    derived.write({"a": b"1", "b": b"2"})
    derived.write({"a": b"3"})
    assert Derived(tmp_path / "derived.sqlite", "1").read() == {"a": b"3", "b": b"2"}


def test_another_version_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "derived.sqlite"
    Derived(path, "1").write({"a": b"1"})
    assert Derived(path, "2").read() == {}


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "derived.sqlite"
    derived = Derived(path, "1")
    derived.write({"a": b"1"})
    path.write_bytes(b"no database" * 1000)
    derived.write({"b": b"2"})
    assert derived.read() == {}
    derived.write({"b": b"2"})
    assert derived.read() == {"b": b"2"}


def test_a_place_where_nothing_can_be_kept_is_no_error(tmp_path: Path) -> None:
    derived = Derived(tmp_path / "no" / "derived.sqlite", "1")
    derived.write({"a": b"1"})
    assert derived.read() == {}
