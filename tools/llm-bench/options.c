#include "options.h"

#include "common/hints.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_library.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "ggl/types.h"
#include "tool.h"

#define TOOL       "llm-bench"
#define BUILTIN    "built-in model"
#define MOST_TESTS 100000

typedef struct listed { /* a flag for lists, as given and as read */
    const char *flag;
    arg_list given;
    bench_list *to;
    int64_t least, most, fallback;
} listed;

static int read_list(listed *l) {
    for (size_t i = 0; i < l->given.n; i++) {
        const char *wrong = bench_list_read(l->to, l->given.s[i], l->least, l->most);
        if (wrong)
            return tool_error(TOOL, 2, "%s: '%s' %s (%" PRId64 " to %" PRId64 ")", l->flag,
                              l->given.s[i], wrong, l->least, l->most);
    }
    if (l->to->n == 0 && !bench_list_add(l->to, l->fallback))
        return tool_error(TOOL, 1, "out of memory");
    return -1;
}

static int read_pairs(const arg_list *given, bench_list *to) {
    for (size_t i = 0; i < given->n; i++) {
        size_t before = to->n;
        const char *wrong = bench_list_read(to, given->s[i], 0, 1 << 24);
        if (wrong || to->n != before + 2)
            return tool_error(TOOL, 2,
                              "-pg: '%s' is not a pair such as 512,128: tokens of a prompt, and "
                              "tokens generated after it",
                              given->s[i]);
    }
    return -1;
}

/* Reads types of stored rows: "f16,f32". */
static int read_types(const char *flag, const arg_list *given, bench_list *to) {
    for (size_t i = 0; i < given->n; i++)
        for (const char *s = given->s[i]; *s;) {
            char name[16] = "";
            size_t n = strcspn(s, ",");
            memcpy(name, s, n < sizeof name ? n : sizeof name - 1);
            const ggl_type_info *t = ggl_type_find(name);
            if (n == 0 || n >= sizeof name || !t || !ggl_store_can_keep(t->type))
                return tool_error(
                    TOOL, 2, "%s: '%s' is not a type of the cache; those are " TOOL_CACHE_TYPES "",
                    flag, given->s[i]);
            if (!bench_list_add(to, t->type))
                return tool_error(TOOL, 1, "out of memory");
            s += n + (s[n] == ',');
        }
    return to->n > 0 || bench_list_add(to, GGL_F16) ? -1 : tool_error(TOOL, 1, "out of memory");
}

/* Returns true if one of the devices, with commas between them, is the path of a plug-in. */
static bool has_path(const char *devices) {
    char one[OS_MOST_PATH];
    bool is = devices[0] == '.' || ggl_os_is_absolute(devices);
    for (const char *s = devices; *s && !is; s += s[0] == ',') {
        const size_t n = strcspn(s, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, s);
        is = ggl_os_library_is_name(one);
        s += n;
    }
    return is;
}

/* Adds a placement to those that are compared. */
static bool add_where(bench_options *o, const char *devices, size_t n, const char *split,
                      int64_t n_gpu_layers) {
    bench_where *grown = realloc(o->where, (o->n_where + 1) * sizeof *grown);
    if (!grown)
        return false;
    o->where = grown;
    bench_where *w = &o->where[o->n_where];
    *w = (bench_where){.devices = devices ? ggl_copy_text_n(devices, n) : NULL,
                       .split = split,
                       .n_gpu_layers = n_gpu_layers};
    /* A/B means two devices, unless it is a file's path */
    for (char *c = w->devices; c && *c && !has_path(w->devices); c++)
        *c = *c == '/' ? ',' : *c;
    o->n_where++;
    return !devices || w->devices;
}

