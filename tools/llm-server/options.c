#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/hints.h"
#include "common/input.h"
#include "ggl/internal/memory_left.h"
#include "common/paths.h"
#include "common/reasoning.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "llm/internal/pooling.h"
#include "page.h"

#define TOOL "llm-server"

enum { MOST_KEYS = 1 << 20 };

static const server_options defaults = {
    .n_parallel = 4,
    .n_cache_slots = -1,
    .n_queue = 256,
    .prompt_mib = 4096,
    .n_predict = -1,
    .reasoning = TOOL_REASONING_AUTO,
    .pooling = -1,
    .keep_alive = -1,
    .seed = -1,
    .diffusion = DIFFUSION_DEFAULTS,
    .host = "127.0.0.1",
    .port = 8080,
    .n_http_threads = 2,
    .max_body = 16,
    .max_connections = 1000,
    .max_stall = 50,
    .timeout = 60,
    .grace = 10,
    .resume_time = 300,
    .store_time = 3600,
    .ping = 10,
};

static const char *const pooling_choices[] = {LLM_POOLING_NAMES, NULL};

/* A flag that a file of presets names; see server_options_flag. */
typedef struct sought_flag {
    const char *name;
    size_t n;
    const char *found;
    size_t n_found;
    bool is_switch, is_server;
} sought_flag;

/* Looks for a flag in the table. Those below these headings are the server's. */
static void seek(const arg_option *row, sought_flag *f) {
    bool is_server = false;
    for (; arg_is_row(row); row++) {
        const char *names = row->names, *name;
        size_t n;
        if (!names)
            is_server = strcmp(row->help, "HTTP") == 0 || strcmp(row->help, "several models") == 0;
        while (names && arg_next_name(&names, &name, &n)) {
            const size_t n_dashes = strspn(name, "-");
            const bool is_same = n == f->n && memcmp(name, f->name, n) == 0;
            if (!is_same && (n - n_dashes != f->n || memcmp(name + n_dashes, f->name, f->n) != 0))
                continue;
            f->found = name;
            f->n_found = n;
            f->is_switch = row->kind == ARG_FLAG || row->kind == ARG_UNFLAG;
            f->is_server = is_server;
            return;
        }
    }
}

