#include "serve_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/machine.h"
#include "common/paths.h"
#include "ggl/internal/os_clock.h"
#include "serve_load.h"
#include "serve_text.h"

#define TOOL "llm-bench serve"

enum { MOST_CLIENTS = 10000, MOST_TOKENS = 1 << 24, MOST_RATES = 1000, MOST_SEED = 1 << 30 };

static int read_list(const char *flag, const arg_list *given, bench_list *to, int64_t least,
                     int64_t most, const char *fallback) {
    const char *wrong = NULL, *s = fallback;
    if (given->n == 0)
        wrong = bench_list_read(to, fallback, least, most);
    for (size_t i = 0; i < given->n && !wrong; i++)
        wrong = bench_list_read(to, s = given->s[i], least, most);
    return wrong ? tool_error(TOOL, 2, "%s: '%s' %s (%" PRId64 " to %" PRId64 ")", flag, s, wrong,
                              least, most)
                 : -1;
}

static bool add_rate(serve_options *o, double rate) {
    double *grown =
        o->n_rates < MOST_RATES ? realloc(o->rate, (o->n_rates + 1) * sizeof *grown) : NULL;
    if (!grown)
        return false;
    o->rate = grown;
    o->rate[o->n_rates++] = rate;
    return true;
}

/* Reads "0.5,1,2". */
static int read_rates(serve_options *o, const arg_list *given) {
    for (size_t i = 0; i < given->n; i++)
        for (const char *s = given->s[i], *end = s; s; s = *end ? end + 1 : NULL) {
            char number[32] = "";
            double rate = 0;
            bool range = false;
            size_t n = strcspn(s, ",");
            end = s + n;
            if (n < sizeof number)
                memcpy(number, s, n);
            if (!args_read_float(number, &rate, &range) || rate < 1e-4 || rate > 1e6)
                return tool_error(TOOL, 2,
                                  "--rate: '%s' is not a list of requests per second such as "
                                  "0.5,1,2 (0.0001 to 1000000)",
                                  given->s[i]);
            if (!add_rate(o, rate))
                return tool_error(TOOL, 1, "out of memory, or more than %d rates", MOST_RATES);
        }
    return -1;
}

static bool is_url(const char *s) {
    return strncmp(s, "http://", 7) == 0 || strncmp(s, "https://", 8) == 0;
}

static int check(serve_options *o, const arg_list *alone, bool clients_given) {
    if (alone->n != 1)
        return tool_error(TOOL, 2, "%s; see --help",
                          alone->n ? "only one URL is expected, a second one after --vs"
                                   : "a server's URL is needed, such as http://127.0.0.1:8080");
    o->url[0] = alone->s[0];
    o->n_servers = o->url[1] ? 2 : 1;
    for (size_t i = 0; i < o->n_servers; i++) {
        if (!is_url(o->url[i]) || strlen(o->url[i]) > 1000)
            return tool_error(TOOL, 2, "'%s' is not a URL that begins with http:// or https://",
                              o->url[i]);
        if (o->model[i] && strlen(o->model[i]) >= sizeof((serve_server *)0)->model)
            return tool_error(TOOL, 2, "the model's name is too long: %zu bytes",
                              strlen(o->model[i]));
    }
    if (!o->url[1] && (o->key[1] || o->model[1] || o->name[1]))
        return tool_error(TOOL, 2, "--vs-api-key, --vs-model and --vs-name need --vs");
    if (o->n_rates > 0 && clients_given)
        return tool_error(TOOL, 2, "--clients and --rate cannot be used together");
    for (size_t i = 0; i < o->field.n; i++) {
        const char *wrong = serve_check_field(o->field.s[i]);
        if (wrong)
            return tool_error(TOOL, 2, "--field: '%s' %s", o->field.s[i], wrong);
    }
    if (o->n_requests == 0)
        o->n_requests = o->n_rates > 0 ? 32 : 4;
    if (o->rounds == 0)
        o->rounds = o->n_servers > 1 ? 2 : 1;
    return tool_check_paths(TOOL, &(tool_path){"--plot", o->plot, .written = true}, 1);
}