/* Makes all pairs of a device and a number of layers, and each split. */
static int read_where(bench_options *o, const arg_list *devices, const bench_list *layers,
                      const arg_list *splits) {
    bool ok = true;
    for (size_t i = 0; i < splits->n && ok; i++)
        ok = add_where(o, NULL, 0, splits->s[i], -1);
    for (size_t i = 0; i < devices->n; i++)
        for (const char *s = devices->s[i]; *s && ok;) {
            size_t n = strcspn(s, ",");
            for (size_t k = 0; k < layers->n && ok; k++)
                ok = add_where(o, s, n, NULL, layers->v[k]);
            s += n + (s[n] == ',');
        }
    bool plain = devices->n == 0 && (splits->n == 0 || layers->n > 1 || layers->v[0] >= 0);
    for (size_t k = 0; plain && k < layers->n && ok; k++)
        ok = add_where(o, NULL, 0, NULL, layers->v[k]);
    return ok ? -1 : tool_error(TOOL, 1, "out of memory");
}

static int check_compare(bench_options *o, const args_spec *spec) {
    const arg_list *alone = spec->positional;
    if (alone->n > 1 || (alone->n == 1 && !o->compare_old))
        return args_unexpected(spec, alone->s[alone->n - 1], NULL);
    o->compare_new = alone->n == 1 ? alone->s[0] : NULL;
    if (o->profile &&
        ((o->format != BENCH_MD && o->format != BENCH_JSON && o->format != BENCH_JSONL)))
        return tool_error(TOOL, 2, "--profile can be printed only as md, json and jsonl");
    return -1;
}

static bool has_positive(const bench_list *list) {
    bool has = false;
    for (size_t i = 0; i < list->n; i++)
        has = has || list->v[i] > 0;
    return has;
}

