"""Words of a request in English: stems, groups of one meaning, and what speaks against acting.

Pure. The lists err on the side of asking back.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from capdex.search.analyser import stem

MAX_WORDS: Final = 24  # of a sentence that may reach a guarded intent
_QUOTE: Final = re.compile(r"""["«»“”„]|(?<!\w)'|'(?!\w)""")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for phrase in text.split("|"))


# Words of one group count as the same word. The first of each names the group.
_GROUPS: Final = (
    "delete remove trash erase purge discard bin wipe destroy drop toss dump ditch scrap shred",
    "email mail message gmail",
    "restore recover undelete undo unremove retrieve revert",
    "search find grep look locate",
    "show list display",
    "check status state",
    "count many number total",
    "unread new",
    "file document",
)
_GROUP: Final = {stem(word): words.split()[0] for words in _GROUPS for word in words.split()}
_EMPTY: Final = _set(
    """
    a an the my our your his her their its of in on at by for from to with and please these
    those this that some all any is are am be do does did have has had i you we me us it them
    they can could would will what which there here now just hey hi hello ok okay let let's
    how
    """
)

# Commands that change or remove something, in patterns and command templates.
GUARDED: Final = _set(
    """
    delete remove trash erase purge wipe drop destroy format reset kill overwrite uninstall
    revoke clean clear rm rmdir unlink truncate shred discard prune terminate deactivate send
    pay transfer publish
    """
)
_REMOVALS: Final = frozenset(_GROUPS[0].split())
NEGATIONS: Final = _set(
    """
    not no never none nothing nobody neither nor cannot without dont doesnt didnt cant couldnt
    wont wouldnt shouldnt mustnt isnt arent wasnt havent hasnt nope nah aint unable hardly
    refrain avoid refuse forbid prevent
    nicht kein keine keinen keinem keiner nie niemals nein ohne pas jamais aucun aucune non rien
    nunca jamas jamás ningun ningún ninguno ninguna nada sin não nao nenhum nenhuma sem mai niente
    nessun nessuno niet geen nooit nee ikke ingen aldri aldrig nej inte inga älä ei nem ne nu ani
    değil hayır yok
    """
)
# A sentence with one of these is a question, a report, a condition, a doubt, a change of mind, a
# time to come, or about a command; it is not a plain order.
DOUBTS: Final = _set(
    """
    how why what who whom whose when where whether if unless until before after once while
    whenever later tomorrow someday eventually soon next tonight tonight's was were did had
    would should could might may must been being is's isn't will shall but except however
    although though instead rather otherwise else than keep save spare leave wait stop cancel
    abort hold halt pause ignore forget nevermind scratch actually oops sorry kidding joking
    joke test pretend simulate simulation imagine suppose hypothetically preview dry explain
    describe tell say says said ask asks asked mean means meaning example wonder think maybe
    perhaps possibly probably consider bad wrong mistake mistaken mistakenly accident
    accidentally accidental idea advice warn warning dangerous danger risk risky safe unsafe
    button command option function feature policy documentation docs manual help intent
    permission history log logs setting settings key keyboard shortcut menu dialog
    confirmation prompt phrase word words sentence title subject called named undo restore
    recover undelete revert retrieve back rollback undoing unremove untrash rescue resurrect
    reinstate
    """
)
_OPENINGS: Final = _phrases(
    """
    please | kindly | just | now | then | ok | okay | yes | hi | hey | hello | right |
    alright | great | thanks | so | and | go ahead and | go on and | i want to | i want
    you to | i need to | i need you to | i would like to | i'd like to | i would like you
    to | i'd like you to | let's | let us | help me | help me to | time to | it's time to
    | be so kind as to | you can now | immediately | quickly | permanently | first |
    finally | lets | id like to | i wish to | thank you | assistant | router
    """
)
_REQUESTS: Final = _phrases("can you | could you | can we")
_QUESTIONS: Final = _phrases("would you | will you")
_LEADING: Final = sorted((*_OPENINGS, *_REQUESTS, *_QUESTIONS), key=len, reverse=True)
_POINTING: Final = frozenset(("these", "those", "this"))
_PHRASES: Final = (
    (re.compile(r"\bget rid of\b"), "delete"),
    (re.compile(r"\bthrow (?:away|out)\b"), "delete"),
    (re.compile(r"\bthrow (.{1,80}?) (?:away|out)\b"), r"delete \1"),
    (re.compile(r"\bbring (.{0,80}?) ?back\b"), r"restore \1"),
    (re.compile(r"\bput (.{0,80}?) ?back\b"), r"restore \1"),
    (re.compile(r"\bget (.{0,80}?) ?back\b"), r"restore \1"),
    (re.compile(r"\be-mail"), "email"),
)


def plain(text: str) -> str:
    """Return a text in lower case, in one form of each letter, without invisible characters."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = "".join(" " if c.isspace() else c for c in text if unicodedata.category(c) != "Cf")
    for quote in "’‘ʼ`´":
        text = text.replace(quote, "'")
    for pattern, word in _PHRASES:
        text = pattern.sub(word, text)
    return text


def words(text: str) -> list[str]:
    """Return the words of a plain text, in order."""
    return _WORD.findall(text)


def meaning(word: str) -> str:
    """Return the group of a word, or its stem."""
    return _GROUP.get(stem(word), stem(word))


def meanings(tokens: list[str]) -> frozenset[str]:
    """Return the groups and stems of the words that carry a meaning; of all, if none does."""
    full = [word for word in tokens if word not in _EMPTY]
    return frozenset(map(meaning, full or tokens))


def negates(tokens: list[str]) -> bool:
    """Return True if one of the words negates."""
    return any(word in NEGATIONS or word.endswith("n't") for word in tokens)


def orders(text: str, verbs: frozenset[str]) -> bool:
    """Return True if a plain text is an order, now, to do one of the `verbs`, and nothing else.

    `verbs` are in their base form; a removal may be said by any word for it.
    """
    tokens = words(text)
    if not tokens or len(tokens) > MAX_WORDS or negates(tokens):
        return False
    # Letters beyond the Latin ones: a negation in them would not be known.
    if any(char.isalpha() and char > "\u024f" for char in text):
        return False
    rest, asked = _after_opening(tokens)
    wanted = verbs | (_REMOVALS if verbs & _REMOVALS else frozenset())
    if not rest or rest[0] not in wanted or _QUOTE.search(text[: text.find(rest[0])]):
        return False
    tail = rest[1:]
    # "can you delete emails" asks about an ability, "would you delete these emails" about a will.
    polite = "please" in tokens or (asked == "ability" and bool(_POINTING.intersection(tail)))
    if (asked or "?" in text) and not (asked and polite):
        return False
    return not DOUBTS.intersection(tail) and not _states(tail)


def _after_opening(tokens: list[str]) -> tuple[list[str], str]:
    rest, asked, moved = tuple(tokens), "", True
    while moved:
        moved = False
        for phrase in _LEADING:
            if rest[: len(phrase)] == phrase:
                rest, moved = rest[len(phrase) :], True
                asked = "ability" if phrase in _REQUESTS else asked
                asked = "will" if phrase in _QUESTIONS else asked
                break
    return list(rest), asked


def _states(tail: list[str]) -> bool:
    # "delete emails is a verb" states something; "delete emails that are old" does not.
    return any(
        word in ("is", "are", "am", "has", "have", "does", "do")
        and (i == 0 or tail[i - 1] not in ("that", "which", "i", "we"))
        for i, word in enumerate(tail)
    )
