#!/bin/bash
# scripts/cluster-here.sh: two nodes with a shaped link run a model with the same text as one process. cluster_here.sh CLI SOURCE_DIR
set -u
cli=$(realpath "$1") source=$(realpath "$2")
source "$(dirname "$0")/common.sh"
export CLUSTER_NAME=t$((RANDOM % 10000))
here=$source/scripts/cluster-here.sh
"$here" run true >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q 'there is no cluster' "$tmp/out" || fail "run without a cluster"
"$here" up 0 >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q 'N is 1 to 99' "$tmp/out" || fail "up 0"
"$here" sideways >"$tmp/out" 2>&1
[ $? = 2 ] && grep -q 'up N' "$tmp/out" || fail "an unknown command"
command -v ip tc mpirun >/dev/null && [ "$(id -u)" = 0 ] && ip netns add "$CLUSTER_NAME" 2>/dev/null || exit 77
ip netns del "$CLUSTER_NAME"
[ -e "$(dirname "$cli")/../lib/libggl-mpi.so" ] || exit 77
trap '"$here" down 2>/dev/null; rm -rf "$tmp"' EXIT
"$here" up 2 1gbit 100us >"$tmp/out" 2>&1 || exit 77 # a kernel without a token bucket, or without TAP
"$here" up 2 >"$tmp/err" 2>&1
[ $? = 2 ] && grep -q 'already' "$tmp/err" || fail "a second cluster"
args=(-p 'Once upon a time' -n 8 --temp 0 -t 1 --color never)
timeout 60 "$cli" "${args[@]}" >"$tmp/alone" 2>/dev/null </dev/null || fail "llm-cli alone"
timeout 120 "$here" run "$cli" "${args[@]}" >"$tmp/both" 2>"$tmp/err" </dev/null || fail "llm-cli on two nodes: $(head -c 600 "$tmp/err")"
cmp -s "$tmp/alone" <(tr -d '\r' <"$tmp/both") || fail "another text on two nodes: $(cat "$tmp/both")"
grep -q 'rank1=' "$tmp/err" || fail "rank 1 has no layers: $(head -c 300 "$tmp/err")"
"$here" bytes >"$tmp/out"
awk '$1 == "node0" && $3 > 1000 && $5 > 1000 { found = 1 } END { exit !found }' "$tmp/out" || fail "nothing was sent: $(cat "$tmp/out")"
"$here" down || fail "down"
ip netns list | grep -q "^$CLUSTER_NAME-" && fail "a namespace is left"
exit $failed
