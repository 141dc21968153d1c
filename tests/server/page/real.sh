#!/usr/bin/env bash
# The page against the real server: starts PROGRAM, with its built-in model or as OPTIONS say, on a free port, and runs the tests of
# browser.mjs that any server must pass. real.sh PROGRAM [OPTIONS]
set -euo pipefail
log=$(mktemp)
"$@" --port 0 >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -f "$log"' EXIT
url=
for _ in $(seq 300); do
    url=$(grep -o 'http://127[0-9.]*:[0-9]*' "$log" | head -n 1) && break
    kill -0 $server 2>/dev/null || break
    sleep 0.1
done
if [ -z "$url" ]; then
    echo "FAILED: the server does not print its address:"
    cat "$log"
    exit 1
fi
export GGL_PAGE_URL="$url/"
"$(dirname "$0")/run.sh" "$(dirname "$0")/browser.mjs" chromium
