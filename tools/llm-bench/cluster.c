/* llm-bench cluster: predicts how fast a model is on the ranks of a job, from the speed of a rank and of the links. */
#include "cluster.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cache_types.h"
#include "common/paths.h"
#include "common/shape_source.h"
#include "common/shape_types.h"
#include "common/units.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/types.h"
#include "lists.h"
#include "tool.h"

#define TOOL "llm-bench cluster"

typedef struct options {
    arg_list given, ranks_given, sequences_given;
    bench_list ranks, sequences;
    const char *link, *rank, *memory, *message;
    int64_t n_prompt, n_gen, n_depth, n_ubatch, n_ctx, n_threads;
    int type_k, type_v, format;
} options;

/* --- units ---------------------------------------------------------------------------------------- */

static const tool_unit seconds[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {NULL, 0}};
static const tool_unit rates[] = {
    {"B/s", 1},       {"KB/s", 1e3},   {"MB/s", 1e6},     {"GB/s", 1e9},     {"TB/s", 1e12},
    {"bit/s", 0.125}, {"Kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"Tbit/s", 125e9},
    {"Kb/s", 125},    {"Mb/s", 125e3}, {"Gb/s", 125e6},   {"Tb/s", 125e9},   {NULL, 0}};
static const tool_unit arithmetic[] = {
    {"MAC/s", 1}, {"MMAC/s", 1e6}, {"GMAC/s", 1e9}, {"TMAC/s", 1e12}, {NULL, 0}};

/* Reads numbers with commas between them, n of them with a unit each, of which `least` must be there. */
static bool read_units(const char *s, const tool_unit *const *units, int least, int n,
                       double *out) {
    for (int i = 0; i < n; i++) {
        const size_t size = strcspn(s, ",");
        if (!tool_read_unit(s, size, units[i], &out[i]))
            return false;
        s += size;
        if (*s == '\0')
            return i + 1 >= least;
        s++;
    }
    return false;
}

static int read_link(const options *o, cluster_setup *s) {
    static const tool_unit *const link[] = {seconds, rates};
    static const tool_unit *const time[] = {seconds};
    double x[2] = {20e-6, 1.25e9};
    if (o->link && !read_units(o->link, link, 2, 2, x))
        return tool_error(
            TOOL, 2, "--link: '%s' is no latency and bandwidth, as 20us,10Gbit/s or 1ms,100MB/s",
            o->link);
    s->link = (pipeline_link){x[0], x[1], 10e-6};
    if (o->message && !read_units(o->message, time, 1, 1, &s->link.message))
        return tool_error(TOOL, 2, "--message: '%s' is no time, as 10us", o->message);
    return -1;
}

static int read_memory(const options *o, cluster_setup *s) {
    static const tool_unit *const size[] = {tool_unit_bytes};
    if (o->memory && (!read_units(o->memory, size, 1, 1, &s->memory) || s->memory < 1))
        return tool_error(TOOL, 2, "--memory: '%s' is not a size, as 64G or 512GiB", o->memory);
    return -1;
}

static int read_rank(const options *o, cluster_setup *s) {
    static const tool_unit *const rank[] = {rates, arithmetic, arithmetic};
    double x[3] = {0};
    ggl_error err = {0};
    if (o->rank && !read_units(o->rank, rank, 2, 3, x))
        return tool_error(TOOL, 2,
                          "--rank: '%s' is no speed of memory and of arithmetic, as "
                          "40GB/s,300GMAC/s (a third number: that of attention)",
                          o->rank);
    if (x[2] == 0)
        x[2] = x[1] / 4; /* floats beside bytes */
    if (o->rank)
        s->speed = cluster_speed_of(x[0] * 1e-9, x[1] * 1e-9, x[2] * 1e-9, s->m->type);
    else if (cluster_measure(&s->speed, s->m->type, (int)o->n_threads, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    return -1;
}

/* --- running -------------------------------------------------------------------------------------- */

/* Finds the least number of ranks that hold the model, or what the fullest one needs if none does. */
static ggl_status find_needed(cluster_table *t, const cluster_setup *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    t->n_needed = 0;
    t->least_most = t->plan.most;
    for (int n = t->plan.n_ranks + 1;
         n <= CLUSTER_MOST_RANKS && n <= s->m->n_layers + 1 && !t->n_needed && st == GGL_OK; n++) {
        cluster_plan p;
        st = cluster_plan_init(&p, s, n, err);
        t->n_needed = st == GGL_OK && p.fits ? n : 0;
        t->least_most = fmin(t->least_most, p.most);
        cluster_plan_fini(&p);
    }
    return st;
}

static ggl_status predict(cluster_table *t, const cluster_setup *s, const options *o, int n_ranks,
                          ggl_error *err) {
    ggl_status st = cluster_plan_init(&t->plan, s, n_ranks, err);
    if (st == GGL_OK && !t->plan.fits)
        st = find_needed(t, s, err);
    t->row = calloc(o->sequences.n + 1, sizeof *t->row);
    if (!t->row)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (o->n_prompt > 0)
        t->row[t->n_rows++].work = (cluster_work){o->n_prompt, 0, 1, o->n_depth};
    for (size_t i = 0; i < o->sequences.n && o->n_gen > 0; i++)
        t->row[t->n_rows++].work = (cluster_work){0, o->n_gen, o->sequences.v[i], o->n_depth};
    for (size_t i = 0; i < t->n_rows && st == GGL_OK; i++)
        st = cluster_run(&t->row[i].result, s, &t->plan, &t->row[i].work, err);
    return st;
}

static int run(cluster_setup *s, const options *o) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    bool fits = true;
    cluster_table *t = calloc(o->ranks.n, sizeof *t);
    if (!t)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < o->ranks.n && st == GGL_OK; i++) {
        st = predict(&t[i], s, o, (int)o->ranks.v[i], &err);
        fits = fits && t[i].plan.fits;
    }
    if (st == GGL_OK)
        cluster_print(s, t, o->ranks.n, o->format);
    for (size_t i = 0; i < o->ranks.n; i++) {
        cluster_plan_fini(&t[i].plan);
        free(t[i].row);
    }
    free(t);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    return fits ? 0 : 1;
}

static int check(options *o, bool *is_file) {
    static const int64_t ranks[] = {2}, sequences[] = {1, 16};
    const char *wrong = NULL;
    for (size_t i = 0; i < o->ranks_given.n && !wrong; i++)
        if ((wrong = bench_list_read(&o->ranks, o->ranks_given.s[i], 1, CLUSTER_MOST_RANKS)))
            return tool_error(TOOL, 2, "--ranks: '%s' %s (1 to %d)", o->ranks_given.s[i], wrong,
                              CLUSTER_MOST_RANKS);
    for (size_t i = 0; i < o->sequences_given.n && !wrong; i++)
        if ((wrong = bench_list_read(&o->sequences, o->sequences_given.s[i], 1, 65536)))
            return tool_error(TOOL, 2, "--sequences: '%s' %s (1 to 65536)", o->sequences_given.s[i],
                              wrong);
    bool ok = o->ranks.n > 0 || bench_list_add(&o->ranks, ranks[0]);
    for (size_t i = 0; o->sequences_given.n == 0 && i < 2; i++)
        ok = ok && bench_list_add(&o->sequences, sequences[i]);
    if (!ok)
        return tool_error(TOOL, 1, "out of memory");
    *is_file = o->given.n == 1;
    if (o->given.n != 1 && o->given.n != 2)
        return tool_error(
            TOOL, 2,
            "SHAPE and TYPE are needed, or the path of a model; 'llm-bench make --list' "
            "prints the shapes");
    if (o->n_prompt == 0 && o->n_gen == 0)
        return tool_error(TOOL, 2, "there is nothing to predict: -p and -n are 0");
    const int64_t least = o->n_depth + (o->n_prompt > o->n_gen ? o->n_prompt : o->n_gen);
    if (o->n_ctx > 0 && o->n_ctx < least)
        return tool_error(TOOL, 2, "-c: a context of %" PRId64 "; -d, -p and -n take %" PRId64,
                          o->n_ctx, least);
    o->n_ctx = o->n_ctx > 0 ? o->n_ctx : least;
    return *is_file
               ? tool_check_paths(
                     TOOL, &(tool_path){"MODEL", o->given.s[0], .needed = true, .model = true}, 1)
               : -1;
}

static int predict_all(options *o) {
    bool is_file = false;
    int code = check(o, &is_file);
    if (code >= 0)
        return code;
    cluster_model m = {0};
    cluster_setup s = {.m = &m, .n_ubatch = o->n_ubatch, .n_ctx = o->n_ctx};
    ggl_error err = {0};
    const cluster_model_params p = {.shape = is_file ? NULL : o->given.s[0],
                                    .type = is_file ? NULL : o->given.s[1],
                                    .file = is_file ? o->given.s[0] : NULL,
                                    .n_ctx = o->n_ctx,
                                    .type_k = tool_cache_type(o->type_k),
                                    .type_v = tool_cache_type(o->type_v)};
    for (size_t i = 0; i < o->sequences.n; i++)
        s.n_sequences = o->sequences.v[i] > s.n_sequences ? o->sequences.v[i] : s.n_sequences;
    code = read_link(o, &s);
    code = code < 0 ? read_memory(o, &s) : code;
    if (code < 0) {
        const ggl_status st = cluster_model_init(&m, &p, &err);
        code = st == GGL_OK
                   ? -1
                   : tool_error(TOOL, st == GGL_NOT_FOUND && !is_file ? 2 : 1, "%s", err.msg);
        code = code < 0 ? read_rank(o, &s) : code;
        code = code < 0 ? run(&s, o) : code;
        cluster_model_fini(&m);
    }
    return code;
}

int bench_cluster(int argc, char **argv) {
    static const char *const formats[] = {"md", "json", NULL};
    options o = {
        .n_prompt = 512, .n_gen = 32, .n_ubatch = 512, .n_threads = ggl_backend_default_threads()};
    const int64_t many = 1 << 24;
    const arg_option table[] = {
        {"--ranks", ARG_LIST, &o.ranks_given, .value = "N,..",
         .help = "machines, each of which is a rank of the job (default 2); lists as in llm-bench"},
        {"--link", ARG_STRING, &o.link, .value = "LATENCY,BANDWIDTH",
         .help = "of each machine's link, one way (default 20us,10Gbit/s)"},
        {"--rank", ARG_STRING, &o.rank, .value = "GB/s,GMAC/s",
         .help =
             "what a rank reads from memory and calculates, as llm-bench reports it for a model: "
             "40GB/s,300GMAC/s (default: measured here); a third number is for attention"},
        {"-t --threads", ARG_INT, &o.n_threads, .value = "N", .min = 1, .max = TOOL_MAX_THREADS,
         .help = "threads with which this machine is measured (default: physical cores)"},
        {"--memory", ARG_STRING, &o.memory, .value = "SIZE",
         .help = "memory of a rank, 64G (default: enough)"},
        {"--message", ARG_STRING, &o.message, .value = "TIME",
         .help = "what rank 0 needs to send or to take a message (default 10us)"},
        {"-p --n-prompt", ARG_INT, &o.n_prompt, .value = "N",
         .help = "tokens of the prompt; 0: none (default 512)", .min = 0, .max = many},
        {"-n --n-gen", ARG_INT, &o.n_gen, .value = "N",
         .help = "tokens to generate; 0: none (default 32)", .min = 0, .max = 1 << 16},
        {"-d --n-depth", ARG_INT, &o.n_depth, .value = "N",
         .help = "tokens in the cache before these (default 0)", .min = 0, .max = many},
        {"--sequences", ARG_LIST, &o.sequences_given, .value = "N,..",
         .help = "sequences that generate at once (default 1,16)"},
        {"-c --ctx-size", ARG_INT, &o.n_ctx, .value = "N",
         .help = "tokens for which each sequence has a cache (default: as many as needed)",
         .min = 1, .max = many},
        {"-ub --ubatch-size", ARG_INT, &o.n_ubatch, .value = "N",
         .help = "tokens of a prompt computed at once (default 512)", .min = 1, .max = 65536},
        {"-ctk --cache-type-k", ARG_CHOICE, &o.type_k, .value = "TYPE", .choices = tool_cache_types,
         .help = "type of cached keys: " TOOL_CACHE_TYPES},
        {"-ctv --cache-type-v", ARG_CHOICE, &o.type_v, .value = "TYPE", .choices = tool_cache_types,
         .help = "type of cached values: " TOOL_CACHE_TYPES},
        {"-o --output", ARG_CHOICE, &o.format, .value = "FORMAT", .help = "md (default), json",
         .choices = formats},
        {0}};
    static const args_example examples[] = {
        {"llm-bench cluster kimi-k2 q4_0 --ranks 24 --rank 200GB/s,2TMAC/s",
         "a shape of a trillion parameters on machines of that speed"},
        {"llm-bench cluster tinyllama-1.1b q4_0 --ranks 1-4",
         "machines like this one, which is measured"},
        {0}};
    const args_spec spec = {
        TOOL,
        "SHAPE TYPE | MODEL [options]",
        "Predicts how fast a model is on several machines, and what limits it. Exit code 1: their "
        "memory does not suffice.",
        table,
        &o.given,
        NULL,
        .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = predict_all(&o);
    args_list_fini(&o.given);
    args_list_fini(&o.ranks_given);
    args_list_fini(&o.sequences_given);
    free(o.ranks.v);
    free(o.sequences.v);
    return code;
}