int serve_options_read(serve_options *o, int argc, char **argv) {
    static const char *const formats[] = {"text", "md", "csv", "json", NULL};
    *o = (serve_options){.turns = 1, .timeout = 600};
    bool seed_given = false;
    arg_list clients = {0}, prompt = {0}, gen = {0}, rates = {0}, alone = {0};
    const arg_option options[] = {
        {NULL, .help = "the load; lists are 1,2,4 or 1-8, 1-64*2, and may be repeated"},
        {"-c --clients", ARG_LIST, &clients, .value = "N,..",
         .help =
             "clients at once; each sends its next request when it has the answer to the last one "
             "(default 1,2,4,8)"},
        {"--rate", ARG_LIST, &rates, .value = "R,..",
         .help = "instead of --clients: send R requests per second, at random times, however many "
                 "are running"},
        {"--requests", ARG_INT, &o->n_requests, .value = "N",
         .help = "requests that each client sends (default 4); with --rate, requests in all "
                 "(default 32)",
         .min = 1, .max = 1000000},
        {"-p --n-prompt", ARG_LIST, &prompt, .value = "N,..",
         .help = "tokens of a prompt (default 128)"},
        {"-n --n-gen", ARG_LIST, &gen, .value = "N,..", .help = "tokens of an answer (default 64)"},
        {"--shared", ARG_INT, &o->shared, .value = "N",
         .help = "tokens of a system prompt that all requests of a test begin with (default 0)",
         .max = MOST_TOKENS},
        {"--turns", ARG_INT, &o->turns, .value = "N",
         .help = "send conversations of N turns instead of single requests; each turn repeats the "
                 "conversation so far and adds a prompt (default 1)",
         .min = 1, .max = 10000},
        {"-r --rounds", ARG_INT, &o->rounds, .value = "N",
         .help = "repeat each test, with new texts (default 1; with --vs 2)", .min = 1,
         .max = SERVE_MAX_ROUNDS},
        {"--words", ARG_FLAG, &o->words,
         .help = "-p and --shared count words, not tokens; without this flag the tool first asks "
                 "the server how many tokens its words have"},
        {"--seed", ARG_INT, &o->seed, .value = "N",
         .help = "the same seed gives the same requests at the same times (default: a new one each "
                 "time, because a server may keep the texts of an earlier run)",
         .max = 1e15, .given = &seed_given},
        {NULL, .help = "the server"},
        {"--vs", ARG_STRING, &o->url[1], .value = "URL",
         .help = "measure this server in turns with the first one, and print ratios"},
        {"--chat", ARG_FLAG, &o->chat,
         .help = "use /v1/chat/completions (default: /v1/completions)"},
        {"--model", ARG_STRING, &o->model[0], .value = "NAME",
         .help = "the model to ask for (default: the first of /v1/models)"},
        {"--vs-model", ARG_STRING, &o->model[1], .value = "NAME",
         .help = "the same for the server of --vs"},
        {"--name", ARG_STRING, &o->name[0], .value = "NAME",
         .help = "what to call the server in tables and the plot (default: its URL and model)"},
        {"--vs-name", ARG_STRING, &o->name[1], .value = "NAME",
         .help = "the same for the server of --vs"},
        {"--api-key", ARG_STRING, &o->key[0], .value = "KEY",
         .help = "API key, sent as a bearer token"},
        {"--vs-api-key", ARG_STRING, &o->key[1], .value = "KEY",
         .help = "the same for the server of --vs"},
        {"--temp", ARG_FLOAT, &o->temperature, .value = "T",
         .help = "temperature of sampling (default 0)", .max = 2},
        {"--no-ignore-eos", ARG_FLAG, &o->no_ignore_eos,
         .help = "do not send ignore_eos, which some servers refuse; answers may then be shorter"},
        {"--field", ARG_LIST, &o->field, .value = "NAME=JSON",
         .help = "send this field in each request, too: cache_prompt=false; repeatable"},
        {"--timeout", ARG_INT, &o->timeout, .value = "SECONDS",
         .help = "time limit of a request (default 600)", .min = 1, .max = 86400},
        {NULL, .help = "results"},
        {"-o --output", ARG_CHOICE, &o->format, .value = "FORMAT",
         .help = "text (default), md, csv, json", .choices = formats},
        {"--plot", ARG_STRING, &o->plot, .value = "FILE",
         .help = "draw tokens per second and the times over the load, as an SVG file"},
        {"--progress", ARG_FLAG, &o->progress, .help = "print progress to standard error"},
        {0}};
    static const args_example examples[] = {
        {"llm-bench serve http://localhost:8080 -c 1-8*2",
         "one, two, four and eight clients at once"},
        {"llm-bench serve http://localhost:8080 --vs http://localhost:9090",
         "two servers in turns, with ratios"},
        {0}};
    const args_spec spec = {TOOL,
                            "URL [options]",
                            "Measures a server that speaks OpenAI's API: tokens per second, and "
                            "the times to the first token and between tokens.",
                            options,
                            &alone,
                            NULL,
                            .examples = examples};
    int code = args_parse(&spec, argc, argv);
    code = code < 0 ? read_list("-c", &clients, &o->clients, 1, MOST_CLIENTS, "1-8*2") : code;
    code = code < 0 ? read_list("-p", &prompt, &o->prompt, 1, MOST_TOKENS, "128") : code;
    code = code < 0 ? read_list("-n", &gen, &o->gen, 1, MOST_TOKENS, "64") : code;
    code = code < 0 ? read_rates(o, &rates) : code;
    code = code < 0 ? check(o, &alone, clients.n > 0) : code;
    if (!seed_given)
        o->seed = ggl_os_clock() % MOST_SEED ^ (int64_t)time(NULL) % MOST_SEED;
    arg_list *lists[] = {&clients, &prompt, &gen, &rates, &alone};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        args_list_fini(lists[i]);
    return code;
}

void serve_options_fini(serve_options *o) {
    free(o->clients.v);
    free(o->prompt.v);
    free(o->gen.v);
    free(o->rate);
    args_list_fini(&o->field);
}
