"""Intents made from a help text: the options that it lists, the operands of its usage. Pure.

The text is untrusted: it decides which options a call may set, never whether a value is an option.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from itertools import islice, pairwise, takewhile
from typing import Final

from capdex_router.commands.help import flags, lines, listed, needed, parse_help
from capdex_router.commands.intents.manifest import MAX_PARAMETERS, Intent
from capdex_router.commands.intents.template import OPTIONS, CommandTemplate, Parameter

MAX_USAGE_CHARS: Final = 16_000  # that of `isort` has 4 000
MAX_WORDS: Final = 6  # behind a command, so that a question shows it whole
MAX_TEXT_CHARS: Final = 120
# Commands that only read, with any of their options, in a directory that they cannot change.
READ_ONLY: Final = frozenset(("git diff", "git log", "git show", "git status", "jq"))
_USAGE: Final = re.compile(
    r"(?:^(?: *|.*\. )(?:usage|syntax|or)(?::|$)\s*|\A\s*(?=[\w.-]+ [\[<]))(?:\$ )?(\S+)"
    r"(.*(?:\n {7,}(?!\1 |or:)\S.*)*)(\n *\1 )?",
    re.IGNORECASE | re.MULTILINE,
)
_GROUP: Final = re.compile(r"\[([^\[\]]*)\]")
_SET: Final = re.compile(
    r"[(=]*-(?!-(?: |$))|=|\+(?:\||\w )"
)  # [-n NUM], [(-a | -b)], [=WHEN], [+c]
# An operand of several words: FILE..., and what ends a usage as [files] or COMMAND.
_SEVERAL: Final = re.compile(
    r"(?i)[ ?]*\.{2,3}|(?:(?<=[a-z][^\W_aisu]s)|(?<=command))(?=\W*(?: options)?\W*$)"
)
_OPTIONS: Final = re.compile(r"(?i)(?:.*\W)?(?:options?|flags|switches|expression)(?:\W*|[; ].*)")
_CHOICE: Final = re.compile(r"[ =?]*[{(\[]([\w-]+(?:[,|][\w-]+){1,63})[})\]].*")
_VALUES: Final = re.compile(r'(?:values|choices): ("?[\w.+-]+(?:"?, "?[\w.+-]+){1,63})"?[\])]')
_INTEGER: Final = re.compile(
    r"[^\w\[]*(?:n|num|number|int|integer|u?int(?:32|64)?|count)[^\w\[]*", re.IGNORECASE
)
_MANY: Final = re.compile(
    r"\.{3}| <?(?:list|strings?Array|strings|stringSlice|ints|[aA]rray)[\n\[]|=\[\]"
    r"| \[(?:String|Int)\]|multiple times|more than once|repeatable"
)
_PROSE: Final = re.compile(r" *(?!Copyright|Usage)[A-Z]\w+,? \S+ \w+.{,100}$(?<!:)")


def made(program: str, command: str, page: bytes, summary: str, *, writable: bool) -> Intent | None:
    """Return the intent of a command by its help, or None if that has no usage and no options.

    `command` is empty for the program itself. A person is asked at each call, unless the command is
    one of READ_ONLY and nothing is `writable`.
    """
    text = lines(page)
    found = list(_USAGE.finditer("\n".join(text)))
    matches = [x for x in found if x[1].rpartition("/")[2] == program] or found
    usages = [x for x in matches if re.match(rf" *{command}(?:[| ]|$)", x[2])] or matches
    forms = (re.sub(r"(?<=\S) {3,}.*", "", match[2]) for match in usages)
    rest = "\f".join(re.sub(rf" {command}(\|\S+)? ", " ", f"{form} ", count=1) for form in forms)
    rest, in_usage = _outlined(rest[:MAX_USAGE_CHARS])
    known = parse_help(page).options
    options = _options([*text, *in_usage], set(known))
    rest = re.sub(r"(?<= )(--?[\w-]+) \S+", lambda x: "" if known.get(x[1]) else x[0], rest)
    if not matches and not options:
        return None
    words = _words(rest, options, certain=len(matches) == 1 and not matches[0][3])
    written = " ".join(filter(None, (shlex.quote(program), command, *words)))
    operands = tuple(filter(None, words.values()))
    given = (*operands, *islice(options.values(), MAX_PARAMETERS - MAX_WORDS))
    named = f"{program} {command}".strip()
    prose = filter(_PROSE.match, takewhile(lambda line: not listed(line), text))
    about = f"{named}: {summary or next(prose, written).strip()}"[:MAX_TEXT_CHARS]
    asks = writable or named not in READ_ONLY
    template = CommandTemplate.parse(written, given)
    return Intent((), template, confirm=asks, idempotent=False, summary=about)


def _outlined(usage: str) -> tuple[str, list[str]]:
    """Return a usage without brackets, and the options that stood in them, a line each.

    A word that may be left out begins with "?" then, and `[OPTIONS]` is "options".
    """
    rest = re.sub(r"(?<=\[)\.{3}(?=\w)", "", usage.replace("(s)", "s"))
    rest = re.sub(r"<(\w+)(?:\|--[\w-]+(?: <\w+>)?)+>", r"[\1]", rest)
    rest = re.sub(r"<([^<>]{1,60})>", lambda match: re.sub(r"\W+", "_", match[1]), rest)
    rest = re.sub(
        r"\{[^{}|\n]{1,60} [^{}|\n]{1,60}\}", lambda x: re.sub(r"[^\w{}]+", "_", x[0]), rest
    )
    rest = re.sub(r"\[([^\[\]\s]*[:@])\](?=\w)", r"\1", rest)  # [HOST:]PORT
    rest = re.sub(r"(?<=\w)\[(:[^\[\]\s]*)\]|(?<= -\w)\[\w+\]", r"\1", rest)  # A[:B], -c[dfw]
    rest = re.sub(
        rf"(?<![\w-])(\w+)(?:\[(?!=|\.)(?:[^\[\]\s]|{_GROUP.pattern})*\])+", r"\1", rest
    )  # A[,B]
    rest = re.sub(r" < *\S+| \(-[^()]*\|([^()|]*)\)", r" [\1]", rest)  # (-f FILE | NAME)
    rest, options = rest.replace("[no-]", ""), []
    while group := _GROUP.search(rest):
        inner = group[1].strip()
        plain = " ".join(f"?{word.strip('?')}" for word in inner.split())
        if _SET.match(inner) and inner != "-options":
            options += flags(inner)
            plain = ""
        elif _OPTIONS.fullmatch(inner):
            plain = "options"
        rest = f"{rest[: group.start()]} {plain}{rest[group.end() :]}"
    return rest, options


def _options(text: list[str], known: set[str]) -> dict[str, Parameter]:
    """Return a parameter for each option that some lines list, by the names of the parameters."""
    parameters: dict[str, Parameter] = {}
    # A line far to the right goes on with a description, even one that begins with an option.
    for line, below in sorted(pairwise((*text, "")), key=lambda pair: pair[0][:16].isspace()):
        about = line.strip().partition("  ")[2].strip() or below.strip()
        for names in listed(line):
            first = max(names, key=lambda name: name.startswith("--"))
            form = needed(names)
            # [=NUM] of -U NUM, too; --force-<thing> has no space
            gap = "=" if "=" in names[first][:2] else "" if names[first][:1] == "<" else " "
            end = gap if form else ""
            option = _parameter(first, form, "" if about[:1] == "-" else about, first + end)
            if first in known:
                parameters.setdefault(option.name, option)
            known -= names.keys()
    return parameters


def _words(
    usage: str, options: dict[str, Parameter], *, certain: bool
) -> dict[str, Parameter | None]:
    """Return the words of a template behind its command, each operand with its parameter.

    An operand that the usage does not bracket is required if the usage is `certain`, the only one.
    """
    words: dict[str, Parameter | None] = {}
    order: list[str] = []
    for form in usage.split("\f"):
        found: dict[str, Parameter | None] = {}
        for word in _SEVERAL.sub("... ", re.sub(r" \| *\S+", "", form)).split():
            plain = word.strip("?(){}")
            sign = plain[0] if plain[:1] in ("+", "@") else ""  # [+FORMAT] of date
            plain = plain[len(sign) :]
            operand = _parameter(plain.lower(), word, f"begins with {sign}" if sign else "")
            name = f"{operand.name}_" if operand.name in options else operand.name
            placeholder = f"{{{name}}}"
            if plain == "--" or _OPTIONS.fullmatch(plain):
                found[plain if plain == "--" else OPTIONS] = None
            elif re.match(r"\w", plain) and len(words.keys() | found) < MAX_WORDS:
                kind = "array<string>" if placeholder in found else operand.type
                needs = certain and word[0] not in "?{"
                found[placeholder] = replace(operand, name=name, type=kind, required=needs)
        place = len(order)
        for word in reversed(found):  # what another form adds stands before the word behind it
            if word not in order:
                order.insert(place, word)
            place = order.index(word)
        lists = {word: operand for word, operand in found.items() if operand and operand.item_type}
        words = {**found, **words, **lists}
    if OPTIONS not in words:
        order.insert(0, OPTIONS)
    return {word: words.get(word) for word in order}


def _parameter(name: str, value: str, text: str = "", option: str = "") -> Parameter:
    many = value and _MANY.search(f"{value}\n{text}")
    choice = not many and (_CHOICE.fullmatch(value) or (value and _VALUES.search(text)))
    whole = not choice and _INTEGER.fullmatch(value)
    kind = "integer" if whole else "string" if value else "boolean"
    return Parameter(
        re.sub(r"\W+|^(?=\d)", "_", name.strip("-."), flags=re.ASCII)[:32],
        f"array<{kind}>" if many else kind,
        description=text[:MAX_TEXT_CHARS],
        enum=tuple(re.findall(r"[\w.+-]+", choice[1])) if choice else (),
        option=option,
    )
