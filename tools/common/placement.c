#include "placement_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ggl/alloc.h"
#include "process.h"

_Static_assert(TOOL_MAX_THREADS == GGL_MAX_THREADS, "-t takes what backends take");

/* --- backends --------------------------------------------------------------------------------- */

/* Returns the index of an open backend; -1: not open. Names have any case, but not paths. */
static int find(const placement *p, const char *name, size_t n) {
    const bool is_path = memchr(name, '/', n);
    for (int i = 0; i < p->n; i++)
        if (strlen(p->names[i]) == n &&
            (is_path ? memcmp(p->names[i], name, n) == 0 : strncasecmp(p->names[i], name, n) == 0))
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
    if (p->o->shadow && doubt(p, &p->backend[k], err) != GGL_OK)
        return -1;
    if (strcasecmp(p->names[k], "cpu") == 0)
        p->host = k;
    return k;
}

int placement_need_host(placement *p, ggl_error *err) {
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

/* Puts the flag before a message, unless it is about an environment variable. */
static ggl_status within_flag(const char *flag, ggl_error *err) {
    return strncmp(err->msg, "GGL_", 4) == 0 ? err->status
                                             : ggl_within(err, err->status, "%s", flag);
}

/* Takes the next part of a list that commas divide. False: there is none left. */
static bool take_part(const char **list, const char **part, size_t *n) {
    if (!*list)
        return false;
    *part = *list;
    *n = strcspn(*list, ",");
    *list = (*list)[*n] ? *list + *n + 1 : NULL;
    return true;
}

static const char *devices_flag(const placement *p) {
    return *p->o->devices_flag ? p->o->devices_flag : "--device";
}

/* Opens the backends of --device. */
static ggl_status read_devices(placement *p, ggl_error *err) {
    const char *flag = devices_flag(p), *name;
    const char *list = p->o->devices && *p->o->devices ? p->o->devices : NULL;
    p->no_device = list && strcasecmp(list, "none") == 0;
    for (size_t n; !p->no_device && take_part(&list, &name, &n);) {
        if (n == strlen("none") && strncasecmp(name, "none", n) == 0)
            return ggl_fail(err, GGL_USAGE,
                            "%s %s: 'none' stands for the CPU alone; name either it or devices",
                            flag, p->o->devices);
        if (find(p, name, n) >= 0)
            return ggl_fail(err, GGL_USAGE, "%s: '%.*s' is named twice", flag, (int)n, name);
        if (need(p, name, n, err) < 0)
            return within_flag(flag, err);
    }
    p->n_devices = p->n;
    return GGL_OK;
}

/* Reads --split into part and count, and opens the backends. */
static ggl_status read_split(placement *p, ggl_error *err) {
    const char *list = p->o->split, *s;
    for (size_t n; take_part(&list, &s, &n);) {
        const char *eq = memchr(s, '=', n);
        char number[24] = "";
        bool range;
        if (eq)
            snprintf(number, sizeof number, "%.*s", (int)(s + n - eq - 1), eq + 1);
        if (!eq || !args_read_int(number, &p->count[p->n_parts], &range) ||
            p->count[p->n_parts] < 0 || p->n_parts + 1 == PLACEMENT_MOST)
            return ggl_fail(err, GGL_USAGE,
                            "--split: '%.*s' is neither NAME=LAYERS, as in vulkan0=20,cpu=12, nor "
                            "auto",
                            (int)n, s);
        int k = need(p, s, (size_t)(eq - s), err);
        if (k < 0)
            return within_flag("--split", err);
        p->part[p->n_parts++] = k;
    }
    return GGL_OK;
}

/* Fails if --split gives no layers to a device of --device, and no rule names it. The CPU also gets
 * what others refuse. */
static ggl_status check_split(const placement *p, ggl_error *err) {
    for (int k = 0; k < p->n_devices && p->n_parts > 0; k++) {
        bool used = k == p->host;
        for (int i = 0; i < p->n_parts && !used; i++)
            used = p->part[i] == k;
        for (size_t i = 0; i < p->rules.n && !used; i++)
            used = p->rules.rule[i].at == k;
        if (!used)
            return ggl_fail(err, GGL_USAGE,
                            "%s names %s, to which --split %s gives no layers; add it there, as "
                            "in %s=N, or leave it out",
                            devices_flag(p), p->names[k], p->o->split, p->names[k]);
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
            return within_flag(r->flag, err);
        for (int k = before; k < p->n; k++)
            p->apart[k] = true;
    }
    return st;
}

/* Reads -ts: "3,1" or "3/1". */
static ggl_status read_shares(placement *p, ggl_error *err) {
    double sum = 0;
    for (const char *s = p->o->shares; s && *s;) {
        const size_t n = strcspn(s, ",/");
        char number[24];
        bool range;
        snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : sizeof number), s);
        double *share = &p->share[p->n_shares];
        if (!args_read_float(number, share, &range) || *share < 0 ||
            ++p->n_shares == PLACEMENT_MOST)
            return ggl_fail(err, GGL_USAGE,
                            "-ts %s: '%s' is not a proportion, which is 0 or more; or there are "
                            "%d of them",
                            p->o->shares, number, PLACEMENT_MOST);
        sum += *share;
        s += n + (s[n] != 0);
    }
    return p->n_shares == 0 || sum > 0
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "-ts %s: no device would get a layer", p->o->shares);
}

