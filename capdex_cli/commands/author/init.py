"""`capdex init`: a first package, by a few questions or by options."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import click

from capdex.errors import CapdexError, InvalidInput, Refused, UsageError
from capdex.net.files import creating, unusable
from capdex.uri import check_name
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE, TEXT, command
from capdex_cli.terminal.output import Format
from capdex_cli.terminal.prompt import NOTHING_WRITTEN, interruptible
from capdex_cli.terminal.text import clip, columns, number_of, safe, size, without_secrets

if TYPE_CHECKING:
    from capdex.manifest.manifest import Manifest
    from capdex_publisher.authoring.imports.draft import Imported
    from capdex_publisher.authoring.imports.report import Note


MAX_EDITS: Final = 6  # lines to edit that are shown; --json has all
MAX_ALIKE: Final = 3  # rows for several tools of which only the tool differs
MAX_WORDS: Final = 8  # rows for several words of one tool of which only the word differs
MAX_CELL: Final = 48  # columns of a cell of the table; --json has all
_HEADER: Final = ("of", "what", "is", "before", "now, or why not")


@command(
    "init",
    examples=[
        "capdex init",
        "capdex init weather --description 'Tells the weather of a city.' --keyword forecast",
        "capdex init notes --from-mcp 'npx -y @acme/notes-mcp' --service https://mcp.acme.dev/mcp",
        "capdex init --from-openapi openapi.yaml --operation listPets --operation addPet",
        "capdex init --from-skill skills/pdf",
    ],
)
@click.argument("name", required=False)
@click.option("--title", type=TEXT, help="What people call it.")
@click.option("--description", type=TEXT, help="What it does, in a sentence or two.")
@click.option("--summary", type=TEXT, help="The description in at most 120 characters.")
@click.option("--keyword", "keywords", multiple=True, type=TEXT, help="A keyword that triggers it.")
@click.option("--tag", "tags", multiple=True, type=TEXT, help="A tag.")
@click.option("--domain", type=TEXT, help="Its domain, like weather or productivity.")
@click.option("--license", metavar="SPDX", help="Its licence, like Apache-2.0.")
@click.option(
    "--kind", type=click.Choice(["tool", "prompt"]),
    help="A prompt and a tool that calls a service (the default), or a prompt alone.",
)  # fmt: skip
@click.option("--from-mcp", metavar="URL|COMMAND|FILE", help="Take the tools of an MCP server.")
@click.option("--service", metavar="URL", help="With --from-mcp: where others reach that server.")
@click.option("--from-openai", metavar="FILE", help="Take OpenAI function tools from JSON.")
@click.option("--from-openapi", metavar="FILE|URL", help="Take operations of an OpenAPI document.")
@click.option(
    "--operation", "operations", multiple=True, metavar="ID",
    help="With --from-openapi: an operationId, or 'GET /path'.",
)  # fmt: skip
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME",
    help="With --from-mcp: take this tool alone; several times for several.",
)  # fmt: skip
@click.option("--from-skill", metavar="FOLDER", help="Take an Agent Skill, whose SKILL.md it has.")
@click.option("--out", type=FILE, metavar="FILE", help="[default: NAME.acp.yaml]")
def init_command(
    app: App,
    name: str | None,
    title: str | None,
    description: str | None,
    kind: str | None,
    out: Path | None,
    from_mcp: str | None,
    service: str | None,
    from_openai: str | None,
    from_openapi: str | None,
    operations: tuple[str, ...],
    tools: tuple[str, ...],
    from_skill: str | None,
    **more: Any,
) -> None:
    """Start a capability package, or make one of what you have.

    Of an MCP server, a list of tools, an API or a skill it makes a package, and says in a table
    what is changed, left out or refused, before it writes the file. The files of a skill stay
    where they are: the package names each with its hash, and publish uploads them.

    Without these it asks, on a terminal, for what no option says. A file that exists is never
    overwritten.
    """
    if more["license"] is not None:
        from capdex_publisher.authoring.licence import check_licence

        more["license"] = check_licence(more["license"])
    named = {"mcp": from_mcp, "openai": from_openai, "openapi": from_openapi, "skill": from_skill}
    sources = [(kind, source) for kind, source in named.items() if source is not None]
    mine = (("--service", service, "mcp"), ("--tool", tools, "mcp"))
    for option, given, source in (*mine, ("--operation", operations, "openapi")):
        if given and not named[source]:
            raise UsageError(f"{option} is an option of --from-{source}")
    if kind and sources:
        raise UsageError(
            "--kind is for a package that is made of nothing: leave out --kind or --from-…"
        )
    if sources:
        values = {"title": title, "description": description, **more}
        imported = app.run(_import(app, sources, name, service or "", operations, tools, values))
        _report(app, imported)  # first: what stands in a package that is published stays
        path = _write(out, imported.name, imported.text)
        _show(app, path, imported, Path(from_skill) if from_skill else None)
        return
    if name is None:
        if not app.may_ask:
            raise Refused(
                "init was given no name, and there is no terminal to ask for it",
                fix="capdex init NAME --description …",
            )
        name = _asked_name(app)
        title = title or _ask("Title", name.replace("-", " ").title())
        description = description or _ask("Description, in a sentence or two") or None
    check_name(name)
    more |= {"title": title, "description": description}
    path = _write(out, name, _scaffold(app, name, kind, more))
    mark = app.output.out.mark("ok")
    check = shlex.join(("capdex", "validate", str(path)))
    human = [f"{mark} {safe(path)}", f"  edit it, then: {safe(check)}"]
    app.output.result("package", {"file": str(path), "name": name}, human=human, plain=[path])


def _scaffold(app: App, name: str, kind: str | None, values: dict[str, Any]) -> str:
    from capdex.manifest.editor_schema import PATH
    from capdex_publisher.authoring.scaffold import PackageKind, scaffold

    network = app.settings.network
    node_url = network.node_url.rstrip("/") if network else ""
    # The file is published: an address with a password or a key in it stays out.
    schema = f"{node_url}{PATH}" if node_url and without_secrets(node_url) == node_url else ""
    return scaffold(name, kind=PackageKind(kind or "tool"), schema=schema, **values)


async def _import(
    app: App,
    sources: list[tuple[str, str]],
    name: str | None,
    service: str,
    operations: tuple[str, ...],
    tools: tuple[str, ...],
    values: dict[str, Any],
) -> Imported:
    from capdex_publisher.authoring.imports.draft import write_package
    from capdex_publisher.authoring.imports.mcp import import_mcp
    from capdex_publisher.authoring.imports.openai import import_openai
    from capdex_publisher.authoring.imports.openapi.tool import import_openapi
    from capdex_publisher.authoring.imports.skill import import_skill
    from capdex_publisher.authoring.imports.source import read_source, shown

    if len(sources) > 1:
        raise UsageError("init imports from one source", fix="make a package of each")
    [(kind, source)] = sources
    if not source:
        raise UsageError(f"--from-{kind} is empty")
    own = check_name(name) if name else None
    stem = PurePosixPath(shown(source).rstrip("/")).stem
    try:
        if kind == "mcp":
            app.output.say("  asking the server for its tools")
            draft = await import_mcp(source, service=service, name=own or "", wanted=tools)
        elif kind == "openai":
            draft = import_openai((await read_source(source))[0], stem)
        elif kind == "openapi":
            data, base = await read_source(source)
            draft = import_openapi(data, stem, operations, base=base)
        else:
            draft = import_skill(Path(source), own or "")
    except CapdexError as error:
        raise _of_another_form(error, kind, source) from None
    texts = ("title", "description", "summary", "license")
    draft = draft.with_values(name=own, **{key: values[key] for key in texts})
    more = {key: values[key] for key in ("keywords", "tags", "domain")}
    return write_package(draft, **more)


def _of_another_form(error: CapdexError, kind: str, source: str) -> CapdexError:
    """Return an error that names the option for a file or a folder of another form."""
    from capdex_publisher.authoring.imports.detect import FORMATS, import_option_for
    from capdex_publisher.authoring.imports.skill import SKILL
    from capdex_publisher.authoring.imports.source import read_file

    path = Path(source, SKILL) if Path(source).is_dir() else Path(source)
    try:  # who opens a pipe waits for its writer
        option = import_option_for(read_file(path)) if path.is_file() else ""
    except (CapdexError, OSError, ValueError):
        return error
    if option in ("", f"--from-{kind}"):
        return error
    fix = f"it is {FORMATS[option]}: capdex init {option} {shlex.quote(source)}"
    return replace(error, fix=fix)


def _write(out: Path | None, name: str, text: str) -> Path:
    """Create the file; raises UsageError if it exists."""
    path = out or Path(f"{name}.acp.yaml")
    try:
        with creating(path) as file:
            file.write(text.encode())
    except FileExistsError:
        raise UsageError(
            f"{path} exists already", why="init never overwrites", fix="name another with --out"
        ) from None
    except OSError as error:
        fix = "check the path, and that the disk is not full"
        raise unusable(f"cannot write {path}", error, fix) from None
    return path


def _report(app: App, imported: Imported) -> None:
    """Show people what of the source is not in the package as it stands."""
    if (notes := imported.notes) and app.output.format is Format.HUMAN:
        app.output.out.write("  not in the package as it stands in the source:")
        for line in columns([_HEADER, *_rows(notes)], indent=4):
            app.output.out.write(line)
        app.output.out.write("    (--json has each row, and the whole of it)")
        app.output.out.write("")


def _rows(notes: Sequence[Note]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, where many notes that are alike are one row.

    Alike are notes on one tool that differ in their subject, if there are more than MAX_WORDS of
    them, and otherwise those that differ in their tool and its old value.
    """
    words = Counter(map(_but_subject, notes))
    groups: dict[tuple[bool, tuple[str, ...]], list[Note]] = {}
    for note in notes:
        refused = note.source if note.fate == "refused" else ""
        is_many = words[_but_subject(note)] > MAX_WORDS
        but_tool = (note.subject, note.fate, note.after, refused)
        groups.setdefault((is_many, _but_subject(note) if is_many else but_tool), []).append(note)
    for (is_many, _), alike in groups.items():
        for note in alike if len(alike) <= MAX_ALIKE else alike[:1]:
            more = f" and {len(alike) - 1} more" if len(alike) > MAX_ALIKE else ""
            of, what, old = (
                clip(safe(x), MAX_CELL) for x in (note.source, note.subject, note.before)
            )
            of, what = (of, what + more) if is_many else (of + more, what)
            yield of, what, note.fate, old, safe(note.after)


