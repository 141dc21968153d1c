/* Flags of llama.cpp's tools that the tools of the same purpose here do not have: what a person can do instead. A text names only
 * flags of the tool itself, or says whose they are. */
#include "hints.h"

#define FROM_FILE   "the model's file determines the rotation"
#define NO_DOWNLOAD "models are not downloaded: get the file, then use -m FILE"
#define NO_ADAPTER  "only LoRA adapters are supported: --lora FILE"
#define ONLY_TEXT   "only text is supported"
#define CORES       "-C sets the CPUs, -t and -tb the threads, --prio the priority"
#define LOGS                                                                                       \
    "timings are printed after the text, on standard error; --plan shows what runs where, "        \
    "--trace when"
#define EXPERTS "--place 'blk.*.ffn_*exps*=cpu' keeps the experts on the CPU"
#define PLACED  "--place PATTERN=NAME places weights, -ngl or --split layers"

#define NOT_FLASH "no backend ever makes the whole matrix of attention scores: leave the flag out"
#define NOT_CACHE                                                                                  \
    "a cache is on the device of its layer, and as long as its window: leave the flag out"
#define NO_OVERRIDE                                                                                \
    "keys cannot be overridden: the file's values are used; --ignore-key continues without those " \
    "that nothing reads"
#define NO_RPC                                                                                     \
    "backends run on this machine only; --device also accepts the path of a shared object"
#define LIST       "llm-cli --list-devices prints the devices"
#define NOT_MMAP   "files are mapped, unless --no-mmap is given"
#define NO_SAMPLES "nothing is sampled: the probabilities of the given text's tokens are added up"

/* What several tools are asked for. */
#define DOWNLOADS                                                                                  \
    "-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr --docker-repo "         \
    "--offline"
#define ROTATIONS                                                                                  \
    "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "              \
    "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast"
#define FLASH "-fa --flash-attn"
#define CACHES                                                                                     \
    "-kvo --kv-offload -nkvo --no-kv-offload -kvu --kv-unified -no-kvu --no-kv-unified "           \
    "--swa-full -dt --defrag-thold -nopo --no-op-offload --op-offload --no-host"
#define DIRECT "-dio --direct-io -ndio --no-direct-io"
#define MOE    "-cmoe --cpu-moe -ncmoe --n-cpu-moe"
#define PLACES                                                                                     \
    "-ot --override-tensor -ts --tensor-split -sm "                                                \
    "--split-mode -mg --main-gpu"
#define CPUS                                                                                       \
    "--numa --poll --poll-batch --cpu-strict --cpu-strict-batch -Cr --cpu-range -Cb "              \
    "--cpu-mask-batch -Crb --cpu-range-batch --prio-batch"
#define LOGGING                                                                                    \
    "-v --verbose --log-verbose -lv --verbosity --log-verbosity --log-file --log-disable "         \
    "--log-colors --log-prefix --log-timestamps --perf --no-perf"
#define ADAPTERS                                                                                   \
    "--control-vector --control-vector-scaled --control-vector-layer-range "                       \
    "--lora-init-without-apply"

const arg_hint cli_hints[] = {
    {"--simple-io", "the text is printed as it comes; --color never: without colours"},
    {"--no-jinja", "chat templates are always rendered; -no-cnv continues a text without one"},
    {"--in-prefix-bos", "--in-prefix '<s>' puts such a token before what is typed"},
    {"--embedding --embeddings -fim --spm-infill --host --port",
     "llm-cli only continues text: there is no server, no embedding, no infill"},
    {"--adaptive-target --adaptive-decay",
     "adaptive-p is not supported; --mirostat 2 also holds the text near a target"},
    {"-gan --grp-attn-n -gaw --grp-attn-w",
     "-c sets the context; --on-full shift goes on when it is full"},
    {ADAPTERS, NO_ADAPTER},
    {"-hfd --hf-repo-draft", NO_DOWNLOAD},
    {"-td --threads-draft -tbd --threads-batch-draft",
     "the draft model runs with the threads of -t"},
    {"-ctkd --cache-type-k-draft -ctvd --cache-type-v-draft",
     "the draft's cache has the types of -ctk and -ctv"},
    {"--draft-p-split -ps --p-split", "guesses do not branch: --draft-p-min ends them"},
    {"-lcs --lookup-cache-static -lcd --lookup-cache-dynamic",
     "--lookup guesses only from the text of this run"},
    {"-mm --mmproj -mmu --mmproj-url --no-mmproj --image --audio", ONLY_TEXT},
    {DOWNLOADS, NO_DOWNLOAD},
    {ROTATIONS, FROM_FILE},
    {"--override-kv", NO_OVERRIDE},
    {FLASH, NOT_FLASH},
    {CACHES, NOT_CACHE},
    {DIRECT, NOT_MMAP},
    {MOE, EXPERTS},
    {PLACES, PLACED},
    {"--rpc", NO_RPC},
    {"-mmp --mmap", NOT_MMAP},
    {CPUS, CORES},
    {LOGGING, LOGS},
    {"--verbose-prompt", "llm-tokenize -p TEXT shows a prompt's tokens"},
    {"-sp --special",
     "control tokens are not printed; llm-tokenize --decode IDS --special shows them"},
    {"-bf --binary-file", "-f reads any file"},
    {"--warmup --no-warmup", "there is no warm-up run"},
    {"--check-tensors", "llm-arch verify MODEL checks every node"},
    {"-np --parallel -ns --sequences -cb --cont-batching",
     "there is one text at a time; llm-bench --sequences measures more"},
    {"--usage", "--help shows the flags"},
    {"--license --completion-bash --model-vocab", "see --help"},
    {0}};

