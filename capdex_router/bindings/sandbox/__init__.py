"""The sandbox of learned programs: bubblewrap, a seccomp filter and a session key ring."""

from capdex_router.bindings.sandbox.bubblewrap import ProcessLimits, ProcessResult, Room, Sandbox

__all__ = ["ProcessLimits", "ProcessResult", "Room", "Sandbox"]