def _but_subject(note: Note) -> tuple[str, ...]:
    return note.source, note.fate, note.before, note.after


def _show(app: App, path: Path, imported: Imported, skill: Path | None) -> None:
    from capdex.manifest.manifest import read

    manifest = read(imported.text.encode()).require()
    value: dict[str, Any] = {
        "file": str(path),
        "name": imported.name,
        "files": len(manifest.resources),
        "notes": [note.to_json() for note in imported.notes],
        "to_edit": list(imported.to_edit),
        "next": _next(path, manifest, skill),
    }
    human = [f"{app.output.out.mark('ok')} {safe(path)}"]
    if value["files"]:
        whole = size(sum(x.size for x in manifest.resources))
        human.append(f"  {number_of(value['files'], 'file')}, {whole}, named with their hashes")
    if edits := imported.to_edit:
        human += ["", "  to edit before you publish:"]
        human += [f"    {safe(x)}" for x in edits[:MAX_EDITS]]
        human += [f"    and {len(edits) - MAX_EDITS} more"] if len(edits) > MAX_EDITS else []
    human += ["", f"  then: {safe(value['next'])}"]
    app.output.result("package", value, human=human, plain=[path])


def _next(path: Path, manifest: Manifest, skill: Path | None) -> str:
    """Return the command that shows the first request, or checks a package that makes none."""
    from capdex_cli.views.calls import command_line

    for tool in manifest.tools:
        if tool.name in manifest.bindings:
            return command_line("capdex", "try", f"{path}#{tool.name}", schema=tool.parameters)
    words = ["capdex", "validate", str(path)]
    if manifest.resources and skill is not None:
        from capdex_publisher.authoring.files import folder_of

        folder = skill.parent if skill.is_file() else skill
        if folder_of(path).resolve() != folder.resolve():
            words += ["--files", str(folder)]
    return shlex.join(words)


def _asked_name(app: App) -> str:
    """Ask for a name until one is a name."""
    while True:
        try:
            return check_name(_ask("Name (a-z, 0-9, hyphens; can never change)"))
        except InvalidInput as error:
            app.output.warn(error.line)


def _ask(question: str, default: str = "") -> str:
    with interruptible(NOTHING_WRITTEN):
        return str(click.prompt(question, default=default, show_default=bool(default), err=True))
