/* Weights that are stored rotated. Keys of the file (prism.hadamard.*) name them, so that no descriptor knows of it. With R = H S, where
 * S has signs on its diagonal and H is the matrix of Walsh and Hadamard for each block of a row, the file has W R^-1 in place of W:
 *
 *     linear(x, W)  = linear(R x, stored)       R x     = hadamard(signs * x), block by block
 *     W[token]      = R^-1 stored[token]        R^-1 z  = signs * hadamard(z)
 *
 * Each node that reads a weight passes through llm_arch_node, which turns the row before such a product, and after such a lookup. The input
 * of some weights (permuted[]) was put into another order before it was rotated. Any other use of a stored weight is an error: it would have
 * the numbers of another basis. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/text.h"
#include "rotate.h"

#define KEYS "prism.hadamard."
enum { MAX_WIDTHS = 64 };

/* --- the keys --------------------------------------------------------------------------------- */

/* What is known of keys below KEYS; others are unread. */
static const char *const known[] = {"version",     "block_size",   "transform",
                                    "axis",        "sign_mode",    "sign_widths",
                                    "sign_values", "weight_names", "inverse_weight_names",
                                    "tied_output", "gdn_v_grouped"};

/* Weights whose input has heads in groups: their numbers are the family's keys. With `gdn_v_grouped` the row [size, groups, heads of a group]
 * becomes [size, heads of a group, groups] before it is rotated. */
static const struct {
    const char *part, *heads, *groups;
} permuted[] = {{".ssm_out.", "ssm.time_step_rank", "ssm.group_count"}};

/* The only table whose lookups are known to be turned back. */
static const char table[] = "token_embd.weight";

/* What the keys of one file say. */
typedef struct rotation {
    const llm_arch_source *src;
    int64_t block;
    bool is_grouped, table_turns, is_tied;
    ggl_str *name; /* of weight_names */
    ggl_index index;
    int n_widths; /* 0: no signs */
    int64_t width[MAX_WIDTHS];
    uint64_t first[MAX_WIDTHS]; /* of a width's signs in `values` */
    llm_arch_key values;
    ggl_tensor *signs[MAX_WIDTHS]; /* NULL: not made yet */
} rotation;

/* How a weight of the graph is stored; r NULL: as it is. */
typedef struct stored {
    rotation *r;
    bool forward, inverse;     /* for products, for lookups */
    int64_t n_heads, n_groups; /* 0: the input's order stays */
} stored;

typedef struct turned { /* a row that several products may share */
    const ggl_tensor *x;
    stored by;
    ggl_tensor *t;
} turned;

struct arch_rotate {
    rotation own, other; /* of the file, and of that which lends it tensors */
    stored *of;          /* by id of a WEIGHT or a PARAM */
    size_t cap_of;
    const ggl_tensor **before; /* by id of a turned row: the row as it was */
    size_t cap_before;
    turned *made;
    size_t n_made, cap_made;
};

bool llm_arch_rotate_reads(ggl_str key) {
    if (!ggl_str_begins_with(key, KEYS))
        return false;
    const ggl_str rest = {key.s + strlen(KEYS), key.n - strlen(KEYS)};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ggl_str_is(rest, known[i]))
            return true;
    return false;
}

bool llm_arch_is_file_rotated(const ggl_gguf *file) {
    bool is = false;
    for (size_t i = 0; i < ggl_gguf_n_values(file) && !is; i++)
        is = ggl_str_begins_with(ggl_gguf_value_at(file, i)->key, KEYS);
    return is;
}

/* Reports an error of a file's keys. Returns false. */
static bool refuse(arch_eval *ev, const rotation *r, const char *fmt, ...) GGL_PRINTF(3, 4);
static bool refuse(arch_eval *ev, const rotation *r, const char *fmt, ...) {
    char text[900];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    if (ev->status == GGL_OK)
        ev->status = ggl_fail(ev->err, GGL_FORMAT, "%.200s: error: %s", r->src->name, text);
    return false;
}

static bool find(const rotation *r, const char *name, llm_arch_key *out) {
    char full[80];
    snprintf(full, sizeof full, KEYS "%s", name);
    return r->src->find_key(r->src->ctx, full, out);
}

