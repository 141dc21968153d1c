#!/usr/bin/env bash
# Runs tests of the page by node's test runner: run.sh FILE.mjs [chromium]. Exit code 77: skipped, because node (or Chromium, if
# the tests need it) is missing.
set -euo pipefail
if ! node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null; then
    echo "skipped: node 18 or later is not installed (Debian: nodejs)"
    exit 77
fi
if [ "${2:-}" = chromium ]; then
    found=
    for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
        command -v "$name" >/dev/null && found=yes
    done
    if [ -z "$found" ]; then
        echo "skipped: Chromium is not installed (Debian: chromium)"
        exit 77
    fi
fi
exec node --test "$1"
