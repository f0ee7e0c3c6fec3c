"""Short forms of packages: kept, of one version of the rules, and worth no error."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from capdex_router.catalog.catalog import Listed
from capdex_router.catalog.short_forms import ShortForms, decode
from capdex_router.home.directory import Home
from capdex_router.model.refs import CapabilityRef


def forms(home: Path) -> dict[str, str]:
    """The name of each short form that is kept."""
    kept = {key: decode(value) for key, value in ShortForms(Home(home)).read().items()}
    return {key: found[0].name for key, found in kept.items() if found}


def keep(home: Path, **names: str) -> None:
    ref = CapabilityRef("did:nuwa:cap:a", "1.0.0")
    ShortForms(Home(home)).add_all(
        {key: (Listed(ref, "skill", name, ""),) for key, name in names.items()}
    )


def test_short_forms_are_kept_and_replaced(tmp_path: Path) -> None:
    assert forms(tmp_path) == {}
    keep(tmp_path, a="1", b="2")
    keep(tmp_path, a="3")
    assert forms(tmp_path) == {"a": "3", "b": "2"}


def test_those_of_another_version_are_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, a="1")
    with closing(sqlite3.connect(Home(tmp_path).derived)) as database, database:
        database.execute("UPDATE derived SET version = '0'")
    assert forms(tmp_path) == {}
    keep(tmp_path, a="2")
    assert forms(tmp_path) == {"a": "2"}


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    keep(tmp_path, a="1")
    Home(tmp_path).derived.write_bytes(b"no database" * 1000)
    keep(tmp_path, b="2")
    assert forms(tmp_path) == {}
    keep(tmp_path, b="2")
    assert forms(tmp_path) == {"b": "2"}


def test_a_place_where_nothing_can_be_kept_is_no_error(tmp_path: Path) -> None:
    keep(tmp_path / "no", a="1")
    assert forms(tmp_path / "no") == {}
