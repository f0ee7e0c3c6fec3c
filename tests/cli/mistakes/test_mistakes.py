"""Mistakes that beginners make, as files; each message alone must be enough to correct the file.

`NAME.txt` is what `capdex validate NAME.acp.yaml` shows. It is written anew with
CAPDEX_GOLDEN=write in the environment.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.acp.yaml"))
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment


@pytest.mark.parametrize("file", FILES, ids=[x.name.partition(".")[0] for x in FILES])
def test_the_message_of_a_mistake_names_the_remedy(capdex: Any, folder: Path, file: Path) -> None:
    shutil.copy(file, folder / "mine.acp.yaml")
    shown = capdex("validate", "mine.acp.yaml", "--format", "full")
    text = shown.stdout + shown.stderr
    golden = file.with_name(f"{file.name.partition('.')[0]}.txt")
    if WRITE:
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
    assert "= fix: " in text


def test_there_are_at_least_ten() -> None:
    assert len(FILES) >= 10
