# What scripts of this folder share; they source it. $tmp is a folder of their own, which goes with them, and they end with
# `exit $failed`.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# exits CODE PROGRAM ARGS..: runs a program and checks its exit code; its streams are in $tmp/out and $tmp/err, $ran is the call
exits() {
    local code=$1 got
    ran="${2##*/} ${*:3}"
    shift
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    [ $got = "$code" ] || fail "$ran: exit code $got, not $code: $(head -c 300 "$tmp/err")"
}

# prints WORDS [FILE..]: the words are in what the last program wrote to either stream, or in these files
prints() {
    local words=$1
    shift
    [ $# -gt 0 ] || set -- "$tmp/out" "$tmp/err"
    cat "$@" | grep -qF -- "$words" || fail "$ran: no '$words' in: $(head -c 2000 "$@")"
}
