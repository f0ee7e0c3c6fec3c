"""The sandbox of learned programs: bubblewrap, a seccomp filter and a session key ring."""

from capdex_router.commands.sandbox.bubblewrap import (
    ProcessLimits,
    ProcessResult,
    Sandbox,
    Surroundings,
)

__all__ = ["ProcessLimits", "ProcessResult", "Sandbox", "Surroundings"]
