#!/bin/bash
# The programs for Windows, built by mingw-w64 and run by wine, write the same bytes as this build's: windows.sh SOURCE_DIR BUILD_DIR [aarch64]
# With aarch64 they are for ARM, by clang, and wine is run by qemu. What that needs lies in folders of BUILD_DIR, which scripts/windows-libraries.sh fills.
set -u
export LC_ALL=C.UTF-8 WINEDEBUG=-all
source=$1 here=$2/bin processor=${3:-x86_64}
build=$2/windows libraries=$2/windows-libraries server=llm-server toolchain=windows wine=wine wineserver=wineserver
if [ "$processor" = aarch64 ]; then
    build+=-aarch64 libraries+=-aarch64 toolchain+=_aarch64 wine=$2/wine-aarch64/wine wineserver=$2/wine-aarch64/wineserver
    unset DISPLAY
fi
export wine
tmp=$(mktemp -d)
trap 'WINEPREFIX=$tmp/wine "$wineserver" -k 2>/dev/null; rm -rf "$tmp"' EXIT
export WINEPREFIX=$tmp/wine
failed=0
fail() {
    echo "$*"
    failed=1
}
if [ "$processor" = aarch64 ]; then
    [ -e "$libraries/lib/libcurl.a" ] || { echo "skipped: scripts/windows-libraries.sh --aarch64 $libraries was not run" && exit 77; }
    [ -e "$wine" ] || { echo "skipped: scripts/windows-libraries.sh --wine $2/wine-aarch64 was not run" && exit 77; }
else
    for program in x86_64-w64-mingw32-gcc-posix wine wineserver; do
        command -v $program >/dev/null || { echo "skipped: there is no $program" && exit 77; }
    done
    "$source/scripts/windows-libraries.sh" "$libraries" 2>"$tmp/said" || { echo "without llm-server: $(cat "$tmp/said")" && server=''; }
fi

cmake -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$source/cmake/$toolchain.cmake" -DCMAKE_FIND_ROOT_PATH="$libraries" -DGGL_TESTS=ON -DGGL_SMALL=ON \
    -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" >"$tmp/log" 2>&1 || { tail -20 "$tmp/log" && exit 1; }
cmake --build "$build" -j 2 --target llm-cli llm-quantize llm-gguf llm-tokenize units ${server:+$server llm-bench} >"$tmp/log" 2>&1 || { grep -E "error|undefined" "$tmp/log" | head -20 && exit 1; }
! grep -q "warning:" "$tmp/log" || fail "the compiler warns: $(grep -m 3 "warning:" "$tmp/log")"
theirs() {
    local program=$1
    shift
    timeout 120 "$wine" "$build/bin/$program.exe" "$@"
}

