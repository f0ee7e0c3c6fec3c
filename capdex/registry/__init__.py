"""The registry contract off chain: its logs, decoded events and the state they give (P11–P13)."""

from capdex.registry.events import Announcement, Event, Published, decode
from capdex.registry.logs import LogColumns, LogHead, LogPosition, RawLog

__all__ = [
    "Announcement",
    "Event",
    "LogColumns",
    "LogHead",
    "LogPosition",
    "Published",
    "RawLog",
    "decode",
]
