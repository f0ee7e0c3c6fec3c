"""`capdex schema`: the format of a package file, for editors."""

from __future__ import annotations

from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command


@command("schema", examples=["capdex schema > acp-1.json"])
def schema_command(app: App) -> None:
    """Print the schema of package files, for editors.

    It is a JSON Schema 2020-12. With it, an editor completes and checks a file whose first line is
    `# yaml-language-server: $schema=acp-1.json`.
    """
    from capdex.manifest.editor_schema import to_json
    from capdex_cli.terminal.file_arguments import write

    write("-", to_json())
