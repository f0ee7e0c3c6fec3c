"""The page that validates a package as `capdex validate` does; nothing of it is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.json import Json
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.problems import Severity
from capdex_explorer.site import FormRefused, PageRequest, Site, View

CONTEXT: Final = 2  # lines shown before and after one with a finding
MAX_LINES: Final = 600
MAX_LINE_CHARS: Final = 400


async def file_check(site: Site, request: PageRequest) -> View:
    """Show the form, and for a file that was sent what `validate` finds, at its lines."""
    data = _read_form(request)
    if data is None:
        return _view("")
    if len(data) > MAX_PACKAGE_BYTES:
        raise InvalidInput(
            f"the file has more than {MAX_PACKAGE_BYTES} bytes",
            Code.TOO_LARGE,
            fix="shorten the prompt, the schema or the tools",
        )
    text = data.decode("utf-8", "replace")
    try:
        checked = await site.validate(data, request.client)
    except CapdexError as error:  # nobody has to choose or paste it again
        raise FormRefused(error, _view(text)) from error
    result: Json = {
        "verdict": checked["verdict"],
        "problems": checked["problems"],
        "errors": sum(problem["severity"] == Severity.ERROR for problem in checked["problems"]),
        "lines": _lines(text, checked["problems"]),
    }
    return _view(text, result)


def _view(text: str, result: Json | None = None) -> View:
    return View(
        "try.html", "Check a package", {"text": text, "result": result}, live=result is not None
    )


def _read_form(request: PageRequest) -> bytes | None:
    """Return the file that was sent, else the text that was pasted; None for neither."""
    if data := request.form.get("file"):
        return data
    pasted = request.form.get("package")
    # Browsers send line breaks of a text field as CR LF; those of files stay as they are.
    return pasted.replace(b"\r\n", b"\n") if pasted else None


def _lines(text: str, problems: Sequence[Json]) -> list[Json]:
    """Return the lines with findings and those around them; `gap`: lines are left out before."""
    at: defaultdict[int, list[Json]] = defaultdict(list)
    for problem in problems:
        at[max(1, problem["line"])].append(problem)
    lines = text.split("\n")
    near = {number for line in at for number in range(line - CONTEXT, line + CONTEXT + 1)}
    numbers = sorted(near & set(range(1, len(lines) + 1)))[:MAX_LINES]
    return [
        {
            "number": number,
            "text": lines[number - 1][:MAX_LINE_CHARS],
            "problems": at.get(number, []),
            "gap": number - 1 not in (before, 0),
        }
        for before, number in zip([0, *numbers], numbers, strict=False)
    ]