const arg_hint server_hints[] = {
    {"-p --prompt -f --file -sys --system-prompt -spf --system-prompt-file",
     "requests bring the texts; llm-cli continues one"},
    {"--keep --ignore-eos --grammar --grammar-file -j --json-schema -jf --json-schema-file -r "
     "--reverse-prompt --cache-prompt --no-cache-prompt",
     "requests say it: ignore_eos, grammar, json_schema, stop, cache_prompt"},
    {"-sp --special", "control tokens are not in answers"},
    {"--spm-infill -mv --model-vocoder --media-path --image-min-tokens", ONLY_TEXT},
    {"--repack", "weights are repacked at load, unless --no-repack is given"},
    {"-fitt --fit-target -fitc --fit-ctx", "--fit places as many layers as fit"},
    {"--check-tensors", "llm-arch verify MODEL checks every node"},
    {"--spec-replace", "the draft must have the model's tokens"},
    {"-cnv -i --interactive", "the server converses over HTTP: open its address in a browser"},
    {"--ssl-key-file --ssl-cert-file",
     "the server speaks plain HTTP; a reverse proxy before it adds TLS (docs/server.md)"},
    {"--path --api-prefix --static",
     "the server has its own page at /; a reverse proxy serves others"},
    {"--embd-normalize", "embeddings always have length 1"},
    {"--reranking --rerank", "there are no models here that rank texts"},
    {"--metrics --slots --props", "these endpoints are always there: leave the flag out"},
    {"--no-slots --no-metrics", "--api-key keeps others from these endpoints"},
    {"-cb --cont-batching -nocb --no-cont-batching",
     "requests are always computed together: leave the flag out"},
    {"-cram --cache-ram --cache-reuse -sps --slot-prompt-similarity -ctxcp --ctx-checkpoints "
     "--swa-checkpoints",
     "common beginnings are always shared; --cache-slots N keeps more of them"},
    {"--slot-save-path", "no request names a file; prompts are kept in memory: --cache-slots N"},
    {"--models-dir --models-preset --models-max --models-autoload --no-models-autoload",
     "a server has one model: start one for each"},
    {"--context-shift --no-context-shift", "an answer ends when the context is full: -c sets it"},
    {"--jinja --no-jinja", "chat templates are always rendered: leave the flag out"},
    {"--reasoning-format --reasoning-budget -rea --reasoning --chat-template-kwargs",
     "requests say it: reasoning_format, chat_template_kwargs"},
    {"--no-prefill-assistant --prefill-assistant",
     "requests say it: continue_final_message, or a last message of the assistant"},
    {"--mmproj -mm --mmproj-url -mmu --no-mmproj --image --audio", ONLY_TEXT},
    {"--webui --ui", "the page is there unless --no-webui is given"},
    {"--no-ui", "--no-webui"},
    {"--lora-base --lora-init-without-apply", "--lora FILE applies an adapter to all requests"},
    {"serve", "llm-server serves at once: llm-server -m FILE; OLLAMA_HOST is --host and --port"},
    {"--verbosity -lv --log-verbose --log-verbosity --log-disable --log-colors --log-prefix "
     "--log-timestamps --perf --no-perf",
     "-v logs each request, --log-file to a file; /metrics has the speed"},
    {"--warmup --no-warmup", "there is no warm-up run"},
    {"-td --threads-draft -tbd --threads-batch-draft",
     "the draft model runs with the threads of -t"},
    {"-hfd --hf-repo-draft", NO_DOWNLOAD},
    {ADAPTERS, NO_ADAPTER},
    {DOWNLOADS, NO_DOWNLOAD},
    {ROTATIONS, FROM_FILE},
    {"--override-kv", NO_OVERRIDE},
    {FLASH, NOT_FLASH},
    {CACHES, NOT_CACHE},
    {DIRECT, NOT_MMAP},
    {MOE, EXPERTS},
    {PLACES, PLACED},
    {"--rpc", NO_RPC},
    {"-mmp --mmap", NOT_MMAP},
    {CPUS, CORES},
    {0}};

