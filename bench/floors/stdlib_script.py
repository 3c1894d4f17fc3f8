"""The stretch of P3: the same prompt by the standard library alone."""

import http.client
import json
import os
from urllib.parse import urlsplit

url = urlsplit(os.environ["OPENAI_BASE_URL"])
body = {"model": os.environ["AGENT_LSP_MODEL"], "messages": [{"role": "user", "content": "hi"}], "stream": True}
connection = http.client.HTTPConnection(url.netloc)
headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
connection.request("POST", f"{url.path}/chat/completions", json.dumps(body), headers)
for line in connection.getresponse():
    if line.startswith(b"data: {"):
        for choice in json.loads(line[6:])["choices"]:
            print(choice["delta"].get("content") or "", end="")
