/* The error for a declared tensor that the source lacks, with a suggestion: another tensor of
 * the same layer (or outside of all layers) that the descriptor does not declare. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/show.h"

#define FAR       4    /* names with an edit distance of FAR or more are not suggested */
#define MAX_TRIED 1024 /* tensors considered */

/* Returns the length of a prefix like "blk.12.", or 0 if the name belongs to no layer. */
static size_t layer_prefix(const char *s, size_t n) {
    size_t i = 4;
    if (n < 6 || memcmp(s, "blk.", 4) != 0)
        return 0;
    while (i < n && s[i] >= '0' && s[i] <= '9')
        i++;
    return i < n && s[i] == '.' ? i + 1 : 0;
}

static bool same_layer(const char *a, ggl_str b) {
    size_t n = layer_prefix(a, strlen(a));
    return n == layer_prefix(b.s, b.n) && memcmp(a, b.s, n) == 0;
}

/* True if b may be another layout of a's numbers: attn_qkv for attn_q, ffn_up.0 for ffn_up_exps. */
static bool is_related(const char *a, ggl_str b) {
    const size_t begin = layer_prefix(a, strlen(a)), n = strcspn(a + begin, ".");
    size_t m = begin, word = n; /* word: length of a's stem without its last word */
    while (m < b.n && b.s[m] != '.')
        m++;
    m -= begin;
    while (word > 0 && a[begin + word] != '_')
        word--;
    return (m > n && memcmp(a + begin, b.s + begin, n) == 0) ||
           (word > 0 && m == word && memcmp(a + begin, b.s + begin, m) == 0);
}

/* --- what the text declares ------------------------------------------------------------------- */

/* True if the name matches the `from` string, whose {..} match anything. */
static bool fits_from(const char *from, ggl_str name) {
    char pattern[300];
    size_t n = 0;
    bool inside = false;
    for (const char *s = from; *s && n + 1 < sizeof pattern; s++) {
        if (*s == '{')
            pattern[n++] = '*';
        inside = *s == '{' || (inside && *s != '}');
        if (!inside && *s != '}')
            pattern[n++] = *s;
    }
    pattern[n] = 0;
    return arch_match(pattern, name.s, name.n);
}

/* True if a `weight` among these statements declares the name, with or without layer prefix. */
static bool declares(const arch_stmt *s, ggl_str name) {
    for (; s; s = s->next) {
        for (int k = 0; k < s->n_arm; k++)
            if (declares(s->arm[k].body, name))
                return true;
        if (s->kind != ST_WEIGHT)
            continue;
        const size_t begin = layer_prefix(name.s, name.n), n = strlen(s->target[0].name);
        if (s->string ? fits_from(s->string, name) || (s->second && fits_from(s->second, name))
                      : name.n > begin + n && memcmp(name.s + begin, s->target[0].name, n) == 0 &&
                            name.s[begin + n] == '.')
            return true;
    }
    return false;
}

static bool is_declared(const arch_eval *ev, ggl_str name) {
    bool yes = declares(ev->arch->body, name);
    for (const arch_fn *f = ev->arch->fn; f && !yes; f = f->next)
        yes = declares(f->body, name);
    for (const arch_fn *f = ev->arch->prelude_fn; f && !yes; f = f->next)
        yes = f->used && declares(f->body, name);
    return yes;
}

/* --- the candidates --------------------------------------------------------------------------- */

typedef struct search {
    arch_eval *ev;
    const char *name; /* the missing tensor */
    const llm_arch_tensor *want;
    ggl_nearest near, near_alike; /* alike: of the wanted shape */
    char best[160], best_alike[160], related[160], alike[160];
    int n_alike;
} search;

/* True if the tensor has the wanted shape. */
static bool is_alike(const search *s, const char *name) {
    llm_arch_tensor t = {.name = name, .optional = true, .n_dims = s->want->n_dims};
    memcpy(t.ne, s->want->ne, sizeof t.ne);
    bool alike = s->ev->src->find_tensor(s->ev->src->ctx, &t);
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        alike &= (d < t.n_dims ? t.ne[d] : 1) == s->want->ne[d];
    return alike;
}

static void keep_nearer(ggl_nearest *near, const char *full, ggl_str name, char *best,
                        size_t size) {
    const size_t before = near->distance;
    ggl_nearest_try(near, name.s, name.n);
    if (near->distance < before)
        snprintf(best, size, "%s", full);
}

static void consider(search *s, ggl_str name) {
    char full[160];
    snprintf(full, sizeof full, "%.*s", (int)ggl_utf8_cut(name.s, name.n, 150), name.s);
    const bool alike = is_alike(s, full);
    keep_nearer(&s->near, full, name, s->best, sizeof s->best);
    if (!s->related[0] && is_related(s->name, name))
        snprintf(s->related, sizeof s->related, "%s", full);
    if (!alike)
        return;
    keep_nearer(&s->near_alike, full, name, s->best_alike, sizeof s->best_alike);
    if (s->n_alike++ == 0)
        snprintf(s->alike, sizeof s->alike, "%s", full);
}

