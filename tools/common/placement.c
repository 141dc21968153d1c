#include "placement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "process.h"

enum { MOST = 16 };
_Static_assert(TOOL_MAX_THREADS == GGL_MAX_THREADS, "-t takes what backends take");

struct placement {
    const char *tool; /* for notes on stderr; NULL: none */
    const placement_options *o;
    ggl_backend_params params;
    char names[MOST][512];
    ggl_backend *backend[MOST];
    ggl_backend *traced[MOST]; /* the same backends without --shadow's wrapper */
    int n;
    ggl_backend *reference; /* computes constants */
    ggl_backend *trusted;   /* for --shadow */
    double shadow_rate;
    int host;            /* index of the CPU; -1: not opened */
    int part[MOST];      /* indices of the backends that have layers, in the order of the layers */
    int64_t count[MOST]; /* how many layers each of them has */
    int n_parts;
    int64_t n_last; /* value of -ngl; -1: not given, or already applied */
    /* [i]: gets no share of the layers: named only by --place, or slower than the CPU */
    bool apart[MOST];
    place_rules rules;
    char text[MOST * 80];
};

/* --- backends --------------------------------------------------------------------------------- */

/* Returns the index of an open backend; -1: not open. */
static int find(const placement *p, const char *name, size_t n) {
    for (int i = 0; i < p->n; i++)
        if (strlen(p->names[i]) == n && memcmp(p->names[i], name, n) == 0)
            return i;
    return -1;
}

/* For --shadow: wraps *b so that an instance of the CPU backend checks its results. */
static ggl_status doubt(placement *p, ggl_backend **b, ggl_error *err) {
    const ggl_shadow_params sp = {
        .size = sizeof sp, .rate = p->shadow_rate, .seed = p->o->shadow_seed};
    ggl_backend_params plain = p->params;
    ggl_backend *doubted = NULL;
    plain.trace = NULL;
    ggl_status st = p->trusted ? GGL_OK : ggl_backend_open(&p->trusted, "cpu", &plain, err);
    if (st == GGL_OK)
        st = ggl_shadow_wrap(&doubted, *b, p->trusted, &sp, err);
    if (st == GGL_OK)
        *b = doubted;
    return st == GGL_OK ? st : ggl_within(err, st, "--shadow");
}

bool placement_report(const placement *p, FILE *out) {
    bool good = true;
    for (int i = 0; p->o->shadow && i < p->n; i++)
        good = ggl_shadow_report(p->backend[i], out) && good;
    return good;
}

/* Returns the index of the backend of that name and opens it if it is not open; -1: *err. */
static int need(placement *p, const char *name, size_t n, ggl_error *err) {
    int k = find(p, name, n);
    if (k >= 0)
        return k;
    if (n == 0 || n >= sizeof p->names[0] || p->n == MOST) {
        (void)ggl_fail(err, GGL_USAGE,
                       "'%.*s' is not the name of a backend, or there are more than %d names",
                       (int)(n < 80 ? n : 80), name, MOST);
        return -1;
    }
    k = p->n;
    snprintf(p->names[k], sizeof p->names[k], "%.*s", (int)n, name);
    if (ggl_backend_open(&p->backend[k], p->names[k], &p->params, err) != GGL_OK)
        return -1;
    p->traced[k] = p->backend[k];
    p->n++;
    if (p->o->shadow && doubt(p, &p->backend[k], err) != GGL_OK)
        return -1;
    if (strcmp(p->names[k], "cpu") == 0)
        p->host = k;
    return k;
}

static int need_host(placement *p, ggl_error *err) {
    return need(p, "cpu", 3, err);
}

/* Closes the backend that was opened last. */
static void give_up_last(placement *p) {
    p->n--;
    ggl_backend_close(p->backend[p->n]);
    p->backend[p->n] = p->traced[p->n] = NULL;
}

