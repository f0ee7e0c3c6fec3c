"""The type of a JSON object whose members are not known before it is read."""

from typing import Any

Json = dict[str, Any]
