#include "placement_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/backends.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"

/* --- backends --------------------------------------------------------------------------------- */

/* Returns the index of an open backend; -1: not open. Names have any case, but not paths. */
static int find(const llm_placement *p, const char *name, size_t n) {
    const bool is_path = ggl_os_has_separator(name, n);
    for (int i = 0; i < p->n; i++)
        if (strlen(p->names[i]) == n && (is_path ? memcmp(p->names[i], name, n) == 0
                                                 : ggl_case_compare_n(p->names[i], name, n) == 0))
            return i;
    return -1;
}

/* Opens a CPU that no layer runs on, and that is not traced. */
static ggl_status need_trusted(llm_placement *p, ggl_error *err) {
    ggl_backend_params plain = p->params;
    plain.trace = NULL;
    return p->trusted ? GGL_OK : ggl_backend_open(&p->trusted, "cpu", &plain, err);
}

/* For shadow: wraps *b so that an instance of the CPU backend checks its results. */
static ggl_status doubt(llm_placement *p, ggl_backend **b, ggl_error *err) {
    const ggl_shadow_params sp = {
        .size = sizeof sp, .rate = p->shadow_rate, .seed = p->o.shadow_seed};
    ggl_backend *doubted = NULL;
    ggl_status st = need_trusted(p, err);
    if (st == GGL_OK)
        st = ggl_shadow_wrap(&doubted, *b, p->trusted, &sp, err);
    if (st == GGL_OK)
        *b = doubted;
    return st == GGL_OK ? st : ggl_within(err, st, "%s", p->o.names.shadow);
}

bool llm_placement_report(const llm_placement *p, FILE *out) {
    bool good = true;
    for (int i = 0; p->o.shadow && i < p->n; i++)
        good = ggl_shadow_report(p->backend[i], out) && good;
    return good;
}

/* Returns the index of the backend of that name and opens it if it is not open; -1: *err. */
static int need(llm_placement *p, const char *name, size_t n, ggl_error *err) {
    int k = find(p, name, n);
    if (k >= 0)
        return k;
    if (n == 0) {
        (void)ggl_fail(err, GGL_USAGE,
                       "the name of a backend is empty; one comma divides two names");
        return -1;
    }
    if (n >= sizeof p->names[0] || p->n == PLACEMENT_MOST) {
        (void)ggl_fail(err, GGL_USAGE,
                       "'%.*s' is not the name of a backend, or there are more than %d names",
                       (int)(n < 80 ? n : 80), name, PLACEMENT_MOST);
        return -1;
    }
    k = p->n;
    snprintf(p->names[k], sizeof p->names[k], "%.*s", (int)n, name);
    if (ggl_backend_open(&p->backend[k], p->names[k], &p->params, err) != GGL_OK)
        return -1;
    p->traced[k] = p->backend[k];
    p->n++;
    if (p->o.shadow && doubt(p, &p->backend[k], err) != GGL_OK)
        return -1;
    if (ggl_case_compare(p->names[k], "cpu") == 0)
        p->host = k;
    return k;
}

int llm_placement_need_host(llm_placement *p, ggl_error *err) {
    return need(p, "cpu", 3, err);
}

/* Closes the backend that was opened last. */
static void give_up_last(llm_placement *p) {
    p->n--;
    ggl_backend_close(p->backend[p->n]);
    p->backend[p->n] = p->traced[p->n] = NULL;
}

/* Opens the first GPU of the build's backends that opens and is not a software device; returns
 * its index. -1 if none; *err gives the reason for the last one tried. */
static int need_first_device(llm_placement *p, ggl_error *err) {
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
                       "is named: %s %s",
                       first, p->o.names.device, first);
        give_up_last(p);
    }
    return -1;
}

static bool is_auto(const char *split) {
    return split && (strcmp(split, "auto") == 0 || strcmp(split, "rows") == 0);
}

/* --- what was chosen -------------------------------------------------------------------------- */

/* Puts the name of what was chosen before a message, unless it is about an environment variable. */
static ggl_status within(const char *name, ggl_error *err) {
    return strncmp(err->msg, "GGL_", 4) == 0 ? err->status
                                             : ggl_within(err, err->status, "%s", name);
}

/* Takes the next part of a comma-separated list. False at the end. */
static bool take_part(const char **list, const char **part, size_t *n) {
    if (!*list)
        return false;
    *part = *list;
    *n = strcspn(*list, ",");
    *list = (*list)[*n] ? *list + *n + 1 : NULL;
    return true;
}

