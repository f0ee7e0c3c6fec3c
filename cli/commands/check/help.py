"""`capdex help`: topics that concern several commands, and the help of each command."""

from __future__ import annotations

import click

from capdex.errors import Code, InvalidInput
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.views.help_topics import TOPICS


@command("help", examples=["capdex help exit-codes", "capdex help ranges", "capdex help publish"])
@click.argument("topic", nargs=-1, metavar="TOPIC|COMMAND")
def help_command(app: App, topic: tuple[str, ...]) -> None:
    """Read about exit codes, the environment, ranges, steps, verdicts.

    Topics: exit-codes, environment, ranges, verdicts, steps; or the name of a command.
    """
    root = click.get_current_context().find_root()
    if len(topic) == 1 and topic[0] in TOPICS:
        app.output.out.write(TOPICS[topic[0]]())
        return
    context: click.Context = root
    for word in topic:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            raise _unknown(" ".join(topic), [*TOPICS, *getattr(root.command, "entries", ())])
        context = click.Context(found, context, word, **found.context_settings)
    app.output.out.write(context.get_help())


def _unknown(word: str, known: list[str]) -> InvalidInput:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=2)
    return InvalidInput(
        f"there is no help on {word!r}",
        Code.NOT_FOUND,
        fix=f"did you mean {' or '.join(near)}?" if near else f"topics: {', '.join(TOPICS)}",
    )
