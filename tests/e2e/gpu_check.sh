#!/bin/sh
# scripts/gpu-check, on the processor and with small models: gpu_check.sh SOURCE BUILD
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
"$1/scripts/gpu-check" --quick --no-tests --build "$2" --device cpu --rounds 1 --models "$here" -o "$here/report.md"
for text in '## devices' 'cpu          ' '| toy-llama-q4_0.gguf | pp32 ' 'tg8 @ d128' '## steps of toy-llama' 'all steps succeeded'; do
    grep -qF -e "$text" "$here/report.md" || {
        echo "the report lacks '$text':"
        cat "$here/report.md"
        exit 1
    }
done

# Arguments are checked before anything is built or run.
refuses() { # words of the message, arguments
    words=$1
    shift
    code=0
    timeout 20 "$@" -o "$here/none.md" 2>"$here/usage" || code=$?
    [ $code -eq 2 ] && grep -qF -e "$words" "$here/usage" && [ ! -e "$here/none.md" ] || {
        echo "exit code $code, and not '$words': $*"
        cat "$here/usage"
        exit 1
    }
}
gpu_check=$1/scripts/gpu-check
refuses "there is no vulkan63; there are: cpu" "$gpu_check" --build "$2" --device vulkan63
refuses "there is no cup; there are: cpu" "$gpu_check" --build "$2" --device cup
refuses "'nothing' is not NAME=PATH" "$gpu_check" --peer nothing
refuses "/nope: there is no such program" "$gpu_check" --peer llama.cpp=/nope
refuses "there is no shape 'foo'; there are: tinyllama-1.1b" "$gpu_check" --shapes foo
refuses "there is no type 'q9'; there are: f32 f16 q4_0" "$gpu_check" --types q4_0,q9
refuses "there is no type 'iq2_s'" "$gpu_check" --types iq2_s
refuses "'0,x' is not a list of numbers of tokens" "$gpu_check" --depths 0,x
refuses "argument --rounds: '0' is not a number from 1 on" "$gpu_check" --rounds 0
refuses "argument -j/--jobs: '0' is not a number from 1 on" "$gpu_check" -j 0
refuses "/nope/bin/llm-cli: there is no such program" "$gpu_check" --build /nope
code=0
"$gpu_check" -o /nonexistent/r.md 2>"$here/usage" || code=$?
[ $code -eq 2 ] && grep -q "there is no folder /nonexistent" "$here/usage"

# Programs that succeed at once, but for llm-arch, which is the true one; and the last step's hangs, and so does a process that it
# started.
fake=$here/fake
mkdir -p "$fake/bin" "$here/path"
printf '#!/bin/sh\necho "cpu  a processor"\n' >"$fake/bin/llm-cli"
ln -s "$2/bin/llm-arch" "$fake/bin/llm-arch"
cat >"$fake/bin/llm-bench" <<END
#!/bin/sh
case "\$*" in *--profile*)
    $(command -v sleep) 600 &
    echo \$! >"$here/hanging"
    wait
    ;;
esac
END
chmod +x "$fake/bin/llm-cli" "$fake/bin/llm-bench"
fail() {
    echo "$1"
    cat "$here/fake.md" "$here/said"
    exit 1
}

# Fails if the hanging process goes on. It ends soon after it was killed, maybe as a zombie that nobody waits for.
check_ended() {
    tries=0
    while ps -o stat= -p "$(cat "$here/hanging")" | grep -q '^[^Z]'; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "a process of $1 is left"
        sleep 0.1
    done
}

# A step that takes too long is ended with all its processes, which would else run beside the next steps. Tests that are not
# there have not succeeded. The report does without git.
python=$(python3 -c 'import sys; print(sys.executable)')
ln -s "$python" "$(command -v ctest)" "$here/path"
code=0
timeout 120 env PATH="$here/path" "$python" "$1/scripts/gpu-check" --quick --device cpu --build "$fake" --models "$fake" --limit 1 \
    -o "$here/fake.md" 2>"$here/said" || code=$?
[ $code -eq 1 ] || fail "exit code $code"
grep -q '^failed: .*tests' "$here/fake.md" || fail "tests that are not there have succeeded"
grep -q 'llm-arch verify .*--backend cpu.: exit code 0' "$here/fake.md" || fail "the comparison node by node failed"
grep -q 'stopped after 1 s' "$here/fake.md" || fail "the hanging step was not stopped"
check_ended "the hanging step"

# Interrupted: what it began ends, too, and the report says where.
rm "$here/hanging"
"$1/scripts/gpu-check" --quick --no-tests --device cpu --build "$fake" --models "$fake" -o "$here/fake.md" 2>"$here/said" &
checking=$!
while [ ! -s "$here/hanging" ]; do sleep 0.1; done
kill $checking
code=0
wait $checking || code=$?
[ $code -eq 130 ] || fail "exit code $code after it was interrupted"
grep -q '^interrupted: steps of toy-llama' "$here/fake.md" || fail "the report does not say where it was interrupted"
check_ended "the interrupted step"

# A full disk.
code=0
"$1/scripts/gpu-check" --no-tests --device cpu --build "$fake" --models "$fake" -o /dev/full 2>"$here/said" || code=$?
[ $code -eq 1 ]
grep -q '^gpu-check: /dev/full: No space left on device' "$here/said" || fail "the message does not say what is full"
