/* Declared tensors: finds each in the source and checks its shape. The error shows both shapes
 * and guesses what the differing number may be. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "rotate.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"

/* --- shapes ----------------------------------------------------------------------------------- */

typedef struct shape {
    int n;
    int64_t ne[GGL_MAX_DIMS];
    const char *name[GGL_MAX_DIMS];   /* their expressions */
    const arch_expr *e[GGL_MAX_DIMS]; /* NULL: a dimension of a bias without one */
} shape;

static bool eval_shape(arch_eval *ev, const arch_stmt *s, shape *out) {
    *out = (shape){.n = s->n_expr, .ne = {1, 1, 1, 1}};
    double count = 1;
    for (int d = 0; d < s->n_expr; d++) {
        arch_value v = llm_arch_eval_expr(ev, s->expr[d]);
        if (v.kind == VAL_FAIL ||
            !llm_arch_want_whole(ev, s->expr[d], &v, 1, ARCH_MAX_DIM, &out->ne[d]))
            return false;
        count *= (double)out->ne[d];
        out->name[d] = v.text;
        out->e[d] = s->expr[d];
    }
    if (count > 0x1p50) {
        llm_arch_error_hint(ev, GGL_LIMIT, s->place, NULL, "a tensor of %.3g elements", count);
        return false;
    }
    return true;
}

static const char *shape_text(const shape *s, bool names, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    char quote[48], num[24];
    for (int d = 0; d < s->n && n < size; d++) {
        const char *text = quote;
        snprintf(num, sizeof num, "%" PRId64, s->ne[d]);
        if (!names || (!s->e[d] && !s->name[d]))
            text = num;
        else if (s->e[d])
            llm_arch_quote(s->e[d]->place, quote, sizeof quote);
        else
            text = s->name[d];
        n += (size_t)snprintf(buf + n, size - n, "%s%s", d ? ", " : "", text);
    }
    if (n < size)
        snprintf(buf + n, size - n, "]");
    return buf;
}

/* --- hints: what a number might be ------------------------------------------------------------ */

/* True if an expression consists of numbers, names and operators only. */
static bool is_arithmetic(const arch_expr *e) {
    if (e->kind == EX_NEG)
        return is_arithmetic(e->a);
    if (e->kind == EX_BINARY)
        return is_arithmetic(e->a) && is_arithmetic(e->b);
    return e->kind == EX_NUMBER || e->kind == EX_NAME;
}

/* A search for an expression like `dim` whose value is `found`. */
typedef struct guess {
    arch_eval *ev;
    const arch_expr *dim;
    int64_t found;
    char *buf;
    size_t size;
    int n; /* how many expressions fit */
} guess;

/* Quotes an expression with one name replaced by another. */
static void quote_with(const arch_expr *e, const char *from, const char *to, char *buf,
                       size_t size) {
    char text[64];
    size_t n = 0, len = strlen(from);
    llm_arch_quote(e->place, text, sizeof text);
    for (const char *s = text; *s && n + 1 < size;) {
        bool word = s == text || !(s[-1] == '_' || (s[-1] >= '0' && s[-1] <= '9') ||
                                   (s[-1] >= 'a' && s[-1] <= 'z'));
        char after = strncmp(s, from, len) == 0 ? s[len] : '_';
        bool ends =
            !(after == '_' || (after >= '0' && after <= '9') || (after >= 'a' && after <= 'z'));
        if (word && ends) {
            n += (size_t)snprintf(buf + n, size - n, "%s", to);
            s += len;
        } else {
            buf[n++] = *s++;
        }
    }
    buf[n < size ? n : size - 1] = 0;
}

/* Sets *word to NULL if e is that name. */
static void find_word(void *ctx, arch_expr *e) {
    const char **word = ctx;
    if (e->kind == EX_NAME && *word && strcmp(e->name, *word) == 0)
        *word = NULL;
}

