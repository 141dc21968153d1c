/* Source tensors that no line of a convert section reads: one error for all of them, with
 * patterns by which a user can ignore them. Tensors are grouped if their names differ only in
 * numbers. A layer with no tensor read is one group, and so are all names with a beginning
 * ("vision.blocks.") under which nothing is read. */
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/show.h"

#define MAX_NAME 512
#define FEW      5 /* groups shown */

typedef struct group {
    ggl_str name;          /* a pattern, or the beginning of names */
    size_t n_read, n_left; /* numbers of tensors */
    bool layer;            /* a whole layer */
    const st_tensor *first;
} group;

typedef struct groups {
    group *at;
    size_t n, cap;
    ggl_index index;
} groups;

typedef struct leftovers {
    const arch_conversion *c;
    ggl_arena arena;
    /* begin: by beginnings, "model.layers." and "model.layers.2."; found: shown by the message */
    groups begin, found;
    bool *left; /* per tensor: it is unread */
    size_t n_left;
    ggl_error *err;
    ggl_status status;
} leftovers;

static void no_memory(leftovers *x) {
    if (x->status == GGL_OK)
        x->status = ggl_fail(x->err, GGL_NOMEM, "out of memory");
}

/* Returns the group of this name, made if necessary. NULL: out of memory. */
static group *group_of(leftovers *x, groups *g, ggl_str name) {
    const size_t at = ggl_index_find(&g->index, g->at, name);
    if (at != SIZE_MAX)
        return &g->at[at];
    char *own = ggl_arena_strndup(&x->arena, name.s, name.n);
    if (!own || !ggl_grow(&g->at, &g->cap, g->n + 1, sizeof *g->at) ||
        arch_index_room(&g->index, g->at, g->n + 1, sizeof *g->at, NULL) != GGL_OK) {
        no_memory(x);
        return NULL;
    }
    g->at[g->n] = (group){.name = {own, name.n}};
    ggl_index_put(&g->index, g->at, g->n);
    return &g->at[g->n++];
}

/* For "model.layers.2.mlp.w": returns the length of "model.layers.2." and sets *stem to that of
 * "model.layers.". 0: the name has no number. */
static size_t layer_of(ggl_str name, size_t *stem) {
    for (size_t i = 1, end; i < name.n; i++) {
        for (end = i; end < name.n && name.s[end] >= '0' && name.s[end] <= '9';)
            end++;
        if (end > i && name.s[i - 1] == '.' && end < name.n && name.s[end] == '.') {
            *stem = i;
            return end + 1;
        }
    }
    return 0;
}

/* Counts a tensor in the groups of its beginnings. */
static void count(leftovers *x, const st_tensor *t, bool left) {
    size_t stem = 0;
    const size_t layer = layer_of(t->name, &stem);
    for (int k = 0; k < 2 && layer > 0; k++) {
        group *g = group_of(x, &x->begin, (ggl_str){t->name.s, k ? layer : stem});
        if (!g)
            return;
        g->n_left += left;
        g->n_read += t->used;
    }
}

/* Finds the unread tensors and counts them per beginning. */
static bool find_left(leftovers *x) {
    const llm_safetensors *source = x->c->source;
    x->left = ggl_arena_alloc(&x->arena, source->n_tensor + 1, sizeof *x->left);
    if (!x->left)
        return no_memory(x), false;
    for (size_t i = 0; i < source->n_tensor && x->status == GGL_OK; i++) {
        const st_tensor *t = &source->tensor[i];
        x->left[i] = !t->used && !llm_arch_convert_ignored(x->c, t) &&
                     !llm_arch_convert_tensor_on_request(x->c, t) &&
                     !llm_arch_convert_is_beside(x->c, t);
        x->n_left += x->left[i];
        count(x, t, x->left[i]);
    }
    return x->status == GGL_OK;
}

/* Adds an unread tensor to the largest group that has only unread ones. */
static void put_left(leftovers *x, const st_tensor *t) {
    char text[MAX_NAME];
    int64_t number[4];
    size_t stem = 0;
    const size_t layer = layer_of(t->name, &stem);
    const group *all = layer ? group_of(x, &x->begin, (ggl_str){t->name.s, stem}) : NULL;
    const bool whole_stem = all && all->n_read == 0 && all->n_left > 1;
    const group *own = layer ? group_of(x, &x->begin, (ggl_str){t->name.s, layer}) : NULL;
    const bool whole_layer = own && !whole_stem && own->n_read == 0;
    if (whole_stem || whole_layer)
        snprintf(text, sizeof text, "%.*s*", (int)(whole_stem ? stem : layer), t->name.s);
    else
        llm_arch_number_pattern(t->name, text, sizeof text, number);
    group *g = x->status == GGL_OK ? group_of(x, &x->found, (ggl_str){text, strlen(text)}) : NULL;
    if (!g)
        return;
    g->first = g->n_left++ ? g->first : t;
    g->layer = whole_layer;
}

