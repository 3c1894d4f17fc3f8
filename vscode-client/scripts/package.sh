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

# Put together in a folder of its own: what is not listed here is not in the .vsix.
mkdir -p "$root/.cache/vsix"
stage=$(mktemp -d "$root/.cache/vsix/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT

only=--no-deps
[ -z "${WHEELS:-}" ] || only=
"$python" -m pip wheel --quiet --disable-pip-version-check $only --wheel-dir "$stage/python" "$root" >&2
(cd "$client" && npm run --silent build >&2)
cd "$client"
cp -r package.json README.md dist media "$stage/"
mkdir "$stage/schemas"
cp schemas/*.json "$stage/schemas/"
cp "$root/LICENSE" "$root/CHANGELOG.md" "$stage/"

cd "$stage"
"$client/e2e/node_modules/.bin/vsce" package --no-dependencies --allow-missing-repository --out "$stage/agent-lsp.vsix" >&2
mv "$stage/agent-lsp.vsix" "$file"
echo "$file"
