#!/bin/bash
# Files that tools write: they are complete or missing, checked before anything is loaded, and never overwrite a file that is read;
# and the effects of closed and full standard descriptors. outputs.sh FOLDER-OF-PROGRAMS MODEL
set -u
# a tool started by nohup ignores SIGHUP, as it should, and so would all of these
[ -n "${GGL_DEFAULT_HUP:-}" ] || GGL_DEFAULT_HUP=1 exec env --default-signal=HUP "$BASH" "$0" "$@"
here=$(realpath "$(dirname "$0")")
bin=$(realpath "$1") model=$(realpath "$2")
source "$here/common.sh"
cd "$tmp" || exit 1
cp "$model" m.gguf
for i in $(seq 8); do cat "$here/../data/stories-gpt2.txt"; done >text

# The tools that write a file: a name, and the words of the command that come before and after the path.
names=(logits trace kld imatrix quantize extract embed graph plot make)
before() {
    case $1 in
    logits) echo "$bin/llm-cli -m m.gguf --tokens 1,2,3 -n 0 --logits" ;;
    trace) echo "$bin/llm-cli -m m.gguf --tokens 1,2,3 -n 1 --trace" ;;
    kld) echo "$bin/llm-perplexity -m m.gguf -f text -c 64 --chunks 1 --kl-divergence-base" ;;
    imatrix) echo "$bin/llm-imatrix -m m.gguf -f text -c 64 --chunks 1 -o" ;;
    quantize) echo "$bin/llm-quantize m.gguf" ;;
    extract) echo "$bin/llm-gguf extract m.gguf attn -o" ;;
    embed) echo "$bin/llm-arch embed llama m.gguf" ;;
    graph) echo "$bin/llm-arch graph llama m.gguf -o" ;;
    plot) echo "$bin/llm-bench -m m.gguf -p 8 -n 0 -r 1 --no-limits --plot" ;;
    make) echo "$bin/llm-bench make --layers 1 --vocab 300 qwen2.5-0.5b q4_0" ;;
    esac
}
after() { [ "$1" = quantize ] && echo Q8_0; }

# write NAME PATH: runs it; out, err and code say what happened
write() {
    # shellcheck disable=SC2046
    $(before "$1") "$2" $(after "$1") >out 2>err </dev/null
    code=$?
}

# refused NAME PATH CODE WORDS: nothing is loaded before, and no file is left
refused() {
    write "$1" "$2"
    [ $code = "$3" ] || fail "$1 to '$2': exit code $code, not $3: $(head -c 300 err)"
    grep -qF -- "$4" err || fail "$1 to '$2': no '$4' in: $(head -c 300 err)"
    [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || fail "$1 to '$2': more than an error: $(head -c 300 out err)"
    [ -z "$(ls | grep tmp-)" ] || fail "$1 to '$2' leaves $(ls)"
}

umask 027
mkdir folder
for name in "${names[@]}"; do
    # rights, links, and what the file was before
    rm -f file link
    write $name file
    [ $code = 0 ] && [ "$(stat -c %a file)" = 640 ] || fail "$name: $code, rights $(stat -c %a file): $(head -c 300 err)"
    ln -s target link
    rm -f target
    write $name link
    [ $code = 0 ] && [ -L link ] && [ -s target ] || fail "$name through a link to what is not there yet: $(ls -l)"
    mkfifo pipe
    timeout 60 cat pipe >piped &
    reader=$!
    # shellcheck disable=SC2046
    timeout 60 $(before $name) pipe $(after $name) >out 2>err </dev/null # opening a pipe waits for its reader
    code=$?
    wait $reader
    [ $code = 0 ] && [ -p pipe ] && [ -s piped ] || fail "$name to a pipe: $code $(head -c 300 err)"
    [ -p pipe ] || exit 1 # a tool that replaces a pipe would replace this machine's /dev/null, too
    rm pipe
    write $name /dev/null
    [ $code = 0 ] && [ -c /dev/null ] || fail "$name to /dev/null: $code $(head -c 300 err)"
    # a full disk
    write $name /dev/full
    [ $code = 1 ] && grep -q 'No space left' err || fail "$name to a full disk: $code $(head -c 300 err)"
    echo old >file
    # shellcheck disable=SC2046
    (ulimit -f 1; $(before $name) file $(after $name) >out 2>err </dev/null)
    code=$?
    if [ $code != 0 ] || [ "$(stat -c %s file)" -gt 1024 ]; then
        [ $code = 1 ] && [ "$(cat file)" = old ] && grep -q 'too large' err ||
            fail "$name with a limit on files: $code $(head -c 300 err)"
    fi
    [ -z "$(ls | grep tmp-)" ] || fail "$name leaves $(ls)"
    # what cannot be written, and what must not
    refused $name "" 2 empty
    refused $name none/file 1 "its folder does not exist"
    refused $name folder 1 "is a directory"
    refused $name - 2 "write ./- for a file of that name"
    [ ! -e ./- ] || fail "$name writes a file called -"
    if [ "$(id -u)" != 0 ]; then
        rm -f locked && echo old >locked && chmod 400 locked
        refused $name locked 1 "Permission denied"
    fi
    case $name in make) continue ;; esac
    ln -f m.gguf other-name.gguf
    ln -sf m.gguf third-name.gguf
    for path in m.gguf ./m.gguf other-name.gguf third-name.gguf; do
        refused $name $path 2 "is also the file of"
    done
    cmp -s m.gguf "$model" || fail "$name has destroyed the model"