/* --- the error -------------------------------------------------------------------------------- */

typedef struct text {
    char s[1000];
    size_t n;
} text;

static void add(text *t, const char *fmt, ...) GGL_PRINTF(2, 3);
static void add(text *t, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, args);
    va_end(args);
    t->n += n < 0 ? 0 : (size_t)n < sizeof t->s - t->n ? (size_t)n : sizeof t->s - t->n - 1;
}

static ggl_str shown_name(const group *g) {
    const ggl_str name = g->n_left > 1 ? g->name : g->first->name;
    return (ggl_str){name.s, ggl_utf8_cut(name.s, name.n, 120)};
}

static void list_groups(const leftovers *x, text *list) {
    const groups *f = &x->found;
    for (size_t i = 0; i < f->n && i < FEW; i++) {
        const ggl_str name = shown_name(&f->at[i]);
        add(list, "%s%.*s", i ? ", " : "", (int)name.n, name.s);
        if (f->at[i].n_left > 1)
            add(list, " (%zu tensors)", f->at[i].n_left);
    }
    if (f->n > FEW)
        add(list, ", and more (--dry-run lists all)");
}

/* Lists the options to ignore the groups: one each while they are few, else one for all. */
static void list_options(const leftovers *x, text *list) {
    const groups *f = &x->found;
    bool each = f->n <= FEW;
    for (size_t i = 0; i < f->n && each; i++) {
        const ggl_str name = shown_name(&f->at[i]);
        each = llm_arch_is_pasteable(name.s, name.n) &&
               (f->at[i].n_left > 1 || !memchr(name.s, '*', name.n));
    }
    for (size_t i = 0; i < f->n && each; i++) {
        const ggl_str name = shown_name(&f->at[i]);
        add(list, "%s--ignore-tensor '%.*s'", i ? " " : "", (int)name.n, name.s);
    }
    if (!each)
        add(list, "%s", f->n > 1 ? "--ignore-tensor '*'" : "--ignore-tensor PATTERN");
}

static void hint_layers(const leftovers *x, text *hint) {
    size_t n = 0;
    const group *first = NULL;
    for (size_t i = 0; i < x->found.n; i++)
        if (x->found.at[i].layer)
            first = n++ ? first : &x->found.at[i];
    if (first)
        add(hint,
            ". Nothing of %.*s is read, but layers besides %s are: the number of layers may be too "
            "small%s%s",
            (int)ggl_utf8_cut(first->name.s, first->name.n, 120), first->name.s,
            n > 1 ? "such" : "it", x->c->layers && x->c->layers[0] ? ": " : "",
            x->c->layers ? x->c->layers : "");
}

static ggl_status refuse(const leftovers *x) {
    const arch_conversion *c = x->c;
    const group *first = &x->found.at[0];
    text list = {.n = 0}, options = {.n = 0}, hint = {.n = 0};
    int line, column;
    llm_arch_line_col(c->section->place, &line, &column);
    list_groups(x, &list);
    list_options(x, &options);
    hint_layers(x, &hint);
    if (x->n_left == 1)
        return ggl_fail(x->err, GGL_FORMAT,
                        "%s: tensor %s: read by no line of the convert section in %s:%d; map it or "
                        "ignore it (%s, at your own risk)%s",
                        c->source->file[first->first->file].s, list.s + first->first->n_prefix,
                        c->arch->text.name, line, options.s, hint.s);
    return ggl_fail(
        x->err, GGL_FORMAT,
        "%zu tensors are read by no line of the convert section in %s:%d: %s; map them or "
        "ignore them (%s, at your own risk)%s",
        x->n_left, c->arch->text.name, line, list.s, options.s, hint.s);
}

ggl_status llm_arch_convert_check_leftovers(arch_conversion *c, ggl_error *err) {
    leftovers x = {.c = c, .err = err};
    if (find_left(&x)) {
        c->tensors_known = true;
        for (size_t i = 0; i < c->source->n_tensor; i++)
            if (x.left[i])
                put_left(&x, &c->source->tensor[i]);
    }
    if (x.status == GGL_OK && x.n_left > 0)
        x.status = refuse(&x);
    ggl_free(x.begin.at);
    ggl_free(x.found.at);
    ggl_index_fini(&x.begin.index);
    ggl_index_fini(&x.found.index);
    ggl_arena_fini(&x.arena);
    return x.status;
}