/* What guesses decides what is measured: generation alone, of texts, as tokens that were drawn at random cannot be guessed. */
static int check_guesses(bench_options *o, bool prompt_given) {
    const llm_open_params *p = &o->open.how.params;
    const bool own = p->draft && !*p->draft;
    o->guesses = own                                  ? "own"
                 : p->draft || o->open.hub.repo_draft ? "draft"
                 : p->lookup                          ? "lookup"
                                                      : NULL;
    if (!o->guesses)
        return o->texts.n == 0
                   ? -1
                   : tool_error(TOOL, 2,
                                "-f is the text with which guesses are measured: --draft or "
                                "--lookup says what guesses");
    if (!prompt_given && o->prompt.n > 0)
        o->prompt.v[0] = 0;
    const char *flag = o->open.typed[p->lookup                ? LLM_OPEN_lookup
                                     : o->open.hub.repo_draft ? LLM_OPEN_draft_repo
                                                              : LLM_OPEN_draft];
    const struct {
        bool given;
        const char *other, *why;
    } rows[] = {
        {has_positive(&o->prompt), "-p", "nothing is guessed of a prompt"},
        {o->pair.n > 0, "-pg", "nothing is guessed of a prompt"},
        {has_positive(&o->depth), "-d", "what stands before is a text (-f FILE)"},
        {o->sequences.n > 1 || o->sequences.v[0] > 1, "--sequences", "one text is written at once"},
        {o->profile, "--profile", "it shows the steps of tests without guesses"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given)
            return tool_error(TOOL, 2, "%s and %s cannot be used together: %s", flag, rows[i].other,
                              rows[i].why);
    if (!has_positive(&o->gen))
        return tool_error(TOOL, 2, "%s guesses what is generated, and -n is 0", flag);
    for (size_t i = 0; i < o->gen.n; i++)
        if (o->gen.v[i] == 1)
            return tool_error(TOOL, 2,
                              "%s guesses the tokens after the first: -n must be at least 2", flag);
    o->no_limits = true;
    return -1;
}

int bench_options_read(bench_options *o, int argc, char **argv, const args_command *commands) {
    static const char *const formats[] = {"md", "csv", "json", "jsonl", "sql", "none", NULL};
    *o = (bench_options){.open = open_options_default(),
                         .reps = 5,
                         .format_err = BENCH_NONE,
                         .confidence = 95,
                         .tolerance = 1};
    const int64_t many = 1 << 24;
    listed l[] = {
        {"-p", {0}, &o->prompt, 0, many, 512},
        {"-n", {0}, &o->gen, 0, many, 128},
        {"-d", {0}, &o->depth, 0, many, 0},
        {"-t", {0}, &o->threads, 1, TOOL_MAX_THREADS, ggl_backend_default_threads()},
        {"-b", {0}, &o->batch, 1, many, 2048},
        {"-ub", {0}, &o->ubatch, 1, 65536, 512},
        {"--sequences", {0}, &o->sequences, 1, 16, 1},
        {"-ngl", {0}, &(bench_list){0}, 0, many, -1},
    };
    enum { N_LISTED = sizeof l / sizeof *l };
    arg_list pairs = {0}, type_k = {0}, type_v = {0}, alone = {0}, devices = {0}, splits = {0};
    const arg_option own[] = {
        {NULL,
         .help = "what is measured; lists are 1,2,4 or 1-8, 1-9+2, 1-64*2, and may be repeated"},
        {"-m --model", ARG_LIST, &o->models, .value = "FILE",
         .help = "a GGUF file or a Hugging Face folder (default: the built-in model "
                 "builtin:stories; builtin:chat is another); repeatable"},
        HUB_OPTIONS(o->open.hub),
        {"-p --n-prompt", ARG_LIST, &l[0].given, .value = "N,..",
         .help = "tokens of the prompt to measure; 0: do not measure prompts (default 512)"},
        {"-n --n-gen", ARG_LIST, &l[1].given, .value = "N,..",
         .help = "tokens to generate one by one; 0: do not measure generation (default 128)"},
        {"-pg", ARG_LIST, &pairs, .value = "PP,TG",
         .help = "measure a prompt of PP tokens and TG generated tokens together; repeatable"},
        {"-d --n-depth", ARG_LIST, &l[2].given, .value = "N,..",
         .help = "tokens in the cache before the test (default 0)"},
        {"--sequences", ARG_LIST, &l[6].given, .value = "N,..",
         .help = "sequences that generate at once, or texts that are seen whole, 1 to 16; t/s "
                 "counts the tokens of all (default 1)"},
        {"-t --threads", ARG_LIST, &l[3].given, .value = "N,..",
         .help = "threads (default: physical cores)"},
        {"-b --batch-size", ARG_LIST, &l[4].given, .value = "N,..",
         .help = "tokens given to the model at once (default 2048)"},
        {"-ub --ubatch-size", ARG_LIST, &l[5].given, .value = "N,..",
         .help = "tokens computed at once (default 512)"},
        {"-ctk --cache-type-k", ARG_LIST, &type_k, .value = "TYPE,..",
         .help = "type of cached keys: " TOOL_CACHE_TYPES},
        {"-ctv --cache-type-v", ARG_LIST, &type_v, .value = "TYPE,..",
         .help = "type of cached values: " TOOL_CACHE_TYPES},
        {"-dev --device --backend", ARG_LIST, &devices, .value = "NAME,..",
         .typed = o->open.typed[LLM_OPEN_device],
         .help = "backends to compare, one after the other (default: cpu); A/B: both in one test"},
        {"-ngl --n-gpu-layers", ARG_LIST, &l[7].given, .value = "N,..",
         .help = "run the last N layers on the device"},
        {"--split", ARG_LIST, &splits, .value = "A=N,B=M",
         .help = "assign layers to backends, as in llm-cli; repeatable: each split is measured"},
        OPEN_ROWS(PLACE),
        OPEN_ROWS(MODEL),
        OPEN_ROWS(MACHINE),
        {NULL, .help = "guesses: generation with them and without, in turns, of the same texts"},
        OPEN_ROWS(SPEED),
        {"-f --file", ARG_LIST, &o->texts, .value = "FILE",
         .help = "with --draft or --lookup: continue the text of FILE; repeatable (default: four "
                 "short texts; with a chat template four questions)"},
        {NULL, .help = "how"},
        {"-r --repetitions", ARG_INT, &o->reps, .value = "N",
         .help = "measure each test N times (default 5)", .min = 1, .max = BENCH_MAX_SAMPLES},
        {"--delay", ARG_INT, &o->delay, .value = "SECONDS",
         .help = "pause before each test (default 0)", .min = 0, .max = 86400},
        {"--no-warmup", ARG_FLAG, &o->no_warmup,
         .help = "do not warm up with an unmeasured run before each test"},
        {"--no-limits", ARG_FLAG, &o->no_limits, .help = "do not measure the machine's limits"},
        {"--profile", ARG_FLAG, &o->profile,
         .help = "run each test again, and print where the time goes"},
        {"--progress", ARG_FLAG, &o->progress, .help = "print progress to standard error"},
        {NULL, .help = "results"},
        {"-o --output", ARG_CHOICE, &o->format, .value = "FORMAT",
         .help = "md (default), csv, json, jsonl, sql, none", .choices = formats},
        {"-oe --output-err", ARG_CHOICE, &o->format_err, .value = "FORMAT",
         .help = "the same to standard error", .choices = formats},
        {"--plot", ARG_STRING, &o->plot, .value = "FILE",
         .help = "draw the speeds of all tests, by backend and split, as an SVG file"},
        {"--alternation", ARG_STRING, &o->alternation, .value = "NAME",
         .help = "mark the JSON results with NAME; --compare then pairs the samples of two runs "
                 "that were measured in turns"},
        {"--compare", ARG_STRING, &o->compare_old, .value = "OLD.json",
         .help = "compare this run with an earlier one; with NEW.json after it, compare those two "
                 "and run nothing"},
        {"--confidence", ARG_FLOAT, &o->confidence, .value = "PERCENT",
         .help = "confidence level of --compare (default 95)", .min = 50, .max = 99.99},
        {"--tolerance", ARG_FLOAT, &o->tolerance, .value = "PERCENT",
         .help = "--compare ignores smaller differences (default 1)", .min = 0, .max = 100},
        {0}};
    static const args_example examples[] = {
        {"llm-bench", "measures the built-in model"},
        {"llm-bench -m model.gguf -p 512 -n 128 -t 4,8",
         "prompts of 512 tokens and 128 generated ones, with 4 and with 8 threads"},
        {"llm-bench -m model.gguf -o json -oe md",
         "results as JSON, and the table to read on standard error"},
        {"llm-bench -m model.gguf --draft small.gguf", "what guesses of a smaller model gain"},
        {"llm-bench --compare old.json new.json", "which differences between two runs are real?"},
        {0}};
    arg_option options[OPEN_MOST_ROWS];
    open_options_table(options, own, BENCH, &o->open);
    const args_spec spec = {TOOL,
                            "[-m FILE | -hf USER/REPO] [options]  |  llm-bench COMMAND ..",
                            "Measures how fast models run.",
                            options,
                            &alone,
                            &bench_hints,
                            .examples = examples,
                            .commands = commands};
    int code = args_parse(&spec, argc, argv);
    code = code < 0 ? open_options_check(TOOL, &o->open, false) : code;
    for (int i = 0; i < N_LISTED; i++)
        code = code < 0 ? read_list(&l[i]) : code;
    code = code < 0 ? read_where(o, &devices, l[7].to, &splits) : code;
    code = code < 0 ? read_pairs(&pairs, &o->pair) : code;
    o->types_given = type_k.n > 0 || type_v.n > 0;
    code = code < 0 ? read_types("-ctk", &type_k, &o->type_k) : code;
    code = code < 0 ? read_types("-ctv", &type_v, &o->type_v) : code;
    code = code < 0 ? check_compare(o, &spec) : code;
    code = code < 0 ? check_guesses(o, l[0].given.n > 0) : code;
    for (int i = 0; i < N_LISTED; i++)
        args_list_fini(&l[i].given);
    free(l[7].to->v);
    args_list_fini(&pairs);
    args_list_fini(&type_k);
    args_list_fini(&type_v);
    args_list_fini(&alone);
    args_list_fini(&devices);
    args_list_fini(&splits);
    return code;
}

void bench_options_fini(bench_options *o) {
    bench_list *lists[] = {&o->prompt, &o->gen,       &o->depth,  &o->threads, &o->batch,
                           &o->ubatch, &o->sequences, &o->type_k, &o->type_v,  &o->pair};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->v);
    for (size_t i = 0; i < o->n_where; i++)
        free(o->where[i].devices);
    free(o->where);
    args_list_fini(&o->models);
    for (size_t i = 0; i < o->texts.n && o->text; i++)
        free(o->text[i]);
    free(o->text);
    free(o->n_text);
    args_list_fini(&o->texts);
    open_options_fini(&o->open);
}