done
"$bin/llm-cli" -f text -n 0 -c 4096 --logits text >out 2>err
[ $? = 2 ] && grep -q 'also the file of -f' err || fail "--logits over the prompt: $(cat err)"
"$bin/llm-cli" -n 0 --logits text <text >out 2>err
[ $? = 2 ] && grep -q 'also the file of the prompt' err || fail "--logits over the piped prompt: $(cat err)"
"$bin/llm-cli" -p x -n 1 --logits out >out 2>err
[ $? = 2 ] && grep -q 'the file of standard output' err || fail "--logits over standard output: $(cat err)"
"$bin/llm-cli" -p x -n 1 --logits same --trace same >out 2>err
[ $? = 2 ] && grep -q 'the same file' err || fail "--logits and --trace to one file: $(cat err)"
GGL_TRACE=m.gguf "$bin/llm-cli" -m m.gguf -p x -n 1 --device trace:cpu >out 2>err
[ $? = 2 ] && cmp -s m.gguf "$model" || fail "GGL_TRACE over the model: $(cat err)"
cp m.gguf part-00001-of-00002.gguf
cp m.gguf part-00002-of-00002.gguf
"$bin/llm-quantize" part-00001-of-00002.gguf part-00002-of-00002.gguf Q8_0 >out 2>err
[ $? = 2 ] && cmp -s part-00002-of-00002.gguf "$model" || fail "over another part of the model: $(cat err)"
echo >same
ln same other-same
"$bin/llm-cli" -p x -n 1 --logits same --trace other-same >out 2>err
[ $? = 2 ] && grep -q 'the same file' err || fail "--logits and --trace to one file by two names: $(cat err)"
# the repack cache: never over what is read or written; one that is only read need not be writable
"$bin/llm-cli" -m m.gguf -p x -n 1 --repack-cache=m.gguf >out 2>err
[ $? = 2 ] && grep -q 'also the file of -m' err && cmp -s m.gguf "$model" || fail "--repack-cache over the model: $(cat err)"
"$bin/llm-cli" -m m.gguf -p x -n 1 --repack-cache=out >out 2>err
[ $? = 2 ] && grep -q 'the file of standard output' err || fail "--repack-cache over standard output: $(cat err)"
"$bin/llm-cli" -m m.gguf -p x -n 1 --repack-cache=cache >out 2>err || fail "--repack-cache: $(cat err)"
"$bin/llm-cli" -m m.gguf -p x -n 0 --repack-cache=cache --logits cache >out 2>err
[ $? = 2 ] && grep -q 'the same file' err || fail "--logits over the repack cache: $(cat err)"
mkdir read-only
mv cache read-only/ 2>/dev/null # there is none where the machine repacks nothing
chmod -R a-w read-only
"$bin/llm-cli" -m m.gguf -p x -n 1 --repack-cache=read-only/cache >out 2>err
code=$?
chmod -R u+w read-only
[ $code = 0 ] || fail "a repack cache that cannot be written: $(cat err)"
mkdir hf && echo '{}' >hf/config.json
"$bin/llm-convert" hf -o hf/config.json >out 2>err
[ $? = 2 ] && [ "$(cat hf/config.json)" = '{}' ] || fail "llm-convert over what it reads: $(cat err)"

# --- closed and full standard descriptors ----------------------------------------------------------------------------------
"$bin/llm-perplexity" -f text -c 64 --chunks 2 --kl-divergence-base good >/dev/null 2>&1 || fail "llm-perplexity"
"$bin/llm-perplexity" -f text -c 64 --chunks 2 --kl-divergence-base bad >/dev/null 2>&-
[ $? = 0 ] && cmp -s good bad || fail "messages went into the file, as stderr was closed"
rm -f bad
"$bin/llm-perplexity" -f text -c 64 --chunks 2 --kl-divergence-base bad 2>err >&-
[ $? = 1 ] && grep -q 'could not write to stdout' err || fail "closed stdout is no error: $(cat err)"
cmp -s good bad || fail "values went into the file, as stdout was closed"
"$bin/llm-cli" -p hi -n 20 --temp 0 --trace t.json 2>&- >/dev/null || fail "closed stderr is an error"
[ "$(head -c 1 t.json)" = '[' ] && [ "$(tail -n 1 t.json)" = ']' ] || fail "messages went into the timeline"
"$bin/llm-cli" -p hi -n 4 --temp 0 --logits l.npy <&- >&- 2>&-
[ $? = 1 ] || fail "all descriptors closed: no error"
for tool in llm-cli llm-bench llm-quantize llm-convert llm-embed llm-imatrix llm-gguf llm-lora llm-perplexity llm-arch llm-tokenize llm-grammar; do
    for how in '>/dev/full' '>&-'; do
        eval "\"$bin/$tool\" --help $how" 2>err
        [ $? = 1 ] && [ "$(grep -c 'could not write to stdout' err)" = 1 ] || fail "$tool --help $how: $(cat err)"
    done
