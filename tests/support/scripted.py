"""A stdio server that responds from a file, however odd. Tests start it as a process.

    python scripted.py SERVER.json

The file has for each method the result, or a list of results for successive requests. `null` sends no response. Methods
without a result are rejected. Keys that start with `$`: `$stdout` is printed first, `$stderr` is written first, `$pid`
is the path of a file for the process ID, and `$exit` exits the process at that method.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Read requests until standard input is closed."""
    script: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for name, stream in (("$stdout", sys.stdout), ("$stderr", sys.stderr)):
        if name in script:
            print(script[name], file=stream, flush=True)
    if "$pid" in script:
        Path(script["$pid"]).write_text(str(os.getpid()))
    asked: dict[str, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        method = request["method"]
        if "id" not in request:
            continue
        if script.get("$exit") == method:
            sys.exit(3)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if method not in script:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            result = script[method]
            if isinstance(result, list):
                result = result[min(asked.get(method, 0), len(result) - 1)]
            asked[method] = asked.get(method, 0) + 1
            if result is None:
                continue
            answer["error" if "code" in result else "result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
