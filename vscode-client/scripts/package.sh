#!/usr/bin/env bash
# Builds the extension as one .vsix that carries the server as a wheel, and prints its path.
# WHEELS=1 puts the wheels of all that the server needs beside it, for machines that reach no package registry.
# Expects the node packages of vscode-client and of e2e, and a Python with pip in $PYTHON; `make vsix` sees to that.
set -euo pipefail

client=$(cd "$(dirname "$0")/.." && pwd)
root=$(dirname "$client")
python=${PYTHON:-$root/.venv/bin/python}
file=$root/.cache/vsix/agent-lsp.vsix

server_version=$("$python" -c 'import re, sys; print(re.search(r"__version__ = \"(.+)\"", open(sys.argv[1]).read())[1])' \
    "$root/agent_lsp/__init__.py")
client_version=$(node -p 'require(process.argv[1]).version' "$client/package.json")
if [ "$server_version" != "$client_version" ]; then
    echo "the server is $server_version, the extension $client_version: they are released together" >&2
    exit 1
fi

rm -rf "$client/python"
mkdir -p "$client/python" "$(dirname "$file")"
if [ -n "${WHEELS:-}" ]; then
    "$python" -m pip wheel --quiet --disable-pip-version-check --wheel-dir "$client/python" "$root" >&2
else
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$client/python" "$root" >&2
fi

cd "$client"
npm run --silent build >&2
[ -e LICENSE ] || { cp "$root/LICENSE" LICENSE && trap 'rm -f "$client/LICENSE"' EXIT; }
e2e/node_modules/.bin/vsce package --no-dependencies --allow-missing-repository --out "$file" >&2
echo "$file"