/* --- the cross product ------------------------------------------------------------------------ */

typedef struct tests {
    bench_test *t;
    size_t n;
    bool failed;
} tests;

static void add_test(tests *all, bench_test t, int64_t n_prompt, int64_t n_gen,
                     int64_t n_sequences) {
    bench_test *grown = realloc(all->t, (all->n + 1) * sizeof *grown);
    if (!grown || all->n >= MOST_TESTS) {
        all->t = grown ? grown : all->t;
        all->failed = true;
        return;
    }
    t.n_prompt = n_prompt;
    t.n_gen = n_gen;
    t.n_sequences = n_sequences;
    all->t = grown;
    all->t[all->n++] = t;
}

/* Adds the tests for prompts, for generation, and for both. Tests of prompts alone have one sequence; those of several are for
 * models that see texts whole (bench_cannot). */
static void add_kinds(const bench_options *o, tests *all, bench_test t) {
    for (size_t i = 0; i < o->prompt.n; i++)
        if (o->prompt.v[i] > 0) {
            add_test(all, t, o->prompt.v[i], 0, 1);
            for (size_t s = 0; s < o->sequences.n; s++)
                if (o->sequences.v[s] > 1)
                    add_test(all, t, o->prompt.v[i], 0, o->sequences.v[s]);
        }
    for (size_t i = 0; i < o->gen.n; i++)
        for (size_t s = 0; s < o->sequences.n; s++)
            if (o->gen.v[i] > 0)
                add_test(all, t, 0, o->gen.v[i], o->sequences.v[s]);
    for (size_t i = 0; i + 1 < o->pair.n; i += 2)
        for (size_t s = 0; s < o->sequences.n; s++)
            if (o->pair.v[i] > 0 || o->pair.v[i + 1] > 0)
                add_test(all, t, o->pair.v[i], o->pair.v[i + 1], o->sequences.v[s]);
}

