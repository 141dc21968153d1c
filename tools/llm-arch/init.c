/* llm-arch init: writes a descriptor's declarations from a model's keys and tensors. The author
 * adds what happens to a token.
 *
 * Tensors with the same name get one declaration if one shape, in names that may differ by
 * layer, is right in all layers; else one for each shape. Declarations for only some layers are
 * put under an `if`. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/load.h"
#include "ggl/internal/index.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "names.h"
#include "tensors.h"
#include "tool.h"

#define TOOL "llm-arch init"
#define NONE SIZE_MAX
enum { MOST_PARTS = 8 };

typedef struct layers { /* a set of layers, without padding: the key of a table */
    int64_t n;
    uint64_t mix; /* of their numbers: differs where the sets do */
    int64_t first, last;
} layers;
enum { LAYERS_KEY = 16 }; /* bytes: n and mix */

typedef struct decl {
    struct {            /* a table's key, so without padding */
        char name[128]; /* "blk.{l}.attn_q.weight", then zeros */
        int64_t ne[GGL_MAX_DIMS], n_dims;
    } key;
    size_t head, tail; /* its tensors: first and last in the chain `next` */
    size_t other;      /* the next declaration with this name, or NONE */
    layers in;         /* n = 0: outside of layers */
    size_t n_tensors;
    bool gone, open; /* merged into the first of its name; its shape contains a guess */
    char shape[192];
} decl;

typedef struct named {
    ggl_str name;
    size_t first, last; /* in the chain `other` */
    char as[160];       /* what the descriptor calls it */
} named;

typedef struct group { /* declarations for the same layers */
    layers in;
    size_t head, tail;
    arch_name
        *list; /* its layers are those where this is above 0, or is 0; NULL: no list says them */
    size_t within; /* the group whose condition this one's stands in, or NONE */
    bool above, is_around, printed;
} group;

/* What one part of the descriptor declares: a stage, or what is outside of stages. */
typedef struct init {
    const ggl_gguf *f;
    const char *arch;
    arch_names *names; /* the numbers, which all parts share */
    int n_layer; /* of this part's tensors, or the key's number if that is larger and there is one part */
    char prefix
        [32]; /* of the names of its tensors: "enc."; empty: of those that no other part has */
    const struct init *part; /* all parts, the one outside of stages first */
    int n_parts;
    int indent;
    bool has_stages; /* besides, or instead of, what is outside of them */
    size_t *next;    /* [tensor]: the next tensor of its declaration, or NONE */
    size_t *along;   /* [declaration]: the next declaration of its group, or NONE */
    decl *decl;
    named *name;
    group *group;
    size_t n_decl, n_name, n_group;
    layers all;
    char order[132];       /* "d > n_rot" where a shape has d - n_rot */
    const char *embedding; /* the matrix with a row for each token */
    bool whole, normed;    /* it is there, and output_norm, too */
    ggl_index by_shape, by_name, by_layers, by_word;
    ggl_str *word; /* what declarations are called */
    size_t n_word;
} init;

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

/* True if a descriptor's string can hold the prefix, and a name can be made of it. */
static bool is_plain(const char *s, size_t n) {
    bool plain = n == 0 || isalpha((unsigned char)s[0]);
    for (size_t i = 0; i < n; i++)
        plain = plain && (isalnum((unsigned char)s[i]) || strchr("._-", s[i]));
    return plain;
}