/* Opens the first GPU of the build's backends that opens and is not a software device; returns
 * its index. -1: there is none; *err gives the reason for the last one tried. */
static int need_first_device(placement *p, ggl_error *err) {
    const char *name;
    (void)ggl_fail(err, GGL_NOT_FOUND,
                   "this build has no backend for GPUs (it was configured with GGL_VULKAN=OFF)");
    for (int k = 0; (name = ggl_backend_name(k)); k++) {
        if (ggl_backend_kind(k) != GGL_BACKEND_DEVICE)
            continue;
        char first[64];
        snprintf(first, sizeof first, "%.60s0", name);
        int i = need(p, first, strlen(first), err);
        if (i >= 0 && !p->backend[i]->software)
            return i;
        if (i < 0)
            continue;
        (void)ggl_fail(err, GGL_UNSUPPORTED,
                       "there is no GPU; %s is emulated by the processor, and is used only if it "
                       "is named: --device %s",
                       first, first);
        give_up_last(p);
    }
    return -1;
}

/* --- the command line ------------------------------------------------------------------------- */

/* Opens the backends of --device. */
static ggl_status read_devices(placement *p, ggl_error *err) {
    const char *s = p->o->devices;
    for (size_t n; s && *s; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        if (need(p, s, n, err) < 0)
            return ggl_within(err, err->status, "--device");
    }
    return GGL_OK;
}

/* Reads --split into part and count, and opens the backends. */
static ggl_status read_split(placement *p, ggl_error *err) {
    const char *s = p->o->split;
    for (size_t n; *s; s += n + (s[n] == ',')) {
        n = strcspn(s, ",");
        const char *eq = memchr(s, '=', n);
        char number[24] = "";
        bool range;
        if (eq)
            snprintf(number, sizeof number, "%.*s", (int)(s + n - eq - 1), eq + 1);
        if (!eq || !args_read_int(number, &p->count[p->n_parts], &range) ||
            p->count[p->n_parts] < 0 || p->n_parts + 1 == MOST)
            return ggl_fail(err, GGL_USAGE,
                            "--split: '%.*s' is not NAME=LAYERS, as in vulkan0=20,cpu=12", (int)n,
                            s);
        int k = need(p, s, (size_t)(eq - s), err);
        if (k < 0)
            return ggl_within(err, err->status, "--split");
        p->part[p->n_parts++] = k;
    }
    return GGL_OK;
}

/* Reads --place and the like, and opens the backends. */
static ggl_status read_rules(placement *p, ggl_error *err) {
    const ggl_status st = place_rules_read(&p->rules, &p->o->rules, err);
    for (size_t i = 0; i < p->rules.n && st == GGL_OK; i++) {
        place_rule *r = &p->rules.rule[i];
        const int before = p->n;
        r->at = need(p, r->backend, strlen(r->backend), err);
        if (r->at < 0)
            return ggl_within(err, err->status, "%s", r->flag);
        for (int k = before; k < p->n; k++)
            p->apart[k] = true;
    }
    return st;
}

/* Writes the indices of the devices that share layers: all backends but the CPU and those set
 * apart. Returns how many. */
