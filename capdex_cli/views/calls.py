"""What `call` and `try` share: the input of a call, where it goes, and its result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from capdex.errors import Code, ExecutionFailed, InvalidInput
from capdex.manifest.urls import is_loopback
from capdex_cli.terminal.app import App
from capdex_cli.terminal.text import safe

if TYPE_CHECKING:
    from capdex.json import Json
    from capdex_router.model.refs import InvokeResult

MAX_INPUT_BYTES: Final = 1024 * 1024


def addresses(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the URL of each origin or DID."""
    from yarl import URL

    urls: dict[str, str] = {}
    for value in values:
        name, _separator, url = value.partition("=")
        if not name.startswith(("https://", "did:")) or not url.startswith(("http://", "https://")):
            raise click.BadParameter(f"{value!r} is not https://ORIGIN=URL or DID=URL", ctx)
        try:
            origin = name if name.startswith("did:") else str(URL(name).origin())
            URL(url)
        except ValueError as error:
            raise click.BadParameter(f"{value}: {error}", ctx) from None
        if origin != name and URL(name).path.strip("/"):
            raise click.BadParameter(f"{value}: an origin is a scheme and a host", ctx)
        urls[origin] = url
    return urls


def _moves(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the URL of each origin or DID of one call."""
    from yarl import URL

    urls = addresses(ctx, param, values)
    for there in map(URL, urls.values()):
        if there.query_string or there.fragment or there.user:
            what = "a query, a fragment or a user name has no place in it"
            raise click.BadParameter(f"{there}: {what}", ctx)
        if there.scheme != "https" and not is_loopback(there.raw_host or ""):
            raise click.BadParameter(f"{there}: plain http is for this machine alone", ctx)
    return urls


at_option = click.option(
    "--at", multiple=True, metavar="NAME=URL", callback=_moves,
    help="Send what is for an origin (https://…) or a DID to this URL, as http://127.0.0.1:8000.",
)  # fmt: skip


def read_input(arguments: str) -> Any:
    """Return the input of a call, of stdin for `-`; raises InvalidInput for what is not JSON."""
    from capdex.json import exact

    given = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if arguments == "-" else arguments.encode()
    if len(given) > MAX_INPUT_BYTES:
        raise InvalidInput(f"the input has more than {MAX_INPUT_BYTES} bytes", Code.TOO_LARGE)
    try:
        return exact(given)
    except ValueError as error:
        raise InvalidInput(
            "the input is not JSON", why=str(error), fix="write it as in '{\"a\": 1}'"
        ) from None


def show_moves(app: App, at: dict[str, str]) -> None:
    """Say where a call goes; the question after it shows the same place."""
    for origin, url in at.items():
        app.output.say(f"  {safe(origin)} is {safe(url)} in this call")


def command_line(*words: str, schema: Json) -> str:
    """Return a command that ends with an input that fits a schema; with JSON if none is known."""
    import shlex

    import orjson

    from capdex_router.faces.arguments import example
    from capdex_router.invoke.validation import Validation

    arguments = example(schema)
    try:
        fits = Validation().check(schema, arguments) is None
    except InvalidInput:  # the schema is too large
        fits = False
    return shlex.join([*words, orjson.dumps(arguments).decode("utf-8") if fits else "JSON"])


def show_result(app: App, result: InvokeResult, example: str) -> None:
    """Show the output of a call; raises its error, with an example of a command that is right."""
    import orjson

    from capdex_router.policy.quoting import quoted

    if result.error is not None:
        details = dict(result.error["details"])
        if result.error["reason"] == Code.INVALID_INPUT:
            details.setdefault("fix", f"for example: {example}")
        why = str(details.pop("why", ""))
        if excerpt := details.get("excerpt"):
            why = "; ".join(filter(None, (why, f"it says {quoted(excerpt, len(excerpt))}")))
        raise ExecutionFailed(
            result.error["message"],
            Code(result.error["reason"]),
            why=why,
            fix=str(details.pop("fix", "")),
            details=details or None,
        )
    shown = orjson.dumps(result.output, option=orjson.OPT_INDENT_2).decode("utf-8")
    human = [safe(line) for line in shown.splitlines()]
    app.output.result("call", result.to_json(), human=human, plain=human)
