"""Errors of a database driver as errors of capdex that tell an operator what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from capdex.errors import CapdexError, Code, Unavailable, UsageError


@contextmanager
def translated_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the driver into Unavailable or UsageError, without the URL's passwords."""
    url = engine.url.set(drivername=engine.url.get_backend_name())
    where = str(url.difference_update_query(("password", "sslpassword")))  # shows no other password
    try:
        yield
    except PoolTimeout:
        raise Unavailable(
            f"every connection to {where} is busy", Code.DATABASE_UNAVAILABLE, fix="try again"
        ) from None
    except (OverflowError, DataError):
        raise Unavailable(
            "a value of the chain does not fit the index",
            Code.STALLED,
            fix="read it again, from another endpoint",
        ) from None
    except DBAPIError as error:
        raise _classify(error, where) from error


def locked(what: str) -> Unavailable:
    """Return the DATABASE_LOCKED error: another process writes this database."""
    return Unavailable(
        f"another writer holds {what}",
        Code.DATABASE_LOCKED,
        why="an index has one writer; it is most likely another capdex node",
        fix="stop the other node, or give this one a database of its own",
    )


def _says(error: DBAPIError, *words: str) -> bool:
    return any(word in str(error.orig).lower() for word in words)


def _classify(error: DBAPIError, where: str) -> CapdexError:
    why = " ".join(str(error.orig).partition("\nLINE ")[0].split())[:300]
    if _says(error, "database is locked", "database table is locked", "lock timeout"):
        fix = "end it: most likely a backup or an open session"
        return Unavailable(f"another session locks {where}", Code.DATABASE_LOCKED, why, fix)
    if _says(error, "invalid connection option", "connection is bad: invalid"):
        fix = "correct the part of the URL after ?, as libpq has it (sslmode=require)"
        return UsageError("the database URL cannot be read", Code.CONFIG, why, fix)
    if _says(error, "already exists"):
        return UsageError(
            f"{where} belongs to another program",
            Code.FOREIGN_DATABASE,
            why,
            "give the index a database of its own",
        )
    absent = _says(error, "does not exist")
    if _says(error, "no such table") or (absent and isinstance(error, ProgrammingError)):
        return Unavailable(
            f"{where} holds no index yet", Code.DATABASE_UNAVAILABLE, why, "start the node on it"
        )
    if _says(error, "permission denied for", "no schema has been selected"):
        return Unavailable(
            f"the account may not do this in {where}",
            Code.DATABASE_UNAVAILABLE,
            why,
            "let it create and write tables there; a reader's account needs SELECT on all of them",
        )
    if _says(error, "not a database", "malformed"):
        fix = "restore a backup, or build the index again in another file"
        return UsageError(f"{where} is damaged, or no database", Code.UNREADABLE, why, fix)
    if _says(error, "unable to open"):
        fix = "name a file this account may read and write, or start the node on it first"
        return UsageError(f"{where} cannot be opened", Code.UNREADABLE, why, fix)
    passing = _says(error, "readonly", "read-only", "during recovery", "terminating connection")
    if not passing and not isinstance(error, OperationalError | InterfaceError):
        return Unavailable(
            f"the database refused a statement of capdex ({where})", Code.INTERNAL, why
        )
    fix = "see that it runs, is reachable, may be written to, and has connections and room left"
    if absent:  # a database, a role, or a file that the URL names
        fix = "create what does not exist (createdb --encoding UTF8 --template template0 NAME), or "
        fix += "correct the URL"
    elif _says(error, "password"):
        fix = "put the password of this account into PGPASSWORD, or a pgpass file"
    return Unavailable(f"the database {where} is unavailable", Code.DATABASE_UNAVAILABLE, why, fix)
