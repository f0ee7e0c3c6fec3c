"""The templates: every value is escaped, and made visible unless it is markup already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from capdex.codes import reason_codes
from capdex.manifest.bindings.contacts import party
from capdex_explorer.views import text, verdicts
from capdex_explorer.views.images import Point, identicon, line_chart
from capdex_explorer.views.markdown import markdown, plain
from capdex_explorer.views.schema_rows import MAX_ROWS, schema_rows

TEMPLATES: Final = Path(__file__).parents[1] / "templates"


def build_environment(assets: Mapping[str, str], explorers: Mapping[int, str]) -> Environment:
    """Return the templates with what they may call; `assets` are addresses of static files.

    `explorers` are the sites that show a chain's blocks, by chain id.
    """
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "account": text.short_account,
        "column": _column,
        "cut": text.cut,
        "date": text.date,
        "duration": text.duration,
        "field": verdicts.field_of,  # by name: map("field")
        "hash": text.short_hash,
        "highlighted": text.highlighted,
        "markdown": markdown,
        "marked": text.marked,
        "number": text.number,
        "party": party,
        "plain": plain,
        "pretty": _pretty,
        "size": text.size,
    }
    made.globals |= {
        "about_of": verdicts.about_of,
        "age": text.age,
        "asset": assets.__getitem__,
        "at_explorer": partial(_at_explorer, explorers),
        "badge_of": verdicts.badge_of,
        "check_meaning": verdicts.CHECKS.get,
        "checked": verdicts.checked,
        "count": text.count,
        "found_words": text.found_words,
        "field_of": verdicts.field_of,
        "identicon": identicon,
        "host_of": text.host_of,
        "lang": text.language,
        "kind_of": verdicts.kind_of,
        "line_chart": line_chart,
        "marks_of": verdicts.marks_of,
        "max_rows": MAX_ROWS,
        "name_of": text.name_of,
        "not_meant": verdicts.NOT_MEANT,
        "reason_of": reason_codes().get,
        "schema_rows": schema_rows,
        "title_of": verdicts.title_of,
    }
    for path in sorted(TEMPLATES.glob("*.html")):
        made.get_template(path.name)  # compiled now, so that no request waits for it
    return made


def _at_explorer(explorers: Mapping[int, str], chain_id: int, kind: str, what: object) -> str:
    """Return the page of a `tx`, `block` or `address` at its chain's explorer; empty for none."""
    site = explorers.get(chain_id)
    return f"{site}/{kind}/{what}" if site else ""


def _column(samples: Sequence[Sequence[Any]], index: int) -> list[Point]:
    """Return the points of a chart: times and one of the figures of these samples."""
    return [(sample[0], sample[index]) for sample in samples]


def _pretty(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode("utf-8")
