#!/bin/bash
# llm-tokenize train as users run it. llm-tokenize-train.sh PROGRAM
set -u
tool=$1
source "$(dirname "$0")/common.sh"
cd "$tmp" || exit 1

for i in $(seq 40); do
    printf 'The little dog number %d saw the other dogs, and said: "Good day!"\n' $i
done >a.txt
printf 'Ein kleiner Hund sah die anderen Hunde.\n\nEin kleiner Hund sagte: "Guten Tag!"\n' >b.txt
while IFS= read -r line; do
    printf '{"id": 1, "text": "%s\\n", "other": [2]}\n\n' "${line//\"/\\\"}"
done <a.txt >a.jsonl

# opens FILE..: each cuts both texts into the same ids, which become the texts again
opens() {
    local text file
    for text in a.txt b.txt; do
        rm -f first
        for file; do
            "$tool" -m "$file" -f $text --ids >ids 2>err || fail "$file: $(cat err)"
            [ -e first ] || cp ids first
            cmp -s ids first || fail "$file cuts $text into other ids than $1"
            "$tool" -m "$file" --decode - <ids | cmp -s - $text || fail "$file: $text does not come back"
        done
    done
}

mkdir folder
for kind in bpe spm unigram; do
    for out in k.gguf k.json folder; do
        exits 0 "$tool" train a.txt b.txt -o $out --model $kind --vocab-size 305 -t 2
        prints "$out: 305 tokens: "
        prints "learned from 2 texts of "
    done
    opens k.gguf k.json folder folder/tokenizer.json
done
prints '"tokenizer_class": "PreTrainedTokenizerFast"' folder/tokenizer_config.json
prints '"unk_token": "<unk>"' folder/tokenizer_config.json

# the same texts from elsewhere
exits 0 "$tool" train -q a.txt -o one.json --vocab-size 300
[ ! -s out ] && [ ! -s err ] || fail "-q: $(cat out err)"
"$tool" train -q - -o two.json --vocab-size 300 -t 1 <a.txt
cmp -s one.json two.json || fail "from stdin"
"$tool" train -q - -o two.json --vocab-size 300 <a.txt
exits 0 "$tool" train a.jsonl -o three.json --vocab-size 300 --json-field text
prints "learned from 40 texts"
! grep -q "is JSON" err || fail "a note about JSON: $(cat err)"
exits 0 "$tool" train a.jsonl -o json.json --vocab-size 300
prints "note: a.jsonl is JSON, and is learned as it is, with its keys and braces: --json-field NAME learns the text of a field of each line"
# a new name without a point is that of a folder, and one of no known end is refused
exits 0 "$tool" train -q a.txt -o made --vocab-size 300
cmp made/tokenizer.json one.json || fail "the tokenizer in a new folder is another one"
exits 2 "$tool" train -q a.txt -o v.bin --vocab-size 300
[ ! -e v.bin ] || fail "v.bin was written"
sed -n '/"merges"/,$p' one.json >merges1
sed -n '/"merges"/,$p' three.json >merges3
cmp -s merges1 merges3 || fail "the lines of a.txt as JSON"

# special tokens, a pre-tokenizer, a text that is too small
exits 0 "$tool" train a.txt -o s.gguf --vocab-size 400 --pre llama-bpe --special '<|im_start|>' --special '<|im_end|>' \
    --bos '<|begin|>' --eos '<|im_end|>' --add-bos --pad '<|pad|>'
[ "$("$tool" -m s.gguf -p '<|im_start|>' --ids)" = "[0, 3]" ] || fail "special tokens: $("$tool" -m s.gguf -p '<|im_start|>' --ids)"
exits 0 "$tool" -m s.gguf --show
prints 'tokenizer.ggml.pre    llama-bpe'
prints 'ends generation       1 "<|im_end|>"'
exits 0 "$tool" train b.txt -o small.json --vocab-size 2000 --min-count 2
prints "note: --vocab-size 2000 is not reached"

# any bytes that a text may have
for i in $(seq 255); do
    printf "%s \\x$(printf %x $i) " "$(sed -n "$((i % 40 + 1))p" a.txt)"
