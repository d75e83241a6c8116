"""The smallest agent: it puts one question to the model that OPENAI_BASE_URL names."""

import json
import os
import sys
import urllib.request

body = json.dumps({"model": "local", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
try:
    with urllib.request.urlopen(request, timeout=20) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"])
except OSError as error:
    print("no model:", getattr(error, "reason", error))