/* True if the name is the number of a layer or of a turn of a loop, in one of the statements: it is another one each time. */
static bool is_counter(const arch_stmt *s, const char *word) {
    for (; s; s = s->next) {
        for (int k = 0;
             (s->kind == ST_LAYER || s->kind == ST_FOR || s->kind == ST_STAGE) && k < s->n_target;
             k++)
            if (strcmp(s->target[k].name, word) == 0)
                return true;
        for (int k = 0; k < s->n_arm; k++)
            if (is_counter(s->arm[k].body, word))
                return true;
    }
    return false;
}

/* Tries each of the descriptor's numbers that the expression does not mention in place of this
 * name. Skips n_ctx: the user chooses it, and no shape depends on it. */
static void try_names(void *ctx, arch_expr *e) {
    guess *g = ctx;
    arch_eval *ev = g->ev;
    if (e->kind != EX_NAME || g->n > 1)
        return;
    for (int k = SLOT_N_VOCAB; k < ev->arch->n_global && g->n < 2; k++) {
        const arch_slot *s = &ev->global[k];
        const char *word = ev->arch->global[k];
        llm_arch_walk_expr((arch_expr *)g->dim, find_word, &word);
        if (!s->bound || s->v.kind != VAL_NUMBER || !word || is_counter(ev->arch->body, word))
            continue;
        ev->vary_name = e->name;
        ev->vary_value = s->v;
        arch_value v = llm_arch_eval_expr(ev, g->dim);
        ev->vary_name = NULL;
        char text[80];
        if (v.kind != VAL_NUMBER || v.num != (double)g->found)
            continue;
        quote_with(g->dim, e->name, ev->arch->global[k], text, sizeof text);
        char hint[160];
        snprintf(hint, sizeof hint, "%" PRId64 " here is %s", g->found, text);
        if (g->n == 0 || strcmp(hint, g->buf) != 0)
            g->n++;
        snprintf(g->buf, g->size, "%s", hint);
    }
}

/* True if `found` is a small multiple of some number. A tensor of several parts then allows
 * several guesses: 64 may be n_embd, or 2 * n_ff. */
static bool is_multiple(const arch_eval *ev, int64_t found) {
    for (int k = SLOT_FIRST_FREE; k < ev->arch->n_global; k++) {
        const arch_slot *s = &ev->global[k];
        const double times =
            s->bound && s->v.kind == VAL_NUMBER && s->v.num > 1 ? (double)found / s->v.num : 0;
        if (times >= 2 && times <= 8 && times == (double)(int)times)
            return true;
    }
    return false;
}

/* Writes a hint like "64 here is n_embd" if exactly one expression fits, else "". */
static const char *guess_number(arch_eval *ev, const arch_expr *dim, int64_t found, char *buf,
                                size_t size) {
    buf[0] = 0;
    guess g = {ev, dim, found, buf, size, 0};
    if (dim && dim->place.n <= 64 && is_arithmetic(dim)) /* a longer one would take too long */
        llm_arch_walk_expr((arch_expr *)dim, try_names, &g);
    if (g.n != 1 || (ev->convert && (found == 1 || is_multiple(ev, found))))
        buf[0] = 0;
    return buf;
}

/* --- one tensor ------------------------------------------------------------------------------- */

static bool check_shape(arch_eval *ev, arch_place p, const llm_arch_tensor *t, const shape *want) {
    char found[128], names[256], numbers[128], hint[160] = "";
    shape have = {.n = t->n_dims};
    int bad = -1;
    memcpy(have.ne, t->ne, sizeof have.ne);
    for (int d = 0; d < GGL_MAX_DIMS && bad < 0; d++)
        if ((d < t->n_dims ? t->ne[d] : 1) != want->ne[d])
            bad = d;
    if (bad < 0)
        return true;
    if (bad < want->n && want->e[bad]) {
        p = want->e[bad]->place;
        guess_number(ev, want->e[bad], bad < t->n_dims ? t->ne[bad] : 1, hint, sizeof hint);
    }
    shape_text(want, true, names, sizeof names);
    shape_text(want, false, numbers, sizeof numbers);
    bool plain = strcmp(names, numbers) == 0;
    llm_arch_error_hint(ev, GGL_SHAPE, p, hint, "tensor %s is %s, declared %s%s%s", t->name,
                        shape_text(&have, false, found, sizeof found), names, plain ? "" : " = ",
                        plain ? "" : numbers);
    return false;
}