# tests of parts, each program with all its cases; those that compute for long, and ask nothing of the system, run on Linux alone
unit() { # PROGRAM
    local name=${1##*/test-unit-}
    timeout 120 "$wine" "$1" >"$tmp/said.$name" 2>&1 || [ $? = 77 ] || { echo "unit test $name:" && grep -vE '^(ok|skip) ' "$tmp/said.$name" | head -20 && return 1; }
}
export -f unit
export tmp
"$wine" wineboot -i >/dev/null 2>&1
find "$build/bin/tests" -name 'test-unit-*.exe' | grep -vE 'unit-(arch_init|arch_tables|gradient|graph_facts|resample|sampler_chain|sched_partial|schedule|tokenizer_bpe)[.]' |
    sort | xargs -P 2 -I{} bash -c 'unit {}' >"$tmp/units" || fail "$(cat "$tmp/units")"

# the same text, and the same file by a path with other letters and separators, also over one that is there
for threads in 1 2; do
    want=$("$here/llm-cli" -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 -t $threads 2>/dev/null)
    found=$(theirs llm-cli -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 -t $threads 2>/dev/null)
    [ -n "$want" ] && [ "$want" = "$found" ] || fail "llm-cli -t $threads: '$found', not '$want'"
done
mkdir "$tmp/größe"
"$here/llm-quantize" -q --allow-requantize builtin:stories "$tmp/want.gguf" q4_0 >/dev/null 2>&1
cd "$tmp"
for turn in 1 2; do
    theirs llm-quantize -q --allow-requantize builtin:stories 'größe\kleiner.gguf' q4_0 >/dev/null 2>"$tmp/said" ||
        fail "llm-quantize, $turn: $(cat "$tmp/said")"
    cmp -s want.gguf größe/kleiner.gguf || fail "llm-quantize, $turn: another file"
done
[ "$(ls größe)" = kleiner.gguf ] || fail "left behind: $(ls größe)"
theirs llm-gguf check 'größe\kleiner.gguf' >/dev/null 2>"$tmp/said" || fail "llm-gguf check: $(cat "$tmp/said")"
[ "$(theirs llm-tokenize -p "Grüße, Welt" 2>/dev/null)" = "$("$here/llm-tokenize" -p "Grüße, Welt" 2>/dev/null)" ] || fail "other tokens"

# a server answers as the one here does, sees clients that go, and ends as it is told to
if [ -n "$server" ]; then
    # serve NAME COMMAND..: starts it, and sets `pid` and `address`
    serve() {
        local log=$tmp/served.$1
        shift
        "$@" --port 0 -s 1 --log-file "$log.requests" >/dev/null 2>"$log" &
        pid=$!
        for _ in $(seq 300); do
            address=$(grep -osE 'http://[0-9.:]+' "$log") && return
            sleep 0.2
        done
        fail "$log: no address: $(cat "$log")"
    }
    ask() { curl -sS -m 60 "$address$1" -d "$2" 2>&1; }
    ends() { # NAME: the server ends by Ctrl-C, with code 0
        kill -INT $pid
        wait $pid
        [ $? = 0 ] && grep -q "shutting down" "$tmp/served.$1" || fail "the server $1 does not end: $(cat "$tmp/served.$1")"
    }
    prompt='{"prompt": "Once upon a time", "n_predict": 40, "seed": 7, "temperature": 0.8, "response_fields": ["content", "tokens_evaluated"]}'
    serve there "$here/llm-server"
    want=$(ask /completion "$prompt")
    ends there
    serve wine "$wine" "$build/bin/llm-server.exe"
    for _ in 1 2; do
        found=$(ask /completion "$prompt")
        [ -n "$want" ] && [ "$want" = "$found" ] || fail "llm-server: '$found', not '$want'"
    done
    clients=()
    for i in 1 2 3 4 5 6 7 8; do
        ask /completion "$prompt" >"$tmp/answer.$i" &
        clients+=($!)
    done
    wait "${clients[@]}"
    for i in 1 2 3 4 5 6 7 8; do
        [ "$(cat "$tmp/answer.$i")" = "$want" ] || fail "beside others: '$(cat "$tmp/answer.$i")', not '$want'"
    done
    # llm-bench measures it: two clients with two requests each, of 8 tokens
    theirs llm-bench serve "$address" -c 2 --requests 2 -p 16 -n 8 -o csv >"$tmp/bench" 2>"$tmp/said" || fail "llm-bench serve: $(cat "$tmp/said")"
    python3 - "$tmp/bench" <<'END' || fail "llm-bench serve: $(cat "$tmp/bench")"
import csv
import sys
row, = csv.DictReader(open(sys.argv[1], newline=""))
sys.exit((row["n_answers"], row["n_failed"], row["completion_tokens"]) != ("4", "0", "32") or float(row["completion_ts"]) <= 0)
END
    theirs llm-bench serve "http://127.0.0.1:1" -c 1 --requests 1 >/dev/null 2>"$tmp/said"
    [ $? = 1 ] && grep -qi "connect" "$tmp/said" || fail "llm-bench serve without a server: $(cat "$tmp/said")"
    [[ $(curl -sS -m 20 -H 'Accept: text/html' "$address/" 2>&1) == *"<html"* ]] || fail "the server has no page"
    [[ $(ask /completion '{"prompt": 5') == *"error"* ]] || fail "a wrong request is not refused"
    # a client that goes ends its answer, which would be far too long
    curl -sS -m 3 "$address/completion" -d '{"prompt": "a", "n_predict": 100000, "ignore_eos": true}' >/dev/null 2>&1
    for _ in $(seq 100); do
        [[ $(curl -sS -m 20 "$address/metrics" 2>&1) == *"requests_processing 0"* ]] && break
        sleep 0.2
    done
    [[ $(curl -sS -m 20 "$address/metrics" 2>&1) == *"requests_processing 0"* ]] || fail "an answer goes on without its client"
    port=${address##*:}
    theirs llm-server --port "$port" >/dev/null 2>"$tmp/said"
    [ $? = 1 ] && grep -q "port $port is in use" "$tmp/said" || fail "a port that is in use: $(cat "$tmp/said")"
    ends wine
    # while it ends, a running answer goes on, and new clients are refused at once
    serve busy "$wine" "$build/bin/llm-server.exe" -c 65536 -t 1
    curl -sS -N -m 100 "$address/completion" -d '{"prompt": "a", "n_predict": 100000, "ignore_eos": true, "stream": true}' >"$tmp/long" 2>&1 &
    client=$!
    for _ in $(seq 100); do
        [ -s "$tmp/long" ] && break
        sleep 0.1
    done
    kill -INT $pid
    for _ in $(seq 100); do
        grep -q "shutting down" "$tmp/served.busy" && break
        sleep 0.1
    done
    curl -sS -m 5 "$address/health" >"$tmp/said" 2>&1
    [ $? = 7 ] && kill -0 $client 2>/dev/null || fail "a client that comes while the server ends: $(cat "$tmp/said")"
    kill $client 2>/dev/null
    wait $pid || fail "the server busy does not end: $(cat "$tmp/served.busy")"
    # an address of IPv6 is no path
    timeout 60 "$wine" "$build/bin/llm-server.exe" --host ::1 --port 1 >/dev/null 2>"$tmp/said" &
    pid=$!
    for _ in $(seq 100); do
        [ -s "$tmp/said" ] && break
        sleep 0.2
    done
    kill -INT $pid 2>/dev/null
    wait $pid
    [ -s "$tmp/said" ] && ! grep -q "names of files" "$tmp/said" || fail "an address of IPv6: $(cat "$tmp/said")"
    for name in /there ./x.sock '.\x.sock' 'C:\x.sock'; do
        theirs llm-server --host "$name" >/dev/null 2>"$tmp/said"
        [ $? = 1 ] && grep -q "no sockets with the names of files" "$tmp/said" || fail "a socket with a name, $name: $(cat "$tmp/said")"
    done
    theirs llm-server --log-file 'größe\a?b.log' >/dev/null 2>"$tmp/said"
    [ $? = 2 ] && grep -q 'a?b.log: names of files have no' "$tmp/said" || fail "a log with a name that cannot be: $(cat "$tmp/said")"
fi

# a crash gives the console its mode back; script gives wine a console
if command -v script >/dev/null; then
    timeout 60 script -qec "'$wine' '$build/bin/tests/test-unit-os_windows.exe' a_crash_gives_the_console_back" /dev/null >"$tmp/said" 2>&1 ||
        fail "the console after a crash, $?: $(cat -v "$tmp/said")"
fi

# memory is locked, and paths of plug-ins may have the system's separators
theirs llm-cli -q --mlock -p a -n 1 >/dev/null 2>"$tmp/said" && [ ! -s "$tmp/said" ] || fail "llm-cli --mlock: $(cat "$tmp/said")"
for name in '.\größe\x.dll' größe/x.dll x.DLL; do
    theirs llm-cli --backend "$name" -p a >/dev/null 2>"$tmp/said"
    [ $? = 2 ] && grep -qF "$name: No such file" "$tmp/said" || fail "a plug-in that is not there, $name: $(cat "$tmp/said")"
done

# bad days
theirs llm-quantize -q --allow-requantize builtin:stories 'größe\a?b.gguf' q4_0 >/dev/null 2>"$tmp/said"
[ $? = 2 ] && grep -q 'a?b.gguf: cannot be written: names of files have no' "$tmp/said" || fail "a name that cannot be: $(cat "$tmp/said")"
theirs llm-cli -m 'größe\nicht.gguf' -p a >/dev/null 2>"$tmp/said"
[ $? = 1 ] && grep -q 'nicht.gguf: No such file' "$tmp/said" || fail "a file that is not there: $(cat "$tmp/said")"
head -c 5000 want.gguf >größe/kurz.gguf
theirs llm-cli -m 'größe\kurz.gguf' -p a >/dev/null 2>"$tmp/said"
[ $? = 1 ] && grep -q 'kurz.gguf' "$tmp/said" || fail "a file that is cut off: $(cat "$tmp/said")"
exit $failed
