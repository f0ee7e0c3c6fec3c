"""`capdex car` and `capdex cid` as an outside judge calls them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

HOSTILE = Path(__file__).parents[2] / "vectors" / "hostile" / "car"
CASES = json.loads((HOSTILE / "index.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_car_holds_the_file_or_exits_with_a_reason(capdex: Any, case: dict[str, str]) -> None:
    result = capdex("car", str(HOSTILE / case["file"]), "--root", case["root"], "--json")
    good = case["expect"].startswith("accept")
    assert result.exit_code in ((0,) if good else (1, 3)), result.stderr
    if good:
        value = json.loads(result.stdout)
        assert (value["ok"], value["root"]) == (True, case["root"])
        assert value["size_bytes"] in (1024, 2048)
    else:
        assert result.stdout == ""
        assert "code" in json.loads(result.stderr)


def test_the_file_of_a_car_is_written_where_it_is_asked_for(capdex: Any, folder: Path) -> None:
    case = next(case for case in CASES if case["file"] == "good-two-links.car")
    source = str(HOSTILE / case["file"])
    assert capdex("car", source, "--root", case["root"], "-o", "out").exit_code == 0
    assert (folder / "out").read_bytes() == b"x" * 2048
    on_stdout = capdex(
        "car", "-", "--root", case["root"], "-o", "-", stdin=Path(source).read_bytes()
    )
    assert on_stdout.stdout_bytes == b"x" * 2048
    assert capdex("car", "missing.car", "--root", case["root"]).exit_code == 2


@pytest.mark.parametrize("out", ["", ".", "pipe", "link-to-pipe"])
def test_what_is_no_file_is_never_replaced(capdex: Any, folder: Path, out: str) -> None:
    case = next(case for case in CASES if case["file"] == "good-two-links.car")
    os.mkfifo(folder / "pipe")  # as a device is: whoever is root could lose /dev/null
    (folder / "link-to-pipe").symlink_to("pipe")
    result = capdex("car", str(HOSTILE / case["file"]), "--root", case["root"], "-o", out)
    assert (result.exit_code, "it is not a file" in result.stderr) == (2, True)
    assert (folder / "pipe").is_fifo()
    assert (folder / "link-to-pipe").is_symlink()


@pytest.mark.parametrize("out", ["file/below", "folder/below", "n" * 300])
def test_what_cannot_be_a_file_is_refused_in_words(capdex: Any, folder: Path, out: str) -> None:
    (folder / "file").touch()
    case = next(case for case in CASES if case["file"] == "good-two-links.car")
    result = capdex("car", str(HOSTILE / case["file"]), "--root", case["root"], "-o", out)
    assert (result.exit_code, "cannot write" in result.stderr) == (2, True)


def test_a_cid_is_taken_apart(capdex: Any) -> None:
    text = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    assert capdex.json("cid", text) | {"digest": ""} == {
        "schema": "capdex.cid/1",
        "ok": True,
        "cid": text,
        "version": 1,
        "codec": "raw",
        "hash": "sha2-256",
        "digest": "",
    }
