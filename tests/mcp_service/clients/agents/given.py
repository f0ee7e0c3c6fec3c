"""What each agent here is given: PROGRAM MODEL_URL URL, or PROGRAM MODEL_URL -- COMMAND… for stdio.

An agent connects its framework to that MCP server, and asks the model of MODEL_URL (the chat
completions of OpenAI) until it calls no tool any more. A person at its side agrees to everything
where ANSWER is `accept`, and is not there otherwise.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

WISH = "Do what I wish."
MODEL = "gpt-4o"  # some frameworks look the abilities of a model up by its name
CALLS = 60  # of tools, at most
PATIENCE_S = 120.0  # of a call: a router that starts on a busy machine, a person who reads


@dataclass(frozen=True)
class Given:
    """A model, and a server by its URL or its command."""

    model: str
    url: str | None
    command: str
    args: tuple[str, ...]
    person: bool

    @property
    def env(self) -> dict[str, str]:
        """The environment of a server on stdio."""
        return dict(os.environ)


def given() -> Given:
    """Read the arguments; every framework takes the key of its model from the environment."""
    os.environ |= {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": sys.argv[1]}
    person = os.environ.get("ANSWER") == "accept"
    if sys.argv[2] == "--":
        return Given(sys.argv[1], None, sys.argv[3], tuple(sys.argv[4:]), person)
    return Given(sys.argv[1], sys.argv[2], "", (), person)
