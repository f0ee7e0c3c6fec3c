"""The arguments of an operation: their schemas, and where each is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from typing import Any, Final
from urllib.parse import unquote_plus

from capdex.json import Json, object_of
from capdex.manifest.bindings.http_auth import SECRET_WORDS
from capdex.manifest.bindings.http_header import header_fault
from capdex.manifest.bindings.http_request import JSON
from capdex_publisher.authoring.imports.openapi import forms, swagger
from capdex_publisher.authoring.imports.openapi.document import ApiDocument, Operation, Unsendable
from capdex_publisher.authoring.imports.openapi.security import carrier, check_together, secret_name
from capdex_publisher.authoring.imports.references import beside, is_read_only, united
from capdex_publisher.authoring.imports.report import clean, without_marks, written
from capdex_publisher.authoring.imports.schemas import Resolver

_IS_JSON: Final = re.compile(r"application/(?:[\w.+-]+\+)?json", re.ASCII)
_AS_JSON: Final = ("*/*", "application/*", "text/json")  # sent as JSON, and said
_MAX_KEY_CHARS: Final = 64  # of an argument that a placeholder names
_SWITCHES: Final = ("required", "explode", "allowReserved")  # of a parameter or a body
_UTF8: Final = re.compile(r"\s*charset\s*=\s*\"?utf-?8\"?\s*", re.IGNORECASE)
_IGNORED: Final = ("accept", "content-type")  # OpenAPI 3.1, 4.8.12.2
_NO_STYLE: Final = "lists are repeated, objects are JSON text, and texts have no quotation marks"


class Arguments:
    """What a call of an operation sends; raises Unsendable for what no tool can send, and TooLarge.

    `rules` has the places that are not a parameter's usual one; `plain` is False if only the
    binding type `http` can say them; `in_path` has the names of placeholders.
    """

    def __init__(self, document: ApiDocument, operation: Operation, secrets: list[Json]) -> None:
        self._document, self._operation = document, operation
        self._schemas = Resolver(document.value, old=document.is_old)
        self._usual = "query" if operation.method in ("get", "delete") else "body"
        self.secrets = secrets
        self.properties: Json = {}
        self.required: list[str] = []
        self.rules: Json = {}
        self.in_path: dict[str, str] = {}
        self.body: Json | None = None
        self.more: bool | None = None  # True: other members are welcome; False: there are none
        self.about = ""  # what the document says of all members of the body together
        self.plain = True
        in_path = operation.path.partition("#")[0].partition("?")[2]
        named = {unquote_plus(x.partition("=")[0]).lower() for x in in_path.split("&")}
        self._fixed = named - {""}  # a router takes `Type` for `type`, as some servers do
        listed = self._listed()
        for item in listed:
            self._add_parameter(item)
        value = operation.value.get("requestBody")
        if document.is_swagger:
            if {"body", "formData"} <= {str(x.get("in")) for x in listed}:
                raise Unsendable("body", "Swagger 2.0 allows body or formData, not both")
            value = swagger.body(document.value, operation.value, listed)
        if value is not None:
            body = self._described("body", value)
            with self._leaving_out(body.get("required") is True):
                self._read_body(*self._media_type(body), body)

    def schema(self) -> Json:
        """Return the schema of all arguments."""
        made: Json = {"type": "object", "properties": self.properties}
        if self.required:
            made["required"] = list(dict.fromkeys(self.required))
        if self.about:
            made |= self._schemas.schema({"description": self.about})
        if self.more is not None:
            made["additionalProperties"] = self.more
        if definitions := self._schemas.definitions():
            made["$defs"] = definitions
        for row in self._schemas.lost:
            self._operation.note(*row)
        return made

    def _listed(self) -> list[Json]:
        """Return the parameters of path and operation; those of the operation are stronger."""
        merged: dict[tuple[str, str], Json] = {}
        for holder in (self._operation.item, self._operation.value):
            listed, own = holder.get("parameters", []), set[tuple[str, str]]()
            if not isinstance(listed, list):
                raise Unsendable("parameters", "they are no list", str(listed)[:80])
            for item in listed:
                parameter = self._described("parameter", item)
                place, name = str(parameter.get("in")), parameter["name"]
                key = place, name.lower() if place == "header" else name
                if key in own:
                    why = "it stands twice, and the last one is taken"
                    first = str(merged[key]["name"])
                    self._operation.note(f"{place} {first}", "left out", "", why)
                own.add(key)
                merged[key] = parameter
        return list(merged.values())

    def _described(self, what: str, given: object) -> Json:
        """Return a parameter or a body, with the description that stands beside a reference."""
        target = self._document.target(given)
        is_named = what == "body" or isinstance(object_of(target).get("name"), str)
        if not isinstance(target, dict) or not is_named:
            where = str(object_of(given).get("$ref", ""))
            raise Unsendable(what, "the document does not describe it", where)
        for word in [x for x in _SWITCHES if not isinstance(target.get(x, True), bool)]:
            why = "it is neither true nor false (in YAML, yes and no are text)"
            subject = f"{target.get('in')} {target['name']}" if "name" in target else "body"
            self._operation.note(subject, "left out", written({word: target[word]}), why)
        own = beside(self._document.value, given).get("description")
        return target if own is None or self._document.is_old else {**target, "description": own}

    def _add_parameter(self, item: Json) -> None:
        place, name = str(item.get("in")), item["name"]
        if self._document.is_swagger:
            if place in ("body", "formData"):
                return
            item = swagger.parameter(item)
        if why := self._unsent(place, name):
            self._operation.note(f"{place} {name}", "left out", "", why)
            return
        needed = item.get("required") is True or place == "path"
        with self._leaving_out(needed, f"{place} {name}"):
            self._carry(place, name, item, needed)

    @contextmanager
    def _leaving_out(self, needed: bool, subject: str = "") -> Iterator[None]:
        """Leave out what cannot be sent, and say so; raise Unsendable if it is needed."""
        try:
            yield
        except Unsendable as fault:
            subject = subject or fault.subject
            if needed:
                raise Unsendable(subject, fault.why, fault.before) from None
            self._operation.note(subject, "left out", fault.before, fault.why)

    def _unsent(self, place: str, name: str) -> str:
        """Return why a parameter is never sent, empty if it may be."""
        word, is_header = name.lower(), place == "header"
        if is_header and self._document.is_swagger and word == "content-type":
            return "the media type of the body says it"
        if is_header and not self._document.is_swagger and word in _IGNORED:
            return "OpenAPI ignores parameters of this name"
        if place == "path" and f"{{{name}}}" not in self._operation.path:
            return "the path has no such place"
        return "the path has its value" if place == "query" and word in self._fixed else ""

    def _carry(self, place: str, name: str, item: Json, needed: bool) -> None:
        if not name.strip():
            raise Unsendable("", "it has no name")
        auth: Json = {"type": place, "name": name}
        taken = map(carrier, [{"type": "bearer"}, *self.secrets])
        is_secret = SECRET_WORDS.fullmatch(name) or carrier(auth) in taken
        if is_secret and place in ("query", "header", "cookie"):
            self._add_secret(auth, needed)
            return
        if place == "header" and (fault := header_fault(name)):
            raise Unsendable("", fault)
        if place not in ("path", "query", "header"):
            raise Unsendable("", f"a binding sends no parameter in {place}")
        if content := object_of(item.get("content")):
            item = self._of_content(place, name, item, content)
            rule: Json = {"content": JSON}
        else:
            rule = self._style(place, name, item, item.get("schema", {}))
        schema, told = item.get("schema", {}), str(item.get("description") or "")
        examples = self._examples(f"{place} {name}", item)
        key = self._add(place, name, schema, rule, told, examples)
        if item.get("deprecated") is True:
            self.properties[key]["deprecated"] = True
        if needed:
            self.required.append(key)
        if place == "path":
            if key != name and rule.get("style") == "matrix":
                raise Unsendable("", f"matrix sends its name, and the argument is {key}", name)
            self.in_path[name] = key

    def _of_content(self, place: str, name: str, item: Json, content: Json) -> Json:
        """Return a parameter with what the media type says that its value is written in."""
        kind, media = next(iter(content.items()))
        if not _IS_JSON.fullmatch(_bare(kind)):
            raise Unsendable("", "a parameter's content is carried as JSON alone", kind)
        item = {"schema": None, **item, **self._media(media)}
        if forms.kinds(self._document, item["schema"]) == forms.SCALAR:
            why = "a text is sent in quotation marks, as JSON"
            self._operation.note(f"{place} {name}", "changed", kind, why)
        return item

    def _examples(self, subject: str, holder: Json) -> list[Any]:
        """Return the examples of a parameter or of a media type, which are before its schema's."""
        examples = [holder["example"]] if "example" in holder else []
        for name, given in object_of(holder.get("examples")).items():
            example = object_of(self._document.target(given))
            words = [x for x in ("value", "dataValue") if x in example]
            if not words:  # OpenAPI 3.2 has values as the service gets them, too
                why = "its value is not in the document"
                self._operation.note(f"{subject} example", "left out", name, why)
            examples += [example[x] for x in words[:1] if example[x] not in examples]
        return examples

    def _style(self, place: str, name: str, item: Json, schema: object) -> Json:
        """Return how a value is written, and say what of it is not as `item` says."""
        rule, said = forms.rule(self._document, place, item, schema)
        if said:
            before = str(item.get("style", "its style"))
            self._operation.note(f"{place} {name}", "changed", before, said)
        if item.get("allowReserved") is True and place != "header":  # where nothing is encoded
            why = "reserved characters are percent-encoded"
            self._operation.note(f"{place} {name}", "changed", "allowReserved", why)
        return rule

    def _add_secret(self, auth: Json, needed: bool) -> None:
        same = [x["secret"] for x in self.secrets if carrier(x) == carrier(auth)]
        own = same[0] if same else secret_name(auth["name"], self.secrets)
        if not same:
            secret = {**auth, "secret": own}
            made = [*self.secrets, secret if needed else {**secret, "optional": True}]
            check_together(made)
            self.secrets = made
        why = f"the secret {own}, which no model is asked for"
        self._operation.note(f"{auth['type']} {auth['name']}", "changed", "a parameter", why)

    def _media_type(self, body: Json) -> tuple[str, Json]:
        """Return the media type to send: JSON, a list of patches after any other, then a form."""
        content = object_of(body.get("content"))
        bare = {key: _bare(key) for key in content}
        listed = ", ".join(content)
        if self._operation.method == "get":
            raise Unsendable("body", "a GET request has no body", listed)
        tests = (
            lambda x: x == JSON,
            lambda x: _IS_JSON.fullmatch(x) and x != "application/json-patch+json",
            lambda x: _IS_JSON.fullmatch(x) or x in _AS_JSON,
            lambda x: x == swagger.FORM,
        )
        key = next((name for test in tests for name in content if test(bare[name])), None)
        if key is None:
            raise Unsendable("body", "a binding sends JSON or a form", listed or "of no media type")
        if len(content) > 1:
            self._operation.note("body", "changed", listed, f"sent as {key}")
        kind = JSON if bare[key] in _AS_JSON else bare[key]
        _, semicolon, parameters = key.partition(";")
        if kind != bare[key] or (semicolon and not _UTF8.fullmatch(parameters)):
            self._operation.note("body", "changed", key, kind)
        return kind, self._media(content[key])

    def _media(self, given: object) -> Json:
        """Return what a media type says; OpenAPI 3.2 has references to one."""
        media = self._document.target(given)
        if isinstance(given, dict) and not isinstance(media, dict):
            raise Unsendable("", "the document does not describe it", str(given["$ref"]))
        return object_of(media)

    def _read_body(self, kind: str, media: Json, body: Json) -> None:
        schema, needed = media.get("schema", {}), body.get("required") is True
        is_form = kind == swagger.FORM
        encoding = media.get("encoding") if is_form else None
        described = clean(body.get("description"))
        examples = self._examples("body", media)
        flat = forms.properties(self._document, schema)
        if flat is None or (flat.more and self._usual == "query"):  # members have no place there
            if is_form and "object" not in forms.kinds(self._document, schema):
                raise Unsendable("body", "a form is an object", kind)
            if encoding:
                self._operation.note("body", "changed", "its encoding", _NO_STYLE)
            key = self._add("body", "body", schema, {}, described, examples)
            self.rules.pop(key, None)
            self.body = {"content": kind, "parameter": key}
            self.plain = False
            self.required += [key] if needed else []
            return
        fields = list(self._fields(flat, object_of(encoding)))
        self.body = {"content": kind}
        if not needed:
            why = "a body is always sent, without members if none is given"
            self._operation.note("body", "changed", "optional", why)
        self.plain = self.plain and not is_form
        self.more = flat.more
        self.about = described or clean(self._document.target(schema).get("description"))
        parts = united(self._document.value, schema, old=self._document.is_old)
        for part in parts:
            self._schemas.discriminator(part)
        if flat.more is not False and any(x.get("additionalProperties") is False for x in parts):
            why = "members of the other parts are sent, too"
            self._operation.note("schema word additionalProperties", "changed", "false", why)
        for name, value, rule in fields:
            own = [x[name] for x in map(object_of, examples) if name in x]
            key = self._add("body", name, value, rule, "", own)
            if name in flat.required:
                self.required.append(key)

    def _fields(self, flat: forms.Properties, encoding: Json) -> Iterator[tuple[str, object, Json]]:
        """Yield the members of a body with their places; raises Unsendable for a required one."""
        secrets = {x["name"].lower() for x in self.secrets if x["type"] == "query"}
        taken = self._fixed | secrets
        for name, value in flat.schemas.items():
            if is_read_only(value, self._document.value, old=self._document.is_old):
                self._operation.note(f"body {name}", "left out", "readOnly", "the service sets it")
                continue
            own = object_of(encoding.get(name))
            rule: Json = {}
            with self._leaving_out(name in flat.required, f"body {name}"):
                if name.lower() in taken:
                    why = "the query has this name, and a server may take one for the other"
                    raise Unsendable("", why)
                if own.keys() & {"style", "explode", "allowReserved"}:
                    rule = self._style("body", name, own, value)
                elif own.get("contentType", "text/plain") != "text/plain" and (
                    own["contentType"] != JSON or forms.kinds(self._document, value) != {"object"}
                ):
                    before = str(own["contentType"])
                    self._operation.note(f"body {name}", "changed", before, _NO_STYLE)
                yield name, value, rule

    def _add(
        self, place: str, name: str, schema: object, rule: Json, told: str, examples: list[Any]
    ) -> str:
        """Add an argument; return the name that it has in the tool."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", without_marks(name)).strip("_")[:60] or place
        keys = chain([plain, f"{plain}_{place}"], (f"{plain[:50]}_{i}" for i in count(2)))
        key = next(x for x in keys if x not in self.properties and len(x) <= _MAX_KEY_CHARS)
        if SECRET_WORDS.fullmatch(name):
            why = f"an argument, which a model is asked for: no secret is sent in a {place}"
            self._operation.note(f"{place} {name}", "changed", "a secret by its name", why)
        copied = self._schemas.schema(schema)
        made: Json = copied if isinstance(copied, dict) else {} if copied else {"not": {}}
        own, told = made.get("description", ""), clean(told)
        text = told if own in told else own if told in own else f"{told} {own}"
        if key != name:
            self._operation.note(f"{place} {name}", "changed", name, f"the argument {key}")
            text = f"{clean(name)}: {text}".removesuffix(": ")
        more = {"description": text, "examples": examples}
        made |= self._schemas.schema({key: x for key, x in more.items() if x})
        self.properties[key] = made
        self.plain = self.plain and not rule
        if place == "path":
            if rule:
                self.rules[key] = {"in": "path", **rule}
        elif rule or key != name or place != self._usual:
            self.rules[key] = {"in": place, "name": name, **rule}
        return key


def _bare(media_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()