/* tool: the beginning of messages. flag: not NULL: only looks for it. */
static int parse(const char *tool, server_options *o, int argc, char **argv, sought_flag *flag) {
    const arg_option own[] = {
        {NULL, .help = "model"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder (default: the built-in model builtin:chat; "
                 "builtin:stories continues texts)"},
        HUB_OPTIONS(o->open.hub),
        OPEN_ROWS(SEES),
        {"-a --alias", ARG_STRING, &o->alias, .value = "NAME[,NAME..]",
         .help = "the model's name in answers (default: the file's), and further names of it"},
        {"--tags", ARG_STRING, &o->tags, .value = "TAG[,TAG..]",
         .help = "words about the model, which /v1/models shows"},
        OPEN_ROWS(CONTEXT),
        OPEN_ROWS(CHAT),
        {"-rea --reasoning", ARG_CHOICE, &o->reasoning, .value = "HOW",
         .help = "on or off: let the model reason or not, unless the request decides; auto "
                 "(default): reason if the template can",
         .choices = tool_reasoning_choices},
        {"--reasoning-format", ARG_CHOICE, &o->reasoning_format, .value = "HOW",
         .help = "none: reasoning stays in the content of OpenAI's chats, unless the request "
                 "decides; auto (default): it is a field of its own",
         .choices = tool_reasoning_formats},
        OPEN_ROWS(MODEL),
        {"--lora-init-without-apply", ARG_FLAG, &o->open.how.vary_from_0,
         .help = "adapters whose scale requests can choose have the scale 0 until one does "
                 "(\"lora\"), or POST /lora-adapters"},
        {NULL, .help = "several models"},
        {"--models", ARG_STRING, &o->models, .value = "DIR|FILE",
         .help =
             "serve all models of a folder, or those of a file of presets (sections [NAME] with "
             "lines flag = value): a model is loaded when a request names it"},
        {"--models-max", ARG_INT, &o->models_max, .value = "N",
         .help =
             "models that are loaded at once; the one that was asked for least recently makes room "
             "(default 0: as many as fit into memory)",
         .min = 0, .max = 1 << 20},
        {"--no-models-autoload", ARG_FLAG, &o->no_autoload,
         .help = "load models only by POST /models/load, and those whose preset says "
                 "load-on-startup"},
        {NULL, .help = "many requests at once"},
        {"--keep-alive", ARG_INT, &o->keep_alive, .value = "SECONDS",
         .help = "unload a model that no request has used for this time; the next request loads it "
                 "again (default -1: it stays)",
         .min = -1, .max = 1e9},
        {"-np --parallel", ARG_INT, &o->n_parallel, .value = "N",
         .help = "sequences that run at once (default 4)", .min = 1, .max = 1024},
        {"--queue", ARG_INT, &o->n_queue, .value = "N",
         .help = "sequences that may wait; requests beyond it get status 429 (default 256)",
         .min = 1, .max = 1 << 20},
        {"--no-warmup", ARG_FLAG, &o->no_warmup,
         .help = "do not run a token before the first request, which then waits for memory"},
        {"--max-stall", ARG_INT, &o->max_stall, .value = "MS",
         .help = "while others' prompts are read, the next token of an answer should come within "
                 "this time; longer pieces of prompts are a little faster (default 50)",
         .min = 1, .max = 1e6},
        {"--cache-slots", ARG_INT, &o->n_cache_slots, .value = "N",
         .help = "finished sequences to keep: a prompt that begins like one of them starts faster "
                 "(default: 64; 4 for models with recurrent states or windows, for which each "
                 "takes memory)",
         .min = 0, .max = 1024},
        {"--slot-save-path", ARG_STRING, &o->slot_path, .value = "DIR",
         .help = "requests may save slots as files of this folder, and restore them (POST "
                 "/slots/N?action=save)"},
        {"--prompt-cache-dir", ARG_STRING, &o->prompt_path, .value = "DIR",
         .help =
             "share beginnings of prompts, such as a system prompt, by the files of this folder: "
             "what one server has computed, the others that use the folder load"},
        {"--prompt-cache-size", ARG_INT, &o->prompt_mib, .value = "MIB",
         .help = "how much that folder may hold; what was not used for longest goes (default 4096)",
         .min = 1, .max = 1 << 30},
        {"-n --n-predict --predict", ARG_INT, &o->n_predict, .value = "N",
         .help = "tokens of an answer, unless the request sets it (default -1: until it ends, or "
                 "the context is full)",
         .min = -1, .max = INT32_MAX},
        {"--context-shift", ARG_FLAG, &o->shifts,
         .help = "an answer goes on when the context is full: the older half of the tokens after "
                 "--keep is dropped, and the rest is read again (default: the answer ends)"},
        {"--keep", ARG_INT, &o->n_keep, .value = "N",
         .help = "with --context-shift: tokens at the beginning that stay, unless the request "
                 "sets n_keep; -1: the prompt (default 0)",
         .min = -1, .max = INT32_MAX},
        {"--max-time", ARG_INT, &o->max_seconds, .value = "SECONDS",
         .help = "end an answer that takes longer (default 0: no limit)", .min = 0, .max = 1e6},
        {"--embeddings --embedding", ARG_FLAG, &o->open.how.params.embeddings,
         .help = "also answer requests for embeddings"},
        {"--pooling", ARG_CHOICE, &o->pooling, .value = "TYPE",
         .help =
             "how one vector is made from those of a text's tokens: mean, last (the last "
             "token's), cls (the first token's), or none: each token's, for /embedding (default: "
             "the model's pooling_type, or mean); rank: as --reranking",
         .choices = pooling_choices},
        {"--reranking --rerank", ARG_FLAG, &o->reranking,
         .help = "rank documents (/v1/rerank); default for a model whose pooling_type says so, and "
                 "that writes no texts"},
        {NULL, .help = "HTTP"},
        {"--host", ARG_STRING, &o->host, .value = "HOST",
         .help = "the address to listen on (default 127.0.0.1: this machine only; 0.0.0.0: all; "
                 "/PATH: a Unix socket)"},
        {"--port", ARG_INT, &o->port, .value = "N",
         .help = "the port (default 8080; 0: any free one)", .min = 0, .max = 65535},
        {"--api-key", ARG_LIST, &o->keys, .value = "KEY",
         .help = "requests must have this key; repeatable"},
        {"--api-key-file", ARG_STRING, &o->key_file, .value = "FILE",
         .help = "read keys from FILE, one on each line"},
        {"--cors --cors-origins", ARG_LIST, &o->origins, .value = "ORIGIN",
         .help = "allow pages of this web site to use the server: https://example.org; repeatable; "
                 "localhost: those of this machine, with any port; *: any site"},
        {"-to --timeout", ARG_INT, &o->timeout, .value = "SECONDS",
         .help = "close connections on which nothing is sent or read (default 60)", .min = 1,
         .max = 1e6},
        {"--grace", ARG_INT, &o->grace, .value = "SECONDS",
         .help = "after SIGTERM or Ctrl-C, wait this long for running answers (default 10)",
         .min = 0, .max = 1e6},
        {"--drain", ARG_INT, &o->drain, .value = "SECONDS",
         .help = "after SIGTERM or Ctrl-C, still take requests for this time before --grace, while "
                 "GET /ready says 503, so that a balancer sees it (default 0)",
         .min = 0, .max = 1e6},
        {"--sse-ping-interval", ARG_INT, &o->ping, .value = "SECONDS",
         .help = "a stream on which nothing was written for this time gets a sign of life "
                 "(default 10; at least 1; -1: none does)",
         .min = -1, .max = 1e6},
        {"--max-body", ARG_INT, &o->max_body, .value = "MIB",
         .help = "the largest request, in MiB (default 16)", .min = 1, .max = 1024},
        {"--request-memory", ARG_INT, &o->request_memory, .value = "MIB",
         .help = "memory that all requests may hold together, without the model and its cache: "
                 "connections, bodies, prompts, grammars, answers (default: an eighth of what is "
                 "free at the start, 256 to 4096)",
         .min = 16, .max = 1 << 24},
        {"--resume-time", ARG_INT, &o->resume_time, .value = "SECONDS",
         .help = "a stream whose request has the header X-Conversation-Id goes on for this time "
                 "without a reader, and can be read again for this time after its end (GET "
                 "/v1/stream; default 300; 0: never)",
         .min = 0, .max = 1e6},
        {"--store-time", ARG_INT, &o->store_time, .value = "SECONDS",
         .help = "answers of /v1/responses and of Anthropic's threads are kept in memory for this "
                 "time after their last use, so that requests may name them (default 3600)",
         .min = 1, .max = 1e9},
        {"--no-store", ARG_FLAG, &o->no_store,
         .help = "keep no answers: each request has its whole conversation"},
        {"--max-connections", ARG_INT, &o->max_connections, .value = "N",
         .help = "open connections (default 1000)", .min = 1, .max = 1e5},
        {"--max-connections-per-client", ARG_INT, &o->max_per_client, .value = "N",
         .help = "open connections from one address (default 0: no limit)", .min = 0, .max = 1e5},
        {"--threads-http", ARG_INT, &o->n_http_threads, .value = "N",
         .help = "threads that read requests and prepare answers (default 2)", .min = 1, .max = 64},
        {"--allow-image-urls", ARG_FLAG, &o->image_urls,
         .help = "fetch pictures whose address a request gives, from public hosts of the internet "
                 "alone, by the program curl (default: requests have the pictures themselves)"},
        {"-vm --vad-model", ARG_STRING, &o->vad_model, .value = "FILE",
         .help =
             "of a model that writes down sounds: one that finds speech, such as Silero VAD, for "
             "requests that ask for that (vad_filter, vad, chunking_strategy)"},
        {"--vad", ARG_FLAG, &o->vad, .help = "find speech for all requests, by --vad-model"},
        {"--no-slots", ARG_FLAG, &o->no_slots, .help = "do not answer GET /slots"},
        {"--no-webui", ARG_FLAG, &o->no_page, .help = "do not serve the chat page at /"},
        {"--open", ARG_FLAG, &o->opens_page,
         .help =
             "show the chat page in the browser as soon as the model is ready; so does a double "
             "click on the program"},
        {"-v --verbose", ARG_FLAG, &o->verbose, .help = "log each request on standard error"},
        {"--strict-fields", ARG_FLAG, &o->strict_fields,
         .help = "refuse requests with fields that are not known, instead of ignoring these fields "
                 "(the header X-Ignored-Fields and the log name them)"},
        {"--log-file", ARG_STRING, &o->log_file, .value = "FILE",
         .help = "append that log to a file instead"},
        {NULL, .help = "sampling, unless the request sets it"},
#define SAMPLING o->sampling
#include "common/sampling_options.def"
        {"-s --seed", ARG_INT, &o->seed, .value = "N",
         .help = "the seed for requests without one (default -1: a different one each time)",
         .min = -1, .max = 9007199254740992.0},
        DIFFUSION_OPTIONS(o->diffusion),
        {NULL, .help = "speed"},
        OPEN_ROWS(SPEED),
        {NULL, .help = "machine"},
        OPEN_ROWS(MACHINE),
        {NULL, .help = "where it runs"},
        {"--list-devices", ARG_FLAG, &o->list_devices,
         .help = "print the devices that --device accepts, and exit"},
        OPEN_ROWS(PLACE),
        {0}};
    static const args_example examples[] = {
        {"llm-server -m model.gguf",
         "serves a model on http://127.0.0.1:8080; a browser shows a chat page there"},
        {"llm-server -m model.gguf -np 8 -c 32768",
         "eight answers at once, which share a context of 32768 tokens"},
        {"llm-server -m model.gguf --host 0.0.0.0 --api-key SECRET",
         "serves other machines, too; they must send the key"},
        {"llm-server -hf Qwen/Qwen3-0.6B-GGUF --port 0",
         "downloads a model once, and uses any free port"},
        {"llm-server --models models --keep-alive 600",
         "serves all models of a folder; each is loaded when a request names it, and unloaded "
         "after "
         "ten minutes without one"},
        {0}};
    arg_option options[OPEN_MOST_ROWS];
    open_options_table(options, own, SERVER, &o->open);
    if (flag) {
        seek(options, flag);
        return -1;
    }
    const args_spec spec = {tool,
                            "[-m FILE | -hf USER/REPO | --models DIR] [options]",
                            "Serves a model over HTTP to many clients at once, in the APIs of "
                            "OpenAI, Anthropic, Ollama and llama.cpp's server.",
                            options,
                            NULL,
                            &server_hints,
                            .examples = examples,
                            .contains = page_libraries(),
                            .last_wins = strcmp(tool, TOOL) != 0};
    return args_parse(&spec, argc, argv);
}

const char *server_options_flag(const char *name, size_t n, size_t *n_flag, bool *is_switch,
                                bool *is_server) {
    server_options scratch = defaults;
    sought_flag f = {.name = name, .n = n};
    (void)parse(TOOL, &scratch, 0, NULL, &f);
    *n_flag = f.n_found;
    *is_switch = f.is_switch;
    *is_server = f.is_server;
    return f.found;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Ends each line with a NUL, without white space around it; empty lines and comments are left out. Returns the number
 * of lines; key may be NULL. */
static size_t split_lines(char *text, size_t size, const char **key) {
    size_t n = 0;
    for (char *line = text, *end = text + size; line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        char *stop = next ? next : end;
        line += strspn(line, " \t\r");
        while (stop > line && strchr(" \t\r", stop[-1]))
            stop--;
        if (stop > line && *line != '#') {
            if (key) {
                key[n] = line;
                *stop = '\0';
            }
            n++;
        }
        line = next ? next + 1 : end;
    }
    return n;
}

static int read_keys(const char *tool, server_options *o) {
    size_t size = 0, n = 0;
    if (o->key_file) {
        o->key_text = tool_read_raw_text(tool, o->key_file, MOST_KEYS, &size);
        if (!o->key_text)
            return 1;
        if (memchr(o->key_text, '\0', size))
            return tool_error(tool, 2, "--api-key-file %s is not a text", o->key_file);
        n = split_lines(o->key_text, size, NULL);
        if (n == 0)
            return tool_error(tool, 2, "--api-key-file %s: there is no key in it", o->key_file);
    }
    o->api_key = ggl_calloc(n + o->keys.n + 1, sizeof *o->api_key);
    if (!o->api_key)
        return tool_error(tool, 1, "out of memory");
    if (o->key_text)
        o->n_api_keys = split_lines(o->key_text, size, o->api_key);
    for (size_t i = 0; i < o->keys.n; i++)
        o->api_key[o->n_api_keys++] = o->keys.s[i];
    return -1;
}

/* An eighth of the free memory. */
static int64_t default_memory(void) {
    enum { LEAST = 256, MOST = 4096 };
    const int64_t n = (int64_t)(ggl_memory_left("") >> 23);
    return n < LEAST ? LEAST : n < MOST ? n : MOST;
}

/* --- checks ----------------------------------------------------------------------------------- */

static int check_origin(const char *tool, const char *s) {
    const char *host = strncmp(s, "http://", 7) == 0    ? s + 7
                       : strncmp(s, "https://", 8) == 0 ? s + 8
                                                        : NULL;
    const bool is_site = host && *host && !strchr(host, '/');
    if (is_site || strcmp(s, "*") == 0 || strcmp(s, "localhost") == 0 || strstr(s, "-extension://"))
        return -1;
    return tool_error(tool, 2,
                      "--cors: '%s' is not a site such as https://example.org (without a path), "
                      "nor localhost, nor *",
                      s);
}

static bool is_folder(const char *path) {
    return ggl_os_is_folder(path);
}

int server_options_parse(const char *tool, server_options *o, int argc, char **argv) {
    *o = defaults;
    o->sampling = sampling_defaults;
    o->open = open_options_default();
    return parse(tool, o, argc, argv, NULL);
}

int server_options_read_model(const char *tool, server_options *o, int argc, char **argv) {
    int code = server_options_parse(tool, o, argc, argv);
    for (size_t i = 0; i < o->origins.n && code < 0; i++)
        code = check_origin(tool, o->origins.s[i]);
    if (code < 0)
        code = sampling_options_check(tool, &o->sampling, true);
    if (code < 0)
        code = open_options_check(tool, &o->open, true);
    if (code >= 0)
        return code;
    if (o->reranking && o->pooling >= 0 && o->pooling != LLM_POOL_RANK)
        return tool_error(tool, 2, "--reranking and --pooling=%s cannot be used together",
                          llm_pooling_name((llm_pooling)o->pooling));
    if (o->reranking)
        o->pooling = LLM_POOL_RANK;
    o->open.how.params.embeddings |= o->pooling >= 0;
    if (o->n_keep != 0 && !o->shifts)
        return tool_error(tool, 2, "--keep needs --context-shift: nothing else drops tokens");
    if (o->slot_path && !is_folder(o->slot_path))
        return tool_error(tool, 2, "--slot-save-path: %s is not a folder", o->slot_path);
    if (o->prompt_path && !is_folder(o->prompt_path))
        return tool_error(tool, 2, "--prompt-cache-dir: %s is not a folder", o->prompt_path);
    if (o->prompt_path && !ggl_os_may_use_folder(o->prompt_path))
        return tool_error(tool, 1, "--prompt-cache-dir: %s cannot be read and written: %s",
                          o->prompt_path, strerror(errno));
    if (o->vad && !o->vad_model)
        return tool_error(tool, 2, "--vad needs a model that finds speech: --vad-model FILE");
    if (o->open.how.params.n_ctx == 1)
        return tool_error(tool, 2, "-c 1: a prompt and its answer need at least 2 tokens");
    if (o->request_memory == 0)
        o->request_memory = default_memory();
    open_options_limit_batch(&o->open);
    o->open.how.shadow_seed = (uint64_t)(o->seed < 0 ? time(NULL) : o->seed);
    return read_keys(tool, o);
}

int server_options_read(server_options *o, int argc, char **argv) {
    const int code = server_options_read_model(TOOL, o, argc, argv);
    if (code >= 0)
        return code;
    if (o->opens_page && o->no_page)
        return tool_error(
            TOOL, 2, "--open and --no-webui cannot be used together: there is no page to show");
    if (o->opens_page && ggl_os_is_absolute(o->host))
        return tool_error(TOOL, 2,
                          "--open: browsers cannot show the page of a socket, --host %s; --host "
                          "127.0.0.1 is an address for this machine alone",
                          o->host);
    const llm_opening *how = &o->open.how;
    const hub_options *hub = &o->open.hub;
    if (o->models && (how->path || how->params.mmproj || hub->repo || hub->url || o->alias))
        return tool_error(
            TOOL, 2,
            "--models names the models, so %s cannot be used beside it; a file of presets "
            "has it for each model",
            how->path            ? "-m"
            : how->params.mmproj ? "--mmproj"
            : hub->repo          ? "-hf"
            : hub->url           ? "-mu"
                                 : "-a");
    if (!o->models && (o->models_max > 0 || o->no_autoload))
        return tool_error(TOOL, 2, "%s is for several models: add --models DIR|FILE",
                          o->no_autoload ? "--no-models-autoload" : "--models-max");
    return -1;
}

int server_options_check_paths(const char *tool, const server_options *o) {
    const tool_path paths[] = {OPEN_PATHS(&o->open),
                               {"--vad-model", o->vad_model, .needed = true, .or_name = true},
                               {"--models", o->models, .needed = true},
                               {"--arch", o->open.how.params.arch, .needed = true, .or_name = true},
                               {"--api-key-file", o->key_file, .needed = true}};
    return tool_check_paths(tool, paths, sizeof paths / sizeof *paths);
}

void server_options_fini(server_options *o) {
    sampling_options_fini(&o->sampling);
    args_list_fini(&o->keys);
    args_list_fini(&o->origins);
    open_options_fini(&o->open);
    ggl_free(o->api_key);
    free(o->key_text);
}