/* Finds a declared tensor in the source, checks its shape and makes a WEIGHT node. If an
 * optional tensor is absent, returns true with *out NULL. *whole: the name of the source's tensor, of which it may be a part.
 * False: reported. */
static bool load(arch_eval *ev, const arch_stmt *s, const char *name, const shape *want,
                 bool optional, bool is_bias, ggl_tensor **out, const char **whole) {
    arch_place p = s->target[0].place;
    const arch_weight *before = llm_arch_find_weight(ev, name);
    llm_arch_tensor t = {.name = name, .optional = optional, .n_dims = want->n};
    *out = NULL;
    *whole = name;
    memcpy(t.ne, want->ne, sizeof t.ne);
    arch_part part = {0};
    bool found = ev->convert ? ev->convert->weight(ev, s, is_bias, &t)
                             : ev->src->find_tensor(ev->src->ctx, &t);
    if (found)
        t.name = name;
    else if (!llm_arch_find_part(ev, p, is_bias, &t, &part)) {
        if (optional || ev->status != GGL_OK)
            return ev->status == GGL_OK;
        if (!ev->params || !ev->params->missing) {
            llm_arch_missing_tensor(ev, p, name, &t);
            return false;
        }
        if (!before)
            ev->params->missing(ev->params->ctx, name);
        t.type = GGL_F32;
        t.data = NULL;
    }
    if (part.whole)
        *whole = llm_arch_whole_name(&part);
    if (before && before->whole) {
        llm_arch_error(ev, p, "%s cannot be declared as a whole: its parts are declared", name);
        return false;
    }
    if (!check_shape(ev, p, &t, want) && !(ev->convert && ev->convert->forgive(ev)))
        return false;
    /* declared again: the same tensor */
    if (before && before->t->n_dims == want->n &&
        memcmp(before->t->ne, want->ne, sizeof want->ne) == 0) {
        *out = before->t;
        return true;
    }
    *out = ggl_graph_weight(ev->g, name, t.type, want->n, want->ne, t.data);
    if (!llm_arch_graph_ok(ev, p) || !*out)
        return false;
    for (int d = 0; d < want->n; d++)
        if (want->name[d])
            ggl_tensor_set_dim_name(ev->g, *out, d, want->name[d]);
    part.t = *out;
    int64_t rows;
    const char *stored = part.whole ? llm_arch_whole_tensor(&part, &rows)->name : name;
    return llm_arch_rotate_weight(ev, *out, stored) &&
           (!part.whole || (llm_arch_take_part(ev, p, &part) && llm_arch_adapt_part(ev, &part))) &&
           (before || llm_arch_add_weight(ev, name, *out, p, is_bias));
}

/* --- the statement ---------------------------------------------------------------------------- */

/* True if the source has a tensor of this name. */
static bool has_named(arch_eval *ev, const arch_stmt *s, const char *from, const shape *want) {
    const char *name = llm_arch_expand(ev, from, s->string_place);
    llm_arch_tensor t = {.name = name, .n_dims = want->n};
    memcpy(t.ne, want->ne, sizeof t.ne);
    return name && ev->src->find_tensor(ev->src->ctx, &t);
}

/* `from "a" ?? "b"`: returns "b" if the source has only that one. Made-up models and conversions
 * use "a". */
static const char *name_of(arch_eval *ev, const arch_stmt *s, const shape *want) {
    bool second = s->second && !ev->convert && !has_named(ev, s, s->string, want) &&
                  has_named(ev, s, s->second, want);
    return second ? s->second : s->string;
}

/* Returns the beginning of the names of tensors without `from`. Its names in braces are those where it stands, which is at top level, also
 * in a function. NULL: reported. */
static const char *prefix_here(arch_eval *ev, const arch_stmt *s) {
    const char *prefix = ev->stage && ev->stage->string ? ev->stage->string : ev->prefix;
    arch_frame *inner = ev->frame;
    if (!prefix)
        return "";
    ev->frame = NULL;
    prefix = llm_arch_expand(ev, prefix, ev->stage ? ev->stage->place : s->place);
    ev->frame = inner;
    return prefix;
}

