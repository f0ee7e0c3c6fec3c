"""`python -m capdex`."""

from __future__ import annotations

import runpy
import sys

import pytest

from capdex import __version__


def test_the_module_runs_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["capdex", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("capdex", run_name="__main__")
    assert not ended.value.code
    assert __version__ in capsys.readouterr().out
