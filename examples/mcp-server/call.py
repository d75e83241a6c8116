"""A client of the Model Context Protocol: starts a server, calls one tool, and prints what it says.

call.py TOOL PATH SERVER [ARGUMENT...]
"""

import json
import subprocess
import sys

tool, path, *server = sys.argv[1:]
process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(**message):
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


def ask(number, method, params):
    send(id=number, method=method, params=params)
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message.get("result") or message["error"]
    sys.exit("the server ended without an answer")


ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "call", "version": "1"}})
send(method="notifications/initialized")
print(ask(2, "tools/call", {"name": tool, "arguments": {"path": path}})["content"][0]["text"])
process.stdin.close()
process.wait()