static void find_candidates(search *s) {
    const llm_arch_source *src = s->ev->src;
    ggl_str name;
    int tried = 0;
    s->near = s->near_alike = ggl_nearest_to(s->name);
    s->near.distance = s->near_alike.distance = FAR;
    for (size_t i = 0; src->tensor_at && tried < MAX_TRIED && src->tensor_at(src->ctx, i, &name);
         i++)
        if (same_layer(s->name, name)) {
            tried++;
            if (!is_declared(s->ev, name))
                consider(s, name);
        }
}

/* For blk.0.ffn_up_exps.weight: true if the source has blk.0.ffn_up.0.weight, the first of one
 * tensor per expert. */
static bool find_expert(arch_eval *ev, const char *name, char *out, size_t size) {
    static const char end[] = "_exps.weight";
    const size_t n = strlen(name), m = sizeof end - 1;
    if (!layer_prefix(name, n) || n <= m || strcmp(name + n - m, end) != 0 || !ev->src->tensor_at)
        return false;
    snprintf(out, size, "%.*s.0.weight", (int)(n - m), name);
    llm_arch_tensor t = {.name = out, .optional = true};
    return ev->src->find_tensor(ev->src->ctx, &t);
}

/* True if the source has layers, but nothing of the first one. */
static bool has_later_layers(const llm_arch_source *src) {
    static const char any[] = "blk.", first[] = "blk.0.";
    ggl_str name;
    bool has = false;
    for (size_t i = 0; src->tensor_at && src->tensor_at(src->ctx, i, &name); i++) {
        if (name.n >= sizeof first - 1 && memcmp(name.s, first, sizeof first - 1) == 0)
            return false;
        has = has || (name.n >= sizeof any - 1 && memcmp(name.s, any, sizeof any - 1) == 0);
    }
    return has;
}

/* --- the message ------------------------------------------------------------------------------ */

/* Looks for `name` without ".weight", or with ".bias" instead. True: the source has it, and *out
 * is its name. */
static bool find_bare(arch_eval *ev, const char *name, char *out, size_t size) {
    static const char *const ends[] = {".bias", ""};
    const size_t n = strlen(name), m = strlen(".weight");
    for (int k = 0; k < 2 && n > m && strcmp(name + n - m, ".weight") == 0; k++) {
        snprintf(out, size, "%.*s%s", (int)(n - m), name, ends[k]);
        llm_arch_tensor t = {.name = out, .optional = true};
        if (ev->src->tensor_at && ev->src->find_tensor(ev->src->ctx, &t))
            return true;
    }
    return false;
}

void llm_arch_missing_tensor(arch_eval *ev, arch_place p, const char *name,
                             const llm_arch_tensor *want) {
    search s = {.ev = ev, .name = name, .want = want};
    char bare[256], advice[300], text[400] = "";
    const char *hint = "add '?' if it may be absent";
    ggl_str first;
    if (ev->src->tensor_at && !ev->src->tensor_at(ev->src->ctx, 0, &first)) {
        llm_arch_source_error(
            ev, "this file has only a vocabulary and no tensors, so it cannot be run");
        return;
    }
    if (ev->arch->output[OUT_GUESS] >= 0 && has_later_layers(ev->src)) {
        llm_arch_source_error(
            ev,
            "tensor %s is missing, and all others of the first layer: such files have "
            "the layers that guess for a model (-m MODEL --draft FILE)",
            name);
        return;
    }
    if (find_bare(ev, name, bare, sizeof bare)) {
        const size_t skip = layer_prefix(bare, strlen(bare));
        if (skip && ev->layer_name)
            snprintf(advice, sizeof advice, "from \"blk.{%s}.%s\"", ev->layer_name, bare + skip);
        else
            snprintf(advice, sizeof advice, "from \"%s\"", bare);
        hint = advice;
        snprintf(text, sizeof text, "; there is %.160s", bare);
    } else if (find_expert(ev, name, bare, sizeof bare)) {
        snprintf(text, sizeof text,
                 "; there is %.160s: the file has a tensor for each expert, like files of 2023; "
                 "'llm-quantize --merge-experts IN OUT COPY' makes a file with one tensor for all",
                 bare);
    } else {
        find_candidates(&s);
        if (s.best_alike[0])
            snprintf(text, sizeof text, "; did you mean %s?", s.best_alike);
        else if (s.related[0])
            snprintf(text, sizeof text, "; there is %s", s.related);
        else if (s.n_alike == 1)
            snprintf(text, sizeof text, "; there is %s, which has this shape and is not read",
                     s.alike);
        else if (s.best[0])
            snprintf(text, sizeof text, "; did you mean %s?", s.best);
    }
    llm_arch_error_hint(ev, GGL_FORMAT, p, hint, "tensor %s is missing in %s%s", name,
                        ev->src->name, text);
}