/* Reads a key as one value of that type; false: it is absent, or reported. */
static bool one(arch_eval *ev, const rotation *r, const char *name, llm_arch_type type,
                bool required, llm_arch_item *out) {
    static const char *const words[] = {[LLM_ARCH_NUMBER] = "a number",
                                        [LLM_ARCH_BOOL] = "true or false",
                                        [LLM_ARCH_STRING] = "a string"};
    llm_arch_key k;
    *out = (llm_arch_item){0};
    if (!find(r, name, &k))
        return required ? refuse(ev, r, "key " KEYS "%s is missing", name) : false;
    return (!k.is_list && k.type == type && r->src->get_item(r->src->ctx, &k, 0, out)) ||
           refuse(ev, r, "key " KEYS "%s is not %s", name, words[type]);
}

static bool list(arch_eval *ev, const rotation *r, const char *name, llm_arch_type type,
                 llm_arch_key *out) {
    if (!find(r, name, out))
        return refuse(ev, r, "key " KEYS "%s is missing", name);
    return (out->is_list && (out->type == type || out->n == 0)) ||
           refuse(ev, r, "key " KEYS "%s is not a list of %s", name,
                  type == LLM_ARCH_STRING ? "strings" : "numbers");
}

/* Requires a string to be one of those; returns its index, or -1: reported. */
static int word(arch_eval *ev, const rotation *r, const char *name, const char *const *allowed,
                int n) {
    llm_arch_item item;
    char all[100] = "";
    if (!one(ev, r, name, LLM_ARCH_STRING, true, &item))
        return -1;
    for (int i = 0; i < n; i++) {
        if (ggl_str_is(item.string, allowed[i]))
            return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s'%s'", i ? " and " : "",
                 allowed[i]);
    }
    refuse(ev, r, "key " KEYS "%s is '%.*s', but only %s %s known", name,
           (int)(item.string.n < 100 ? item.string.n : 100), item.string.s, all,
           n == 1 ? "is" : "are");
    return -1;
}

/* --- signs ------------------------------------------------------------------------------------ */

/* Reads the widths and checks the signs. False: reported. */
static bool read_signs(arch_eval *ev, rotation *r) {
    llm_arch_key widths;
    llm_arch_item item;
    uint64_t used = 0;
    if (!list(ev, r, "sign_widths", LLM_ARCH_NUMBER, &widths) ||
        !list(ev, r, "sign_values", LLM_ARCH_NUMBER, &r->values))
        return false;
    if (widths.n < 1 || widths.n > MAX_WIDTHS)
        return refuse(ev, r, KEYS "sign_widths has %" PRIu64 " widths; 1 to %d are supported",
                      widths.n, MAX_WIDTHS);
    for (uint64_t i = 0; i < widths.n; i++) {
        if (!r->src->get_item(r->src->ctx, &widths, i, &item) || !(item.number >= 1) ||
            item.number != floor(item.number) || item.number > (double)(r->values.n - used) ||
            fmod(item.number, (double)r->block) != 0)
            return refuse(ev, r,
                          KEYS "sign_widths[%" PRIu64
                               "] is %g, but a multiple of the block size %" PRId64
                               " is expected, with as many signs in sign_values",
                          i, item.number, r->block);
        for (int k = 0; k < r->n_widths; k++)
            if (r->width[k] == (int64_t)item.number)
                return refuse(ev, r, KEYS "sign_widths has %g twice", item.number);
        r->first[r->n_widths] = used;
        r->width[r->n_widths++] = (int64_t)item.number;
        used += (uint64_t)item.number;
    }
    if (used != r->values.n)
        return refuse(ev, r,
                      KEYS "sign_values has %" PRIu64 " signs, but the widths are %" PRIu64
                           " together",
                      r->values.n, used);
    for (uint64_t i = 0; i < used; i++)
        if (!r->src->get_item(r->src->ctx, &r->values, i, &item) || fabs(item.number) != 1)
            return refuse(ev, r, KEYS "sign_values[%" PRIu64 "] is %g, but 1 or -1 is expected", i,
                          item.number);
    return true;
}