/* Opens the backends of `devices`. */
static ggl_status read_devices(llm_placement *p, ggl_error *err) {
    const char *flag = p->o.names.device, *name;
    const char *list = p->o.devices && *p->o.devices ? p->o.devices : NULL;
    p->no_device = list && ggl_case_compare(list, "none") == 0;
    for (size_t n; !p->no_device && take_part(&list, &name, &n);) {
        if (n == strlen("none") && ggl_case_compare_n(name, "none", n) == 0)
            return ggl_fail(err, GGL_USAGE,
                            "%s %s: 'none' stands for the CPU alone; name either it or devices",
                            flag, p->o.devices);
        if (find(p, name, n) >= 0)
            return ggl_fail(err, GGL_USAGE, "%s: '%.*s' is named twice", flag, (int)n, name);
        if (need(p, name, n, err) < 0)
            return within(flag, err);
    }
    p->n_devices = p->n;
    return GGL_OK;
}

/* Reads a number of layers, of at least 0, that is all of the n bytes at s. It is small enough for all numbers
 * of a split to be added. */
static bool read_layers(const char *s, size_t n, int64_t *out) {
    const bool negative = n > 0 && *s == '-';
    size_t i = n > 0 && (negative || *s == '+');
    int64_t x = 0;
    if (i == n)
        return false;
    for (; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || x > INT64_MAX / PLACEMENT_MOST / 10 - 1)
            return false;
        x = 10 * x + (s[i] - '0');
    }
    *out = x;
    return !negative || x == 0;
}

/* Reads `split` into part and count, and opens the backends. */
static ggl_status read_split(llm_placement *p, ggl_error *err) {
    const char *list = p->o.split, *s;
    for (size_t n; take_part(&list, &s, &n);) {
        const char *eq = memchr(s, '=', n);
        if (!eq || !read_layers(eq + 1, (size_t)(s + n - eq - 1), &p->count[p->n_parts]) ||
            p->n_parts + 1 == PLACEMENT_MOST)
            return ggl_fail(err, GGL_USAGE,
                            "%s: '%.*s' is neither NAME=LAYERS, as in vulkan0=20,cpu=12, nor auto, "
                            "rows or copies",
                            p->o.names.split, (int)n, s);
        int k = need(p, s, (size_t)(eq - s), err);
        if (k < 0)
            return within(p->o.names.split, err);
        p->part[p->n_parts++] = k;
    }
    return GGL_OK;
}

/* Fails if `split` gives no layers to a device of `devices`, and no rule names it. The CPU also gets
 * what others refuse. */
static ggl_status check_split(const llm_placement *p, ggl_error *err) {
    for (int k = 0; k < p->n_devices && p->n_parts > 0; k++) {
        bool used = k == p->host;
        for (int i = 0; i < p->n_parts && !used; i++)
            used = p->part[i] == k;
        for (size_t i = 0; i < p->rules.n && !used; i++)
            used = p->rules.rule[i].at == k;
        if (!used)
            return ggl_fail(err, GGL_USAGE,
                            "%s names %s, to which %s %s gives no layers; add it there, as in "
                            "%s=N, or leave it out",
                            p->o.names.device, p->names[k], p->o.names.split, p->o.split,
                            p->names[k]);
    }
    return GGL_OK;
}

/* Reads the rules, and opens the backends. */
static ggl_status read_rules(llm_placement *p, ggl_error *err) {
    const ggl_status st = llm_place_rules_read(&p->rules, &p->o.rules, err);
    for (size_t i = 0; i < p->rules.n && st == GGL_OK; i++) {
        place_rule *r = &p->rules.rule[i];
        const int before = p->n;
        r->at = need(p, r->backend, strlen(r->backend), err);
        if (r->at < 0)
            return within(r->flag, err);
        for (int k = before; k < p->n; k++)
            p->apart[k] = true;
    }
    return st;
}

/* Reads a finite number that is all of the n bytes at s. */
static bool read_number(const char *s, size_t n, double *out) {
    if (n == 0 || ggl_number_length(s, n) != n)
        return false;
    *out = ggl_number_value(s, n);
    return isfinite(*out);
}

/* Reads `shares`: "3,1" or "3/1". */
static ggl_status read_shares(llm_placement *p, ggl_error *err) {
    double sum = 0;
    for (const char *s = p->o.shares; s && *s;) {
        const size_t n = strcspn(s, ",/");
        double *share = &p->share[p->n_shares];
        if (!read_number(s, n, share) || *share < 0)
            return ggl_fail(err, GGL_USAGE,
                            "%s %s: '%.*s' is not a proportion, a number of 0 or more",
                            p->o.names.shares, p->o.shares, (int)(n < 23 ? n : 23), s);
        if (++p->n_shares == PLACEMENT_MOST)
            return ggl_fail(err, GGL_USAGE, "%s %s: there are %d proportions or more",
                            p->o.names.shares, p->o.shares, PLACEMENT_MOST);
        sum += *share;
        s += n + (s[n] != 0);
    }
    return p->n_shares == 0 || sum > 0
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%s %s: no device would get a layer", p->o.names.shares,
                          p->o.shares);
}

