"""The sandbox of learned programs: bubblewrap, a seccomp filter and a session key ring."""

from router.bindings.sandbox.bubblewrap import Limits, Ran, Room, Sandbox

__all__ = ["Limits", "Ran", "Room", "Sandbox"]