bool bench_options_tests(const bench_options *o, bench_test **out, size_t *n) {
    const bench_list *axis[] = {&o->threads, &o->batch,  &o->ubatch,
                                &o->type_k,  &o->type_v, &o->depth};
    enum { N_AXES = sizeof axis / sizeof *axis };
    tests all = {0};
    size_t turns = 1, n_models = o->models.n ? o->models.n : 1;
    for (int a = 0; a < N_AXES; a++) {
        turns *= axis[a]->n;
        all.failed = all.failed || turns > MOST_TESTS;
    }
    const size_t n_where = o->n_where;
    for (size_t m = 0; m < n_models * n_where; m++)
        for (size_t turn = 0; turn < turns && !all.failed; turn++) {
            int64_t v[N_AXES];
            size_t rest = turn;
            for (int a = N_AXES - 1; a >= 0; a--) {
                v[a] = axis[a]->v[rest % axis[a]->n];
                rest /= axis[a]->n;
            }
            bench_test t = {.model = o->models.n ? o->models.s[m / n_where] : BUILTIN,
                            .where = &o->where[m % n_where],
                            .n_threads = v[0],
                            .n_batch = v[1],
                            .n_ubatch = v[2] < v[1] ? v[2] : v[1],
                            .type_k = (int)v[3],
                            .type_v = (int)v[4],
                            .n_depth = v[5],
                            .guesses = o->guesses};
            add_kinds(o, &all, t);
        }
    *out = all.t;
    *n = all.n;
    return !all.failed;
}