/* Returns the length of the prefix before "blk." in a tensor's name that belongs to a layer; SIZE_MAX: it does not, or the prefix is none. */
static size_t prefix_before(ggl_str name) {
    ggl_str rest;
    for (size_t i = 0; i + 5 < name.n; i++)
        if ((i == 0 || name.s[i - 1] == '.') &&
            tensor_layer((ggl_str){name.s + i, name.n - i}, &rest) >= 0)
            return i;
    return SIZE_MAX;
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

/* Returns the layer of tensor i, -1 if it is outside of layers, and the rest of its name. */
static int layer_of(const init *in, size_t i, ggl_str *rest) {
    return tensor_layer(own_name(in, ggl_gguf_tensor_at(in->f, i)->name), rest);
}

/* Returns the part's tensor of that name; NULL: none. */
static const ggl_gguf_tensor *find_own(const init *in, const char *name) {
    char full[160];
    snprintf(full, sizeof full, "%s%s", in->prefix, name);
    return ggl_gguf_find_tensor(in->f, full);
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
    int layer = layer_of(in, i, &rest);
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

/* Makes the declarations. False: out of memory. */
static bool collect(init *in) {
    size_t n = ggl_gguf_n_tensors(in->f);
    in->next = calloc(n + 1, sizeof *in->next);
    in->along = calloc(n + 1, sizeof *in->along);
    in->decl = calloc(n + 1, sizeof *in->decl);
    in->name = calloc(n + 1, sizeof *in->name);
    in->group = calloc(n + 1, sizeof *in->group);
    in->word = calloc(n + 9, sizeof *in->word); /* and words that the graph uses */
    if (!in->word || !in->next || !in->along || !in->decl || !in->name || !in->group ||
        ggl_index_init(&in->by_shape, n, sizeof *in->decl, sizeof in->decl->key, NULL) != GGL_OK ||
        ggl_index_init(&in->by_name, n, sizeof *in->name, GGL_INDEX_STRINGS, NULL) != GGL_OK ||
        ggl_index_init(&in->by_word, n + 8, sizeof *in->word, GGL_INDEX_STRINGS, NULL) != GGL_OK ||
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

/* Writes "attn_q" for "blk.{l}.attn_q.weight"; returns true if a declaration must give the name
 * with `from`. */
static bool stem_of(const char *full, char *stem, size_t size) {
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
            if (!arch_names_value(in->names, expr, layer_of(in, t, &rest), &x) ||
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
    stem_of(d->key.name, stem, sizeof stem);
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
            int layer = layer_of(in, t, &rest);
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
        int layer = layer_of(in, t, &rest);
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

static void name_shapes(init *in) {
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

/* --- printing --------------------------------------------------------------------------------- */

/* True if one is what `bias` after the other declares: a number for each row, or for each element of a row. */
static bool is_bias_of(const decl *bias, const decl *weight) {
    const int first = weight->key.n_dims > 1;
    for (int i = 0; i + first < GGL_MAX_DIMS; i++)
        if (bias->key.ne[i] != weight->key.ne[i + first])
            return false;
    return true;
}

/* The declarations of "NAME.bias" for "NAME.weight", or the other way, where they are one with `bias`; NULL: none. */
static const named *partner(const init *in, const decl *d, const char *end, const char *other) {
    const bool is_bias = strcmp(end, ".bias") == 0;
    size_t n = strlen(d->key.name), n_end = strlen(end);
    char name[160];
    if (n <= n_end || strcmp(d->key.name + n - n_end, end) != 0)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(n - n_end), d->key.name, other);
    size_t at = ggl_index_find(&in->by_name, in->name, (ggl_str){name, strlen(name)});
    if (at == SIZE_MAX)
        return NULL;
    const decl *o = &in->decl[in->name[at].first];
    return is_bias_of(is_bias ? d : o, is_bias ? o : d) ? &in->name[at] : NULL;
}

static size_t n_tensors_of(const init *in, const named *n) {
    size_t sum = 0;
    for (size_t d = n->first; d != NONE; d = in->decl[d].other)
        sum += in->decl[d].gone ? 0 : in->decl[d].n_tensors;
    return sum;
}

/* Returns the number of tokens for which the output has scores, if these are not all; else 0. */
static int64_t n_scores(const init *in) {
    const ggl_gguf_tensor *e = find_own(in, "token_embd.weight"),
                          *out = find_own(in, "output.weight");
    return e && out && out->ne[1] < e->ne[1] ? out->ne[1] : 0;
}

/* Writes the options after the shape. */
static void options_of(const init *in, const decl *d, bool from, char *buf, size_t size) {
    const named *bias = partner(in, d, ".weight", ".bias"),
                *self = bias ? partner(in, &in->decl[bias->first], ".bias", ".weight") : NULL;
    buf[0] = '\0';
    if (bias)
        snprintf(buf, size, n_tensors_of(in, bias) == n_tensors_of(in, self) ? " bias" : " bias?");
    if (from)
        snprintf(buf + strlen(buf), size - strlen(buf), " from \"%s%s\"", in->prefix, d->key.name);
    if (strcmp(d->key.name, "output.weight") == 0 && strcmp(in->embedding, "output") != 0 &&
        n_scores(in) == 0)
        snprintf(buf + strlen(buf), size - strlen(buf), " ?? token_embd");
    if (strncmp(d->key.name, "rope_f", 6) == 0)
        snprintf(buf + strlen(buf), size - strlen(buf), " ?");
}

/* A bias of another shape than `bias` declares, beside its weight. */
static bool is_apart(const init *in, const decl *d) {
    size_t n = strlen(d->key.name);
    char name[160];
    if (n <= 5 || strcmp(d->key.name + n - 5, ".bias") != 0)
        return false;
    snprintf(name, sizeof name, "%.*s.weight", (int)(n - 5), d->key.name);
    return ggl_index_find(&in->by_name, in->name, (ggl_str){name, strlen(name)}) != SIZE_MAX;
}

/* Writes a name of letters, digits and '_' for a stem. Returns whether it is the stem itself. */
static bool word_of(const char *stem, const char *end, char *word, size_t size) {
    snprintf(word, size, "%s%s%s", isdigit((unsigned char)stem[0]) || !stem[0] ? "_" : "", stem,
             end);
    for (char *c = word; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    return strcmp(stem, word) == 0;
}

/* Calls a declaration `word`, unless something else is called so. */
static bool take_word(init *in, named *n, const char *word) {
    const arch_name *number = arch_names_find(in->names, word);
    if (arch_names_is_taken(word) || (number && number->used) ||
        (in != in->part && ggl_index_find(&in->part->by_word, in->part->word,
                                          (ggl_str){word, strlen(word)}) != SIZE_MAX))
        return false;
    if (word != n->as)
        snprintf(n->as, sizeof n->as, "%s", word);
    in->word[in->n_word] = (ggl_str){n->as, strlen(n->as)};
    if (ggl_index_put(&in->by_word, in->word, in->n_word) != in->n_word)
        return false;
    in->n_word++;
    return true;
}

/* Chooses what a declaration is called: its stem, or something like it if that is taken. */
static void name_weight(init *in, named *n) {
    const decl *d = &in->decl[n->first];
    char stem[128], word[140];
    const bool is_weight = !stem_of(d->key.name, stem, sizeof stem);
    (void)word_of(stem, is_apart(in, d) ? "_bias" : "", word, sizeof word);
    bool done = take_word(in, n, word);
    if (!done) {
        snprintf(n->as, sizeof n->as, "%s_%s", word, is_weight ? "weight" : "tensor");
        done = take_word(in, n, n->as);
    }
    /* a number of its own for each tensor, so that hostile names make only as many attempts as there are names */
    for (size_t k = (size_t)(n - in->name) + 1; !done; k += in->n_name) {
        snprintf(n->as, sizeof n->as, "%s_%zu", word, k);
        done = take_word(in, n, n->as);
    }
}

/* True if the model's output is its embedding. */
static bool lacks_output(const init *in) {
    return find_own(in, "token_embd.weight") && !find_own(in, "output.weight");
}

/* Chooses what all declarations are called: first those that other lines name, such as output, then those whose stem
 * is a name. */
static void name_weights(init *in) {
    static const char *const own[] = {"output", "text", "eye",       "patch",
                                      "seen",   "rows", "embedding", "score"};
    char stem[128], word[140];
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (k == 0 ? lacks_output(in) : in->has_stages) {
            in->word[in->n_word] = (ggl_str){own[k], strlen(own[k])};
            in->n_word += ggl_index_put(&in->by_word, in->word, in->n_word) == in->n_word;
        }
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < in->n_name; i++) {
            const decl *d = &in->decl[in->name[i].first];
            const bool is_name =
                !stem_of(d->key.name, stem, sizeof stem) && word_of(stem, "", word, sizeof word);
            GGL_STEPS(1);
            if (round == (is_name ? d->in.n > 0 : 2))
                name_weight(in, &in->name[i]);
        }
}

/* True if the declaration gives the tensor's name with `from`. */
static bool has_from(const init *in, const decl *d) {
    char stem[128];
    const size_t n =
        ggl_index_find(&in->by_name, in->name, (ggl_str){d->key.name, strlen(d->key.name)});
    return stem_of(d->key.name, stem, sizeof stem) || strcmp(stem, in->name[n].as) != 0;
}

/* True if it can only be a comment: a string of the language cannot hold the name, as braces are places for numbers there. */
static bool is_comment(const init *in, const decl *d) {
    const char *name = d->key.name, *at = strncmp(name, "blk.{l}.", 8) == 0 ? name + 8 : name;
    bool fits = true;
    for (; *at; at++)
        fits = fits && !strchr("\"\\{}", *at) && (unsigned char)*at >= ' ';
    return !fits && has_from(in, d);
}

static void print_decl(const init *in, const decl *d, int indent) {
    char text[1024], numbers[128], options[400];
    const ggl_gguf_tensor *one = ggl_gguf_tensor_at(in->f, d->head);
    if (partner(in, d, ".bias", ".weight"))
        return;
    const size_t n =
        ggl_index_find(&in->by_name, in->name, (ggl_str){d->key.name, strlen(d->key.name)});
    options_of(in, d, has_from(in, d), options, sizeof options);
    snprintf(text, sizeof text, "%*s%s%s %s%s", indent, "", is_comment(in, d) ? "# " : "",
             in->name[n].as, d->shape, options);
    ggl_fprint(stdout, "%-60s # %s %s%s\n", text, tensor_type(one),
               tensor_shape(one, numbers, sizeof numbers), d->open ? " ?" : "");
}

static void print_condition(const init *in, const group *g, int indent) {
    bool whole = g->in.n == g->in.last - g->in.first + 1;
    printf("%*s", indent, "");
    if (g->list) {
        printf("if %s %s 0:", g->list->name, g->above ? ">" : "==");
    } else if (g->in.n == 1) {
        printf("if l == %" PRId64 ":", g->in.first);
    } else if (whole && g->in.first == 0) {
        printf("if l < %" PRId64 ":", g->in.last + 1);
    } else if (whole && g->in.last == in->n_layer - 1) {
        printf("if l >= %" PRId64 ":", g->in.first);
    } else {
        const char *between = "";
        printf("if l in [");
        for (size_t t = in->decl[g->head].head; t != NONE; t = in->next[t], between = ", ") {
            ggl_str rest;
            printf("%s%d", between, layer_of(in, t, &rest));
        }
        printf("]:");
    }
    printf("  # %" PRId64 " of %d layers\n", g->in.n, in->n_layer);
}

/* True if there is more to print of it than comments and biases, which stand with their weights. */
static bool has_lines(const init *in, const group *g) {
    for (size_t d = g->head; d != NONE; d = in->along[d])
        if (!partner(in, &in->decl[d], ".bias", ".weight") && !is_comment(in, &in->decl[d]))
            return true;
    return false;
}

static void print_decls(const init *in, const group *g, int indent) {
    for (size_t d = g->head; d != NONE; d = in->along[d])
        print_decl(in, &in->decl[d], indent);
}

/* The declarations of all layers, or those outside of layers. */
static void print_groups(const init *in, bool outside) {
    for (size_t i = 0; i < in->n_group; i++)
        if (in->group[i].in.n == (outside ? 0 : in->n_layer))
            print_decls(in, &in->group[i], in->indent + (outside ? 0 : 2));
}

/* The kinds of layers in group `within` (NONE: in all), each under its condition; two that make up all layers as `if` and `else`. */
static void print_kinds(init *in, size_t within, int indent) {
    for (size_t i = 0; i < in->n_group; i++) {
        group *g = &in->group[i];
        if (g->in.n == 0 || g->in.n == in->n_layer || g->within != within || g->printed ||
            !has_lines(in, g))
            continue;
        print_condition(in, g, indent);
        print_decls(in, g, indent + 2);
        if (g->is_around)
            print_kinds(in, i, indent + 2);
        const layers rest = {.n = in->all.n - g->in.n, .mix = in->all.mix ^ g->in.mix};
        size_t k =
            ggl_index_find(&in->by_layers, in->group, (ggl_str){(const char *)&rest, LAYERS_KEY});
        if (within != NONE || k == SIZE_MAX || in->group[k].within != NONE ||
            !has_lines(in, &in->group[k]))
            continue;
        printf("%*selse:  # %" PRId64 " of %d layers\n", indent, "", rest.n, in->n_layer);
        print_decls(in, &in->group[k], indent + 2);
        if (in->group[k].is_around)
            print_kinds(in, k, indent + 2);
        in->group[k].printed = true;
    }
}

static void print_name(const arch_names *m, const arch_name *a, int indent, const char *index) {
    char missing[ARCH_EXPR];
    arch_names_expand(m, a->missing ? a->missing : "", missing, sizeof missing);
    char line[512], value[256];
    if (a->value)
        snprintf(line, sizeof line, "%*s%-8s = .%s%s%s%s", indent, "", a->name, a->key, index,
                 missing[0] ? " ?? " : "", missing);
    else
        snprintf(line, sizeof line, "%*s%-8s = %s", indent, "", a->name, missing);
    if (a->value)
        ggl_fprint(stdout, "%-60s # %s\n", line, value_text(a->value, value, sizeof value));
    else
        ggl_fprint(stdout, "%s\n", line);
}

static void print_names(const init *in, bool in_layers) {
    for (int i = 0; i < in->names->n; i++) {
        const arch_name *a = &in->names->at[i];
        if (a->used && a->varies == in_layers)
            print_name(in->names, a, in_layers ? in->indent + 2 : 0,
                       in_layers && a->value && a->value->is_array ? "[l]" : "");
    }
}

/* True if rope_scaled reads the key. */
static bool is_of_rope(const char *key) {
    return strncmp(key, "rope.scaling.", 13) == 0 || strcmp(key, "rope.scale_linear") == 0 ||
           strcmp(key, "rope.freq_base") == 0;
}

/* The name of how many numbers of a head turn; NULL: none that could in each layer. */
static const char *rotated(init *in) {
    double x;
    const arch_name *n_rot = arch_names_find(in->names, "n_rot");
    const char *name = n_rot && n_rot->value ? "n_rot" : "d";
    for (int l = in->n_layer > 0 ? 0 : -1; l < in->n_layer; l++)
        if (!arch_names_value(in->names, name, l, &x) || x < 2 || fmod(x, 2) != 0)
            return NULL;
    return name;
}

/* Prints the keys of the file that no name reads. rope: the descriptor calls rope_scaled, which
 * reads its own keys. */
static void print_rest(const init *in, bool rope) {
    static const char *const engine[] = {"general.", "tokenizer.", "split.", "quantize."};
    size_t n_arch = strlen(in->arch);
    bool any = false;
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        char full[192], value[256], key[256];
        snprintf(full, sizeof full, "%.*s", (int)(v->key.n < 180 ? v->key.n : 180), v->key.s);
        bool own = v->key.n > n_arch && memcmp(full, in->arch, n_arch) == 0 && full[n_arch] == '.',
             skip = false;
        const char *rest = own ? full + n_arch + 1 : full;
        for (size_t k = 0; !own && k < sizeof engine / sizeof *engine; k++)
            skip |= strncmp(full, engine[k], strlen(engine[k])) == 0;
        const arch_name *a = own ? arch_names_of_key(in->names, rest) : NULL;
        if (skip ||
            (own && (strcmp(rest, "context_length") == 0 || strcmp(rest, "vocab_size") == 0)) ||
            (a && a->used) || (own && rope && is_of_rope(rest)))
            continue;
        if (!any)
            printf("\n# Keys that nothing above reads. Read those that change the computation, or "
                   "require their values; an error names the\n# remaining ones that may matter "
                   "(docs/architectures.md#keys).\n");
        any = true;
        snprintf(key, sizeof key, own ? "%s%s.%s" : "%s%skey(\"%s\")", a ? a->name : "",
                 a ? " = " : "", rest);
        ggl_fprint(stdout, "#   %-56s # %s\n", key, value_text(v, value, sizeof value));
    }
}

static void print_rope(const init *in, const char *n_rot) {
    bool two = ggl_gguf_find_tensor(in->f, "rope_factors_long.weight") &&
               ggl_gguf_find_tensor(in->f, "rope_factors_short.weight");
    bool one = ggl_gguf_find_tensor(in->f, "rope_freqs.weight") != NULL;
    char line[128];
    if (two)
        printf(
            "n_orig    = .rope.scaling.original_context_length ?? .context_length\n"
            "factors   = (rope_factors_long if n_ctx > n_orig else rope_factors_short) ?? none\n");
    snprintf(line, sizeof line, "freq, mag = rope_scaled(%s, .rope.freq_base ?? 10000%s)", n_rot,
             two   ? ", factors"
             : one ? ", rope_freqs"
                   : "");
    printf("%-60s # if it rotates: rope_half or rope_pair(q, freq, mag)\n", line);
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        char full[192], value[256];
        size_t n = strlen(in->arch);
        snprintf(full, sizeof full, "%.*s", (int)(v->key.n < 180 ? v->key.n : 180), v->key.s);
        if (strncmp(full, in->arch, n) == 0 && full[n] == '.' && is_of_rope(full + n + 1))
            ggl_fprint(stdout, "#   .%-55s # %s\n", full + n + 1,
                       value_text(v, value, sizeof value));
    }
}

static bool has_rope(const init *in) {
    char prefix[80];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s.rope.", in->arch);
    for (size_t i = 0; i < ggl_gguf_n_values(in->f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(in->f, i);
        if (v->key.n > n && memcmp(v->key.s, prefix, n) == 0)
            return true;
    }
    return false;
}

static const char *norm_of(const init *in) {
    const arch_name *eps = NULL;
    for (int i = 0; i < in->names->n && !eps; i++)
        eps = strcmp(in->names->at[i].name, "eps") == 0 ? &in->names->at[i] : NULL;
    return eps && strstr(eps->key, "attention.layer_norm_epsilon") ? "layer_norm" : "rms_norm";
}

/* Finds the parts that almost all models have: the row of a token, and the output after the last layer. Between
 * embeddings of another width than the layers and the last norm is a matrix, which is left to write. */
static void find_ends(init *in) {
    const ggl_gguf_tensor *table = find_own(in, "token_embd.weight"),
                          *norm = find_own(in, "output_norm.weight");
    const bool apart = table != NULL;
    table = apart ? table : find_own(in, "output.weight");
    in->whole = table != NULL;
    in->embedding = apart || !in->whole ? "token_embd" : "output";
    if (!in->whole && in != in->part && in->part->whole) { /* all parts have the same one */
        in->whole = true;
        in->embedding = in->part->embedding;
        table = find_own(in->part,
                         in->part->embedding[0] == 't' ? "token_embd.weight" : "output.weight");
    }
    in->normed = norm && (table ? norm->ne[0] == table->ne[0] : in != in->part) &&
                 arch_names_find(in->names, "eps");
    arch_names_use(in->names, "n_layer");
    if (in->normed)
        arch_names_use(in->names, "eps");
}

/* Writes the last line. An output of some tokens is taken for that of the last ones. of: what it is computed from. */
static void print_logits(const init *in, const char *of, bool normed) {
    const bool part = n_scores(in) > 0;
    printf("%slogits = ", in->whole ? "" : "# ");
    if (part)
        printf("concat(repeat(-inf, n_vocab - size(output, 1)), ");
    if (normed)
        printf("linear(%s(%s, output_norm, eps), output)", norm_of(in), of);
    else
        printf("linear(%s, output)", of);
    printf(part ? ") # the output has scores for some tokens: the last ones?\n" : "\n");
}

/* Writes the output that a model lacks whose output is its embedding. */
static void print_tied(const init *in) {
    static const ggl_str name = {"token_embd.weight", 17};
    char text[1024];
    const size_t n = ggl_index_find(&in->by_name, in->name, name);
    if (n == SIZE_MAX || !lacks_output(in))
        return;
    snprintf(text, sizeof text, "output %s ?? token_embd", in->decl[in->name[n].first].shape);
    ggl_fprint(stdout, "%-60s # not in this model\n", text);
}

/* True if the file says that its tokens see later ones, too. */
static bool sees_all(const init *in) {
    char key[128];
    bool causal = true;
    snprintf(key, sizeof key, "%s.attention.causal", in->arch);
    return ggl_gguf_get_bool(in->f, key, &causal, NULL) == 1 && !causal;
}

/* Returns the part that has one token after the other; NULL: all are stages. */
static const init *causal_part(const init *part) {
    for (int k = 1; k < part->n_parts; k++)
        if (strcmp(part[k].prefix, "dec.") == 0)
            return &part[k];
    return part->n_parts == 1 ? (sees_all(part) ? NULL : part) : part->n_layer > 0 ? part : NULL;
}

/* True if the part's rows are not of tokens: no embedding is there for them. */
static bool is_over_rows(const init *in) {
    return in != in->part && !in->whole && in != causal_part(in->part);
}

static bool is_eye(const init *in) {
    const ggl_gguf_tensor *t = find_own(in, "patch_embd.weight");
    return is_over_rows(in) && t && t->n_dims == 4 && t->ne[2] == 3 && t->ne[0] == t->ne[1];
}

/* What a stage is called. */
static const char *stage_name(const init *in, char *buf, size_t size) {
    const char *name = is_eye(in) ? "eye" : "text";
    if (is_eye(in) || in == in->part)
        snprintf(buf, size, "%s", name);
    else
        (void)word_of(in->prefix, "", buf, size);
    for (size_t n = strlen(buf); n > 1 && buf[n - 1] == '_'; n--)
        buf[n - 1] = '\0';
    return buf;
}

/* Writes an argument of picture(..): the key, or what stands for it if the file lacks it. */
static void print_argument(const init *in, const char *name, const char *key, const char *missing) {
    char full[192];
    snprintf(full, sizeof full, "%s.%s", in->arch, key);
    if (ggl_gguf_find(in->f, full))
        printf(", %s = .%s", name, key);
    else
        printf(", %s = %s", name, missing);
}

/* Writes the input that a stage over rows reads. */
static void print_input(init *in) {
    const ggl_gguf_tensor *patch = find_own(in, "patch_embd.weight");
    if (!is_eye(in)) {
        printf("# What enters %s is no token. Say what its rows are, and how a tool prepares them: "
               "floats(), sound(..) or picture(..), and write\n# in the stage how a row becomes "
               "x.\ninput seen [n_embd] from floats()\n\n",
               in->prefix);
        return;
    }
    char side[64];
    const arch_name *a = arch_names_find(in->names, "patch_size");
    double x = 0;
    snprintf(side, sizeof side, "%" PRId64, patch->ne[0]);
    if (a && arch_names_value(in->names, a->name, -1, &x) && x == (double)patch->ne[0])
        snprintf(side, sizeof side, "%s", a->name);
    printf("# How is a picture fitted to what the eye sees (fit, resize), in which order are its "
           "patches (block), and what stands around it in a\n# text (begin, end)? "
           "docs/architectures.md#pictures\n"
           "input patch [%s, %s, 3] from picture(patch = %s",
           side, side, side);
    if (a && arch_names_value(in->names, "image_size", -1, &x) &&
        fmod(x, (double)patch->ne[0]) != 0)
        printf(", size = %s * floor(.vision.image_size / %s)", side, side);
    else
        print_argument(in, "size", "vision.image_size", side);
    print_argument(in, "mean", "vision.image_mean", "0.5");
    print_argument(in, "std", "vision.image_std", "0.5");
    printf(")\n\n");
}

/* Writes the line `layer`, with the name of the number of layers. */
static void print_layer_line(const init *in) {
    const arch_name *n = arch_names_find(in->names, "n_layer");
    double x = 0;
    if (in->n_parts > 1 && n && !(arch_names_value(in->names, n->name, -1, &x) && x == in->n_layer))
        n = NULL;
    const char *name = n ? n->name : NULL;
    for (int i = 0; in->n_parts > 1 && !name && i < in->names->n; i++) {
        const arch_name *a = &in->names->at[i];
        if (a->used && a->value && !a->varies && arch_names_value(in->names, a->name, -1, &x) &&
            x == in->n_layer && strstr(a->name, "block"))
            name = a->name;
    }
    if (name)
        printf("%*slayer l < %s:\n", in->indent, "", name);
    else
        printf("%*slayer l < %d:\n", in->indent, "", in->n_layer);
}

/* Writes the graph of a part as far as it is known: what enters the layers, and these. */
static void print_part(init *in, const char *n_rot) {
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    const int by = in->indent;
    if (is_eye(in))
        printf("%*sx = linear(flat(patch), reshape(patch_embd, count(patch), size(patch_embd, "
               "3)))\n\n",
               by, "");
    else if (is_over_rows(in))
        printf("%*sx = seen\n\n", by, "");
    else
        printf("%*s%sx = %s[token]\n\n", by, "", in->whole ? "" : "# ", in->embedding);
    print_layer_line(in);
    print_names(in, true);
    print_groups(in, false);
    print_kinds(in, NONE, by + 2);
    if (of && of->varies)
        printf("%*s  freq, mag = rope_scaled(%s, .rope.freq_base ?? 10000)\n", by, "", n_rot);
    printf("\n%*s  # h = %s(x, attn_norm, eps)\n%*s  # x = x + ..\n\n", by, "", norm_of(in), by,
           "");
}

/* Writes a stage, and what it returns. */
static void print_stage(init *in, const char *n_rot) {
    char name[64], prefix[64] = "", over[16] = "";
    if (is_over_rows(in)) {
        print_input(in);
        snprintf(over, sizeof over, " over %s", is_eye(in) ? "patch" : "seen");
    }
    if (in->prefix[0])
        snprintf(prefix, sizeof prefix, " \"%s\"", in->prefix);
    printf("stage %s%s%s:\n", stage_name(in, name, sizeof name), over, prefix);
    if (in != in->part)
        print_groups(in, true);
    print_part(in, n_rot);
    printf("%*sreturn ", in->indent, "");
    if (in->normed)
        printf("%s(x, output_norm, eps)\n\n", norm_of(in));
    else
        printf("x\n\n");
}

/* Writes what a model of stages alone gives, or what is read of one beside its tokens. */
static void print_results(const init *part, const init *causal) {
    char name[64];
    for (int k = part->n_parts > 1 ? 1 : 0; k < part->n_parts; k++)
        if (&part[k] != causal) {
            stage_name(&part[k], name, sizeof name);
            if (is_over_rows(&part[k]) && !causal)
                printf("rows = %-53s # what is behind it (a projector): a stage over %s\n", name,
                       name);
            else if (!causal && find_own(part, "output.weight"))
                print_logits(part, name, false);
            else if (!is_over_rows(&part[k]))
                printf("embedding = %-48s # of each token; a reranker or classifier: score = "
                       "linear(%s[0], ..)\n",
                       name, name);
        }
}

/* Writes the part with one token after the other. */
static void print_causal(init *in, const char *n_rot) {
    char name[64];
    if (in->prefix[0]) {
        printf("prefix \"%s\"\n", in->prefix);
        print_groups(in, true);
    }
    for (int k = 1; k < in->n_parts; k++)
        if (&in->part[k] != in)
            printf("# its attention to %s: attend(.., cache(.., ..)), whose keys and values are "
                   "made of the rows %s\n",
                   in->part[k].prefix, stage_name(&in->part[k], name, sizeof name));
    print_part(in, n_rot);
    print_logits(find_own(in, "output.weight") ? in : in->part, "x", in->normed);
}

/* Writes the head: what this is, its name, and the number of the language. */
static void print_head(const init *in, const char *name) {
    char key[128];
    ggl_str kind = {"", 0};
    bool word = isalpha((unsigned char)name[0]) || name[0] == '_';
    for (const char *c = name; *c; c++)
        word = word && (isalnum((unsigned char)*c) || *c == '_');
    snprintf(key, sizeof key, "%s.projector_type", in->arch);
    if (strcmp(name, in->arch) == 0) /* which a descriptor has for each kind of projector */
        (void)ggl_gguf_get_string(in->f, key, &kind, NULL);
    if (kind.n > 48 || !is_plain(kind.s, kind.n))
        kind.n = 0;
    word = word && kind.n == 0;
    ggl_fprint(stdout,
               "# %s: started by llm-arch init. The contents of a layer are left to write. A '?' "
               "in a comment marks a shape that this model leaves open: another of\n# its numbers "
               "is equal, or none is. `if l ..` lists this model's layers: replace it by the rule "
               "that decides.\narch %s%s%s%.*s%s\nlanguage 2\n\n",
               name, word ? "" : "\"", name, kind.n ? ":" : "", (int)kind.n, kind.s,
               word ? "" : "\"");
}

static void start(init *in, const char *name) {
    print_head(in, name);
    const char *n_rot = has_rope(in) ? rotated(in) : NULL;
    arch_names_use(in->names, n_rot);
    for (int k = 0; k < in->n_parts; k++)
        find_ends(&in[k]);
    const init *causal = causal_part(in);
    for (int k = 0; k < in->n_parts; k++) {
        in[k].indent = &in[k] == causal ? 0 : in == &in[k] && in->n_parts > 1 ? 0 : 2;
        in[k].has_stages = causal != in;
        if (is_eye(&in[k]))
            arch_names_use(in->names, "patch_size");
        name_weights(&in[k]);
    }
    print_names(in, false);
    for (int k = 0; k < in->n_parts; k++)
        if (in[k].order[0])
            printf("require %s\n", in[k].order);
    if (n_scores(in) > 0)
        printf("require n_vocab > %" PRId64 "\n", n_scores(in));
    print_rest(in, n_rot != NULL);
    putchar('\n');
    const int indent = in->indent;
    in->indent = 0; /* what is outside of layers is outside of stages, too */
    print_groups(in, true);
    in->indent = indent;
    if (causal)
        print_tied(in);
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    if (of && !of->varies)
        print_rope(in, n_rot);
    else if (!has_rope(in) && arch_names_find(in->names, "n_head"))
        printf("# freq, mag = rope_scaled(d, .rope.freq_base ?? 10000), should it rotate without a "
               "key\n");
    putchar('\n');
    for (int k = in->n_parts > 1 ? 1 : 0; k < in->n_parts; k++)
        if (&in[k] != causal)
            print_stage(&in[k], n_rot);
    print_results(in, causal);
    if (causal && in->n_parts > 1)
        putchar('\n');
    if (causal)
        print_causal(&in[causal - in], n_rot);
}

/* Finds the parts by the prefixes of names before "blk.". Those that are too many stay with the part outside of stages. */
static void find_parts(init *in) {
    for (size_t i = 0; i < ggl_gguf_n_tensors(in->f); i++) {
        const ggl_str name = ggl_gguf_tensor_at(in->f, i)->name;
        const size_t n = prefix_before(name);
        int k = 0;
        if (n == SIZE_MAX || n >= sizeof in->prefix)
            continue;
        while (k < in->n_parts &&
               !(strlen(in[k].prefix) == n && memcmp(in[k].prefix, name.s, n) == 0))
            k++;
        if (k < in->n_parts || k == MOST_PARTS || !is_plain(name.s, n))
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
                                  ? layer_of(&in[k], i, &rest)
                                  : -1;
            in[k].n_layer = layer >= in[k].n_layer ? layer + 1 : in[k].n_layer;
        }
    if (in->n_parts == 1)
        in->n_layer = in->names->n_layer;
}

static void finish(init *in) {
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

int arch_init(int argc, char **argv) {
    static init in[MOST_PARTS];
    static arch_names names;
    char arch[65] = "";
    memset(in, 0, sizeof in);
    arg_list files = {0};
    static const args_example examples[] = {
        {"llm-arch init - model.gguf", "starts a descriptor for a model of a new family"}, {0}};
    const args_spec spec = {TOOL,
                            "NAME MODEL",
                            "Prints the beginning of a descriptor: NAME is its architecture's name "
                            "(\"-\": the model's own); the\nmodel's keys become names, its tensors "
                            "declarations. The graph is left to write.",
                            NULL,
                            &files,
                            NULL,
                            .examples = examples};
    int code = arch_args(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    ggl_str family = {"", 0};
    ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    if (tool_open_gguf(&f, files.s[1], &p, &err) != GGL_OK ||
        ggl_gguf_get_string(f, "general.architecture", &family, &err) < 0) {
        code = tool_error(TOOL, 1, "%s", err.msg);
    } else {
        snprintf(arch, sizeof arch, "%.*s", (int)(family.n < 64 ? family.n : 64), family.s);
        arch_names_init(&names, f, arch);
        in[0] = (init){.f = f, .arch = arch, .names = &names, .part = in, .n_parts = 1};
        find_parts(in);
        for (int k = 0; k < in->n_parts && code < 0; k++)
            code = collect(&in[k]) ? -1 : tool_error(TOOL, 1, "out of memory");
        for (int k = 0; k < in->n_parts && code < 0; k++)
            name_shapes(&in[k]);
        if (code < 0) {
            start(in, strcmp(files.s[0], "-") == 0 ? arch : files.s[0]);
            code = 0;
        }
    }
    for (int k = 0; k < MOST_PARTS; k++)
        finish(&in[k]);
    ggl_gguf_close(f);
    args_list_fini(&files);
    return code;
}
