#!/usr/bin/env bash
# Makes sure that there is a Chromium for the end-to-end tests, and prints where. CHROMIUM names another one.
set -euo pipefail

find_chromium() {
    local name
    for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
        command -v "$name" && return
    done
    return 1
}

find_chromium && exit
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Chromium is needed: install it with your system's packages, or set CHROMIUM to the program" >&2
    exit 1
fi
echo "installing Chromium" >&2
{ apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null
find_chromium
