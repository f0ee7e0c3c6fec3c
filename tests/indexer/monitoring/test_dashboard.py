"""The Grafana dashboard: its metrics are exported, with those labels, and none is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
DASHBOARD = json.loads((ROOT / "docs/grafana/capdex.json").read_text("utf-8"))
OPERATIONS = (ROOT / "docs/operations.md").read_text("utf-8")
DOCUMENTED = {
    name: {*labels.split(",")} - {""}
    for name, labels in re.findall(r"^\| `(capdex_\w+)(?:\{([\w,]+)\})?` \|", OPERATIONS, re.M)
}
OF_PROMETHEUS = {"instance", "job"}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_every_metric_of_the_dashboard_exists() -> None:
    used = {name for text in expressions() for name in re.findall(r"capdex_\w+", text)}
    assert used - DOCUMENTED.keys() == set()


def test_the_dashboard_shows_every_metric() -> None:
    assert DOCUMENTED.keys() - set(re.findall(r"capdex_\w+", " ".join(expressions()))) == set()


def test_every_alarm_is_about_a_metric_that_exists() -> None:
    alarms = OPERATIONS.partition("## Alarms")[2].partition("\n## ")[0]
    used = {name for name in re.findall(r"capdex_\w*\w", alarms) if not name.endswith("_")}
    assert used - DOCUMENTED.keys() == set()


@pytest.mark.parametrize("text", expressions())
def test_the_labels_of_an_expression_are_those_of_its_metric(text: str) -> None:
    for name, labels in re.findall(r"(capdex_\w+)\{([^}]*)\}", text):
        asked = set(re.findall(r"(\w+)\s*[=!]", labels))
        assert asked <= DOCUMENTED[name] | OF_PROMETHEUS
    (wanted,) = {frozenset(DOCUMENTED[x]) for x in re.findall(r"capdex_\w+", text)}
    for labels in re.findall(r"by \(([^)]*)\)", text):
        assert {x.strip() for x in labels.split(",")} <= wanted | OF_PROMETHEUS


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_the_dashboard_names_no_data_source_of_its_own() -> None:
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${DS}"}