static int devices(const placement *p, int *at) {
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (i != p->host && !p->apart[i])
            at[n++] = i;
    return n;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Assigns the last n of n_layer layers to the devices, in proportion to their memory if all of
 * them report it, else in equal shares; the CPU has the others. */
static void give_devices(placement *p, int64_t n, int64_t n_layer) {
    int at[MOST], n_dev = devices(p, at);
    double total = 0, before = 0;
    bool known = true;
    for (int i = 0; i < n_dev; i++) {
        known = known && p->backend[at[i]]->memory > 0;
        total += (double)p->backend[at[i]]->memory;
    }
    n = n_dev > 0 ? smaller(n, n_layer) : 0;
    p->n_parts = 0;
    if (n < n_layer) {
        p->part[p->n_parts] = p->host;
        p->count[p->n_parts++] = n_layer - n;
    }
    int64_t given = 0;
    for (int i = 0; i < n_dev; i++) {
        before += known ? (double)p->backend[at[i]]->memory / total : 1.0 / n_dev;
        int64_t end = i + 1 == n_dev ? n : (int64_t)(before * (double)n + 0.5);
        if (end > given) {
            p->part[p->n_parts] = at[i];
            p->count[p->n_parts++] = end - given;
        }
        given = end;
    }
}

/* Opens the first GPU if layers are wanted on a device and no device was named. Without a GPU
 * all layers run on the CPU, after a note; with --strict: an error. */
static ggl_status default_device(placement *p, ggl_error *err) {
    int at[MOST];
    bool wanted = p->o->n_gpu_layers > 0 || p->o->fit || (p->o->split && !p->n_parts);
    if (!wanted || p->n_parts || devices(p, at) > 0 || need_first_device(p, err) >= 0)
        return GGL_OK;
    if (p->o->strict)
        return ggl_within(err, err->status, "no device for layers");
    if (p->tool)
        tool_note(p->tool, "all layers run on the CPU: %s", err->msg);
    return GGL_OK;
}

static ggl_status check_options(const placement *p, ggl_error *err) {
    const placement_options *o = p->o;
    bool by_count = o->split && strcmp(o->split, "auto") != 0;
    const char *two = o->split && o->n_gpu_layers_given ? "--split and -ngl"
                      : by_count && o->fit              ? "--split with numbers and --fit"
                      : o->n_gpu_layers_given && o->fit ? "-ngl and --fit"
                                                        : NULL;
    return two ? ggl_fail(err, GGL_USAGE, "%s cannot be used together", two) : GGL_OK;
}

static ggl_status read_shadow(placement *p, ggl_error *err) {
    const char *rate = p->o->shadow;
    bool range;
    if (rate && *rate &&
        (!args_read_float(rate, &p->shadow_rate, &range) || p->shadow_rate <= 0 ||
         p->shadow_rate > 1))
        return ggl_fail(err, GGL_USAGE,
                        "--shadow: '%s' is not a share of the runs, above 0 and up to 1", rate);
    return GGL_OK;
}

/* Opens the CPU if layers are left for it: without --device and --split all of them, else what
 * -ngl, --fit and --split auto leave. */
static ggl_status open_host(placement *p, ggl_error *err) {
    const placement_options *o = p->o;
    bool all = p->n == 0, rest = o->n_gpu_layers_given || o->fit || (o->split && !p->n_parts);
    return (all || rest) && need_host(p, err) < 0 ? err->status : GGL_OK;
}

ggl_status placement_new(placement **out, const char *tool, const placement_options *o,
                         const ggl_backend_params *params, ggl_error *err) {
    placement *p = *out = calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->tool = tool;
    p->o = o;
    p->params = params ? *params : (ggl_backend_params){.size = sizeof(ggl_backend_params)};
    p->host = -1;
    p->params.trace = o->trace;
    ggl_status st = check_options(p, err);
    if (st == GGL_OK)
        st = read_shadow(p, err);
    if (st == GGL_OK)
        st = read_devices(p, err);
    if (st == GGL_OK && o->split && strcmp(o->split, "auto") != 0)
        st = read_split(p, err);
    if (st == GGL_OK)
        st = open_host(p, err);
    if (st == GGL_OK)
        st = read_rules(p, err);
    if (st == GGL_OK)
        st = default_device(p, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&p->reference, "reference", NULL, err);
    return st;
}

/* Reports the error. Returns exit code 2 also for names that do not exist, as for misspelled
 * flags. */
static int tell(const char *tool, const ggl_error *err) {
    bool usage = err->status == GGL_USAGE || err->status == GGL_NOT_FOUND;
    return tool_error(tool, usage ? 2 : 1, "%s", err->msg);
}

int placement_open(placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params) {
    ggl_error err = {0};
    return placement_new(out, tool, o, params, &err) == GGL_OK ? -1 : tell(tool, &err);
}

ggl_status placement_close(placement *p, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!p)
        return st;
    for (int i = 0; i < p->n; i++) {
        ggl_status ended = ggl_trace_end(p->traced[i], st == GGL_OK ? err : NULL);
        st = st == GGL_OK ? ended : st;
    }
    for (int i = 0; i < p->n; i++)
        ggl_backend_close(p->backend[i]);
    ggl_backend_close(p->reference);
    ggl_backend_close(p->trusted);
    place_rules_fini(&p->rules);
    free(p);
    return st;
}

