"""Runs agents of one framework again and again in one process, which imports it once.

Each line of stdin is a run: JSON `{argv, env}`, as an agent beside this file would get them. Its
answer is a line of JSON `{code, out}`: the exit code, and what it printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback

for line in sys.stdin:
    asked = json.loads(line)
    sys.argv = asked["argv"]
    os.environ.clear()
    os.environ.update(asked["env"])
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except Exception:  # noqa: BLE001 - as the interpreter would
            traceback.print_exc()
            code = 1
    print(json.dumps({"code": code, "out": out.getvalue()}), flush=True)  # noqa: T201
