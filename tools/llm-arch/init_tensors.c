/* What a model's tensors declare, for llm-arch init.
 *
 * Tensors with the same name get one declaration if one shape, in names that may differ by
 * layer, is right in all layers; else one for each shape. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "init.h"
#include "tensors.h"

/* --- tensors ---------------------------------------------------------------------------------- */

static uint64_t mixed(int layer) {
    uint64_t x = (uint64_t)layer + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void join_layers(layers *a, const layers *b) {
    a->first = a->n == 0 || b->first < a->first ? b->first : a->first;
    a->last = a->n == 0 || b->last > a->last ? b->last : a->last;
    a->n += b->n;
    a->mix ^= b->mix;
}

bool init_is_plain(const char *s, size_t n) {
    bool plain = n == 0 || isalpha((unsigned char)s[0]);
    for (size_t i = 0; i < n; i++)
        plain = plain && (isalnum((unsigned char)s[i]) || strchr("._-", s[i]));
    return plain;
}

bool init_fits_string(const char *s) {
    char shown[128];
    const size_t n = strlen(s);
    return n < sizeof shown && !strchr(s, '"') && ggl_show(shown, sizeof shown, s, n) == n &&
           memcmp(shown, s, n) == 0;
}

/* Returns the part that a tensor belongs to: that of the longest prefix. */
static int part_of(const init *in, ggl_str name) {
    int best = 0;
    for (int k = 1; k < in->n_parts; k++) {
        const size_t n = strlen(in->part[k].prefix);
        if (name.n > n && memcmp(name.s, in->part[k].prefix, n) == 0 &&
            n > strlen(in->part[best].prefix))
            best = k;
    }
    return best;
}

/* Returns a tensor's name without the part's prefix. */
static ggl_str own_name(const init *in, ggl_str name) {
    const size_t n = strlen(in->prefix);
    return (ggl_str){name.s + n, name.n - n};
}

int init_layer_of(const init *in, size_t i, ggl_str *rest) {
    return tensor_layer(own_name(in, ggl_gguf_tensor_at(in->f, i)->name), rest);
}

const ggl_gguf_tensor *init_find_own(const init *in, const char *name) {
    char full[160];
    snprintf(full, sizeof full, "%s%s", in->prefix, name);
    return ggl_gguf_find_tensor(in->f, full);
}

const named *init_find_named(const init *in, const char *name) {
    const size_t at = ggl_index_find(&in->by_name, in->name, (ggl_str){name, strlen(name)});
    return at == SIZE_MAX ? NULL : &in->name[at];
}

/* Adds declaration d to the chain of its name. */
static void chain_name(init *in, size_t d) {
    named *n = &in->name[in->n_name];
    *n = (named){{in->decl[d].key.name, strlen(in->decl[d].key.name)}, d, d, ""};
    size_t first = ggl_index_put(&in->by_name, in->name, in->n_name);
    if (first == in->n_name) {
        in->n_name++;
    } else {
        in->decl[in->name[first].last].other = d;
        in->name[first].last = d;
    }
}

/* Adds tensor i to the declaration with its name and shape. */
static void add_tensor(init *in, size_t i) {
    const ggl_gguf_tensor *t = ggl_gguf_tensor_at(in->f, i);
    ggl_str rest;
    int layer = init_layer_of(in, i, &rest);
    decl *d = &in->decl[in->n_decl];
    *d = (decl){.key = {.n_dims = t->n_dims}, .head = i, .tail = i, .other = NONE};
    snprintf(d->key.name, sizeof d->key.name, "%s%.*s", layer < 0 ? "" : "blk.{l}.", (int)rest.n,
             rest.s);
    memcpy(d->key.ne, t->ne, sizeof d->key.ne);
    in->next[i] = NONE;
    size_t first = ggl_index_put(&in->by_shape, in->decl, in->n_decl);
    if (first == in->n_decl) {
        chain_name(in, in->n_decl++);
    } else {
        in->next[in->decl[first].tail] = i;
        in->decl[first].tail = i;
    }
    in->decl[first].n_tensors++;
    if (layer >= 0)
        join_layers(&in->decl[first].in, &(layers){1, mixed(layer), layer, layer});
}

bool init_collect(init *in) {
    size_t n = ggl_gguf_n_tensors(in->f);
    in->next = calloc(n + 1, sizeof *in->next);
    in->along = calloc(n + 1, sizeof *in->along);
    in->decl = calloc(n + 1, sizeof *in->decl);
    in->name = calloc(n + 1, sizeof *in->name);
    in->group = calloc(n + 1, sizeof *in->group);
    in->word = calloc(n + MOST_WORDS + 1, sizeof *in->word);
    if (!in->word || !in->next || !in->along || !in->decl || !in->name || !in->group ||
        ggl_index_init(&in->by_shape, n, sizeof *in->decl, sizeof in->decl->key, NULL) != GGL_OK ||
        ggl_index_init(&in->by_name, n, sizeof *in->name, GGL_INDEX_STRINGS, NULL) != GGL_OK ||
        ggl_index_init(&in->by_word, n + MOST_WORDS, sizeof *in->word, GGL_INDEX_STRINGS, NULL) !=
            GGL_OK ||
        ggl_index_init(&in->by_layers, n, sizeof *in->group, LAYERS_KEY, NULL) != GGL_OK)
        return false;
    for (size_t i = 0; i < n; i++) {
        GGL_STEPS(1);
        if (&in->part[part_of(in, ggl_gguf_tensor_at(in->f, i)->name)] == in)
            add_tensor(in, i);
    }
    return true;
}

/* --- shapes ----------------------------------------------------------------------------------- */

bool init_stem_of(const char *full, char *stem, size_t size) {
    const char *at = strncmp(full, "blk.{l}.", 8) == 0 ? full + 8 : full;
    size_t n = strlen(at);
    bool weight = n > 7 && strcmp(at + n - 7, ".weight") == 0,
         bias = n > 5 && strcmp(at + n - 5, ".bias") == 0;
    snprintf(stem, size, "%.*s", (int)(weight ? n - 7 : bias ? n - 5 : n), at);
    return !weight;
}

/* Returns whether an expression equals dimension `dim` of all tensors of a declaration; `all`:
 * of all declarations with its name. */
static bool is_dim(const init *in, const char *expr, const decl *d, int dim, bool all) {
    for (;; d = &in->decl[d->other]) {
        for (size_t t = d->head; t != NONE; t = in->next[t]) {
            ggl_str rest;
            double x;
            GGL_STEPS(1);
            if (!arch_names_value(in->names, expr, init_layer_of(in, t, &rest), &x) ||
                x != (double)d->key.ne[dim])
                return false;
        }
        if (!all || d->other == NONE)
            return true;
    }
}

/* Returns an expression for a dimension, or NULL. Sets *open if others would do as well, or if
 * the usual ones do not fit. */
static const char *name_dim(const init *in, const decl *d, int dim, bool all, bool *open) {
    char stem[128];
    const char *found = NULL, *e;
    int n_found = 0;
    bool usual = false;
    init_stem_of(d->key.name, stem, sizeof stem);
    for (int i = 0; (e = arch_names_usual(stem, dim, i)); i++) {
        if (is_dim(in, e, d, dim, all))
            return e;
        usual = true;
    }
    for (int i = 0; (e = arch_names_any(in->names, i)) && (i < in->names->n || !found);
         i++) /* products where no name fits */
        if (*e && is_dim(in, e, d, dim, all)) {
            found = found ? found : e;
            n_found++;
        }
    *open |= usual || n_found != 1;
    return found;
}

void init_dim_text(const init *in, const decl *d, int dim, char *buf, size_t size) {
    bool open = false;
    const char *e = name_dim(in, d, dim, false, &open);
    if (e && !open)
        arch_names_expand(in->names, e, buf, size);
    else
        snprintf(buf, size, "%" PRId64, d->key.ne[dim]);
}

static bool same_dim(const init *in, const decl *d, int dim) {
    int64_t n = d->key.ne[dim];
    for (; d->other != NONE; d = &in->decl[d->other])
        if (in->decl[d->other].key.ne[dim] != n)
            return false;
    return true;
}

/* A key that the file has is not to be left out. */
static void need(init *in, const char *name) {
    arch_name *a = arch_names_find(in->names, name);
    if (a && a->value)
        a->missing = NULL;
}

/* Keeps two names that a shape has the difference of: the one has to be greater, so neither stands for the other. */
static void note_order(init *in, const char *expr) {
    char a[64], b[64];
    const char *minus = strstr(expr, " - "), *s = minus;
    while (s && s > expr && (isalnum((unsigned char)s[-1]) || s[-1] == '_'))
        s--;
    if (!minus || in->order[0] || sscanf(s, "%63[a-z_0-9] - %63[a-z_0-9]", a, b) != 2)
        return;
    snprintf(in->order, sizeof in->order, "%s > %s", a, b);
    need(in, a);
    need(in, b);
}

/* Writes the shape of a declaration, or of all of its name: false if these have none in common. */
static bool name_shape(init *in, decl *d, bool all) {
    size_t n = (size_t)snprintf(d->shape, sizeof d->shape, "[");
    d->open = false;
    for (const decl *o = d; all && o->other != NONE; o = &in->decl[o->other])
        if (in->decl[o->other].key.n_dims != d->key.n_dims)
            return false;
    for (int i = 0; i < d->key.n_dims && n < sizeof d->shape; i++) {
        bool one = d->key.ne[i] <= 1 && (!all || same_dim(in, d, i));
        const char *e = one ? NULL : name_dim(in, d, i, all, &d->open);
        char text[ARCH_EXPR];
        if (!e && all && !same_dim(in, d, i))
            return false;
        if (e)
            arch_names_expand(in->names, e, text, sizeof text);
        else
            snprintf(text, sizeof text, "%" PRId64, d->key.ne[i]);
        n += (size_t)snprintf(d->shape + n, sizeof d->shape - n, "%s%s", i ? ", " : "", text);
        note_order(in, e ? text : "");
        arch_names_use(in->names, e);
    }
    if (n < sizeof d->shape)
        snprintf(d->shape + n, sizeof d->shape - n, "]");
    return true;
}

/* Merges all declarations of a name into the first. */
static void merge(init *in, decl *d) {
    for (size_t o = d->other; o != NONE; o = in->decl[o].other) {
        in->next[d->tail] = in->decl[o].head;
        d->tail = in->decl[o].tail;
        d->n_tensors += in->decl[o].n_tensors;
        join_layers(&d->in, &in->decl[o].in);
        in->decl[o].gone = true;
    }
}

/* --- kinds of layers ---------------------------------------------------------------------------------------------------- */

/* The list of the file that is 0 in the layers of a group and nowhere else, or the other way round (*above); NULL: none. */
static arch_name *list_of(init *in, const group *g, bool *above) {
    for (int k = 0; k < in->names->n; k++) {
        arch_name *a = &in->names->at[k];
        if (!a->varies || !a->value || a->value->n != (uint64_t)in->n_layer)
            continue;
        int64_t n_zero = 0, n_above = 0, n_layer = in->n_layer;
        for (size_t t = in->decl[g->head].head; t != NONE; t = in->next[t]) {
            ggl_str rest;
            double x = 0;
            int layer = init_layer_of(in, t, &rest);
            ggl_gguf_number(a->value, (uint64_t)layer, &x);
            n_above += x != 0;
            n_zero += x == 0;
        }
        *above = n_zero == 0;
        if ((n_zero == 0 && n_above == a->n_above) ||
            (n_above == 0 && n_zero == n_layer - a->n_above))
            return a;
    }
    return NULL;
}

/* True if a shape of a group has this name. */
static bool mentions(const init *in, const group *g, const char *name) {
    const size_t n = strlen(name);
    for (size_t d = g->head; d != NONE; d = in->along[d])
        for (const char *s = in->decl[d].shape; (s = strstr(s, name)); s += n)
            if (!isalnum((unsigned char)s[-1]) && s[-1] != '_' && !isalnum((unsigned char)s[n]) &&
                s[n] != '_')
                return true;
    return false;
}

/* True if one group's layers, which `list > 0` says, have all layers of another, whose shapes need that number. */
static bool is_around(const init *in, const group *outer, const group *g) {
    if (!outer->above || outer->in.n <= g->in.n || !mentions(in, g, outer->list->name))
        return false;
    for (size_t t = in->decl[g->head].head; t != NONE; t = in->next[t]) {
        ggl_str rest;
        double x = 0;
        int layer = init_layer_of(in, t, &rest);
        if (!ggl_gguf_number(outer->list->value, (uint64_t)layer, &x) || x == 0)
            return false;
    }
    return true;
}

/* Finds the lists that say which layers a group is of, and the group of more layers that it stands in. */
static void use_lists(init *in) {
    enum { MOST = 16 };
    group *listed[MOST];
    int n = 0;
    for (int l = 0; l < in->n_layer; l++)
        join_layers(&in->all, &(layers){1, mixed(l), l, l});
    for (size_t i = 0; i < in->n_group; i++) {
        group *g = &in->group[i];
        g->within = NONE;
        if (g->in.n > 0 && g->in.n < in->n_layer)
            g->list = list_of(in, g, &g->above);
        if (g->list)
            arch_names_use(in->names, g->list->name);
        if (g->list && n < MOST)
            listed[n++] = g;
    }
    for (size_t i = 0; i < in->n_group; i++)
        for (int k = 0; in->group[i].list && k < n; k++)
            if (is_around(in, listed[k], &in->group[i])) {
                in->group[i].within = (size_t)(listed[k] - in->group);
                listed[k]->is_around = true;
                break;
            }
}

static void group_by_layers(init *in) {
    for (size_t d = 0; d < in->n_decl; d++) {
        if (in->decl[d].gone)
            continue;
        in->group[in->n_group] = (group){.in = in->decl[d].in, .head = d, .tail = d};
        in->along[d] = NONE;
        size_t first = ggl_index_put(&in->by_layers, in->group, in->n_group);
        if (first == in->n_group) {
            in->n_group++;
        } else {
            in->along[in->group[first].tail] = d;
            in->group[first].tail = d;
        }
    }
}

void init_name_shapes(init *in) {
    for (size_t i = 0; i < in->n_name; i++) {
        decl *d = &in->decl[in->name[i].first];
        GGL_STEPS(1);
        if (d->other == NONE) {
            name_shape(in, d, false);
        } else if (name_shape(in, d, true)) {
            merge(in, d);
        } else {
            for (size_t o = in->name[i].first; o != NONE; o = in->decl[o].other)
                name_shape(in, &in->decl[o], false);
        }
    }
    group_by_layers(in);
    use_lists(in);
}

/* --- what reads rows -------------------------------------------------------------------------- */

const named *init_find_patches(const init *in) {
    const named *n = init_find_named(in, "patch_embd.weight");
    const decl *d = n ? &in->decl[n->first] : NULL;
    return d && d->key.n_dims == 4 && d->key.ne[2] == 3 && d->key.ne[0] == d->key.ne[1] ? n : NULL;
}

const named *init_find_convolution(const init *in) {
    const named *first = NULL;
    for (size_t i = 0; i < in->n_name; i++) {
        const decl *d = &in->decl[in->name[i].first];
        char stem[128];
        const bool is_one = d->in.n == 0 && !init_stem_of(d->key.name, stem, sizeof stem) &&
                            strncmp(stem, "conv", 4) == 0 && init_is_plain(stem, strlen(stem)) &&
                            d->key.n_dims == 3 && d->key.ne[0] % 2 == 1;
        if (is_one && (!first || strcmp(d->key.name, in->decl[first->first].key.name) < 0))
            first = &in->name[i];
    }
    return first;
}

bool init_reads_rows(const init *in) {
    return init_find_patches(in) || init_find_convolution(in);
}

/* --- parts ------------------------------------------------------------------------------------ */

void init_find_parts(init *in) {
    for (size_t i = 0; i < ggl_gguf_n_tensors(in->f); i++) {
        const ggl_str name = ggl_gguf_tensor_at(in->f, i)->name;
        const size_t n = tensor_layer_at(name);
        int k = 0;
        if (n == SIZE_MAX || n >= sizeof in->prefix)
            continue;
        while (k < in->n_parts &&
               !(strlen(in[k].prefix) == n && memcmp(in[k].prefix, name.s, n) == 0))
            k++;
        if (k < in->n_parts || k == MOST_PARTS || !init_is_plain(name.s, n))
            continue;
        in[k] = *in;
        snprintf(in[k].prefix, sizeof in[k].prefix, "%.*s", (int)n, name.s);
        for (int p = 0; p <= k; p++)
            in[p].n_parts = k + 1;
    }
    for (int k = 0; k < in->n_parts; k++)
        for (size_t i = 0; i < ggl_gguf_n_tensors(in->f); i++) {
            ggl_str rest;
            const int layer = part_of(in, ggl_gguf_tensor_at(in->f, i)->name) == k
                                  ? init_layer_of(&in[k], i, &rest)
                                  : -1;
            in[k].n_layer = layer >= in[k].n_layer ? layer + 1 : in[k].n_layer;
        }
    if (in->n_parts == 1)
        in->n_layer = in->names->n_layer;
}

void init_finish(init *in) {
    ggl_index_fini(&in->by_shape);
    ggl_index_fini(&in->by_name);
    ggl_index_fini(&in->by_layers);
    ggl_index_fini(&in->by_word);
    free(in->word);
    free(in->next);
    free(in->along);
    free(in->decl);
    free(in->name);
    free(in->group);
}