const char *placement_trace(const placement_options *o) {
    const char *path = getenv("GGL_TRACE");
    if (o->trace || !o->devices || !strstr(o->devices, "trace"))
        return o->trace;
    return path && *path ? path : "trace.json";
}

/* --- sessions --------------------------------------------------------------------------------- */

/* llm_session_params.place. The part before the first layer runs where the first layer does, and
 * the part after the last where the last does. */
static int place(void *ctx, int layer, int n_layer, const char *weight) {
    placement *p = ctx;
    const place_rule *rule = weight ? place_rules_find(&p->rules, weight) : NULL;
    if (weight)
        return rule ? rule->at : -1;
    if (p->n_last >= 0)
        give_devices(p, p->n_last, n_layer);
    p->n_last = -1;
    int64_t at = layer < 0 ? 0 : layer >= n_layer ? n_layer - 1 : layer, end = 0;
    for (int i = 0; i < p->n_parts; i++) {
        end += p->count[i];
        if (at < end)
            return p->part[i];
    }
    return p->n_parts ? p->part[p->n_parts - 1] : 0;
}

static ggl_status session_new(placement *p, llm_session **out, const llm_model *m,
                              llm_session_params *sp, ggl_error *err) {
    sp->backend = p->backend;
    sp->fold = p->reference;
    sp->place = place;
    sp->place_ctx = p;
    sp->strict = p->o->strict;
    sp->n_backends = p->n;
    return llm_session_new(out, m, sp, err);
}

/* Returns whether the session's part on a device fits its memory, with a twentieth left for the
 * driver, and whether the values, which are one buffer, do. */
static bool fits_on(const ggl_backend *b, const ggl_memory *m) {
    const size_t part[] = {
        m->weights_copied, m->weights_repacked, m->stores_rows, m->stores_states, m->arena, m->io};
    size_t all = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!ggl_size_add(all, part[i], &all))
            return false;
    bool small = !b->max_buffer || m->arena <= b->max_buffer;
    return small && (!b->memory || all <= b->memory - b->memory / 20);
}

/* fits_on for all devices of the session. */
static bool fits(const placement *p, const llm_session *s) {
    int at[MOST], n = devices(p, at);
    ggl_memory m;
    for (int i = 0; i < n; i++)
        if (ggl_sched_memory(llm_session_sched(s), at[i], &m) && !fits_on(p->backend[at[i]], &m))
            return false;
    return true;
}

/* Returns the largest number of layers that fit on the devices, and assigns them; -1: *err. */
static int64_t most_that_fit(placement *p, const llm_model *m, llm_session_params *sp,
                             int64_t n_layer, ggl_error *err) {
    int64_t low = 0, high = n_layer;
    while (low < high) {
        int64_t n = (low + high + 1) / 2;
        llm_session *s = NULL;
        give_devices(p, n, n_layer);
        ggl_status st = session_new(p, &s, m, sp, err);
        if (st != GGL_OK && st != GGL_LIMIT)
            return -1;
        bool ok = st == GGL_OK && fits(p, s);
        llm_session_free(s);
        *(ok ? &low : &high) = ok ? n : n - 1;
    }
    give_devices(p, low, n_layer);
    return low;
}

