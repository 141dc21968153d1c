#!/usr/bin/env bash
# Runs tests of the page by node's test runner: run.sh FILE.mjs [WHAT..]. WHAT is needed: chromium, or a module of the page that a
# library is in (markdown-it). GGL_PAGE_ONLY=REGEX: the tests with these names. Exit code 77: skipped, because node or WHAT is
# missing.
set -euo pipefail
skip() {
    echo "skipped: $1"
    exit 77
}
if ! node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null; then
    skip "node 18 or later is not installed (Debian: nodejs)"
fi
for what in "${@:2}"; do
    if [ "$what" != chromium ]; then
        ! grep -q '^export default null;' "$GGL_PAGE_DIR/$what.js" || skip "this build's page has no $what (Debian: node-$what)"
        continue
    fi
    found=
    for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
        command -v "$name" >/dev/null && found=yes
    done
    [ -n "$found" ] || skip "Chromium is not installed (Debian: chromium)"
done
exec node --test ${GGL_PAGE_ONLY:+--test-name-pattern="$GGL_PAGE_ONLY"} "$1"
