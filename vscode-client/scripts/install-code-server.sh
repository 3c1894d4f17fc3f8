#!/usr/bin/env bash
# Builds a real VS Code (code-server, from its npm package) in a cache folder and prints that folder.
# Usage: install-code-server.sh [FOLDER]. Done before: nothing to do. Needs Node 20, npm, make, a C++ compiler and Python.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../.cache/code-server}
log=$folder/install.log

# What is built depends on these; anything else in the folder is from another time and is built again.
stamp="$(cat "$here/code-server/package-lock.json" "$0" | sha256sum | cut -d' ' -f1) $(node --version)"

if [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ]; then
    (cd "$folder" && pwd)
    exit
fi

case $(node --version) in
    v20.*) ;;
    *) echo "code-server 4.100 needs Node 20, this is $(node --version)" >&2; exit 1 ;;
esac

rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
log=$folder/install.log

step() {
    echo "code-server: $*" >&2
    "$@" >>"$log" 2>&1 || { tail -n 40 "$log" >&2; echo "failed: $* (all of it: $log)" >&2; exit 1; }
}

# Headers of this Node: where npm was told they are, else beside the program, else node-gyp finds them by itself.
headers=$(npm config get nodedir)
beside=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
if [ ! -e "$headers/include/node/node.h" ]; then
    headers=
    [ ! -e "$beside/include/node/node.h" ] || headers=$beside
fi
[ -z "$headers" ] || export npm_config_nodedir=$headers
# Some post-install steps run a node-gyp through npx, which a careful npm refuses: npm's own is used instead.
gyp=$(npm root --global)/npm/node_modules/node-gyp/bin/node-gyp.js

cp "$here/code-server/package.json" "$here/code-server/package-lock.json" "$here/code-server/.npmrc" "$folder/"
cd "$folder"
step npm ci
step npm rebuild --ignore-scripts=false --foreground-scripts argon2

cd node_modules/code-server/lib/vscode
step npm install --omit=dev --ignore-scripts  # its shrinkwrap does not fit its package.json, so "npm ci" refuses
step npm rebuild --ignore-scripts=false --foreground-scripts native-watchdog
for module in node-pty @vscode/spdlog; do  # terminals; logs
    (cd "node_modules/$module" && step node "$gyp" rebuild ${headers:+--nodedir="$headers"})
done
(cd extensions && step npm install --omit=dev --ignore-scripts)

# Its own ripgrep package would fetch the program; this one carries it. The links are what its post-install makes.
mkdir -p node_modules/@vscode/ripgrep/bin
ln -sf "$folder/node_modules/@vscode/ripgrep-linux-x64/bin/rg" node_modules/@vscode/ripgrep/bin/rg
rm -rf node_modules.asar
ln -s node_modules node_modules.asar
ln -sf code-linux.sh bin/remote-cli/code-server
ln -sf browser-linux.sh bin/helpers/browser.sh

touch "$folder/empty.yaml"
step node "$folder/node_modules/code-server/out/node/entry.js" --config "$folder/empty.yaml" --version
echo "$stamp" >"$folder/stamp"
echo "$folder"