/* Returns the seconds that a token takes with the layers as assigned; 0: *err. */
static double measure(placement *p, const llm_model *m, const llm_session_params *sp,
                      ggl_error *err) {
    llm_session_params trial = *sp;
    llm_session *s = NULL;
    trial.n_slots = 1;
    trial.repack_cache = NULL;
    const int32_t token = 0;
    ggl_status st = session_new(p, &s, m, &trial, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    double begin = 0, taken = 0;
    int n = -1; /* -1: the first run is not counted, because pages are loaded and shaders made */
    for (; st == GGL_OK && n < 200 && (n < 3 || taken < 1); n++) {
        if (llm_session_n_past(s, 0) == llm_session_n_ctx(s))
            st = llm_session_clear(s, 0, err);
        if (st == GGL_OK)
            st = llm_session_eval(s, &(llm_batch){.n = 1, .token = &token}, err);
        begin = n < 0 ? process_seconds() : begin;
        taken = process_seconds() - begin;
    }
    llm_session_free(s);
    return st == GGL_OK && n > 0 ? taken / n : 0;
}

/* For --split auto: measures each device alone and assigns as many layers as fit to the devices
 * that are faster than the CPU. A token passes through one layer after the other, so its time is
 * a sum over layers, and more layers on a faster device never make it slower. */
static ggl_status choose(placement *p, const llm_model *m, llm_session_params *sp, int64_t n_layer,
                         ggl_error *err) {
    bool fast[MOST] = {false};
    int at[MOST], n_dev = devices(p, at);
    const bool tells = p->tool && !tool_is_quiet();
    give_devices(p, 0, n_layer);
    double host = measure(p, m, sp, err);
    if (host <= 0)
        return err->status;
    if (tells)
        tool_say(p->tool, "%9.2f ms a token with all layers on cpu", host * 1e3);
    for (int i = 0; i < n_dev; i++)
        p->apart[at[i]] = true;
    for (int i = 0; i < n_dev; i++) {
        const char *name = p->names[at[i]];
        p->apart[at[i]] = false;
        int64_t n = most_that_fit(p, m, sp, n_layer, err);
        double t = n > 0 ? measure(p, m, sp, err) : 0;
        if (n < 0)
            return err->status;
        if (tells && t > 0)
            tool_say(p->tool, "%9.2f ms a token with %" PRId64 " of %" PRId64 " layers on %s",
                     t * 1e3, n, n_layer, name);
        else if (tells)
            tool_say(p->tool, "not on %s: %s", name,
                     n > 0 ? err->msg : "no layer fits into its memory");
        p->apart[at[i]] = true;
        fast[at[i]] = t > 0 && t < host;
    }
    for (int i = 0; i < n_dev; i++)
        p->apart[at[i]] = !fast[at[i]];
    return most_that_fit(p, m, sp, n_layer, err) < 0 ? err->status : GGL_OK;
}

/* Assigns the layers if that takes trial sessions (--fit, --split auto). Otherwise place()
 * assigns them when it learns the number of layers. */
static ggl_status settle(placement *p, const llm_model *m, llm_session_params *sp, ggl_error *err) {
    const placement_options *o = p->o;
    bool automatic = o->split && strcmp(o->split, "auto") == 0;
    p->n_last = o->n_gpu_layers_given ? o->n_gpu_layers : -1;
    if (!o->split || automatic)
        p->n_parts = 0; /* all on the first backend */
    if (!o->fit && !automatic)
        return GGL_OK;
    llm_session *s = NULL;
    ggl_status st = session_new(p, &s, m, sp, err);
    int64_t n_layer = st == GGL_OK ? llm_session_n_layer(s) : 0;
    llm_session_free(s);
    if (st != GGL_OK || automatic)
        return st == GGL_OK ? choose(p, m, sp, n_layer, err) : st;
    return most_that_fit(p, m, sp, n_layer, err) < 0 ? err->status : GGL_OK;
}

/* Checks that the counts of --split add up to the model's layers, and that each pattern of
 * --place matches a weight. */
static ggl_status check_use(const placement *p, const llm_session *s, ggl_error *err) {
    int64_t sum = 0, n_layer = llm_session_n_layer(s);
    for (int i = 0; i < p->n_parts; i++)
        sum += p->count[i];
    if (p->n_parts > 0 && sum != n_layer)
        return ggl_fail(err, GGL_USAGE,
                        "--split %s: that is %" PRId64 " layers; the model has %" PRId64,
                        p->o->split, sum, n_layer);
    return place_rules_check(&p->rules, err);
}

ggl_status placement_session_new(placement *p, llm_session **out, const llm_model *m,
                                 llm_session_params *sp, ggl_error *err) {
    *out = NULL;
    place_rules_begin(&p->rules);
    ggl_status st = settle(p, m, sp, err);
    if (st == GGL_OK)
        st = session_new(p, out, m, sp, err);
    /* The CPU runs what other backends refuse; it is opened only if that happens. */
    if (st == GGL_UNSUPPORTED && p->host < 0 && !p->o->strict) {
        if (need_host(p, err) < 0)
            return err->status;
        st = settle(p, m, sp, err);
        if (st == GGL_OK)
            st = session_new(p, out, m, sp, err);
    }
    if (st == GGL_OK)
        st = check_use(p, *out, err);
    if (st != GGL_OK) {
        llm_session_free(*out);
        *out = NULL;
    }
    return st;
}

int placement_session(placement *p, llm_session **out, const llm_model *m, llm_session_params *sp) {
    ggl_error err = {0};
    ggl_status st = placement_session_new(p, out, m, sp, &err);
    if (st == GGL_CANCELLED && process_stopped)
        return process_stop_code();
    if (st != GGL_OK)
        return tell(p->tool, &err);
    if (p->o->fit || p->o->split || p->o->n_gpu_layers_given)
        tool_say(p->tool, "layers: %s", placement_text(p));
    const char *unused = place_rules_unused(&p->rules);
    if (unused)
        tool_note(p->tool, "%s has no effect: the model has no experts", unused);
    size_t n = ggl_sched_n_fallbacks(llm_session_sched(*out));
    if (n > 0)
        tool_note(p->tool,
                  "%zu node%s elsewhere than placed, because a backend refuses %s; --plan shows "
                  "%s, --strict makes this an error",
                  n, n == 1 ? " runs" : "s run", n == 1 ? "it" : "them", n == 1 ? "it" : "them");
    return -1;
}

/* Returns the largest context, rounded down, whose cache fits into the memory of the CPU beside all
 * else; 0: none, or it is not known. n_ctx: that of sp. */
static int64_t context_that_fits(placement *p, const llm_model *m, llm_session_params *sp,
                                 int64_t n_ctx) {
    enum { MULTIPLE = 256 };
    ggl_error err = {0};
    ggl_memory use = {0};
    llm_session *s = NULL;
    if (p->host < 0 || session_new(p, &s, m, sp, &err) != GGL_OK)
        return 0;
    const bool known = ggl_sched_memory(llm_session_sched(s), p->host, &use);
    llm_session_free(s);
    const double row = (double)use.stores_rows / (double)n_ctx;
    const double memory = (double)p->backend[p->host]->memory;
    const double other = (double)use.weights_copied + (double)use.weights_repacked +
                         (double)use.stores_states + (double)use.arena + (double)use.io;
    const double room = memory - memory / 20 - other;
    if (!known || row <= 0 || room < MULTIPLE * row)
        return 0;
    const int64_t n = (int64_t)(room / row) / MULTIPLE * MULTIPLE;
    return n < n_ctx ? n : 0;
}

const char *placement_advice(placement *p, const llm_model *m, llm_session_params *sp,
                             ggl_status why, char *buf, size_t size) {
    ggl_error err = {0};
    int at[MOST];
    llm_session *s = NULL;
    *buf = 0;
    if (why != GGL_NOMEM && why != GGL_LIMIT)
        return buf;
    int64_t n_ctx = sp->n_ctx > 0 ? sp->n_ctx : llm_model_n_ctx(m);
    const int64_t n_fits = n_ctx > 1 ? context_that_fits(p, m, sp, n_ctx) : 0;
    if (n_fits > 0)
        snprintf(buf, size, "; the context is %" PRId64 " tokens; -c %" PRId64 " would fit", n_ctx,
                 n_fits);
    else if (n_ctx > 1)
        snprintf(buf, size, "; the context is %" PRId64 " tokens, -c sets a smaller one", n_ctx);
    if (devices(p, at) == 0 || need_host(p, &err) < 0 || session_new(p, &s, m, sp, &err) != GGL_OK)
        return buf;
    int64_t n_layer = llm_session_n_layer(s);
    llm_session_free(s);
    int64_t n = most_that_fit(p, m, sp, n_layer, &err);
    if (n >= 0 && n < n_layer)
        snprintf(buf, size,
                 "; %" PRId64 " of %" PRId64 " layers would fit: -ngl %" PRId64 ", or --fit", n,
                 n_layer, n);
    return buf;
}

bool placement_is_cpu_only(const placement *p) {
    const placement_options *o = p->o;
    return !o->devices && !o->split && !o->n_gpu_layers_given && !o->fit &&
           !place_rules_name_backends(&o->rules);
}

const ggl_backend_params *placement_params(const placement *p) {
    return &p->params;
}

void placement_options_fini(placement_options *o) {
    args_list_fini(&o->rules.place);
    args_list_fini(&o->rules.override);
}

int placement_n_backends(const placement *p) {
    return p->n;
}

ggl_backend *placement_backend(const placement *p, int k) {
    return p->backend[k];
}

int64_t placement_n_device_layers(const placement *p, const llm_session *s) {
    int64_t n = 0;
    if (p->n_parts == 0)
        return p->host == 0 ? 0 : llm_session_n_layer(s);
    for (int i = 0; i < p->n_parts; i++)
        n += p->part[i] == p->host ? 0 : p->count[i];
    return n;
}

const char *placement_text(const placement *p) {
    char *text = ((placement *)(uintptr_t)p)->text;
    size_t used = 0;
    if (p->n_parts == 0)
        return p->backend[0]->name;
    for (int i = 0; i < p->n_parts && used < sizeof p->text; i++)
        used += (size_t)snprintf(text + used, sizeof p->text - used, "%s%s=%" PRId64, i ? "," : "",
                                 p->backend[p->part[i]]->name, p->count[i]);
    return text;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Prints a backend's line if it opens; `must`: also if it does not, with the reason. */
static bool list_one(FILE *out, const char *name, const char *text, bool must) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    if (ggl_backend_open(&b, name, NULL, &err) != GGL_OK) {
        if (must)
            fprintf(out, "%-12s not available: %s\n", name, err.msg);
        return false;
    }
    fprintf(out, "%-12s %s%s", name, b->software ? "(software) " : "",
            *b->description ? b->description : text);
    if (b->memory)
        fprintf(out, "; %.0f MiB", (double)b->memory / 1048576);
    fputc('\n', out);
    ggl_backend_close(b);
    return true;
}

void placement_list(FILE *out) {
    const char *name;
    for (int k = 0; (name = ggl_backend_name(k)); k++) {
        char numbered[64];
        if (ggl_backend_kind(k) != GGL_BACKEND_DEVICE) {
            list_one(out, name, ggl_backend_text(k), true);
            continue;
        }
        for (int i = 0; i < 1000; i++) {
            snprintf(numbered, sizeof numbered, "%.50s%d", name, i);
            if (!list_one(out, numbered, ggl_backend_text(k), i == 0))
                break;
        }
    }
}