done >bytes
printf '{"text": "ab\\u0000a\\u0000b\\u00ff"}\n' >nul.jsonl
for kind in spm unigram bpe; do
    exits 0 "$tool" train nul.jsonl -o r.gguf --model $kind --vocab-size 400 --json-field text
    exits 0 "$tool" train bytes -o r.gguf --model $kind --vocab-size 800
    prints "warning: bytes is not a text in UTF-8: byte "
done
"$tool" -m r.gguf -f bytes --ids >ids 2>err
"$tool" -m r.gguf --decode - <ids | cmp -s - bytes || fail "bytes do not come back"

# what is no text is named
gzip -c a.txt >a.gz
printf '%%PDF-1.7\n\0\0' >a.pdf
head -c 3000 /dev/urandom | tr -d '\0' >random
refused() {
    local file=$1 words=$2
    exits 1 "$tool" train a.txt $file -o no.json
    prints "llm-tokenize train: $words"
    exits 1 "$tool" -m s.gguf -f $file
    prints "llm-tokenize: $words"
    [ ! -e no.json ] || fail "$file is learned from"
}
refused "$tool" "$tool is a program, not a text"
refused s.gguf "s.gguf is a GGUF file, not a text"
refused a.gz "a.gz is compressed (gzip), not a text; unpack it first: gzip -dk FILE"
refused a.pdf "a.pdf is a PDF file, not a text; take the text out of it first: pdftotext FILE"
refused random "random is not a text in UTF-8: byte "

# mistakes; nothing is written
printf '' >empty
printf '{"text": "a"}\n{"text": 7}\n' >number.jsonl
printf '{"text": "a"}\n\n{"txt": "a"}\n' >absent.jsonl
printf '{"text": "a"}\n{"text": "a\n' >broken.jsonl
# wrong CODE WORDS ARGS..
wrong() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$tool" train "$@"
    prints "$words"
    [ ! -e no.json ] || fail "$ran: no.json is there"
}
wrong 2 "which FILE?" -o no.json
wrong 2 "-o FILE is missing" a.txt
wrong 1 "nothing.txt" nothing.txt -o no.json
wrong 1 "a.txtt: No such file or directory; did you mean 'a.txt'?" a.txtt -o no.json
wrong 2 "standard input (-) is given more than once" - a.txt - -o no.json
wrong 1 "directory" folder -o no.json
wrong 1 "there is no text to learn from" empty -o no.json
wrong 1 "256 bytes and 0 characters need 256" a.txt -o no.json --vocab-size 100
wrong 2 "--vocab-size" a.txt -o no.json --vocab-size 0
wrong 2 "is for --model unigram" a.txt -o no.json --seeds 100
wrong 2 "are for --model spm and unigram" a.txt -o no.json --coverage 0.9
wrong 2 "'nonsense'" a.txt -o no.json --pre nonsense
wrong 2 "texts cannot begin with a token that is not there: bos" a.txt -o no.json --add-bos
wrong 1 "number.jsonl: line 2: --json-field text: 'text' is a number, not a string" number.jsonl -o no.json --json-field text
wrong 1 "absent.jsonl: line 3: --json-field text: the object has no such field" absent.jsonl -o no.json --json-field text
wrong 1 "broken.jsonl: line 2: --json-field text: " broken.jsonl -o no.json --json-field text
wrong 1 "a.txt: line 1: --json-field text: " a.txt -o no.json --json-field text
wrong 2 "a.txt" a.txt -o a.txt
wrong 1 "no/such" a.txt -o no/such/no.json
[ "$(head -c 10 a.txt)" = "The little" ] || fail "a.txt was overwritten"

# a signal while it reads leaves nothing
mkfifo pipe
"$tool" train pipe -o no.json 2>/dev/null &
pid=$!
exec 9>pipe
cat a.txt >&9
kill -TERM $pid
wait $pid
[ $? = 143 ] || fail "SIGTERM: exit code $?"
exec 9>&-
[ -z "$(ls | grep '^no\.json')" ] || fail "SIGTERM: $(ls)"
exit $failed
