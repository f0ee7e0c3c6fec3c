"""How an MCP server is reached: by a URL, by a command, or as the file of a host says (P10).

The files are those of the hosts in docs/router.md: JSON with comments or without, TOML and YAML.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capdex.errors import InvalidInput, UsageError
from capdex.json import Json, object_of, objects_in
from capdex.manifest.urls import url_fault
from capdex_publisher.authoring.imports.report import clean, name_of
from capdex_publisher.authoring.imports.source import WEB, parse, read_file, shown, utf8
from capdex_publisher.authoring.scaffold import placeholder_url
from capdex_publisher.authoring.secret_shapes import secret_like

MAX_NAMED: Final = 40  # servers in an error

_FILES: Final = (".json", ".jsonc", ".toml", ".yaml", ".yml")
_LISTS: Final = ("mcpServers", "servers", "mcp_servers", "context_servers", "amp.mcpServers")
_LAST_LISTS: Final = ("mcp", "extensions")  # of OpenCode and Goose; to others they say more
_COMMANDS: Final = ("command", "cmd")
_ENVS: Final = ("env", "environment", "envs")
_URLS: Final = ("url", "httpUrl", "serverUrl", "uri")  # of Gemini CLI, Windsurf, Goose
_HEADERS: Final = ("headers", "http_headers", "env_http_headers")
_BEARER: Final = "bearer_token_env_var"
_READ: Final = frozenset(["args", "cwd", *_COMMANDS, *_ENVS, *_URLS, *_HEADERS, _BEARER])
# Words about the host alone: neither the server nor its tools are others for them.
_OF_HOST: Final = re.compile(
    "type|transport|name|title|description|disabled|enabled|required|trust|version|gallery|dev|icon"
    "|alwaysAllow|autoApprove|source|.*[tT]ime_?out.*|env_vars|env_keys|bundled|display_name"
)
_HOST_FOLDERS: Final = (".vscode", ".cursor", ".gemini", ".codex", ".claude")
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BRACED: Final = re.compile(r"(?:\$|(?=\{env:))\{([^{}]*)\}")  # OpenCode writes {env:NAME}
_VARIABLE: Final = re.compile(rf"{_BRACED.pattern}|\$([A-Za-z_][A-Za-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its URL, or the command that starts it with these variables in this folder.

    `shown` is what an error calls it, without the values of variables, which may be keys.
    `headers` and `unread` are names of what the file says, and an import does not use.
    """

    shown: str
    url: str = ""
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    headers: Sequence[str] = ()
    unread: Sequence[str] = ()


def server_of(source: str) -> Server:
    """Return the server of a URL, of a command, or of a file that has one.

    Raises UsageError for a command that cannot be read, for a file with several servers or none,
    and for a value that the file takes from elsewhere and that is not set.
    """
    if source.startswith(WEB):
        return Server(shown(source), source)
    path = Path(source)
    if path.suffix in (".mcpb", ".dxt"):
        what, fix = "it is a ZIP file", "unpack it, and give the manifest.json in it"
        raise UsageError(f"{source} is no command of an MCP server", why=what, fix=fix)
    if path.suffix not in _FILES or (" " in source and not path.is_file()):
        return _of_command(source)
    value = _parsed(path)
    entries = listed(value)
    if len(entries) == 1:
        return _of_entry(next(iter(entries.values())), path, value)
    raise _several(source, value, entries)


def public_address(url: str) -> str:
    """Return the URL of a server as others call it; where they cannot, or it has a key: an example.

    The example is a line to edit.
    """
    has_key = next(secret_like({"tool_bindings": {"": {"url": url}}}), None)
    return placeholder_url("mcp") if url_fault(url) or has_key else url


def listed(value: Json) -> dict[str, Json]:
    """Return the entries of the servers in a file of a host, by name."""
    bundle = value.get("server")
    if isinstance(bundle, dict) and _is_entry(bundle.get("mcp_config")):
        return {str(value.get("name")): bundle["mcp_config"]}  # manifest.json of an MCP bundle
    holders = [value, object_of(value.get("mcp"))]  # the second in the settings of VS Code
    lists = [holder.get(word) for holder in holders for word in _LISTS]
    named = {x.get("name"): x for x in objects_in(value.get("mcpServers"))}  # Continue has a list
    for entries in [named, *lists, *(value.get(x) for x in _LAST_LISTS)]:
        servers = {str(x): _flat(y) for x, y in object_of(entries).items() if _is_entry(y)}
        if servers:
            return servers
    return value if all(map(_is_entry, value.values())) else {}  # of a plugin of Claude Code


def _flat(entry: Json) -> Json:
    """Return an entry with its command as one word, which older files of Zed have as an object."""
    command = entry.get("command")
    if not isinstance(command, dict):
        return entry
    return {**entry, **{x: command.get(x) for x in ("args", "env")}, "command": command.get("path")}


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and bool(_words(value) or _url(value))


def is_server(value: Json) -> bool:
    """Return True for a server.json of the MCP registry."""
    return "remotes" in value or ("packages" in value and "name" in value)


