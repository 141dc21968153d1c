/* Flags of llama.cpp's llama-cli that llm-cli lacks, with advice on what to do instead. */
#include "options.h"

#define NO_CHAT                                                                                    \
    "there is no conversation mode: -p takes the text as it is, the model's own template included"
#define NO_SAMPLER                                                                                 \
    "this sampler is not here; there are --temp, --top-k, --top-p, --min-p and --repeat-penalty"
#define FROM_FILE   "the rotation is what the model's file says"
#define NO_DOWNLOAD "models are not downloaded: get the file, then -m FILE"
#define NO_DRAFT    "there is no speculative decoding"
#define NO_KEEP     "the context does not shift, and generation ends when it is full; -c sets its size"
#define NO_ADAPTER  "adapters are not applied: merge them into the model before it is converted"
#define ONLY_TEXT   "only text is read"
#define CORES       "CPUs are chosen by -C, threads by -t and -tb, priority by --prio"
#define LOGS                                                                                       \
    "timings come after the text, on standard error; --plan shows what runs where, --trace when"
#define PLACED "weights are placed by --place PATTERN=NAME, layers by -ngl or --split"

const arg_hint cli_hints[] = {
    {"-cnv --conversation -st --single-turn -sys --system-prompt -sysf --system-prompt-file "
     "--chat-template --chat-template-file "
     "--chat-template-kwargs --jinja --no-jinja --reasoning-format --reasoning-budget",
     NO_CHAT},
    {"-i --interactive -if --interactive-first -r --reverse-prompt --in-prefix --in-suffix "
     "--in-prefix-bos -mli --multiline-input "
     "-co --color --simple-io",
     NO_CHAT},
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file",
     "there are no grammars: what is generated is free text"},
    {"--samplers --sampling-seq --sampler-seq --typical --typical-p --xtc-probability "
     "--xtc-threshold --dynatemp-range "
     "--dynatemp-exp --mirostat --mirostat-lr --mirostat-ent --top-nsigma --top-n-sigma "
     "--presence-penalty --frequency-penalty "
     "-l --logit-bias --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n "
     "--dry-sequence-breaker --adaptive-target",
     NO_SAMPLER},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", "prompts are not kept between runs"},
    {"--keep --context-shift --no-context-shift -gan --grp-attn-n -gaw --grp-attn-w", NO_KEEP},
    {"--lora --lora-scaled --control-vector --control-vector-scaled --control-vector-layer-range",
     NO_ADAPTER},
    {"-md --model-draft -hfd --hf-repo-draft --draft --draft-n --draft-max --draft-min "
     "--draft-n-min --draft-p-min -ngld -devd -cd",
     NO_DRAFT},
    {"-mm --mmproj -mmu --mmproj-url --no-mmproj --image --audio", ONLY_TEXT},
    {"-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo "
     "--offline",
     NO_DOWNLOAD},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor "
     "--yarn-beta-slow --yarn-beta-fast",
     FROM_FILE},
    {"--override-kv", "keys are not overridden: what the file says holds; --ignore-key goes on "
                      "without those that nothing reads"},
    {"-fa --flash-attn -nkvo --no-kv-offload -kvu --kv-unified --swa-full -dt --defrag-thold "
     "--no-op-offload --op-offload -dio "
     "--direct-io",
     "there is nothing to set: attention never makes the whole matrix of scores, and caches are "
     "where their layers run"},
    {"-ot --override-tensor -cmoe --cpu-moe -ncmoe --n-cpu-moe -ts --tensor-split -sm --split-mode "
     "-mg --main-gpu --rpc",
     PLACED},
    {"--numa --poll --poll-batch --cpu-strict --cpu-strict-batch -Cr --cpu-range -Cb "
     "--cpu-mask-batch -Crb --cpu-range-batch "
     "--prio-batch",
     CORES},
    {"-v --verbose --log-verbose -lv --verbosity --log-verbosity --log-file --log-disable "
     "--log-colors --log-prefix "
     "--log-timestamps --perf --no-perf --show-timings --no-show-timings",
     LOGS},
    {"--verbose-prompt", "llm-tokenize -p TEXT shows a prompt's tokens"},
    {"-sp --special",
     "control tokens are not printed; llm-tokenize --decode IDS --special shows them"},
    {"-bf --binary-file", "-f reads any file"},
    {"--warmup --no-warmup", "there is no warm-up run"},
    {"--check-tensors", "llm-arch verify MODEL looks at every node"},
    {"-np --parallel -ns --sequences -cb --cont-batching",
     "one text at a time; llm-bench --sequences measures more"},
    {"--usage", "--help shows the flags"},
    {"--license --completion-bash --model-vocab", "--help shows what there is"},
    {0}};
