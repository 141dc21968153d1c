/* Flags of llama.cpp's tools, and of ollama, mlx-lm and Hugging Face's, that the tools of the same purpose here do not have: other names,
 * flags that change nothing here, and what a person can do instead of the others. A text names only flags of the tool itself, or
 * says whose they are. docs/from-llama-cpp.md shows these tables; a test compares them. */
#include "hints.h"

#include "tool_bits.h"

#define NO_DOCKER "models come from the Hugging Face Hub, -hf USER/REPO, or from a URL, -mu URL"
#define ONLY_TEXT "only text is supported"
#define PLACED    "--place PATTERN=NAME places weights, -ngl or --split layers"
#define SPLITS                                                                                     \
    "--split A=N,B=M sets how many layers each device has; 3,1 of 32 is --split "                  \
    "vulkan0=24,vulkan1=8"
#define MAIN_GPU "--device NAME sets what to run on; vulkan0 is the first GPU"

#define NOT_FLASH  "attention never makes the whole matrix of scores here"
#define LAYER_KV   "the cache of a layer is on the layer's device"
#define FULL_CACHE "a cache is as long as the model's attention looks back"
#define PAGES      "the cache has pages, which need no defragmentation"
#define PLACE_OPS  "operations run where their weights are"
#define HOST       "backends choose their buffers themselves"
#define SCHEDULED  "the system schedules the threads"
#define NODES      "threads and weights are spread over the nodes of memory by themselves"
#define ONE_PRIO   "the priority is that of all threads"
#define NO_RPC                                                                                     \
    "mpirun starts a program on several machines, whose devices are rank1, rank2 ..: see "         \
    "docs/cluster.md"
#define LIST       "llm-cli --list-devices prints the devices"
#define MAPPED     "files are mapped unless --no-mmap is given"
#define REPACKED   "weights are repacked unless --no-repack is given"
#define NO_SAMPLES "nothing is sampled: the probabilities of the given text's tokens are added up"
#define NO_TEXT    "nothing is sampled: no text is written"
#define NO_LOG     "there is no log, only notes and timings on standard error, which -q leaves out"
#define NO_WARMUP  "there is no warm-up run"
#define VERIFY     "llm-arch verify MODEL checks every node"
#define CPU_SAMPLE "tokens are drawn on the CPU"
#define DRAFT_CPU  "the draft model runs with the threads and CPUs of the model"
#define DRAFT_KV                                                                                   \
    "the draft's cache has the types of -ctk and -ctv, and guesses do not change the text"
#define NO_BRANCH  "guesses do not branch, and do not change the text"
#define NO_MODELS  "-hf USER/REPO names a model of the Hugging Face Hub, -m FILE a file"
#define CPU_SETS   "-C HEX sets the CPUs of all threads: bit 0 is CPU 0"
#define ONLY_READS "only the tokenizer of the model is used, and nothing is computed"

/* What several tools are asked for. */
#define DOCKER "-dr --docker-repo"
#define RANGES "-Cr --cpu-range -Cb --cpu-mask-batch -Crb --cpu-range-batch"
#define MEDIA                                                                                      \
    "-mm --mmproj -mmu --mmproj-url -mmdev --mmproj-device --mmproj-auto --mmproj-offload "        \
    "--image --audio --video --image-min-tokens --image-max-tokens"
#define NO_MEDIA          "--no-mmproj --no-mmproj-auto --no-mmproj-offload"
#define EYE_NAMED         "an eye is opened only if --mmproj FILE names it"
#define EYE_DEVICE        "the eye runs on the model's first device"
#define ONLY_PICTURES     "only texts, pictures and sounds are supported"
#define SAMPLING_SWITCHES "--ignore-eos -bs --backend-sampling"
#define NAMED_MODELS      "--*-default --fim-*-spec"

/* clang-format off */

static const char sampling_flags[] =
    "--samplers -s --seed --sampler-seq --sampling-seq "
#define SAMPLER_NUMBER(kind, name, by_default, at_0, member, low, high, must_be, field, flags, ...) flags " "
#include "llm/internal/samplers.def"
    "--dry-sequence-breaker --adaptive-target --adaptive-decay -l --logit-bias --grammar --grammar-file -j --json-schema -jf "
    "--json-schema-file -n --predict --n-predict --keep";