/* If no device was named, opens a GPU for each proportion of -ts: vulkan1 after vulkan0. Fails if there are
 * more proportions than devices. */
static ggl_status check_shares(placement *p, ggl_error *err) {
    int at[PLACEMENT_MOST], n = placement_devices(p, at);
    char name[600];
    for (int had = 0; !p->o->devices && n > had && n < p->n_shares;) {
        const char *first = p->names[at[0]];
        snprintf(name, sizeof name, "%.*s%d", (int)strcspn(first, "0123456789"), first, n);
        const int k = need(p, name, strlen(name), err);
        if (k >= 0 && p->backend[k]->software)
            give_up_last(p);
        had = n;
        n = placement_devices(p, at);
    }
    if (n == 0 || p->n_shares <= n)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "-ts %s: these are %d proportions for %d device%s; --list-devices prints all, "
                    "--device names those to use",
                    p->o->shares, p->n_shares, n, n == 1 ? "" : "s");
}

int placement_devices(const placement *p, int *at) {
    int n = 0;
    for (int i = 0; i < p->n; i++)
        if (i != p->host && !p->apart[i])
            at[n++] = i;
    return n;
}

/* Opens the first GPU if layers are wanted on a device and no device was named. Without a GPU
 * all layers run on the CPU, after a note; with --strict: an error. */
static ggl_status default_device(placement *p, ggl_error *err) {
    int at[PLACEMENT_MOST];
    bool wanted = p->o->n_gpu_layers > 0 || p->o->fit || (p->o->split && !p->n_parts) ||
                  (p->n_shares > 0 && !p->o->n_gpu_layers_given);
    if (!wanted || p->no_device || p->n_parts || placement_devices(p, at) > 0 ||
        need_first_device(p, err) >= 0)
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
                      : o->split && o->shares           ? "--split and -ts"
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
    return (all || rest) && placement_need_host(p, err) < 0 ? err->status : GGL_OK;
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
        st = read_shares(p, err);
    if (st == GGL_OK)
        st = read_devices(p, err);
    if (st == GGL_OK && o->split && strcmp(o->split, "auto") != 0)
        st = read_split(p, err);
    if (st == GGL_OK)
        st = open_host(p, err);
    if (st == GGL_OK)
        st = read_rules(p, err);
    if (st == GGL_OK)
        st = check_split(p, err);
    if (st == GGL_OK)
        st = default_device(p, err);
    if (st == GGL_OK)
        st = check_shares(p, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&p->reference, "reference", NULL, err);
    return st;
}

int placement_tell(const char *tool, const ggl_error *err) {
    bool usage = err->status == GGL_USAGE || err->status == GGL_NOT_FOUND;
    return tool_error(tool, usage ? 2 : 1, "%s", err->msg);
}

int placement_open(placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params) {
    ggl_error err = {0};
    return placement_new(out, tool, o, params, &err) == GGL_OK ? -1 : placement_tell(tool, &err);
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

bool placement_is_cpu_only(const placement *p) {
    const placement_options *o = p->o;
    return !o->devices && !o->split && !o->shares && !o->n_gpu_layers_given && !o->fit &&
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
