"""Characters that a package may not hold, because they are unseen or read differently (P7).

The ranges are written out rather than asked from `unicodedata`: a verdict may not change with the
version of Python that gives it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from unicodedata import category

# Controls but tab and line feed; line and paragraph separators, which PyYAML takes for line ends.
_BREAKS_AND_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"
# Default_Ignorable_Code_Point (DerivedCoreProperties.txt): joiners, bidi controls, variation
# selectors, fillers, tags; and the interlinear annotation marks.
_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_NOT_CHARACTERS = r"\ud800-\udfff\ufdd0-\ufdef" + "".join(
    rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(17)
)
_SUSPECT = re.compile(f"[{_BREAKS_AND_CONTROLS}{_INVISIBLE}{_NOT_CHARACTERS}]")
# Characters that show nothing although a package may hold them: a pattern of Braille without
# dots, a note without a head, a filler of Khitan.
BLANK = frozenset("\u2800\U0001d159\U00016fe4")
_PLAIN = bytes([*b"\t\n", *range(0x20, 0x7F)])

# Characters with an emoji form (emoji-variation-sequences.txt, emoji-data.txt), by block.
_EMOJI = re.compile(
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf"
    r"\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# Scripts that spell with joiners (RFC 5892, Appendix A; The Unicode Standard, 23.2): Arabic and its
# kin, the Indic scripts, South East Asia, Mongolian.
_JOINING = re.compile(
    r"[\u0620-\u06ff\u0700-\u074f\u0750-\u077f\u07c0-\u07ff\u0840-\u08ff\u0900-\u0dff"
    r"\u0e80-\u0fff\u1000-\u109f\u1700-\u18af\u1a20-\u1aaf\u1b00-\u1c4f\ua800-\ua82f"
    r"\ua840-\ua8ff\ua980-\ua9ff\uaa60-\uaa7f\uabc0-\uabff"
    r"\U00010a00-\U00010a5f\U00010ac0-\U00010aff\U00010d00-\U00010d3f\U00011000-\U00011fff"
    r"\U0001e900-\U0001e95f]"
)
_MONGOLIAN = re.compile(r"[\u1800-\u180a\u1810-\u18af]")

_ZWNJ, _ZWJ, _EMOJI_STYLE, _KEYCAP = "\u200c", "\u200d", "\ufe0f", "\u20e3"
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]+$")  # two letters of it are one flag
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
_MOST_MARKS = 32  # of one letter; text with more is no writing

_NAMES = {
    "\r": "a carriage return",
    "\x00": "a NUL",
    "\x85": "a next-line character",
    "\u00ad": "a soft hyphen",
    "\u200b": "a zero-width space",
    "\u2028": "a line separator",
    "\u2029": "a paragraph separator",
    "\ufeff": "a byte order mark",
}


def forbidden(text: str) -> Iterator[int]:
    """The index of every character in `text` that a package may not hold, in order."""
    # Most texts have none: a glance at what is not plain ASCII costs a tenth of a search.
    odd = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    if not odd or _SUSPECT.search(odd.decode("utf-8", "surrogatepass")) is None:
        return
    for match in _SUSPECT.finditer(text):
        if not _needed(text, match.start()):
            yield match.start()


def visible(text: str) -> str:
    r"""Return a text with a JSON escape, as `\u202e`, for each character that is forbidden."""
    hidden = set(forbidden(text))
    return "".join(json.dumps(x)[1:-1] if i in hidden else x for i, x in enumerate(text))


def is_blank(text: str) -> bool:
    """True if nothing of a text can be seen that a package may hold."""
    return all(x in BLANK or x.isspace() for x in text)


def beginning(text: str, most: int) -> str:
    """Return the first characters of a text, at most `most`: a letter keeps its marks.

    No emoji of several characters is cut either.
    """
    for end in range(most, max(0, most - _MOST_MARKS), -1):
        if not _within(text, end):
            return text[:end]
    return text[:most]


def _within(text: str, index: int) -> bool:
    """True if the character at `index` belongs to the one before it."""
    if not 0 < index < len(text) or text[index - 1 : index + 1].isascii():
        return False
    flag = _FLAG.search(text, max(0, index - _MOST_MARKS), index)
    half = flag is not None and len(flag[0]) % 2 == 1 and _FLAG.match(text[index]) is not None
    joined = text[index - 1] == _ZWJ or text[index] in (_ZWNJ, _ZWJ)
    return half or joined or category(text[index])[0] == "M" or _SKIN.match(text[index]) is not None


def describe(character: str) -> str:
    """Name a forbidden character for people: `a zero-width space (U+200B)`."""
    code = ord(character)
    name = _NAMES.get(character)
    if name is None:
        if code in range(0x202A, 0x202F) or code in range(0x2066, 0x206A) or code in _BIDI_MARKS:
            name = "a bidirectional control"
        elif code in range(0xE0000, 0xE0080):
            name = "a tag character"
        elif code < 0xA0:
            name = "a control character"
        elif code in range(0xD800, 0xE000):
            name = "half of a surrogate pair"
        elif code in range(0xFDD0, 0xFDF0) or code & 0xFFFE == 0xFFFE:
            name = "a noncharacter"
        else:
            name = "an invisible character"
    return f"{name} (U+{code:04X})"


_BIDI_MARKS = (0x061C, 0x200E, 0x200F)


def _needed(text: str, index: int) -> bool:
    """True if an emoji or a script needs this suspect character at its place."""
    character, before, after = text[index], text[index - 1 : index], text[index + 1 : index + 2]
    if character == _EMOJI_STYLE:
        keycap = after == _KEYCAP and before in tuple("0123456789#*")
        return keycap or _EMOJI.match(before) is not None
    if character == _ZWJ and _EMOJI.match(after):
        return before == _EMOJI_STYLE or _EMOJI.match(before) is not None
    if character in (_ZWNJ, _ZWJ):
        return _JOINING.match(before) is not None
    if character in "\u180b\u180c\u180d\u180e\u180f":
        return _MONGOLIAN.match(before) is not None
    return False