/* A flag gets the first row of its tool that fits. */
static const arg_hint hints[] = {
    {CLI, "run chat", "`llm-cli -m FILE` converses on a terminal, `llm-cli -hf USER/REPO` gets the model first", HINT_REFUSED},
    {CLI, "generate", "`llm-cli -m FILE -p TEXT` continues a text", HINT_REFUSED},
    {CLI, "serve", "`llm-server -m FILE` serves a model", HINT_REFUSED},
    {CLI, "pull", "`llm-cli -hf USER/REPO` gets a model of the Hugging Face Hub and runs it", HINT_REFUSED},
    {CLI, "list ls", "--cache-list prints the models that were downloaded; models are files, and -m FILE runs one", HINT_REFUSED},
    {CLI, "push rm cp ps stop", "models are files, and -m FILE runs one; --cache-list prints those that were downloaded", HINT_REFUSED},
    {CLI, "show", "`llm-arch show FILE` prints what a model's file contains", HINT_REFUSED},
    {CLI, "create", "flags say what a Modelfile does: -m FILE or -hf USER/REPO its FROM, --system-prompt its SYSTEM, --chat-template-file its TEMPLATE, "
     "--lora its ADAPTER, and flags such as --temp and -c its PARAMETERs; `llm-convert FOLDER -o FILE` makes a file of a Hugging Face folder", HINT_REFUSED},
    {CLI, "quantize", "`llm-quantize IN OUT TYPE` makes a smaller file", HINT_REFUSED},
    {CLI, "bench", "`llm-bench -m FILE` measures a model's speed", HINT_REFUSED},
    {WRITES, "help", "--help lists the flags", HINT_REFUSED},
    {CLI, "version", "--version prints it", HINT_REFUSED},
    {CLI, "-z --tokenizer",
     "a llama2.c checkpoint has its tokenizer.bin next to it; `llm-convert MODEL.bin --tokenizer FILE -o FILE.gguf` takes another one", HINT_REFUSED},
    {CLI, "--simple-io", "the text is printed as it comes", HINT_NOTHING},
    {WRITES, "--jinja", "chat templates are always rendered", HINT_NOTHING},
    {CLI, "--no-jinja", "chat templates are always rendered; -no-cnv continues a text without one", HINT_REFUSED},
    {CLI, "--display-prompt", "the prompt is printed unless --no-display-prompt is given", HINT_NOTHING},
    {CLI, "-ptc --print-token-count", "the number of tokens is printed at the end", HINT_NOTHING_VALUE},
    {CLI, "--in-prefix-bos", "--in-prefix '<s>' puts such a token before what is typed", HINT_REFUSED},
    {CLI, "-spf", "--system-prompt-file", HINT_SAME},
    {CLI, "--system", "--system-prompt", HINT_SAME},
    {CLI, "--ignore-chat-template", "-no-cnv", HINT_SAME},
    {CLI, "--chat-template-config", "--chat-template-kwargs", HINT_SAME},
    {CLI, "--prompt-cache-file", "--prompt-cache", HINT_SAME},
    {CLI, "--output-file", "--output", HINT_SAME},
    {CLI, "--stop-sequence --stop-sequences", "--stop", HINT_SAME},
    {CLI, "--nowordwrap", "--no-wrap", HINT_SAME},
    {CLI, "--hidethinking", "--reasoning=hide", HINT_SAME},
    {CLI, "--think=false", "--reasoning=off", HINT_SAME},
    {CLI, "--think=true", "--reasoning=on", HINT_SAME},
    {CLI, "--think", "--reasoning on or off", HINT_REFUSED},
    {CLI, "--reasoning-effort=default", "the chat template decides", HINT_NOTHING},
    {WRITES, "--reasoning-effort", "--chat-template-kwargs '{\"reasoning_effort\": \"high\"}', if the template has it", HINT_REFUSED},
    {CLI, "--skip-chat-parsing", "--reasoning=show", HINT_SAME},
    {CLI, "--format=json", "--json-schema={}", HINT_SAME},
    {CLI, "--format", "--json-schema SCHEMA sets the form of the answer", HINT_REFUSED},
    {CLI, "--keepalive", "the model is in memory as long as the program runs", HINT_NOTHING_VALUE},
    {CLI, "--server-base", "llm-cli runs the model itself", HINT_REFUSED},
    {CLI, "--embedding --embeddings -fim --spm-infill --host --port", "llm-cli only continues text; `llm-embed -m FILE -p TEXT` makes embeddings, llm-server has them and infill", HINT_REFUSED},
    {CLI, "-gan --grp-attn-n -gaw --grp-attn-w", "-c sets the context; --on-full shift goes on when it is full", HINT_REFUSED},
    {CLI, "-ctxcp --ctx-checkpoints --swa-checkpoints -cram --cache-ram", "a conversation keeps all of its cache", HINT_NOTHING_VALUE},
    {CLI, "-v --verbose --log-verbose", "--plan shows what runs where, --trace when", HINT_NOTHING},
    {CLI, "--log-file", "2>FILE keeps notes and timings, --json-output prints a record of the run", HINT_REFUSED},
    {CLI, "--log-prompts-dir", "--json-output prints a record of the run", HINT_REFUSED},
    {CLI, "--verbose-prompt", "llm-tokenize -p TEXT shows a prompt's tokens", HINT_REFUSED},
    {CLI, "-sp --special", "control tokens are not printed; llm-tokenize --decode IDS --special shows them", HINT_REFUSED},
    {MEASURES | CLI | TOKENIZE, "-bf --binary-file", "--file", HINT_SAME},
    {CLI, "-np=1 --parallel=1 -np=-1 --parallel=-1", "there is one text at a time", HINT_NOTHING},
    {CLI, "-np --parallel -ns --sequences", "there is one text at a time; llm-bench --sequences measures more, llm-server answers many", HINT_REFUSED},
    {CLI, "-cb --cont-batching -nocb --no-cont-batching -kvu --kv-unified -no-kvu --no-kv-unified", "there is one text at a time", HINT_NOTHING},
    {CLI, "-mmp", "--mmap", HINT_SAME},

    {SERVER, "serve start", "llm-server serves at once: llm-server -m FILE; OLLAMA_HOST is --host and --port", HINT_REFUSED},
    {SERVER, "run", "`llm-cli -m FILE` converses on a terminal, `llm-cli -hf USER/REPO` gets the model first", HINT_REFUSED},
    {SERVER, "list ls", "--cache-list prints the models that were downloaded", HINT_REFUSED},
    {SERVER, "pull", "`llm-server -hf USER/REPO` gets a model of the Hugging Face Hub and serves it", HINT_REFUSED},
    {SERVER, "push rm cp show create ps stop", "a model is a file: llm-server -m FILE", HINT_REFUSED},
    {SERVER, "-p --prompt -f --file -sys --system-prompt -sysf -spf --system-prompt-file", "requests bring the texts; llm-cli continues one", HINT_REFUSED},
    {SERVER, "--ignore-eos --grammar --grammar-file -j --json-schema -jf --json-schema-file -r " "--reverse-prompt --no-cache-prompt",
     "requests say it: ignore_eos, grammar, json_schema, stop, cache_prompt", HINT_REFUSED},
    {SERVER, "-e --escape --no-escape", "texts of requests are JSON, which has its own escapes", HINT_NOTHING},
    {SERVER, "--cache-prompt --cache-idle-slots --no-cache-idle-slots", "common beginnings are always shared", HINT_NOTHING},
    {SERVER, "-cram --cache-ram --cache-reuse -sps --slot-prompt-similarity -ctxcp --ctx-checkpoints " "--swa-checkpoints -cms --checkpoint-min-step",
     "common beginnings are always shared; --cache-slots N keeps more of them", HINT_NOTHING_VALUE},
    {SERVER, "-sp --special", "control tokens are not in answers", HINT_REFUSED},
    {SERVER, "--spm-infill", "POST /infill writes what stands before the gap, then what stands after it", HINT_REFUSED},
    {SERVER, "-mv --model-vocoder --media-path --mtmd-batch-max-tokens", ONLY_TEXT, HINT_REFUSED},
    {SERVER, "--spec-replace", "the draft must have the model's tokens", HINT_REFUSED},
    {SERVER, "-cnv --conversation -i --interactive", "the server converses over HTTP: open its address in a browser", HINT_REFUSED},
    {SERVER, "--ssl-key-file --ssl-cert-file", "the server speaks plain HTTP; a reverse proxy before it adds TLS (docs/server.md)", HINT_REFUSED},
    {SERVER, "--path --api-prefix --static", "the server has its own page at /; a reverse proxy serves others", HINT_REFUSED},
    {SERVER, "--reuse-port", "one process has the port; --parallel N answers more requests at once", HINT_REFUSED},
    {SERVER, "--cors-methods --cors-headers --cors-credentials", "--cors ORIGIN allows all that the API needs", HINT_REFUSED},
    {SERVER, "--no-cors-credentials", "cookies are not used", HINT_NOTHING},
    {SERVER, "--ui-config --webui-config --ui-config-file --webui-config-file", "the page keeps its settings in the browser", HINT_REFUSED},
    {SERVER, "--tools --tools-runtime --ui-mcp-proxy --webui-mcp-proxy --mcp-servers-config --mcp-servers-json " "-ag --agent",
     "the server runs no tools: requests bring them, and clients run them", HINT_REFUSED},
    {SERVER, "-no-ag --no-agent --no-ui-mcp-proxy --no-webui-mcp-proxy", "the server runs no tools", HINT_NOTHING},
    {SERVER, "--sleep-idle-seconds=0",
     "give -1, with which the model stays, or the seconds after which it is unloaded (--keep-alive 0: after each answer)", HINT_REFUSED},
    {SERVER, "--sleep-idle-seconds", "--keep-alive", HINT_SAME},
    {SERVER, "--embd-normalize=2", "embeddings always have length 1", HINT_NOTHING},
    {SERVER, "--embd-normalize", "embeddings always have length 1", HINT_REFUSED},
    {SERVER, "--metrics --slots", "these endpoints are there, unless --no-slots is given", HINT_NOTHING},
    {SERVER, "--props", "GET /props is always there, and no request changes the server's settings", HINT_NOTHING},
    {SERVER, "--no-metrics", "--api-key keeps others from this endpoint", HINT_REFUSED},
    {SERVER, "-cb --cont-batching -nocb --no-cont-batching", "requests are always computed together, which does not change their answers", HINT_NOTHING},
    {SERVER, "-kvu --kv-unified -no-kvu --no-kv-unified", "sequences share one cache, and each may use all of it", HINT_NOTHING},
    {SERVER, "-np=-1 --parallel=-1", "--parallel=4", HINT_SAME},
    {SERVER, "--max-num-seqs --num-parallel", "--parallel", HINT_SAME},
    {SERVER, "--served-model-name", "--alias", HINT_SAME},
    {SERVER, "--models-dir --models-preset", "--models", HINT_SAME},
    {SERVER, "--models-autoload", "a model is loaded when a request names it", HINT_NOTHING},
    {SERVER, "--no-context-shift", "an answer ends when the context is full, unless --context-shift is given", HINT_NOTHING},
    {SERVER, "--no-jinja", "chat templates are always rendered; /v1/completions continues a text without one", HINT_REFUSED},
    {SERVER, "--reasoning-effort=default", "requests decide, and by default the chat template", HINT_NOTHING},
    {SERVER, "--skip-chat-parsing", "--reasoning-format=none", HINT_SAME},
    {SERVER, "--prefill-assistant", "a last message of the assistant is continued", HINT_NOTHING},
    {SERVER, "--no-prefill-assistant", "requests say it: continue_final_message", HINT_REFUSED},
    {SERVER, "--webui --ui", "the page is there unless --no-webui is given", HINT_NOTHING},
    {SERVER, "--no-ui", "--no-webui", HINT_SAME},
    {SERVER, "--lora-base", "--lora FILE applies an adapter to all requests", HINT_REFUSED},
    {SERVER, "--log-verbose", "--verbose", HINT_SAME},
    {SERVER, "--log-prompts-dir", "-v logs each request, --log-file to a file", HINT_REFUSED},
    {MEASURES | EMBED | SERVER, "--mmap -mmp", MAPPED, HINT_NOTHING},

    /* llama-bench's flags have a value each, or a list of values to measure. */
    {BENCH, "-fa --flash-attn", NOT_FLASH, HINT_NOTHING_VALUE},
    {BENCH, "-nkvo=0 --no-kv-offload=0 -kvo --kv-offload", LAYER_KV, HINT_NOTHING},
    {BENCH, "-nopo --no-op-offload", PLACE_OPS, HINT_NOTHING_VALUE},
    {BENCH, "--no-host", HOST, HINT_NOTHING_VALUE},
    {BENCH, "-dio --direct-io", MAPPED, HINT_NOTHING_VALUE},
    {BENCH, "-mmp=1 --mmap=1 -lm=auto --load-mode=auto -lm=mmap --load-mode=mmap -lm=dio --load-mode=dio", MAPPED, HINT_NOTHING},
    {BENCH, "-mmp=0 --mmap=0 -lm=none --load-mode=none", "--no-mmap", HINT_SAME},
    {BENCH, "-mmp --mmap -lm --load-mode --mlock", MAPPED ", in all tests", HINT_REFUSED},
    {BENCH, "-ts --tensor-split", SPLITS, HINT_REFUSED},
    {BENCH, "--gpu-layers", "-ngl", HINT_SAME},
    {BENCH, "-rpc --rpc", NO_RPC, HINT_REFUSED},
    {MEASURES | EMBED | BENCH | TOKENIZE, "--list-devices", LIST, HINT_REFUSED},
    {BENCH, "-nr", "--no-repack", HINT_SAME},
    {BENCH, "--numa", NODES, HINT_NOTHING_VALUE},
    {BENCH, "--poll --cpu-strict", SCHEDULED, HINT_NOTHING_VALUE},
    {BENCH, "-v --verbose", "--progress shows what is measured, --profile what takes the time", HINT_NOTHING},
    {BENCH, "-embd=0 --embeddings=0", "models compute logits", HINT_NOTHING},
    {BENCH, "-embd --embeddings", "models compute only logits", HINT_REFUSED},
    {BENCH, "--n-gen-warmup", "the run before the tests has a fixed length; --no-warmup leaves it out", HINT_REFUSED},
    {BENCH, "-fitt --fit-target -fitc --fit-ctx -fit --fit", "-ngl or --split places layers; llm-cli --fit chooses by memory", HINT_REFUSED},
    {BENCH, "-s --seed", "the tokens of a test are the same in each run", HINT_NOTHING_VALUE},
    {BENCH, "-c --ctx-size", "the context is as long as a test needs: -p, -n and -d set its tokens", HINT_REFUSED},
    {BENCH, "-np --parallel -ns -npl -npp -ntg", "--sequences measures several at once, -p a prompt, -n generated tokens", HINT_REFUSED},

    {TRANSCRIBE, "-otxt --output-txt", "--format=text", HINT_SAME},
    {TRANSCRIBE, "-osrt --output-srt", "--format=srt", HINT_SAME},
    {TRANSCRIBE, "-ovtt --output-vtt", "--format=vtt", HINT_SAME},
    {TRANSCRIBE, "-oj --output-json -ojf --output-json-full", "--format=json", HINT_SAME},
    {TRANSCRIBE, "--output-format=txt", "--format=text", HINT_SAME},
    {TRANSCRIBE, "--output-format", "--format", HINT_SAME},
    {TRANSCRIBE, "-of --output-file", "-o FILE writes one sound, and its end, such as .srt, chooses the format; --output-dir DIR a file for each", HINT_REFUSED},
    {TRANSCRIBE, "-olrc --output-lrc -ocsv --output-csv -owts --output-words -fp --font-path --output-format=tsv", "--format text, times, srt, vtt or json", HINT_REFUSED},
    {TRANSCRIBE, "-nt", "the default format has no times; --no-timestamps lets the model write none", HINT_NOTHING},
    {TRANSCRIBE, "-nf --no-fallback", "--temperature-inc=0", HINT_SAME},
    {TRANSCRIBE, "-np --no-prints", "--quiet", HINT_SAME},
    {TRANSCRIBE, "-pp --print-progress", "progress is shown on a terminal", HINT_NOTHING},
    {TRANSCRIBE, "-ps --print-special", "--format json has all tokens, also those that are no text", HINT_NOTHING},
    {TRANSCRIBE, "-pc --print-colors --print-confidence", "--format json has probabilities, with --word-timestamps that of each word", HINT_NOTHING},
    {TRANSCRIBE, "-ls --log-score", "--format json has the log-probabilities of pieces", HINT_NOTHING},
    {TRANSCRIBE, "-debug --debug-mode", "--dump mel -o FILE.npy writes the spectrogram", HINT_NOTHING},
    {TRANSCRIBE, "-fa --flash-attn -nfa --no-flash-attn", NOT_FLASH, HINT_NOTHING},
    {TRANSCRIBE, "-ng --no-gpu", "--device=cpu", HINT_SAME},
    {TRANSCRIBE, "-oved --ov-e-device", "there is no OpenVINO; --device NAME sets what to run on", HINT_NOTHING_VALUE},
    {TRANSCRIBE, "-ac=0 --audio-ctx=0", "a window is as long as the model has learned", HINT_NOTHING},
    {TRANSCRIBE, "-ac --audio-ctx", "a window is as long as the model has learned", HINT_REFUSED},
    {TRANSCRIBE, "-su --speed-up", "sounds are heard at their own speed; -bs 1 is faster", HINT_REFUSED},
    {TRANSCRIBE, "--offset-t", "--offset SECONDS is where to begin, not in milliseconds", HINT_REFUSED},
    {TRANSCRIBE, "-on=0 --offset-n=0", "pieces are counted from the first", HINT_NOTHING},
    {TRANSCRIBE, "-on --offset-n", "pieces are counted from the first; --offset SECONDS is where to begin", HINT_REFUSED},
    {TRANSCRIBE, "--carry-initial-prompt", "only the first window sees the prompt as a whole", HINT_REFUSED},
    {TRANSCRIBE, "-sns --suppress-nst", "tokens that are no speech are never written", HINT_NOTHING},
    {TRANSCRIBE, "--suppress-regex", "the model's file lists what is never written", HINT_REFUSED},
    {TRANSCRIBE, "--grammar --grammar-rule --grammar-penalty", "no grammar says what is heard; --prompt TEXT says how words are spelled", HINT_REFUSED},
    {TRANSCRIBE, "-dl --detect-language", "-l auto, the default, detects the language; --duration 30 writes down no more than half a minute", HINT_REFUSED},
    {TRANSCRIBE, "-di --diarize -tdrz --tinydiarize", "speakers are not told apart; pieces have times", HINT_REFUSED},
    {TRANSCRIBE, "-ml=0 --max-len=0 -sow --split-on-word", "words are never cut", HINT_NOTHING},
    {TRANSCRIBE, "-ml --max-len",
     "--word-timestamps --format srt: with --max-words-per-line 1, each word by itself; with --max-line-width N --max-line-count 1, a line of N characters at most", HINT_REFUSED},
    {TRANSCRIBE, "-dtw --dtw", "--word-timestamps finds the times of words, by the heads of attention that the model's file names", HINT_REFUSED},
    {TRANSCRIBE, "-wt --word-thold", "the times of words, --word-timestamps, come from the model's attention, and need no threshold", HINT_NOTHING_VALUE},
    {TRANSCRIBE, "--word-timestamps=True --word-timestamps=true", "--word-timestamps", HINT_SAME},
    {TRANSCRIBE, "--highlight-words=True --highlight-words=true", "--highlight-words", HINT_SAME},
    {TRANSCRIBE, "--word-timestamps=False --word-timestamps=false --highlight-words=False --highlight-words=false", "this is the default", HINT_NOTHING},
    {TRANSCRIBE, "--prepend-punctuations --append-punctuations", "signs belong to the words to which the published program adds them by default", HINT_REFUSED},
    {TRANSCRIBE, "--hallucination-silence-threshold", "silence is not skipped by the lengths of words; --no-speech-thold P leaves it out", HINT_REFUSED},
    {TRANSCRIBE, "-mc=0 --max-context=0 --condition-on-previous-text=False --condition-on-previous-text=false", "--no-context", HINT_SAME},
    {TRANSCRIBE, "-mc --max-context --condition-on-previous-text", "the model sees what half of its context holds; --no-context: nothing", HINT_REFUSED},
    {TRANSCRIBE, "--stream --streaming", "--live", HINT_SAME},
    {TRANSCRIBE, "--step --length --keep --capture", "--live - writes down a pipe word by word, of models that write while they hear; others write window by window", HINT_REFUSED},
    {TRANSCRIBE, "--task=translate", "--translate", HINT_SAME},
    {TRANSCRIBE, "--task=transcribe", "this is the default", HINT_NOTHING},
    {TRANSCRIBE, "--beams --num-beams", "--beam-size", HINT_SAME},
    {TRANSCRIBE, "--initial-prompt", "--prompt", HINT_SAME},
    {TRANSCRIBE, "--temperature-increment-on-fallback", "--temperature-inc", HINT_SAME},
    {TRANSCRIBE, "--logprob-threshold", "--logprob-thold", HINT_SAME},
    {TRANSCRIBE, "--no-speech-threshold", "--no-speech-thold", HINT_SAME},
    {TRANSCRIBE, "--fp16 --verbose -p --processors", "it is not needed here", HINT_NOTHING_VALUE},
    {EMBED, "--embd-normalize=2 --normalize", "vectors have length 1 unless --no-normalize is given", HINT_NOTHING},
    {EMBED, "--embd-normalize=-1", "--no-normalize", HINT_SAME},
    {EMBED, "--embd-normalize", "vectors have length 1, or with --no-normalize that which the model gives them; other norms are not computed", HINT_REFUSED},
    {EMBED, "--embd-output-format", "--format jsonl, npy or table", HINT_REFUSED},
    {EMBED, "--embd-separator --cls-separator", "each line of -f FILE is a text, and -p TEXT is repeatable; --rerank QUERY makes pairs of a query and each line", HINT_REFUSED},
    {EMBED, "--embedding --embeddings", "llm-embed computes nothing else", HINT_NOTHING},
    {EMBED, "--reranking", "--rerank QUERY ranks the lines by a reranker's scores", HINT_REFUSED},
    {EMBED, "--attention", "the model's file and descriptor say what a token sees", HINT_REFUSED},
    {EMBED, "--context-shift --no-context-shift", "a text fits the context, or --truncate cuts it", HINT_NOTHING},
    {EMBED, sampling_flags, NO_TEXT, HINT_NOTHING_VALUE},
    {EMBED, SAMPLING_SWITCHES, NO_TEXT, HINT_NOTHING},
    {EMBED, "-cb --cont-batching -kvu --kv-unified -no-kvu --no-kv-unified", "texts are always computed together, which does not change their vectors", HINT_NOTHING},
    {EMBED, "--output-file", "--output", HINT_SAME},
    {EMBED, "--truncate-dim", "--dimensions", HINT_SAME},
    {EMBED, "--top-n", "--top", HINT_SAME},
    {MEASURES, "-p --prompt", "-f FILE is the text; -f - reads it from standard input", HINT_REFUSED},
    {IMATRIX, "--imatrix --imatrix-file", "--in-file FILE continues or shows an importance matrix, -o FILE is the new one", HINT_REFUSED},
    {MEASURES | EMBED, "-e --escape --no-escape", "the text is taken as it is", HINT_NOTHING},
    {IMATRIX, "--output-format=gguf", "files are GGUF", HINT_NOTHING},
    {IMATRIX, "--output-format", "files are GGUF, which llama.cpp reads, too; the old format .dat is only read (--in-file)", HINT_REFUSED},
    {IMATRIX, "--ppl", "the perplexity is printed unless --no-ppl is given", HINT_NOTHING},
    {MEASURES, "--context-shift --no-context-shift", "a chunk fits its context", HINT_NOTHING},
    {MEASURES, sampling_flags, NO_SAMPLES, HINT_NOTHING_VALUE},
    {MEASURES, SAMPLING_SWITCHES, NO_SAMPLES, HINT_NOTHING},
    {MEASURES | EMBED, "-np --parallel -ns --sequences", "-ub sets how many tokens are computed at once", HINT_NOTHING_VALUE},
    {MEASURES, "-cb --cont-batching -kvu --kv-unified -no-kvu --no-kv-unified", "there is one chunk at a time", HINT_NOTHING},
    {MEASURES | EMBED, "--mlock -lm=mlock --load-mode=mlock", "the system keeps the parts of a mapped file that are in use", HINT_NOTHING},
    {MEASURES | EMBED, "-lm --load-mode", "--no-mmap reads the file instead of mapping it", HINT_REFUSED},
    {MEASURES | EMBED, "--repack -nr --no-repack", "repacked weights give the same result", HINT_NOTHING},
    {MEASURES | EMBED, "-tb --threads-batch", "-t sets the threads for everything; the result does not depend on it", HINT_NOTHING_VALUE},
    {MEASURES | EMBED, "-C --cpu-mask " RANGES, "the system chooses the CPUs; -t sets the number of threads", HINT_REFUSED},
    {MEASURES | EMBED, "--prio --prio-batch", "the system sets the priority", HINT_NOTHING_VALUE},
    {MEASURES | EMBED, "-v --verbose --log-verbose", NO_LOG, HINT_NOTHING},
    {IMATRIX | EMBED, "--log-file", "2>FILE keeps what is printed on standard error", HINT_REFUSED},
    {MEASURES | EMBED, "--spec-draft-type-k -ctkd --cache-type-k-draft --spec-draft-type-v -ctvd --cache-type-v-draft",
     "nothing is generated, so there is no draft model", HINT_NOTHING_VALUE},

    {PERPLEXITY, "--hellaswag --hellaswag-tasks --winogrande --winogrande-tasks --multiple-choice " "--multiple-choice-tasks",
     "tasks cannot be scored; -f FILE measures a text, --kl-divergence the difference between two " "models", HINT_REFUSED},
    {PERPLEXITY, "--ppl-stride=0 --ppl-output-type=0", "chunks do not overlap", HINT_NOTHING},
    {PERPLEXITY, "--ppl-stride --ppl-output-type", "chunks do not overlap, and the second half of each is scored; -o json has all numbers", HINT_REFUSED},
    {PERPLEXITY, "--save-all-logits --all-logits --logits-file", "--kl-divergence-base", HINT_SAME},
    {PERPLEXITY, "--log-file", "-o json has all numbers; 2>FILE keeps the rest", HINT_REFUSED},

    {TOKENIZE, "--no-escape", "the text is taken as it is", HINT_NOTHING},
    {TOKENIZE, "-e --escape", "the text is taken as it is: $'..' in the shell resolves escapes", HINT_REFUSED},
    {TOKENIZE, "--log-file", "2>FILE keeps what is printed besides the tokens", HINT_REFUSED},
    {TOKENIZE, "--override-kv", "the file's values are used", HINT_REFUSED},
    {TOKENIZE, "--control-vector-layer-range", ONLY_READS, HINT_REFUSED},
    {TOKENIZE, "-t --threads -tb --threads-batch -C --cpu-mask " RANGES " --cpu-strict --cpu-strict-batch --prio "
     "--prio-batch --poll --poll-batch -c --ctx-size -b --batch-size -ub --ubatch-size -ctk "
     "--cache-type-k -ctv --cache-type-v -dt --defrag-thold -np --parallel --rpc -lm --load-mode "
     "--numa -dev --device -ot --override-tensor -ncmoe --n-cpu-moe -ngl --gpu-layers --n-gpu-layers "
     "-sm --split-mode -ts --tensor-split -mg --main-gpu -fitt --fit-target -fitc --fit-ctx "
     "--lora --lora-scaled --control-vector --control-vector-scaled --spec-draft-type-k -ctkd "
     "--cache-type-k-draft --spec-draft-type-v -ctvd --cache-type-v-draft --rope-scaling --rope-scale "
     "--rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast", ONLY_READS, HINT_NOTHING_VALUE},
    {TOKENIZE, sampling_flags, ONLY_READS, HINT_NOTHING_VALUE},
    {TOKENIZE, "-fa --flash-attn -fit --fit", ONLY_READS, HINT_NOTHING_SWITCH},
    {TOKENIZE, "--swa-full -kvo --kv-offload -nkvo --no-kv-offload --repack -nr --no-repack --no-host --mlock "
     "--mmap --no-mmap -dio --direct-io -ndio --no-direct-io -cmoe --cpu-moe --op-offload "
     "--no-op-offload " SAMPLING_SWITCHES, ONLY_READS, HINT_NOTHING},
    {TOKENIZE, "-v --verbose --log-verbose", "--show prints the kind of tokenizer", HINT_NOTHING},

    {QUANTIZE, "--no-importance", "without --imatrix, all weights count the same", HINT_NOTHING},
    {QUANTIZE, "--target-bpw", "--bpw", HINT_SAME},
    {QUANTIZE, "--target-size", "--budget", HINT_SAME},
    {QUANTIZE, "--keep-bpw-state --bpw-state", "--loss FILE keeps what was measured", HINT_REFUSED},
    {QUANTIZE, "--nthreads --n-threads --num-threads", "--threads", HINT_SAME},
    {QUANTIZE, "--imatrix-file", "--imatrix", HINT_SAME},
    {QUANTIZE, "-m --model -o --output -hf --hf-repo --type --ftype", "`llm-quantize IN OUT TYPE` takes files and type without flags", HINT_REFUSED},
    {QUANTIZE, "--lora --lora-scaled", "`llm-lora merge MODEL ADAPTER=SCALE -o OUT` adds adapters to a model, which is then quantized", HINT_REFUSED},
    {QUANTIZE, "-f --file", "--calibration TEXT is the text for --budget and --bpw; `llm-imatrix -f TEXT` makes a file for --imatrix", HINT_REFUSED},

    {GGUF, "--split --split-max-tensors --split-max-size --no-tensor-first-split", "`llm-gguf split FILE OUT --max-size SIZE` divides a model", HINT_REFUSED},
    {GGUF, "--merge", "`llm-gguf merge FIRST OUT` makes one file of a split model", HINT_REFUSED},
    {GGUF, "-m --model --input", "the file needs no flag: `llm-gguf FILE`", HINT_REFUSED},
    {GGUF, "--lora --adapter", "an adapter is a GGUF file, too: `llm-gguf FILE`, or `llm-lora show ADAPTER`", HINT_REFUSED},
    {GGUF, "--imatrix --imatrix-file --in-file", "`llm-imatrix --in-file FILE --show-statistics` shows an importance matrix", HINT_REFUSED},
    {GGUF, "--uuid --sha1 --all", "there are SHA-256 and XXH64: `llm-gguf hash FILE`", HINT_REFUSED},
    {GGUF, "--xxh64 --sha256 -c --check", "`llm-gguf hash FILE` prints digests, SHA-256 or XXH64, and `llm-gguf hash --check LIST FILE` compares them", HINT_REFUSED},
    {GGUF, "--json-array", "`llm-gguf show FILE --json --full` has all elements of arrays, `llm-gguf get FILE KEY` prints those of one", HINT_REFUSED},
    {GGUF, "--markdown", "`llm-gguf show FILE` prints text, `llm-gguf show FILE --json` JSON", HINT_REFUSED},
    {GGUF, "--no-tensors", "`llm-gguf show FILE --keys .` prints only the keys", HINT_REFUSED},
    {GGUF, "--data-offset --data-alignment", "`llm-gguf show FILE --json` has the offset of each tensor", HINT_REFUSED},
    {GGUF, "--new-value", "`llm-gguf set FILE KEY=VALUE` changes a key, without asking", HINT_REFUSED},
    {GGUF, "--general-name --general-description --chat-template --chat-template-config --chat-template-file "
     "--pre-tokenizer --special-token --special-token-by-id --remove-metadata",
     "`llm-gguf set FILE KEY=VALUE` changes keys, `llm-gguf unset FILE KEY` removes them", HINT_REFUSED},

    {LORA, "-m --model --lora --lora-scaled -o --output --output-file", "`llm-lora merge MODEL ADAPTER=SCALE -o OUT` adds adapters to a model", HINT_REFUSED},
    {LORA, "-ngl --n-gpu-layers -c --ctx-size -b --batch-size", "weights are added on the CPU, row by row", HINT_NOTHING_VALUE},
    {LORA, "--base --base-model-id --outfile --outtype --dry-run", "`llm-lora convert PEFT_FOLDER --base MODEL_FOLDER -o ADAPTER` converts an adapter", HINT_REFUSED},
    {LORA, "--adapter-path --save-path",
     "`llm-lora merge MODEL ADAPTER -o OUT` adds an adapter to a model; `llm-lora convert` makes an ADAPTER of PEFT's folder", HINT_REFUSED},
    {LORA, "--rank -r", "`llm-lora extract BASE TUNED -o ADAPTER --rank N` makes an adapter", HINT_REFUSED},

    {CONVERT, "--outfile", "--output", HINT_SAME},
    {CONVERT, "--dtype=float16", "--type=f16", HINT_SAME},
    {CONVERT, "--dtype=bfloat16", "--type=bf16", HINT_SAME},
    {CONVERT, "--dtype=float32", "--type=f32", HINT_SAME},
    {CONVERT, "--outtype --dtype", "--type", HINT_SAME},
    {CONVERT, "--mlx-path", "--output", HINT_SAME},
    {CONVERT, "--hf-path", "the folder needs no flag: `llm-convert FOLDER -o FILE`", HINT_REFUSED},
    {CONVERT, "--quantize --q-bits --q-group-size --q-mode --quant-predicate",
     "`llm-quantize IN OUT TYPE` makes a smaller file of the GGUF file, such as Q4_K_M", HINT_REFUSED},
    {CONVERT, "--dequantize", "`llm-quantize --allow-requantize IN OUT F16` makes numbers of the GGUF file's weights", HINT_REFUSED},
    {CONVERT, "--upload-repo", "nothing is uploaded: -o FILE is on this machine", HINT_REFUSED},
    {CONVERT, "--verbose", "--dry-run prints what would be made", HINT_NOTHING},
    {CONVERT, "--use-temp-file --no-lazy", "tensors are copied one after the other", HINT_NOTHING},
    {CONVERT, "--model-name --metadata", "config.json names the model", HINT_REFUSED},
    {CONVERT, "--bigendian", "files are little-endian", HINT_REFUSED},
    {CONVERT, "--remote", "folders are not downloaded: FOLDER is one on this machine", HINT_REFUSED},
    {CONVERT, "--split-max-tensors --split-max-size --no-tensor-first-split", "a model is written to one file", HINT_REFUSED},
    {CONVERT, "--print-supported-models", "`llm-arch list` prints the built-in descriptors", HINT_REFUSED},

    /* What generates text, runs models, or reads them. */
    {WRITES, "-n=-2 --predict=-2 --n-predict=-2", "-n=-1", HINT_SAME},
    {WRITES, "--max-tokens --max-new-tokens --num-predict", "-n", HINT_SAME},
    {WRITES, "--num-ctx --n-ctx --context-length --max-model-len --max-seq-len --max-kv-size", "-c", HINT_SAME},
    {WRITES, "--num-thread --num-threads --n-threads", "-t", HINT_SAME},
    {WRITES, "--num-gpu --num-gpu-layers", "-ngl", HINT_SAME},
    {WRITES, "--repetition-penalty", "--repeat-penalty", HINT_SAME},
    {WRITES, "--lora-adapter --lora-path", "--lora", HINT_SAME},
    {GUESSES, "--draft-model", "--model-draft", HINT_SAME},
    {GUESSES, "--num-draft-tokens", "--draft-max", HINT_SAME},
    {WRITES, "--adapter-path", "--lora FILE applies an adapter; `llm-lora convert FOLDER --base MODEL_FOLDER -o FILE` makes one of PEFT's folder", HINT_REFUSED},
    {WRITES, "--kv-bits --kv-group-size --quantized-kv-start", "-ctk q8_0 -ctv q8_0 makes the cache smaller", HINT_REFUSED},
    {WRITES, "--use-default-chat-template", "chat templates are always rendered", HINT_NOTHING},
    {WRITES, "--mirostat=1", "only version 2 is supported: --mirostat 2", HINT_REFUSED},
    {WRITES, "--adaptive-target --adaptive-decay", "adaptive-p is not supported; --mirostat 2 also holds the text near a target", HINT_REFUSED},
    {WRITES, "-bs --backend-sampling", CPU_SAMPLE, HINT_NOTHING},
    {WRITES, "--num-beams", "llm-cli has --beams N; requests to llm-server have \"num_beams\"", HINT_REFUSED},
    {WRITES, "--do-sample --stream", "text is sampled unless --temp 0 is given, and printed as it comes", HINT_NOTHING},
    {WRITES, "--load-in-4bit --load-in-8bit --quantization", "llm-quantize IN OUT TYPE makes a smaller file, such as Q4_K_M", HINT_REFUSED},
    {WRITES, "--dtype --torch-dtype", "the file's types are used; llm-quantize IN OUT TYPE changes them", HINT_REFUSED},
    {WRITES, "--device-map", PLACED ", --fit as many as fit", HINT_REFUSED},
    {WRITES | CONVERT, "--trust-remote-code", "code beside a model is never run", HINT_NOTHING},
    {GUESSES, "--spec-draft-hf", "--hf-repo-draft", HINT_SAME},
    {GUESSES, "--spec-draft-model", "--model-draft", HINT_SAME},
    {GUESSES, "--spec-draft-n-max", "--draft-max", HINT_SAME},
    {GUESSES, "--spec-draft-n-min", "--draft-min", HINT_SAME},
    {GUESSES, "--spec-draft-p-min", "--draft-p-min", HINT_SAME},
    {GUESSES, "--spec-draft-device", "--device-draft", HINT_SAME},
    {GUESSES, "--spec-draft-ngl", "--n-gpu-layers-draft", HINT_SAME},
    {GUESSES, "--spec-default", "--lookup", HINT_SAME},
    {GUESSES, "--spec-type=*,*", "one of --lookup and --draft guesses, not several at once", HINT_REFUSED},
    {GUESSES, "--spec-type=none", "nothing is guessed unless --lookup or --model-draft is given", HINT_NOTHING},
    {GUESSES, "--spec-type=ngram-simple --spec-type=ngram-map-k --spec-type=ngram-map-k4v --spec-type=ngram-mod --spec-type=ngram-cache", "--lookup", HINT_SAME},
    {GUESSES, "--spec-type=draft-simple --spec-type=draft-eagle3 --spec-type=draft-dflash --spec-type=draft-dspark",
     "--model-draft MODEL guesses by a model", HINT_NOTHING},
    {GUESSES, "--spec-type=draft-mtp", "--draft", HINT_SAME},
    {GUESSES, "--spec-type --spec-type=*",
     "its values are none, ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod, ngram-cache, draft-simple, draft-eagle3, draft-dflash, draft-dspark and "
     "draft-mtp; here --lookup guesses from the text, --model-draft MODEL by a model, --draft by layers of the model itself", HINT_REFUSED},
    {GUESSES, "--spec-draft-threads -td --threads-draft --spec-draft-threads-batch -tbd --threads-batch-draft "
     "--spec-draft-cpu-mask -Cd --cpu-mask-draft --spec-draft-cpu-range -Crd --cpu-range-draft "
     "--spec-draft-cpu-strict --cpu-strict-draft --spec-draft-prio --prio-draft "
     "--spec-draft-poll --poll-draft --spec-draft-cpu-mask-batch -Cbd --cpu-mask-batch-draft "
     "--spec-draft-cpu-strict-batch --cpu-strict-batch-draft --spec-draft-prio-batch "
     "--prio-batch-draft --spec-draft-poll-batch --poll-batch-draft", DRAFT_CPU, HINT_NOTHING_VALUE},
    {GUESSES, "--spec-draft-type-k -ctkd --cache-type-k-draft --spec-draft-type-v -ctvd --cache-type-v-draft", DRAFT_KV, HINT_NOTHING_VALUE},
    {GUESSES, "--spec-draft-p-split --draft-p-split -ps --p-split", NO_BRANCH, HINT_NOTHING_VALUE},
    {GUESSES, "--spec-draft-backend-sampling --no-spec-draft-backend-sampling", CPU_SAMPLE, HINT_NOTHING},
    {GUESSES, "--spec-draft-override-tensor -otd --override-tensor-draft --spec-draft-cpu-moe -cmoed "
     "--cpu-moe-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft",
     "--device-draft and --n-gpu-layers-draft set where the draft model runs", HINT_REFUSED},
    {GUESSES, "--spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match "
     "--spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits "
     "--spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits "
     "--spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits "
     "--spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits",
     "--lookup guesses from the text, at most --draft-max tokens at once", HINT_REFUSED},
    {WRITES, "-lcs --lookup-cache-static -lcd --lookup-cache-dynamic", "--lookup guesses only from the text itself", HINT_REFUSED},
    {WRITES, "--reasoning-budget-message", "--reasoning-budget ends reasoning with the mark alone", HINT_REFUSED},
    {WRITES, "--reasoning-preserve --no-reasoning-preserve", "the chat template decides which reasoning stays", HINT_REFUSED},
    {WRITES, "--no-skip-chat-parsing", "answers are always parsed", HINT_NOTHING},
    {WRITES | BENCH, "--repack", REPACKED, HINT_NOTHING},
    {WRITES, "-lm=mlock --load-mode=mlock", "--mlock", HINT_SAME},
    {WRITES, "-lm --load-mode", "--no-mmap reads the file, --mlock keeps it in memory", HINT_REFUSED},
    {WRITES | BENCH, RANGES, CPU_SETS, HINT_REFUSED},
    {WRITES, "--prio-batch", ONE_PRIO, HINT_NOTHING_VALUE},
    {RUNS, "-fa --flash-attn", NOT_FLASH, HINT_NOTHING_SWITCH},
    {RUNS, "-kvo --kv-offload", LAYER_KV, HINT_NOTHING},
    {RUNS | BENCH, "-nkvo --no-kv-offload", LAYER_KV ": -ngl with fewer layers leaves it more memory", HINT_REFUSED},
    {RUNS, "--swa-full", FULL_CACHE, HINT_NOTHING},
    {RUNS, "-dt --defrag-thold", PAGES, HINT_NOTHING_VALUE},
    {RUNS, "--op-offload -nopo --no-op-offload", PLACE_OPS, HINT_NOTHING},
    {RUNS, "--no-host", HOST, HINT_NOTHING},
    {RUNS, "-dio --direct-io -ndio --no-direct-io", MAPPED, HINT_NOTHING},
    {RUNS, "-lm=auto --load-mode=auto -lm=mmap --load-mode=mmap -lm=dio --load-mode=dio", MAPPED, HINT_NOTHING},
    {RUNS, "-lm=none --load-mode=none", "--no-mmap", HINT_SAME},
    {RUNS | BENCH, "-sm=none --split-mode=none", "one device runs the model, unless --device or --split names several", HINT_NOTHING},
    {RUNS | BENCH, "-sm=layer --split-mode=layer", "devices share a model by layers", HINT_NOTHING},
    {RUNS | BENCH, "-sm=row --split-mode=row -sm=tensor --split-mode=tensor",
     "--split rows divides the rows of large products among the CPU and the devices", HINT_REFUSED},
    {RUNS | BENCH, "-sm --split-mode", "devices share a model by layers, with --split rows by rows; --device NAME uses only one", HINT_REFUSED},
    {RUNS | BENCH, "-mg=0 --main-gpu=0", "the first GPU is the default", HINT_NOTHING},
    {RUNS | BENCH, "-mg=1 --main-gpu=1", "--device=vulkan1", HINT_SAME},
    {RUNS | BENCH, "-mg=2 --main-gpu=2", "--device=vulkan2", HINT_SAME},
    {RUNS | BENCH, "-mg=3 --main-gpu=3", "--device=vulkan3", HINT_SAME},
    {RUNS | BENCH, "-mg --main-gpu", MAIN_GPU, HINT_REFUSED},
    {RUNS, "-ngl=all --gpu-layers=all --n-gpu-layers=all", "-ngl=1000000", HINT_SAME},
    {RUNS, "-ngl=auto --gpu-layers=auto --n-gpu-layers=auto -ngl=-1 --gpu-layers=-1 --n-gpu-layers=-1", "--fit", HINT_SAME},
    {RUNS, "-fit -fit=on --fit=on", "--fit", HINT_SAME},
    {RUNS, "-fit=off --fit=off", "layers are placed by memory only if --fit is given", HINT_NOTHING},
    {RUNS, "-fitt --fit-target", "--fit leaves a twentieth of a device's memory free", HINT_REFUSED},
    {RUNS, "-fitc --fit-ctx", "--fit does not change the context: -c sets it", HINT_REFUSED},
    {RUNS, "--numa", NODES, HINT_NOTHING_VALUE},
    {RUNS, "--poll --poll-batch --cpu-strict --cpu-strict-batch", SCHEDULED, HINT_NOTHING_VALUE},
    {RUNS, "--rpc", NO_RPC, HINT_REFUSED},
    {OPENS, "--check-tensors", VERIFY, HINT_REFUSED},
    {RUNS & ~SERVER, "--warmup --no-warmup", NO_WARMUP, HINT_NOTHING},
    {SERVER, "--warmup", "a token is run before the first request unless --no-warmup is given", HINT_NOTHING},
    {OPENS | BENCH, DOCKER, NO_DOCKER, HINT_REFUSED},
    {RUNS, NAMED_MODELS, NO_MODELS, HINT_REFUSED},
    {RUNS & ~SERVER, "--lora-init-without-apply", "no request sets another scale: --lora FILE:SCALE does", HINT_REFUSED},
    {SEES, "-mmu --mmproj-url", "download the file, and name it by --mmproj FILE", HINT_REFUSED},
    {SEES, "-mmdev --mmproj-device", EYE_DEVICE, HINT_REFUSED},
    {SEES, "--mmproj-offload", EYE_DEVICE, HINT_NOTHING},
    {SEES, "--no-mmproj-offload", EYE_DEVICE, HINT_REFUSED},
    {SERVER, "--image", "requests have pictures, which the eye of --mmproj FILE sees", HINT_REFUSED},
    {SERVER, "--audio", "requests have sounds, which the ear of --mmproj FILE hears", HINT_REFUSED},
    {SEES, "--video", ONLY_PICTURES, HINT_REFUSED},
    {WRITES, "--mmproj-auto", "the eye of a repository is opened unless --no-mmproj is given", HINT_NOTHING},
    {EMBED, "--mmproj-auto", EYE_NAMED, HINT_REFUSED},
    {EMBED, "--no-mmproj --no-mmproj-auto", EYE_NAMED, HINT_NOTHING},
    {BLIND, MEDIA, ONLY_TEXT, HINT_REFUSED},
    {BLIND, NO_MEDIA, ONLY_TEXT, HINT_NOTHING},
    {OPENS | QUANTIZE, "--usage", "--help", HINT_SAME},
    {OPENS, "--completion-bash", "--completion=bash", HINT_SAME},
    {OPENS, "--license --model-vocab", "see --help", HINT_REFUSED},
    {OPENS, "--perf --no-perf", "timings cost nothing and are always measured", HINT_NOTHING},
    {OPENS, "--log-disable --log-prefix --no-log-prefix --log-timestamps --no-log-timestamps", NO_LOG, HINT_NOTHING},
    {OPENS, "--log-colors -lv --verbosity --log-verbosity", NO_LOG, HINT_NOTHING_VALUE},
    {OPENS, "--model-path --model-name-or-path --checkpoint --ckpt", "--model", HINT_SAME},
    {TRAIN, "-f --file --train-data --dataset --data", "files to learn from are given without a flag, `llm-train -m MODEL FILE.. -o OUT`", HINT_REFUSED},
    {TRAIN, "-opt --optim", "--optimizer", HINT_SAME},
    {TRAIN, "-epochs --num-train-epochs --iters-epochs", "--epochs", HINT_SAME},
    {TRAIN, "-lr-min --lr-min --min-lr", "--lr-end X is the share of the rate that is left at the end", HINT_REFUSED},
    {TRAIN, "-decay-epochs --decay-epochs", "the rate falls until the end; --lr-end X is the share that is left", HINT_REFUSED},
    {TRAIN, "-val-split --val-split", "--valid-share", HINT_SAME},
    {TRAIN, "--weight-decay", "--decay", HINT_SAME},
    {TRAIN, "--rate", "--learning-rate", HINT_SAME},
    {TRAIN, "--lr-scheduler-type", "--schedule", HINT_SAME},
    {TRAIN, "--warmup-steps", "--warmup", HINT_SAME},
    {TRAIN, "--max-steps --iters --max-iters", "--steps", HINT_SAME},
    {TRAIN, "--max-seq-length --max-length --block-size", "--ctx-size", HINT_SAME},
    {TRAIN, "--per-device-train-batch-size --train-batch-size", "-b N is in tokens, and --sequences N in texts; both of one step", HINT_REFUSED},
    {TRAIN, "--gradient-accumulation-steps --grad-accum", "-b N tokens are one step, in as many parts of -ub tokens as it takes", HINT_REFUSED},
    {TRAIN, "--lora-r --lora-rank -r", "--rank", HINT_SAME},
    {TRAIN, "--lora-alpha", "--alpha", HINT_SAME},
    {TRAIN, "--target-modules --lora-target", "--matrix PATTERN names what the adapter changes, such as 'blk.*.attn_q.weight'", HINT_REFUSED},
    {TRAIN, "--max-grad-norm", "--max-norm", HINT_SAME},
    {TRAIN, "--resume-from-checkpoint", "--resume goes on from OUT.train", HINT_REFUSED},
    {TRAIN, "--gradient-checkpointing", "--memory SIZE limits the memory of values", HINT_REFUSED},
    {TRAIN, "--bf16 --fp16 --no-bf16", "weights that learn are f32 while they learn", HINT_NOTHING},
    {TRAIN, "--beta", "--dpo-beta", HINT_SAME},
    {TRAIN, "--micro-batch-size", "-b N is in tokens, and --sequences N in texts; both of one step", HINT_REFUSED},
    {TRAIN, "--num-layers --lora-layers", "--matrix 'blk.10.*' and the like name what the adapter changes; all layers by default", HINT_REFUSED},
    {TRAIN, "--lora-target-modules", "--matrix PATTERN names what the adapter changes, such as 'blk.*.attn_q.weight'", HINT_REFUSED},
    {TRAIN, "--lora-dropout --lora-bias", "adapters are pairs of matrices, without dropout and biases", HINT_REFUSED},
    {TRAIN, "--use-dora", "--dora", HINT_SAME},
    {TRAIN, "--qlora --load-in-4bit --load-in-8bit", "--lora learns beside a model of any type: -m FILE may be quantized", HINT_REFUSED},
    {TRAIN, "--adapter-path --lora-out --output-dir", "-o OUT is the file of the result", HINT_REFUSED},
    {TRAIN, "--resume-adapter-file --checkpoint-in", "--adapter FILE goes on with an adapter; --resume with an interrupted training", HINT_REFUSED},
    {TRAIN, "--mask-prompt --completion-only-loss --assistant-only-loss", "only answers count", HINT_NOTHING},
    {TRAIN, "--train-on-inputs", "--all-tokens", HINT_SAME},
    {TRAIN, "--packing", "texts share runs, and none is padded", HINT_NOTHING},
    {TRAIN, "--grad-checkpoint --use-checkpointing", "--memory SIZE limits the memory of values", HINT_REFUSED},
    {TRAIN, "--warmup-ratio", "--warmup N is a number of steps; a thirtieth of all by default", HINT_REFUSED},
    {TRAIN, "--save-steps", "--save-every", HINT_SAME},
    {TRAIN, "--eval-steps --steps-per-eval", "--valid-every", HINT_SAME},
    {TRAIN, "--logging-steps --steps-per-report", "--log FILE has all steps", HINT_REFUSED},
    {TRAIN, "--adam-beta1", "--beta1", HINT_SAME},
    {TRAIN, "--adam-beta2", "--beta2", HINT_SAME},
    {TRAIN, "--adam-epsilon", "--eps", HINT_SAME},
    {TRAIN, "--adam-iter", "--steps", HINT_SAME},
    {TRAIN, "--context-length --seq-length --sequence-len", "--ctx-size", HINT_SAME},
    {TRAIN, "--model-base", "--model", HINT_SAME},
    {TRAIN, "--dataset-name", "files to learn from are given without a flag, `llm-train -m MODEL FILE.. -o OUT`", HINT_REFUSED},
    {TRAIN, "--model-path --model-name-or-path --checkpoint --ckpt", "--model", HINT_SAME},
    {TRAIN, "-ngl --gpu-layers --n-gpu-layers", "models learn on the processor", HINT_NOTHING_VALUE},
    {0}};

const arg_hints cli_hints = {hints, CLI};
const arg_hints server_hints = {hints, SERVER};
const arg_hints bench_hints = {hints, BENCH};
const arg_hints imatrix_hints = {hints, IMATRIX};
const arg_hints perplexity_hints = {hints, PERPLEXITY};
const arg_hints embed_hints = {hints, EMBED};
const arg_hints tokenize_hints = {hints, TOKENIZE};
const arg_hints train_hints = {hints, TRAIN};
const arg_hints transcribe_hints = {hints, TRANSCRIBE};
const arg_hints quantize_hints = {hints, QUANTIZE};
const arg_hints gguf_hints = {hints, GGUF};
const arg_hints lora_hints = {hints, LORA};
const arg_hints convert_hints = {hints, CONVERT};
/* clang-format on */