/* Returns the full name of the weight or its bias: from the `from` string, or blk.N.NAME.weight.
 * NULL: reported. */
static const char *full_name(arch_eval *ev, const arch_stmt *s, const char *from, bool bias) {
    char buf[512];
    const char *end = bias ? "bias" : "weight", *out, *prefix = prefix_here(ev, s);
    if (!prefix)
        return NULL;
    if (from) {
        if (!(out = llm_arch_expand(ev, from, s->string_place)) || !bias)
            return out;
        size_t n = strlen(out), m = strlen(".weight");
        if (n < m || strcmp(out + n - m, ".weight") != 0) {
            llm_arch_error(ev, s->string_place,
                           "the name of its bias is unknown: for a bias, the name after 'from' "
                           "must end in '.weight'");
            return NULL;
        }
        snprintf(buf, sizeof buf, "%.*s.bias", (int)(n - m), out);
    } else if (ev->layer >= 0) {
        snprintf(buf, sizeof buf, "%.128sblk.%" PRId64 ".%s.%s", prefix, ev->layer,
                 s->target[0].name, end);
    } else {
        snprintf(buf, sizeof buf, "%.128s%s.%s", prefix, s->target[0].name, end);
    }
    return llm_arch_strdup(ev, buf);
}

/* Returns the shape of a weight's bias: without the first dimension, unless it is the only one. */
static shape bias_shape(const shape *w) {
    shape b = *w;
    if (w->n < 2)
        return b;
    b.n = w->n - 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        b.ne[d] = d < b.n ? w->ne[d + 1] : 1;
        b.name[d] = d < b.n ? w->name[d + 1] : NULL;
        b.e[d] = d < b.n ? w->e[d + 1] : NULL;
    }
    return b;
}

/* Evaluates `?? other`, a tensor that must have the declared shape. */
static arch_value other_weight(arch_eval *ev, const arch_stmt *s, const shape *want) {
    char a[128], b[128], text[256];
    arch_value v = llm_arch_eval_expr(ev, s->other);
    if (v.kind == VAL_FAIL)
        return v;
    if (v.kind != VAL_TENSOR)
        return llm_arch_error(ev, s->other->place, "another weight is expected after '\?\?': %s",
                              llm_arch_value_text(&v, text, sizeof text));
    for (int d = 0; d < 3; d++)
        if ((d < v.t->n_dims ? v.t->ne[d] : 1) != want->ne[d])
            return llm_arch_error_hint(ev, GGL_SHAPE, s->other->place, NULL,
                                       "%s instead of %s declared %s",
                                       ggl_shape_text(v.t, a, sizeof a), s->target[0].name,
                                       shape_text(want, false, b, sizeof b));
    return v;
}

/* Binds the weight's name, which must not have a value yet. */
static bool bind_weight(arch_eval *ev, const arch_stmt *s, const arch_value *v) {
    const arch_target *t = &s->target[0];
    arch_slot *slot = llm_arch_target_slot(ev, t);
    if (slot->bound) {
        int line, col;
        llm_arch_line_col(slot->place, &line, &col);
        if (slot->place.text == t->place.text && slot->place.at == t->place.at)
            llm_arch_error(ev, t->place,
                           "'%s' would be declared again in each turn of the 'for': declare it in "
                           "a def that the loop calls",
                           t->name);
        else
            llm_arch_error(ev, t->place,
                           "'%s' already exists, in line %d: a weight needs a new name", t->name,
                           line);
        return false;
    }
    return llm_arch_bind(ev, t, v);
}