/* Returns the signs of rows of that width, a constant. NULL: reported. */
static ggl_tensor *signs_of(arch_eval *ev, arch_place p, rotation *r, int64_t width) {
    int k = 0;
    while (k < r->n_widths && r->width[k] != width)
        k++;
    if (k == r->n_widths) {
        llm_arch_error(ev, p, "%.200s has no signs (" KEYS "sign_widths) for rows of %" PRId64,
                       r->src->name, width);
        return NULL;
    }
    if (r->signs[k])
        return r->signs[k];
    double *x = ggl_calloc((size_t)width, sizeof *x);
    for (int64_t i = 0; x && i < width; i++) {
        llm_arch_item item = {0};
        r->src->get_item(r->src->ctx, &r->values, r->first[k] + (uint64_t)i, &item);
        x[i] = item.number;
    }
    r->signs[k] = x ? ggl_graph_const(ev->g, 1, &width, x) : NULL;
    ggl_free(x);
    if (!x)
        llm_arch_nomem(ev);
    return llm_arch_graph_ok(ev, p) ? r->signs[k] : NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

static bool has_tensor(const rotation *r, ggl_str name) {
    char full[256];
    llm_arch_tensor t = {.name = full, .optional = true};
    snprintf(full, sizeof full, "%.*s", (int)(name.n < sizeof full ? name.n : 0), name.s);
    return full[0] && r->src->find_tensor(r->src->ctx, &t);
}

/* Reads weight_names. False: reported. */
static bool read_names(arch_eval *ev, rotation *r) {
    llm_arch_key k;
    llm_arch_item item;
    if (!list(ev, r, "weight_names", LLM_ARCH_STRING, &k))
        return false;
    if (k.n == 0)
        return refuse(ev, r, KEYS "weight_names is empty");
    r->name = ggl_arena_alloc(&ev->arena, (size_t)k.n, sizeof *r->name);
    if (!r->name ||
        ggl_index_init(&r->index, (size_t)k.n, sizeof *r->name, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return llm_arch_nomem(ev), false;
    for (uint64_t i = 0; i < k.n; i++) {
        if (!r->src->get_item(r->src->ctx, &k, i, &item))
            return refuse(ev, r, KEYS "weight_names[%" PRIu64 "] cannot be read", i);
        const int n = (int)(item.string.n < 100 ? item.string.n : 100);
        r->name[i] = item.string;
        if (ggl_index_put(&r->index, r->name, (size_t)i) != i)
            return refuse(ev, r, KEYS "weight_names has '%.*s' twice", n, item.string.s);
        if (!has_tensor(r, item.string))
            return refuse(ev, r, KEYS "weight_names has '%.*s', but the file has no such tensor", n,
                          item.string.s);
    }
    return true;
}

/* Reads inverse_weight_names and tied_output. False: reported. */
static bool read_table(arch_eval *ev, rotation *r, double version) {
    llm_arch_key k;
    llm_arch_item item;
    const bool has = find(r, "inverse_weight_names", &k);
    if (has && !list(ev, r, "inverse_weight_names", LLM_ARCH_STRING, &k))
        return false;
    for (uint64_t i = 0; has && i < k.n; i++) {
        if (!r->src->get_item(r->src->ctx, &k, i, &item) || !ggl_str_is(item.string, table))
            return refuse(ev, r,
                          KEYS "inverse_weight_names has '%.*s', but only lookups in %s are known "
                               "to be turned back",
                          (int)(item.string.n < 100 ? item.string.n : 100), item.string.s, table);
        if (r->table_turns || ggl_index_find(&r->index, r->name, item.string) != SIZE_MAX)
            return refuse(ev, r, KEYS "inverse_weight_names has %s twice, or weight_names, too",
                          table);
        r->table_turns = true;
    }
    if (one(ev, r, "tied_output", LLM_ARCH_BOOL, false, &item))
        r->is_tied = item.flag;
    if (ev->status != GGL_OK)
        return false;
    if (r->is_tied != (version == 2))
        return refuse(ev, r, KEYS "version 2 has tied_output true, and version 1 has not");
    const bool has_output = has_tensor(r, (ggl_str){"output.weight", strlen("output.weight")});
    if (r->is_tied && (has_output || !r->table_turns))
        return refuse(ev, r, KEYS "tied_output: %s",
                      has_output ? "the file has an output.weight of its own"
                                 : "inverse_weight_names does not have token_embd.weight");
    return true;
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* Reads what a file's keys say, if it has them. False: reported. */
static bool read_keys(arch_eval *ev, rotation *r) {
    static const char *const transforms[] = {"normalized-sylvester-walsh-hadamard"};
    static const char *const axes[] = {"input-last-dimension"};
    static const char *const modes[] = {"identity", "explicit"};
    llm_arch_item version, block, item;
    llm_arch_key k;
    bool any = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        any |= find(r, known[i], &k);
    if (!any)
        return true;
    if (!one(ev, r, "version", LLM_ARCH_NUMBER, true, &version))
        return false;
    if (version.number != 1 && version.number != 2)
        return refuse(ev, r, "key " KEYS "version is %g, but only 1 and 2 are known",
                      version.number);
    if (!one(ev, r, "block_size", LLM_ARCH_NUMBER, true, &block))
        return false;
    if (!(block.number >= 1 && block.number <= 65536) ||
        exp2(floor(log2(block.number))) != block.number)
        return refuse(ev, r, "key " KEYS "block_size is %g, but a power of two is expected",
                      block.number);
    r->block = (int64_t)block.number;
    if (word(ev, r, "transform", transforms, 1) < 0 || word(ev, r, "axis", axes, 1) < 0)
        return false;
    const int mode = word(ev, r, "sign_mode", modes, 2);
    if (mode < 0 || (mode == 1 && !read_signs(ev, r)))
        return false;
    if (one(ev, r, "gdn_v_grouped", LLM_ARCH_BOOL, false, &item))
        r->is_grouped = item.flag;
    return ev->status == GGL_OK && read_names(ev, r) && read_table(ev, r, version.number);
}

bool llm_arch_rotate_init(arch_eval *ev) {
    if (ev->convert) /* its keys are those of the conversion */
        return true;
    struct arch_rotate *x = ggl_arena_alloc(&ev->arena, 1, sizeof *x);
    if (!x)
        return llm_arch_nomem(ev), false;
    x->own.src = ev->src;
    x->other.src = ev->src->other;
    ev->rotate = x; /* also for llm_arch_rotate_fini */
    if (!read_keys(ev, &x->own) || (x->other.src && !read_keys(ev, &x->other)))
        return false;
    if (!x->own.block && !x->other.block)
        ev->rotate = NULL;
    return true;
}

void llm_arch_rotate_fini(arch_eval *ev) {
    struct arch_rotate *x = ev->rotate;
    if (!x)
        return;
    ggl_index_fini(&x->own.index);
    ggl_index_fini(&x->other.index);
    ggl_free(x->of);
    ggl_free(x->before);
    ggl_free(x->made);
    ev->rotate = NULL;
}

/* --- weights ---------------------------------------------------------------------------------- */

/* Reads {arch}.NAME of the rotation's file, a whole number; 0: it is none. */
static int64_t number_of(const rotation *r, const char *name) {
    char full[2 * ARCH_MAX_NAME];
    llm_arch_key k;
    llm_arch_item arch = {0}, item = {0};
    if (!r->src->find_key(r->src->ctx, "general.architecture", &k) || k.type != LLM_ARCH_STRING ||
        k.is_list || !r->src->get_item(r->src->ctx, &k, 0, &arch))
        return 0;
    snprintf(full, sizeof full, "%.*s.%s", (int)(arch.string.n < 100 ? arch.string.n : 100),
             arch.string.s, name);
    const bool has = r->src->find_key(r->src->ctx, full, &k) && !k.is_list &&
                     k.type == LLM_ARCH_NUMBER && r->src->get_item(r->src->ctx, &k, 0, &item);
    return has && item.number >= 1 && item.number <= 1e6 && item.number == floor(item.number)
               ? (int64_t)item.number
               : 0;
}

/* Sets the order of the input of a weight of n numbers a row. False: reported. */
static bool find_order(arch_eval *ev, const char *name, int64_t n, stored *s) {
    for (size_t i = 0; s->r->is_grouped && i < sizeof permuted / sizeof *permuted; i++) {
        if (!strstr(name, permuted[i].part))
            continue;
        const int64_t heads = number_of(s->r, permuted[i].heads),
                      groups = number_of(s->r, permuted[i].groups);
        if (heads < 1 || groups < 1 || heads % groups != 0 || n % heads != 0)
            return refuse(ev, s->r,
                          "%.100s: %" PRId64 " heads (%s) in %" PRId64 " groups (%s) do not divide "
                          "its rows of %" PRId64,
                          name, heads, permuted[i].heads, groups, permuted[i].groups, n);
        s->n_heads = heads;
        s->n_groups = groups;
    }
    return true;
}

bool llm_arch_rotate_weight(arch_eval *ev, const ggl_tensor *w, const char *name) {
    struct arch_rotate *x = ev->rotate;
    if (!x)
        return true;
    const bool is_named = x->other.src && llm_arch_is_of_target(name);
    const bool is_lent = is_named || (ev->src->is_lent && ev->src->is_lent(ev->src->ctx, name));
    stored s = {.r = is_lent ? &x->other : &x->own};
    const char *own = is_named ? name + strlen(LLM_ARCH_OF_TARGET) : name;
    if (!s.r->block)
        return true;
    s.forward = ggl_index_find(&s.r->index, s.r->name, (ggl_str){own, strlen(own)}) != SIZE_MAX;
    s.inverse = s.r->table_turns && strcmp(own, table) == 0;
    s.forward |= s.inverse && s.r->is_tied;
    if (!s.forward && !s.inverse)
        return true;
    if (w->ne[0] % s.r->block != 0)
        return refuse(ev, s.r,
                      "%.100s has rows of %" PRId64 ", which blocks of %" PRId64 " (" KEYS
                      "block_size) do not divide",
                      name, w->ne[0], s.r->block);
    if (!find_order(ev, own, w->ne[0], &s) ||
        !llm_arch_push(ev, &x->of, &x->cap_of, (size_t)w->id + 1, sizeof *x->of))
        return false;
    x->of[w->id] = s;
    return true;
}

static const stored *stored_of(const arch_eval *ev, const ggl_tensor *t) {
    const struct arch_rotate *x = ev->rotate;
    while (x && t && arch_is_cut(t))
        t = t->src[0];
    return x && t && (size_t)t->id < x->cap_of && x->of[t->id].r ? &x->of[t->id] : NULL;
}

bool llm_arch_is_rotated(const arch_eval *ev, const ggl_tensor *t) {
    return stored_of(ev, t) != NULL;
}

bool llm_arch_rotate_same(arch_eval *ev, const ggl_tensor *t, const ggl_tensor *as) {
    struct arch_rotate *x = ev->rotate;
    const stored *s = stored_of(ev, as);
    if (!s)
        return true;
    const stored copy = *s;
    if (!llm_arch_push(ev, &x->of, &x->cap_of, (size_t)t->id + 1, sizeof *x->of))
        return false;
    x->of[t->id] = copy;
    return true;
}

const ggl_tensor *llm_arch_before_rotation(const arch_eval *ev, const ggl_tensor *t) {
    const struct arch_rotate *x = ev->rotate;
    return x && (size_t)t->id < x->cap_before && x->before[t->id] ? x->before[t->id] : t;
}

/* --- rows ------------------------------------------------------------------------------------- */

static ggl_tensor *with_signs(arch_eval *ev, arch_place p, rotation *r, ggl_tensor *x) {
    if (!x || r->n_widths == 0)
        return x;
    ggl_tensor *src[2] = {x, signs_of(ev, p, r, x->ne[0])};
    return src[1] ? llm_arch_plain_node(ev, p, GGL_OP_MUL, src, 2, NULL, 0) : NULL;
}

static ggl_tensor *reshaped(arch_eval *ev, arch_place p, ggl_tensor *x, int n, const int64_t *ne) {
    double num[GGL_MAX_DIMS] = {0};
    for (int d = 0; d < n; d++)
        num[d] = (double)ne[d];
    return llm_arch_plain_node(ev, p, GGL_OP_RESHAPE, &x, 1, num, n);
}

/* t in the shape of x, whose dimensions have names. */
static ggl_tensor *shaped_as(arch_eval *ev, arch_place p, ggl_tensor *t, const ggl_tensor *x) {
    t = reshaped(ev, p, t, x->n_dims, x->ne);
    for (int d = 0; t && d < x->n_dims; d++)
        if (x->dim_name[d])
            ggl_tensor_set_dim_name(ev->g, t, d, x->dim_name[d]);
    return t;
}

/* The row x in the order of groups, not of heads. */
static ggl_tensor *in_groups(arch_eval *ev, arch_place p, const stored *s, ggl_tensor *x) {
    const int64_t n = s->n_heads;
    if (n == 0 || !x)
        return x;
    const int64_t ne[3] = {x->ne[0] / n, s->n_groups, n / s->n_groups};
    if (ggl_count(x) != x->ne[0]) {
        llm_arch_error(ev, p, "heads in groups (" KEYS "gdn_v_grouped) are known of one row only");
        return NULL;
    }
    ggl_tensor *t = reshaped(ev, p, x, 3, ne);
    t = t ? llm_arch_plain_node(ev, p, GGL_OP_TRANSPOSE, &t, 1, (double[]){1, 2}, 2) : NULL;
    return t ? shaped_as(ev, p, t, x) : NULL;
}

/* Each block of the rows of x times the matrix. NULL: reported. */
static ggl_tensor *blocks(arch_eval *ev, arch_place p, const rotation *r, ggl_tensor *x) {
    const int64_t ne[2] = {r->block, x ? ggl_count(x) / r->block : 1};
    ggl_tensor *t = x ? reshaped(ev, p, x, 2, ne) : NULL;
    t = t ? ggl_hadamard(ev->g, t) : NULL;
    if (!x || !llm_arch_graph_ok(ev, p) || !t)
        return NULL;
    llm_arch_note_made(ev, p, t);
    if (!llm_arch_push(ev, &ev->call, &ev->cap_call, ev->n_call + 1, sizeof *ev->call))
        return NULL;
    ev->call[ev->n_call++] = t;
    return llm_arch_note_rows(ev, p, t) ? shaped_as(ev, p, t, x) : NULL;
}

static bool is_same(const stored *a, const stored *b) {
    return a->r == b->r && a->n_heads == b->n_heads && a->n_groups == b->n_groups;
}

/* Returns R x. NULL: reported. */
static ggl_tensor *turn(arch_eval *ev, arch_place p, const stored *by, ggl_tensor *x) {
    struct arch_rotate *rot = ev->rotate;
    const stored s = *by; /* rot->of may move */
    for (size_t i = rot->n_made; i-- > 0 && i + 16 >= rot->n_made;)
        if (rot->made[i].x == x && is_same(&rot->made[i].by, &s))
            return rot->made[i].t;
    ggl_tensor *t = blocks(ev, p, s.r, with_signs(ev, p, s.r, in_groups(ev, p, &s, x)));
    if (!t || !llm_arch_push(ev, &rot->made, &rot->cap_made, rot->n_made + 1, sizeof *rot->made) ||
        !llm_arch_push(ev, &rot->before, &rot->cap_before, (size_t)t->id + 1, sizeof *rot->before))
        return NULL;
    rot->made[rot->n_made++] = (turned){x, s, t};
    rot->before[t->id] = x;
    return t;
}

/* --- nodes ------------------------------------------------------------------------------------ */

ggl_tensor *llm_arch_rotate_input(arch_eval *ev, arch_place p, ggl_tensor *x, const ggl_tensor *w) {
    const stored *s = stored_of(ev, w);
    return s && s->forward ? turn(ev, p, s, x) : x;
}

/* Reports that the node t reads a rotated weight in a way that is not known to be right. */
static ggl_tensor *refuse_use(arch_eval *ev, arch_place p, const ggl_tensor *t, int k) {
    const ggl_tensor *w = t->src[k];
    while (arch_is_cut(w))
        w = w->src[0];
    llm_arch_error_hint(ev, GGL_UNSUPPORTED, p, NULL,
                        "%.100s is stored rotated (" KEYS "*), which is known of its %s only, and "
                        "is used here in %s",
                        w->name ? w->name : "a weight",
                        stored_of(ev, w)->forward ? "products" : "lookups",
                        t->call ? t->call : ggl_op_get(t->op).name);
    return NULL;
}

/* True if a view of a rotated weight has whole rows of it. */
static bool keeps_rows(const ggl_tensor *t) {
    return t->ne[0] == t->src[0]->ne[0];
}

ggl_tensor *llm_arch_rotate_output(arch_eval *ev, arch_place p, ggl_tensor *t) {
    for (int k = 0; ev->rotate && k < t->n_src; k++) {
        const stored *s = t->src[k] ? stored_of(ev, t->src[k]) : NULL;
        if (!s)
            continue;
        if (t->op == GGL_OP_LINEAR && k == 1 && s->forward)
            continue;
        if (arch_is_cut(t) && k == 0 && keeps_rows(t))
            continue;
        if (t->op == GGL_OP_PICK && k == 0 && s->inverse) {
            rotation *r = s->r;
            return with_signs(ev, p, r, blocks(ev, p, r, t));
        }
        return refuse_use(ev, p, t, k);
    }
    return t;
}