done
"$bin/llm-cli" -p Once -n 40 >/dev/full 2>err </dev/null
[ $? = 1 ] && grep -q 'could not write to stdout: No space left' err || fail "llm-cli on a full disk: $(cat err)"
# A pipe that nobody reads any more before the program begins: a reader such as head may close its end too late on a busy machine.
mkfifo pipe
exec 8<>pipe
exec 9>pipe 8<&-
"$bin/llm-cli" -p Once -n 200 --ignore-eos 2>err </dev/null >&9 9<&-
code=$?
exec 9<&-
[ $code = 1 ] && ! grep -q 'could not write' err || fail "a closed pipe: $(cat err)"

# --- signals ---------------------------------------------------------------------------------------------------------------
for signal in INT TERM HUP; do
    mkfifo wait
    "$bin/llm-cli" -n 4 >out 2>err <wait &
    pid=$!
    exec 9>wait
    for ((i = 0; i < 1000; i++)); do # it reads: its system call is read (0 on x86-64; elsewhere this only waits)
        [ "$(cut -d' ' -f1,2 /proc/$pid/syscall 2>/dev/null)" = "0 0x0" ] && break
        [ -r /proc/$pid/syscall ] || { sleep 1; break; }
        sleep 0.01
    done
    kill -$signal $pid
    wait $pid
    code=$?
    exec 9>&-
    rm wait
    [ $code = $((128 + $(kill -l $signal))) ] && ! grep -q 'Interrupted' err || fail "SIG$signal while it reads: $code $(cat err)"
    "$bin/llm-cli" -p "Once" -n 100000 -c 100000 --ignore-eos --trace t2.json >out 2>err </dev/null &
    pid=$!
    for ((i = 0; i < 1000; i++)); do
        [ -s out ] && break
        sleep 0.01
    done
    kill -$signal $pid
    wait $pid
    code=$?
    [ $code = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: exit code $code $(cat err)"
    [ -z "$(ls | grep tmp-)" ] || fail "SIG$signal leaves $(ls)"
    [ "$(tail -n 1 t2.json)" = ']' ] || fail "SIG$signal: the timeline is not complete"
done
# waiting to read standard input, for the reader of a pipe, and for the writer of one, which then writes nothing
for signal in INT TERM; do
    for how in stdin logits base prompt grammar lines empty; do
        mkfifo wait
        case $how in
        stdin)
            "$bin/llm-perplexity" -f - -c 64 >out 2>err <wait &
            pid=$!
            exec 9>wait
            ;;
        prompt) "$bin/llm-cli" -f wait -n 2 >out 2>err </dev/null & ;;
        grammar) "$bin/llm-cli" --grammar-file wait -p x -n 2 >out 2>err </dev/null & ;;
        lines) "$bin/llm-embed" -m builtin:stories -f wait >out 2>err </dev/null & ;;
        empty)
            "$bin/llm-cli" --grammar-file wait -p x -n 2 >out 2>err </dev/null &
            pid=$!
            exec 9>wait
            ;;
        logits) "$bin/llm-cli" -p x -n 0 --logits wait >out 2>err </dev/null & ;;
        base) "$bin/llm-perplexity" -f text -c 64 --chunks 1 --kl-divergence-base wait >out 2>err </dev/null & ;;
        esac
        [ $how = stdin ] || [ $how = empty ] || pid=$!
        for ((i = 0, asleep = 0; i < 1000 && asleep < 10; i++)); do # it waits: asleep ten times in a row
            if [ "$(awk '/^State/ { print $2 }' /proc/$pid/status 2>/dev/null)" = S ]; then
                asleep=$((asleep + 1))
            else
                asleep=0
            fi
            sleep 0.02
        done
        kill -$signal $pid
        wait $pid
        code=$?
        exec 9>&-
        rm wait
        [ $code = $((128 + $(kill -l $signal))) ] && ! grep -q 'Interrupted' err || fail "SIG$signal, $how: $code $(cat err)"
    done
done
# a tool that does not wait: a large file is being written
"$bin/llm-bench" make --layers 4 tinyllama-1.1b q6_k big.gguf >out 2>err &
pid=$!
for ((i = 0; i < 1000; i++)); do
    [ -z "$(ls | grep tmp-)" ] || break
    sleep 0.01
done
kill -TERM $pid
wait $pid
[ $? = 143 ] && [ -z "$(ls | grep 'tmp-\|big')" ] || fail "SIGTERM while a model is made leaves $(ls)"
exit $failed