bool llm_arch_run_weight(arch_eval *ev, const arch_stmt *s) {
    shape want;
    ggl_tensor *t, *bias = NULL;
    if (!eval_shape(ev, s, &want))
        return false;
    const char *from = name_of(ev, s, &want), *whole;
    const char *name = full_name(ev, s, from, false);
    if (!name)
        return false;
    if (!load(ev, s, name, &want, s->optional || s->other, false, &t, &whole))
        return false;
    arch_value v;
    if (t) {
        shape b = bias_shape(&want);
        const char *bias_whole;
        const char *bias_name = s->bias ? full_name(ev, s, from, true) : NULL;
        if (s->bias &&
            (!bias_name || !load(ev, s, bias_name, &b, s->bias_optional, true, &bias, &bias_whole)))
            return false;
        v = llm_arch_tensor_value(t);
        v.bias = bias;
        if (!llm_arch_find_factor(ev, s->target[0].place, name, t, &v.factor) ||
            (!v.factor && whole != name &&
             !llm_arch_find_factor(ev, s->target[0].place, whole, t, &v.factor)))
            return false;
        if (s->other)
            llm_arch_mark_read(ev, s->other, &v);
    } else if (s->other) {
        v = other_weight(ev, s, &want);
        ggl_tensor *other = v.kind == VAL_FAIL ? NULL : llm_arch_adapt_other(ev, name, v.t);
        if (!other)
            return false;
        if (other != v.t) {
            ggl_tensor *factor = v.factor;
            v = llm_arch_tensor_value(other);
            v.factor = factor;
            llm_arch_mark_read(ev, s->other, &v);
        }
    } else {
        char buf[600];
        snprintf(buf, sizeof buf, "tensor %s is absent", name);
        v = llm_arch_none(llm_arch_strdup(ev, buf));
    }
    return bind_weight(ev, s, &v);
}

/* --- ignore ----------------------------------------------------------------------------------- */

/* True if the source has the key and the user did not ask to ignore it. */
static bool is_present(arch_eval *ev, const arch_expr *e, char *name, size_t size) {
    llm_arch_key k;
    snprintf(name, size, "%s%s%s", e->whole ? "" : ev->family, e->whole ? "" : ".", e->name);
    return ev->src->find_key(ev->src->ctx, name, &k) &&
           !(ev->request &&
             arch_match_any(ev->request->key, ev->request->n_key, (ggl_str){name, strlen(name)}));
}

/* Refuses `ignore .key if condition` if the source has the key; call it only when the condition
 * does not hold. */
static bool refuse_key(arch_eval *ev, const arch_stmt *s, const arch_expr *e) {
    char name[512], value[128], quote[96];
    if (!is_present(ev, e, name, sizeof name))
        return true;
    if (ev->src->require_key)
        ev->src->require_key(ev->src->ctx, name, NULL);
    ev->refused = true;
    llm_arch_value_of_key(ev, (ggl_str){name, strlen(name)}, value, sizeof value);
    llm_arch_error(ev, e->place, "key %s%s is ignored only if %s%s%s", name, value,
                   llm_arch_quote(s->other->place, quote, sizeof quote), s->string ? ": " : "",
                   s->string ? s->string : "");
    return false;
}

/* True if the condition must be evaluated: the source has one of the keys, or there are
 * patterns. */
static bool wants_condition(arch_eval *ev, const arch_stmt *s) {
    char name[512];
    bool wanted = false;
    for (int k = 0; s->other && k < s->n_expr; k++)
        wanted |= s->expr[k]->kind == EX_STRING || is_present(ev, s->expr[k], name, sizeof name);
    return wanted;
}

bool llm_arch_run_ignore(arch_eval *ev, const arch_stmt *s) {
    bool holds = true;
    if (wants_condition(ev, s)) {
        arch_value v = llm_arch_eval_expr(ev, s->other);
        if (v.kind == VAL_FAIL || !llm_arch_want_bool(ev, s->other, &v, &holds))
            return false;
    }
    for (int k = 0; k < s->n_expr; k++) {
        const arch_expr *e = s->expr[k];
        if (e->kind == EX_KEY && !holds && !refuse_key(ev, s, e))
            return false;
        if (e->kind == EX_KEY || e->name[0] == '.' || !holds)
            continue; /* resolve.c collected the keys */
        const char *pattern = llm_arch_expand(ev, e->name, e->place);
        if (!pattern ||
            !llm_arch_push(ev, &ev->ignore, &ev->cap_ignore, ev->n_ignore + 1, sizeof *ev->ignore))
            return false;
        ev->ignore[ev->n_ignore++] = pattern;
    }
    return true;
}
