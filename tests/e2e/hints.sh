#!/usr/bin/env bash
# hints.sh LLM_BENCH LLM_PERPLEXITY LLM_QUANTIZE LLM_CLI [LLM_SERVER]: the flags of llama.cpp's tools of these purposes work, or get a hint, which
# names only flags that the tool has, or the tool that has them.
set -u
. "$(dirname "$0")/common.sh"
bench=$1 perplexity=$2 quantize=$3 cli=$4 server=${5:-}

# Each flag is given alone: without the value it lacks, or without what else the tool needs, nothing runs.
check() { # TOOL FLAG..
    local tool=$1 help flag out hint word
    help=$("$tool" --help) || fail "$tool --help"
    shift
    for flag in "$@"; do
        grep -q -E -- "(^| )$flag(,| |\$)" <<<"$help" && continue
        out=$("$tool" "$flag" 2>&1 </dev/null) && fail "$tool $flag is taken"
        grep -q -F -- "unknown flag '$flag': " <<<"$out" || fail "$tool $flag: no hint: $out"
        hint=${out#*"': "}
        for word in $(sed -E -e 's/llm-[a-z]+ [^,;:]*//g' <<<"$hint" | grep -o -E -- '(^| |\()--?[a-zA-Z][a-z-]*'); do
            grep -q -E -- "(^| )$word([],= []|\$)" <<<"$help" || fail "$tool $flag: the hint has $word: $hint"
        done
    done
}

check "$bench" -h --numa -r --repetitions --prio --delay -o --output -oe --output-err --list-devices -v --verbose --progress \
    --no-warmup --n-gen-warmup -fitt --fit-target -fitc --fit-ctx -rpc --rpc -m --model -hf -hfr --hf-repo -hff --hf-file -hft --hf-token \
    --offline -p --n-prompt -n --n-gen -pg -d --n-depth -b --batch-size -ub --ubatch-size -ctk --cache-type-k -ctv --cache-type-v -t \
    --threads -C --cpu-mask --cpu-strict --poll -ngl --n-gpu-layers -ncmoe --n-cpu-moe -sm --split-mode -mg --main-gpu -nkvo \
    --no-kv-offload -fa --flash-attn -dev --device -mmp --mmap -lm --load-mode -dio --direct-io -embd --embeddings -ts --tensor-split -ot \
    --override-tensor -nopo --no-op-offload --no-host --repack -nr --no-repack -s --seed -c --ctx-size
check "$perplexity" --hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice --multiple-choice-tasks \
    --kl-divergence --kl-divergence-base --save-all-logits --logits-file --ppl-stride --ppl-output-type --chunks -f --file -bf \
    --binary-file -p --prompt -m --model -c --ctx-size -t --threads -tb --threads-batch -b --batch-size -ub --ubatch-size -ctk -ctv -fa \
    --flash-attn -ngl --gpu-layers --n-gpu-layers -sm -ts -mg -ot -cmoe -ncmoe -nkvo -dev --device --list-devices --no-mmap --mlock --numa \
    -C --cpu-mask --prio --poll --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-ext-factor -s --seed --temp -np \
    --parallel -v --verbose --log-disable --log-file --no-warmup --override-kv --lora --check-tensors -hf -hff -mu --rpc -n --predict
check "$quantize" --allow-requantize --leave-output-tensor --pure --imatrix --include-weights --exclude-weights --output-tensor-type \
    --token-embedding-type --tensor-type --tensor-type-file --prune-layers --keep-split --override-kv --target-bpw --no-importance --dry-run \
    --nthreads
check "$cli" -cnv -st -sys --jinja --grammar -j --samplers --mirostat --prompt-cache --keep --lora -md --mmproj -hf --rope-scaling --override-kv \
    -fa -nkvo -ot -cmoe -ncmoe -ts -sm -mg --rpc --numa --poll -v --log-file --verbose-prompt -sp -bf --no-warmup --check-tensors -np \
    -mmp --mlock -dev
[ -z "$server" ] || check "$server" -m --model -a --alias -c --ctx-size -n --predict --n-predict -b --batch-size -ub --ubatch-size -np --parallel \
    --keep --swa-full -fa --flash-attn --perf --no-perf --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-ext-factor -kvo -nkvo \
    --repack -nr --no-host -ctk -ctv -dt --rpc --mlock --mmap --no-mmap -dio --numa -dev --device --list-devices -ot -cmoe -ncmoe -ngl -sm -ts -mg \
    --fit -fitt -fitc --check-tensors --override-kv --op-offload --lora --lora-scaled --control-vector -mu --model-url -dr -hf -hfd -hff -hft \
    --log-disable --log-file --log-colors -v -lv --offline --log-prefix --log-timestamps --samplers -s --seed --sampling-seq --ignore-eos --temp \
    --top-k --top-p --min-p --xtc-probability --typical --repeat-last-n --repeat-penalty --dry-multiplier --mirostat -l --grammar --grammar-file \
    -j --json-schema -jf -ctxcp -cram --kv-unified -sps --context-shift --no-context-shift -r -sp --special --no-warmup --spm-infill --pooling -cb \
    -nocb --mmproj --no-mmproj --host --port --path --api-prefix --webui --no-webui --embedding --embeddings --rerank --api-key --api-key-file \
    --ssl-key-file --ssl-cert-file --chat-template-kwargs -to --timeout --threads-http --cache-prompt --no-cache-prompt --cache-reuse --metrics \
    --props --slots --no-slots --slot-save-path --media-path --models-dir --models-max --jinja --no-jinja --reasoning-format \
    --reasoning-budget --chat-template --chat-template-file --no-prefill-assistant -td -tbd --draft-max --draft-min --draft-p-min -cd -devd -ngld \
    -md --spec-replace -mv --model-vocoder -t -tb -C -Cr --cpu-strict --prio --poll
exit $failed