/* If no device was named, opens a GPU for each proportion: vulkan1 after vulkan0. Fails if there are
 * more proportions than devices. */
static ggl_status check_shares(llm_placement *p, ggl_error *err) {
    int at[PLACEMENT_MOST], n = llm_placement_devices(p, at);
    char name[600];
    for (int had = 0; !p->o.devices && n > had && n < p->n_shares;) {
        const char *first = p->names[at[0]];
        snprintf(name, sizeof name, "%.*s%d", (int)strcspn(first, "0123456789"), first, n);
        const int k = need(p, name, strlen(name), err);
        if (k >= 0 && p->backend[k]->software)
            give_up_last(p);
        had = n;
        n = llm_placement_devices(p, at);
    }
    if (n == 0 || p->n_shares <= n)
        return GGL_OK;
    return ggl_fail(
        err, GGL_USAGE,
        "%s %s: these are %d proportions for %d device%s; %s prints all, %s names those "
        "to use",
        p->o.names.shares, p->o.shares, p->n_shares, n, n == 1 ? "" : "s", p->o.names.list,
        p->o.names.device);
}

int llm_placement_devices(const llm_placement *p, int *at) {
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (i != p->host && !p->apart[i])
            at[n++] = i;
    return n;
}

/* True if layers are wanted on devices, and none was named. */
static bool wants_devices(const llm_placement *p) {
    int at[PLACEMENT_MOST];
    const bool wanted = p->o.n_gpu_layers > 0 || p->o.fit || (p->o.split && !p->n_parts) ||
                        (p->n_shares > 0 && !p->o.n_gpu_layers_given);
    return wanted && !p->no_device && !p->n_parts && llm_placement_devices(p, at) == 0;
}

/* In a job of several ranks the devices are the other ranks, if none was named. The layers are divided among all ranks if nothing else
 * was chosen, or "auto". */
static ggl_status open_ranks(llm_placement *p, ggl_error *err) {
    char name[32];
    p->is_job = ggl_ranks_count() > 1 && !p->o.devices &&
                (llm_placement_is_cpu_only(p) || is_auto(p->o.split));
    const bool opens = p->is_job || (!p->o.devices && wants_devices(p));
    for (int r = 1; r < ggl_ranks_count() && opens; r++) {
        snprintf(name, sizeof name, "rank%d", r);
        if (need(p, name, strlen(name), err) < 0)
            return err->status;
    }
    return p->is_job && llm_placement_need_host(p, err) < 0 ? err->status : GGL_OK;
}

/* Opens the first GPU if layers are wanted on a device and no device was named. Without a GPU
 * all layers run on the CPU, after a note; with `strict`: an error. */
static ggl_status default_device(llm_placement *p, ggl_error *err) {
    if (!wants_devices(p) || need_first_device(p, err) >= 0)
        return GGL_OK;
    if (p->o.strict)
        return ggl_within(err, err->status, "no device for layers");
    char text[sizeof err->msg + 40];
    snprintf(text, sizeof text, "all layers run on the CPU: %s", err->msg);
    if (p->o.note)
        p->o.note(p->o.ctx, text);
    return GGL_OK;
}

static ggl_status check_choice(const llm_placement *p, ggl_error *err) {
    const llm_placement_choice *o = &p->o;
    const llm_placement_names names = o->names;
    const bool by_count = o->split && !is_auto(o->split);
    const char *numbers = "", *two[2] = {NULL, NULL};
    if (o->split && o->n_gpu_layers_given) {
        two[0] = names.split, two[1] = names.n_gpu_layers;
    } else if (by_count && o->fit) {
        two[0] = names.split, two[1] = names.fit, numbers = " with numbers";
    } else if (o->n_gpu_layers_given && o->fit) {
        two[0] = names.n_gpu_layers, two[1] = names.fit;
    } else if (o->split && o->shares && !p->by_rows) {
        two[0] = names.split, two[1] = names.shares;
    }
    return two[0] ? ggl_fail(err, GGL_USAGE, "%s%s and %s cannot be used together", two[0], numbers,
                             two[1])
                  : GGL_OK;
}

static ggl_status read_shadow(llm_placement *p, ggl_error *err) {
    const char *rate = p->o.shadow;
    if (rate && *rate &&
        (!read_number(rate, strlen(rate), &p->shadow_rate) || p->shadow_rate <= 0 ||
         p->shadow_rate > 1))
        return ggl_fail(err, GGL_USAGE, "%s: '%s' is not a share of the runs, above 0 and up to 1",
                        p->o.names.shadow, rate);
    return GGL_OK;
}

/* Opens the CPU if layers are left for it: without `devices` and `split` all of them, else what
 * n_gpu_layers, `fit` and "auto" leave. */
