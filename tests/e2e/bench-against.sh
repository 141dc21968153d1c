#!/bin/bash
# scripts/bench-against.py with peers written here. bench-against.sh BENCH SCRIPT
set -u
bench=$1 script=$2
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
source "$(dirname "$0")/common.sh"

# has FILE WORDS
has() {
    grep -qF -- "$2" "$tmp/$1" || fail "no '$2' in: $(head -c 800 "$tmp/$1")"
}

# Answers every test with a speed of its own; leaves its arguments.
cat >"$tmp/peer" <<END
#!/bin/bash
echo "\$*" >>"$tmp/calls"
while [ \$# -gt 0 ]; do
    case \$1 in
    -p) p=\$2 ;;
    -n) n=\$2 ;;
    -m) [ "\$(basename "\$2")" = gpt.gguf ] && echo 'loading' >&2 && echo 'unknown architecture' >&2 && exit 1 ;;
    esac
    shift
done
echo "[{\"n_prompt\": \$p, \"n_gen\": \$n, \"avg_ts\": 50.5, \"model_type\": \"x\"}]"
END
printf '#!/bin/bash\necho nonsense\n' >"$tmp/broken"
chmod +x "$tmp/peer" "$tmp/broken"
"$bench" make toy-llama q4_0 "$tmp/toy.gguf" >/dev/null && "$bench" make toy-gpt2 f16 "$tmp/gpt.gguf" >/dev/null || fail "make"

"$script" --bench "$bench" --peer "fake=$tmp/peer" --peer-args 'fake=--extra 7' --peer "broken=$tmp/broken" -m "$tmp/toy.gguf" \
    -m "$tmp/gpt.gguf" -p 8 -n 4 -t 1,2 -d 0,16 -r 3 --json "$tmp/all.json" --save "$tmp/saved" >"$tmp/out" 2>"$tmp/err" ||
    fail "exit code $?: $(cat "$tmp/err")"
has out '50.50 (50.50 .. 50.50)'
has out 'tg4 @ d16'
has out 'ours / fake'
has out 'fake refuses gpt.gguf, pp8: exit code 1: unknown architecture'
has out 'broken refuses toy.gguf, pp8: its output is no JSON'
has calls '-t 2 -r 1 -o json -d 16 --extra 7'
python3 - "$tmp/all.json" <<'END' || fail "the json"
import json, sys
rows = json.load(open(sys.argv[1]))
assert len(rows) == 2 * 2 * 2 * 2
for row in rows:
    ours, fake = row["programs"]["ours"], row["programs"]["fake"]
    assert len(ours["samples_ts"]) == 3
    if row["model"].endswith("toy.gguf"):
        assert [round(a / 50.5, 9) for a in ours["samples_ts"]] == [round(r, 9) for r in fake["ratios"]]
    else:
        assert "refuses" in fake
END
[ "$(grep -c gpt.gguf "$tmp/calls")" = 8 ] || fail "a peer that refuses is asked again"
"$bench" --compare "$tmp/saved/fake.json" "$tmp/saved/ours.json" >"$tmp/out" 2>"$tmp/err"
has out '(paired)'

"$script" --bench "$tmp/broken" -m "$tmp/toy.gguf" -r 1 >"$tmp/out" 2>&1
[ $? = 1 ] || fail "llm-bench fails, and the exit code is not 1"
has out 'ours refuses'
"$script" --bench "$bench" -m x --peer nothing >"$tmp/out" 2>&1
[ $? = 2 ] || fail "a peer without a path is not exit code 2"
"$script" --bench "$bench" -m "$tmp/toy.gguf" --peer "gone=$tmp/gone" -p 4 -n 0 -r 1 -o json >"$tmp/out" 2>&1
[ $? = 2 ] || fail "a missing peer is not exit code 2"
has out "--peer gone: there is no program"
exit $failed
