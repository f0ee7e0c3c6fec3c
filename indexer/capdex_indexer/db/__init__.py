"""The database of the index: tables, their revision and connections, on SQLite and PostgreSQL.

`engine` opens it for one writer and any number of readers; `models` has the tables.
"""
