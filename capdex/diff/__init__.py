"""Changes between two releases of a capability, and the SemVer step they require (P2)."""

from capdex.diff.diff import (
    Allowance,
    Change,
    Difference,
    Rule,
    Step,
    check_step,
    compare,
    taken_step,
)

__all__ = [
    "Allowance",
    "Change",
    "Difference",
    "Rule",
    "Step",
    "check_step",
    "compare",
    "taken_step",
]
