#include "adapters.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/peft_folder.h"
#include "common/shell_quote.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "model_path.h"

#define LORA    "--lora"
#define CONTROL "--control-vector"
#define RANGE   "--control-vector-layer-range"

/* Refuses a file that is not there, with the one that was probably meant. */
static ggl_status check_there(const char *path, ggl_error *err) {
    char near[OS_MOST_PATH], word[LLM_SHELL_WORD];
    if (ggl_os_may_read(path) || errno != ENOENT)
        return GGL_OK;
    return model_path_near(path, near) ? ggl_fail(err, GGL_IO, "%s: %s; did you mean %s?", path,
                                                  strerror(ENOENT), llm_shell_quote(word, near))
                                       : ggl_fail(err, GGL_IO, "%s: %s", path, strerror(ENOENT));
}

/* Adds one file to the list. */
static ggl_status add(tool_adapter_files *x, const char *path, double scale, ggl_error *err) {
    ggl_status st = llm_peft_refuse_folder(path, err);
    if (st == GGL_OK)
        st = check_there(path, err);
    if (st != GGL_OK)
        return st;
    llm_lora *grown = realloc(x->from, (x->n_from + 1) * sizeof *grown);
    char *copy = ggl_copy_text(path);
    x->from = grown ? grown : x->from;
    if (!grown || !copy) {
        free(copy);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    x->from[x->n_from++] = (llm_lora){copy, scale};
    return GGL_OK;
}

/* Cuts ":SCALE" off the end of an item. False: it has none; *scale is unchanged. */
static bool cut_scale(char *item, double *scale) {
    char *colon = strrchr(item, ':');
    bool range;
    if (!colon || colon == item || !args_read_float(colon + 1, scale, &range))
        return false;
    *colon = 0;
    return true;
}

/* Fails for "FILE:TEXT" and "FILE=TEXT" if no file has that name, but one is called FILE: TEXT was meant as a scale. */
static ggl_status check_scale(const char *item, ggl_error *err) {
    const char *colon = strrchr(item, ':'), *equals = strrchr(item, '=');
    const char *mark = colon ? colon : equals;
    char *file = mark ? ggl_copy_text_n(item, (size_t)(mark - item)) : NULL;
    const bool wrong = file && *file && !ggl_os_exists(item) && ggl_os_exists(file);
    char word[LLM_SHELL_WORD], right[LLM_SHELL_WORD];
    ggl_status st = GGL_OK;
    if (wrong && colon)
        st = ggl_fail(err, GGL_USAGE, "%s: '%s' is not a scale; a finite number is expected", item,
                      colon + 1);
    else if (wrong) {
        snprintf(right, sizeof right, "%s:%s", file, equals + 1);
        st = ggl_fail(err, GGL_USAGE, "%s: a scale stands after a colon: %s", item,
                      llm_shell_quote(word, right));
    }
    free(file);
    return st;
}

/* Reads one value, "a.gguf:0.5,b.gguf". follows: a scale given as the next argument,
 * or NULL. needed: each must have a scale. */
static ggl_status read_value(tool_adapter_files *x, const char *value, const char *follows,
                             bool needed, ggl_error *err) {
    char *copy = ggl_copy_text(value);
    ggl_status st = copy ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (char *item = copy, *end; item && st == GGL_OK; item = end) {
        double scale = 1;
        bool range;
        end = strchr(item, ',');
        if (end)
            *end++ = 0;
        const bool given = cut_scale(item, &scale) ||
                           (follows && !end && args_read_float(follows, &scale, &range));
        if (*item && !given)
            st = check_scale(item, err);
        if (st != GGL_OK)
            break;
        if (!*item)
            st = ggl_fail(err, GGL_USAGE, "'%s' has an empty name in its list", value);
        else if (needed && !given)
            st = ggl_fail(err, GGL_USAGE, "%s has no scale; FILE:SCALE gives it one", item);
        else
            st = add(x, item, scale, err);
    }
    free(copy);
    return st;
}

/* flag: of `plain`; with "-scaled" behind it, of `scaled`. */
static ggl_status read_files(tool_adapter_files *x, const char *flag, ggl_error *err) {
    ggl_status st = GGL_OK;
    double scale;
    bool range;
    for (size_t i = 0; i < x->plain.n && st == GGL_OK; i++)
        st = read_value(x, x->plain.s[i], NULL, false, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", flag);
    x->n_plain = x->n_from;
    for (size_t i = 0; i < x->scaled.n && st == GGL_OK; i++) {
        const char *next = i + 1 < x->scaled.n ? x->scaled.s[i + 1] : "";
        const bool follows = args_read_float(next, &scale, &range);
        st = read_value(x, x->scaled.s[i], follows ? next : NULL, true, err);
        i += follows;
    }
    return st == GGL_OK ? st : ggl_within(err, st, "%s-scaled", flag);
}

/* Reads a layer's number; below 0: the default, as in llama.cpp. */
static bool read_layer(const char *text, int64_t *layer) {
    double x;
    bool range;
    if (!args_read_float(text, &x, &range) || x != floor(x) || fabs(x) > INT32_MAX)
        return false;
    *layer = x < 0 ? 0 : (int64_t)x;
    return true;
}

/* Of a range that is given more than once, the last counts. */
static ggl_status read_range(tool_adapters *x, ggl_error *err) {
    const char *const *s = x->range.s;
    const size_t n = x->range.n;
    if (n == 0)
        return GGL_OK;
    if (n % 2 == 0 && read_layer(s[n - 2], &x->first) && read_layer(s[n - 1], &x->last))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    RANGE " %s%s%s: the numbers of two layers are expected, " RANGE " START END",
                    n > 1 && n % 2 == 0 ? s[n - 2] : "", n > 1 && n % 2 == 0 ? " " : "", s[n - 1]);
}

ggl_status adapters_read(tool_adapters *x, llm_open_params *p, ggl_error *err) {
    adapters_forget(x);
    ggl_status st = read_files(&x->of_lora, LORA, err);
    if (st == GGL_OK)
        st = read_files(&x->of_control, CONTROL, err);
    if (st == GGL_OK)
        st = read_range(x, err);
    if (st == GGL_OK && x->range.n > 0 && x->of_control.n_from == 0)
        st = ggl_fail(err, GGL_USAGE, RANGE " needs " CONTROL);
    p->adapter = x->of_lora.from;
    p->n_adapters = x->of_lora.n_from;
    p->control_vector = x->of_control.from;
    p->n_control_vectors = x->of_control.n_from;
    p->control_first = x->first;
    p->control_last = x->last;
    return st == GGL_OK ? llm_adapter_list_check(p, err) : st;
}

ggl_status adapters_within(const tool_adapters *x, size_t k, ggl_status st, ggl_error *err) {
    const bool is_lora = k < x->of_lora.n_from;
    const tool_adapter_files *of = is_lora ? &x->of_lora : &x->of_control;
    k -= is_lora ? 0 : x->of_lora.n_from;
    return ggl_within(err, st, "%s%s", is_lora ? LORA : CONTROL, k < of->n_plain ? "" : "-scaled");
}

static void print_control(const llm_adapter_use *use, const llm_adapter_info *info,
                          const char *head, FILE *out) {
    const int64_t first = use->first > info->layer_min ? use->first : info->layer_min,
                  last = use->last && use->last < info->layer_max ? use->last : info->layer_max;
    ggl_fprint(out, "%s%s: a control vector for layers %" PRId64 " to %" PRId64 ", scale %g\n",
               head, ggl_gguf_name(llm_adapter_file(use->adapter)), first, last, use->scale);
}

void adapters_print(const llm_adapter_use *use, size_t n, const char *head, FILE *out) {
    for (size_t i = 0; i < n; i++) {
        const llm_adapter_info info = llm_adapter_describe(use[i].adapter);
        char rank[64];
        if (info.n_directions > 0) {
            print_control(&use[i], &info, head, out);
            continue;
        }
        const bool same = info.rank_min == info.rank_max;
        snprintf(rank, sizeof rank, same ? "%" PRId64 : "%" PRId64 " to %" PRId64, info.rank_min,
                 info.rank_max);
        ggl_fprint(out, "%s%s: rank %s, %zu tensor%s%s, %.1f MiB, scale %g\n", head,
                   ggl_gguf_name(llm_adapter_file(use[i].adapter)), rank, info.n_pairs,
                   info.n_pairs == 1 ? "" : "s", info.n_magnitudes ? " with magnitudes (DoRA)" : "",
                   (double)info.bytes / 0x1p20, use[i].scale);
    }
}

static void forget(tool_adapter_files *x) {
    for (size_t i = 0; i < x->n_from; i++)
        free((char *)x->from[i].path);
    free(x->from);
    x->from = NULL;
    x->n_from = x->n_plain = 0;
}

void adapters_forget(tool_adapters *x) {
    forget(&x->of_lora);
    forget(&x->of_control);
}

void adapters_fini(tool_adapters *x) {
    adapters_forget(x);
    args_list_fini(&x->of_lora.plain);
    args_list_fini(&x->of_lora.scaled);
    args_list_fini(&x->of_control.plain);
    args_list_fini(&x->of_control.scaled);
    args_list_fini(&x->range);
}