const arg_hint bench_hints[] = {
    {DOWNLOADS, NO_DOWNLOAD},
    {FLASH, NOT_FLASH},
    {CACHES, NOT_CACHE},
    {DIRECT, NOT_MMAP},
    {MOE, EXPERTS},
    {PLACES, PLACED},
    {"-rpc --rpc", NO_RPC},
    {"--list-devices", LIST},
    {"-mmp --mmap -lm --load-mode --mlock", NOT_MMAP},
    {"--repack -nr", "weights are repacked at load, unless --no-repack is given"},
    {CPUS, "-C sets the CPUs, -t the threads, --prio the priority"},
    {"-v --verbose", "--progress shows what is measured, --profile what takes the time"},
    {"-embd --embeddings", "models compute only logits"},
    {"--n-gen-warmup", "the run before the tests has a fixed length; --no-warmup leaves it out"},
    {"-fitt --fit-target -fitc --fit-ctx --fit",
     "-ngl or --split places layers; llm-cli --fit chooses by memory"},
    {"-s --seed", "the tokens of a test are the same in each run"},
    {"-c --ctx-size", "the context is as long as a test needs: -p, -n and -d set its tokens"},
    {"-np --parallel -ns -npl -npp -ntg",
     "--sequences measures several at once, -p a prompt, -n generated tokens"},
    {ROTATIONS, FROM_FILE},
    {0}};

const arg_hint perplexity_hints[] = {
    {"--hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice "
     "--multiple-choice-tasks",
     "tasks cannot be scored; -f FILE measures a text, --kl-divergence the difference between two "
     "models"},
    {"--ppl-stride --ppl-output-type",
     "chunks do not overlap, and the second half of each is scored; -o json has all numbers"},
    {"--save-all-logits --all-logits --logits-file",
     "--kl-divergence-base FILE saves the log-probabilities"},
    {"-p --prompt", "-f FILE is the text; -f - reads it from standard input"},
    {"-bf --binary-file", "-f reads any file"},
    {"-s --seed --temp --top-k --top-p --min-p --repeat-penalty --samplers -n --predict "
     "--n-predict",
     NO_SAMPLES},
    {"-np --parallel -ns --sequences -cb --cont-batching",
     "there is one chunk at a time; -ub sets how many tokens are computed at once"},
    {DOWNLOADS, NO_DOWNLOAD},
    {ROTATIONS, FROM_FILE},
    {FLASH, NOT_FLASH},
    {CACHES, NOT_CACHE},
    {DIRECT, NOT_MMAP},
    {MOE, EXPERTS},
    {PLACES, PLACED},
    {"-rpc --rpc", NO_RPC},
    {"--list-devices", LIST},
    {"-mmp --mmap --mlock", NOT_MMAP},
    {"-tb --threads-batch", "-t sets the threads for everything; the result does not depend on it"},
    {CPUS " -C --cpu-mask --prio", "the system chooses the CPUs; -t sets the number of threads"},
    {LOGGING, "-o json has all numbers; --trace shows what runs where, and when"},
    {"--warmup --no-warmup", "there is no warm-up run"},
    {"--override-kv", NO_OVERRIDE},
    {ADAPTERS, NO_ADAPTER},
    {"--check-tensors", "llm-arch verify MODEL checks every node"},
    {0}};

const arg_hint quantize_hints[] = {
    {"--imatrix --include-weights --exclude-weights --no-importance",
     "importance matrices are not supported: all weights count the same; --tensor-type gives "
     "single tensors more bits"},
    {"--leave-output-tensor", "--output-tensor-type f16 keeps output.weight in 16 bits"},
    {"--keep-split", "OUT is one file, even for a split model"},
    {"--tensor-type-file", "--tensor-type PATTERN=T may be given for each line of that file"},
    {"--prune-layers", "layers are not removed"},
    {"--override-kv", "keys are copied unchanged"},
    {"--target-bpw --target-size --keep-bpw-state --bpw-state",
     "mixes are not searched: TYPE sets the mix; --dry-run prints its sizes"},
    {"--nthreads --n-threads", "-t sets the number of threads"},
    {0}};