def _of_command(text: str) -> Server:
    """Return the server of a command, with variables in front of it as in a shell."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        what, fix = f"the command {text!r} cannot be read", "close each quotation that is opened"
        raise UsageError(what, why=str(error), fix=fix) from None
    first = next((i for i, x in enumerate(words) if not _ASSIGNED.match(x)), len(words))
    if not words[first:]:
        raise UsageError("--from-mcp is empty", fix="give a URL, or the command of a server")
    variables = dict(x.split("=", 1) for x in words[:first])
    shown = shlex.join(words[first:]) if variables else text
    return Server(shown, command=words[first:], env=variables)


def _parsed(path: Path) -> Json:
    data = read_file(path)
    if path.suffix != ".toml":
        return object_of(parse(data, str(path)))
    try:
        return tomllib.loads(utf8(data)[0].decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = f"it is not TOML: {error}"
        raise InvalidInput(f"{path} cannot be read", why=why, fix="correct the file") from None


def _words(entry: Json) -> list[str]:
    command, given = _first(entry, _COMMANDS), entry.get("args")
    words = command if isinstance(command, list) else [command] if command else []
    more = given if isinstance(given, list) else [given] if given else []
    return [_text(x) for x in [*words, *more]] if words else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _url(entry: Json) -> str:
    return str(_first(entry, _URLS) or "")


def _env(entry: Json) -> dict[str, str]:
    variables = object_of(_first(entry, _ENVS))
    return {str(x): _text(y) for x, y in variables.items() if y is not None}


def _first(entry: Json, words: Sequence[str]) -> Any:
    return next((entry[x] for x in words if entry.get(x)), None)


def _line(entry: Json) -> str:
    """Return the URL or the command line of an entry, with VALUE for each of its variables."""
    words = [f"{x}=VALUE" for x in _env(entry)] + _words(entry)
    url, *words = (_BRACED.sub("VALUE", x) for x in [_url(entry), *words])
    return url or shlex.join(words)


def _of_entry(entry: Json, path: Path, value: Json) -> Server:
    folder = path.resolve().parent
    folder = folder.parent if folder.name in _HOST_FOLDERS else folder
    values = _Values(folder, value)
    words, url = [values.told(x) for x in _words(entry)], values.told(_url(entry))
    env = {x: values.told(y, bare=True) for x, y in _env(entry).items()}
    cwd = values.told(str(entry.get("cwd") or ""))
    if values.missing:
        raise UsageError(
            f"{path} takes values from elsewhere that are not set",
            why=", ".join(f"${{{clean(x)}}}" for x in values.missing),
            fix="set these variables, or give the command with its values: capdex init --from-mcp "
            + shlex.quote(_line(entry)),
        )
    held = [entry[x] for x in _HEADERS if isinstance(entry.get(x), dict)]
    headers = [clean(name) for names in held for name in names]
    headers += ["Authorization"] if entry.get(_BEARER) else []
    unread = [clean(x) for x in entry if x not in _READ and not _OF_HOST.fullmatch(str(x))]
    if url:
        return Server(shown(_url(entry)), url, headers=headers, unread=unread)
    where = folder / cwd if cwd else None
    return Server(shlex.join(_words(entry)), "", words, env, where, headers, unread)


class _Values:
    """What stands for `${…}` in a file: variables of the shell, folders, and inputs of VS Code."""

    def __init__(self, folder: Path, value: Json) -> None:
        self.missing: list[str] = []
        self._known = {
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "userHome": str(Path.home()),
            "CLAUDE_PLUGIN_ROOT": str(folder),
            "__dirname": str(folder),  # of an MCP bundle
            "extensionPath": str(folder),  # of Gemini CLI
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        folders = ("Desktop", "Documents", "Downloads")
        self._known |= {x.upper(): str(Path.home() / x) for x in folders}
        for name, setting in object_of(value.get("user_config")).items():  # of an MCP bundle
            if isinstance(default := object_of(setting).get("default"), str | int | float):
                self._known[f"user_config.{name}"] = self.told(_text(default))
        for variable in objects_in(value.get("inputs")):
            if variable.get("default"):
                self._known[f"input:{variable.get('id')}"] = str(variable["default"])

    def told(self, text: str, *, bare: bool = False) -> str:
        """Return a text with its variables told; `bare`: also those without braces."""

        def value(match: re.Match[str]) -> str:
            if match[1] is None:
                return os.environ.get(match[2], match[0]) if bare else match[0]
            name, has_default, default = match[1].partition(":-")
            known = self._known.get(name) or os.environ.get(name.removeprefix("env:"))
            if known is None and not has_default:
                self.missing += [match[1]] if match[1] not in self.missing else []
                return "VALUE"
            return known or default

        return _VARIABLE.sub(value, text)


def _several(source: str, value: Json, entries: Mapping[str, Json]) -> UsageError:
    if not entries and is_server(value):
        ways = list(_ways(value))
        return UsageError(
            f"{source} describes a server of the MCP registry, and lists no tools",
            why="they are asked for at the server's URL, or of the command that starts it",
            fix="; or ".join(f"capdex init --from-mcp {shlex.quote(clean(x))}" for x in ways)
            or "give the URL of the server, or its command",
        )
    return UsageError(
        f"{source} lists {len(entries)} MCP servers; a package is made of one",
        why=", ".join(map(clean, entries)) or "none in it has a command or a URL",
        fix="; or ".join(
            f"capdex init {name_of(name) or 'NAME'} --from-mcp {shlex.quote(_line(entry))}"
            for name, entry in list(entries.items())[:MAX_NAMED]
        )
        or "give the URL of a server, or its command",
    )


def _ways(value: Json) -> Iterator[str]:
    """Yield the URLs and commands of a server.json of the MCP registry."""
    commands = {"npm": "npx -y", "pypi": "uvx"}
    yield from (str(x["url"]) for x in objects_in(value.get("remotes")) if x.get("url"))
    for package in objects_in(value.get("packages")):
        command = commands.get(str(package.get("registryType")), "COMMAND")
        version = f"@{x}" if (x := package.get("version")) and command != "COMMAND" else ""
        yield f"{command} {package.get('identifier')}{version}"