static ggl_status open_host(llm_placement *p, ggl_error *err) {
    const llm_placement_choice *o = &p->o;
    bool all = p->n == 0, rest = o->n_gpu_layers_given || o->fit || (o->split && !p->n_parts);
    return (all || rest) && llm_placement_need_host(p, err) < 0 ? err->status : GGL_OK;
}

ggl_status llm_placement_new(llm_placement **out, const llm_placement_choice *o,
                             const ggl_backend_params *params, ggl_error *err) {
    llm_placement *p = *out = calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->o = *o;
    p->o.split = p->split =
        o->split ? ggl_copy_text(o->split) : NULL; /* it is read for each session */
    if (o->split && !p->split)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->params = params ? *params : (ggl_backend_params){.size = sizeof(ggl_backend_params)};
    p->host = -1;
    p->params.trace = o->trace;
    p->by_rows = o->split && strcmp(o->split, "rows") == 0;
    ggl_status st = o->split && strcmp(o->split, "copies") == 0
                        ? ggl_fail(err, GGL_USAGE,
                                   "%s copies is for many inputs at once, of llm-embed, "
                                   "llm-perplexity and llm-imatrix, or of their calls: one "
                                   "sequence runs on one copy; %s auto, or rows, divides the "
                                   "model, and docs/replicas.md has servers with the whole model "
                                   "on each machine",
                                   o->names.split, o->names.split)
                        : check_choice(p, err);
    if (st == GGL_OK)
        st = read_shadow(p, err);
    if (st == GGL_OK)
        st = read_shares(p, err);
    if (st == GGL_OK)
        st = read_devices(p, err);
    if (st == GGL_OK && o->split && !is_auto(o->split))
        st = read_split(p, err);
    if (st == GGL_OK)
        st = open_host(p, err);
    if (st == GGL_OK)
        st = read_rules(p, err);
    if (st == GGL_OK)
        st = check_split(p, err);
    if (st == GGL_OK)
        st = open_ranks(p, err);
    if (st == GGL_OK)
        st = default_device(p, err);
    if (st == GGL_OK)
        st = check_shares(p, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&p->reference, "reference", NULL, err);
    if (st == GGL_OK && p->host < 0) /* constants have the same bits wherever the layers are */
        st = need_trusted(p, err);
    return st;
}

ggl_status llm_placement_close(llm_placement *p, ggl_error *err) {
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
    llm_place_rules_fini(&p->rules);
    free(p->split);
    free(p);
    return st;
}

bool llm_placement_is_cpu_only(const llm_placement *p) {
    const llm_placement_choice *o = &p->o;
    return !p->is_job && !o->devices && !o->split && !o->shares && !o->n_gpu_layers_given &&
           !o->fit && !llm_place_rules_name_backends(&o->rules);
}

bool llm_placement_counts_layers(const llm_placement *p) {
    const llm_placement_choice *o = &p->o;
    return p->is_job || o->fit || o->split || o->shares || o->n_gpu_layers_given;
}

const char *llm_placement_unused(const llm_placement *p) {
    return llm_place_rules_unused(&p->rules);
}

const ggl_backend_params *llm_placement_params(const llm_placement *p) {
    return &p->params;
}

int llm_placement_n_backends(const llm_placement *p) {
    return p->n;
}

ggl_backend *llm_placement_backend(const llm_placement *p, int k) {
    return p->backend[k];
}

bool llm_placement_is_host(const ggl_backend *b) {
    return b->software || strncmp(b->name, "cpu", 3) == 0 || strcmp(b->name, "reference") == 0;
}

ggl_backend *const *llm_placement_backends(const llm_placement *p) {
    return p->backend;
}

int64_t llm_placement_n_device_layers(const llm_placement *p, const llm_session *s) {
    int64_t n = 0;
    if (p->n_parts == 0)
        return p->host == 0 ? 0 : llm_session_n_layer(s);
    for (int i = 0; i < p->n_parts; i++)
        n += p->part[i] == p->host ? 0 : p->count[i];
    return n;
}

const char *llm_placement_text(const llm_placement *p) {
    char *text = ((llm_placement *)(uintptr_t)p)->text;
    size_t used = 0;
    if (p->n_parts == 0)
        return p->backend[0]->name;
    if (p->by_rows) {
        int at[PLACEMENT_MOST];
        const int n = llm_placement_devices(p, at);
        used = (size_t)snprintf(text, sizeof p->text, "by rows on cpu");
        for (int i = 0; i < n && used < sizeof p->text; i++)
            used += (size_t)snprintf(text + used, sizeof p->text - used, ",%s",
                                     p->backend[at[i]]->name);
        return text;
    }
    for (int i = 0; i < p->n_parts && used < sizeof p->text; i++)
        used += (size_t)snprintf(text + used, sizeof p->text - used, "%s%s=%" PRId64, i ? "," : "",
                                 p->backend[p->part[i]]->name, p->count[i]);
    return text;
}
