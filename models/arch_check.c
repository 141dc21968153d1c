/* Nothing unused: what was declared and computed reaches the logits, what the source has is known.
 *
 * The walk goes from the logits back through the nodes: into the bodies of calls from their
 * results, from a parameter to the call's source, from a state to what is kept for it, from the arm
 * taken of a choice to the other. What is left is not of use; of such a chain its end is reported,
 * which nothing reads, for there the mistake is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch_impl.h"

typedef struct walk {
    arch_eval *ev;
    uint8_t *mark;      /* by id */
    ggl_tensor **owner; /* of a parameter: the source it stands for; of a state: the KEEP */
    ggl_tensor **stack;
    size_t *edge,
        *next; /* of each id the first of ev->read (+ 1), and for each of those the next */
    size_t n, n_ids;
} walk;

static void visit(walk *w, ggl_tensor *t) {
    if (t && !w->mark[t->id]) {
        w->mark[t->id] = 1;
        w->stack[w->n++] = t; /* each node once: the stack cannot overflow */
    }
}

static void spread(walk *w) {
    while (w->n > 0) {
        ggl_tensor *t = w->stack[--w->n];
        visit(w, w->owner[t->id]);
        for (size_t i = w->edge[t->id]; i > 0; i = w->next[i - 1])
            visit(w, w->ev->read[i - 1].to);
        if (t->op == GGL_OP_CALL) { /* its sources only as far as the body reads them */
            visit(w, t->body->result);
            continue;
        }
        for (int k = 0; k < t->n_src; k++)
            visit(w, t->src[k]);
    }
}

static bool walk_init(walk *w, arch_eval *ev) {
    w->ev = ev;
    w->n_ids = (size_t)ggl_graph_n_ids(ev->g);
    w->mark = ggl_calloc(w->n_ids, sizeof *w->mark);
    w->owner = ggl_calloc(w->n_ids, sizeof *w->owner);
    w->stack = ggl_calloc(w->n_ids, sizeof *w->stack);
    w->edge = ggl_calloc(w->n_ids, sizeof *w->edge);
    w->next = ggl_calloc(ev->n_read, sizeof *w->next);
    if (!w->mark || !w->owner || !w->stack || !w->edge || !w->next)
        return arch_nomem(ev), false;
    for (size_t i = 0; i < ev->n_read; i++)
        if (ev->read[i].from) {
            w->next[i] = w->edge[ev->read[i].from->id];
            w->edge[ev->read[i].from->id] = i + 1;
        }
    for (size_t i = 0; i < ev->n_call; i++)
        for (int k = 0; k < ev->call[i]->n_src; k++)
            w->owner[ev->call[i]->body->param[k]->id] = ev->call[i]->src[k];
    for (size_t i = 0; i < ev->n_keep; i++)
        w->owner[ev->keep[i]->src[0]->id] = ev->keep[i];
    return true;
}

static void walk_fini(walk *w) {
    ggl_free(w->mark);
    ggl_free(w->owner);
    ggl_free(w->stack);
    ggl_free(w->edge);
    ggl_free(w->next);
}

static arch_made *made_at(arch_eval *ev, size_t id) {
    return id < ev->cap_made && ev->made[id].t ? &ev->made[id] : NULL;
}

/* Of several results of one call one suffices. From the last to the first: an earlier one may be
 * behind a later one. */
static void spread_siblings(walk *w) {
    arch_eval *ev = w->ev;
    uint8_t *used = ggl_calloc((size_t)ev->n_siblings + 1, 1);
    if (!used) {
        arch_nomem(ev);
        return;
    }
    for (size_t id = w->n_ids; id-- > 0;) {
        arch_made *m = made_at(ev, id);
        if (m && w->mark[id] && m->siblings)
            used[m->siblings] = 1;
    }
    for (size_t id = w->n_ids; id-- > 0;) {
        arch_made *m = made_at(ev, id);
        if (!m || !m->siblings)
            continue;
        if (w->mark[id])
            used[m->siblings] = 1;
        else if (used[m->siblings])
            visit(w, m->t);
        spread(w);
    }
    ggl_free(used);
}

/* Marks the sources of what is not of use with 2: they are not where the chain ends. */
static void mark_inner(walk *w) {
    for (size_t id = 0; id < w->n_ids; id++) {
        arch_made *m = made_at(w->ev, id);
        if (!m || w->mark[id] == 1)
            continue;
        if (m->t->op == GGL_OP_CALL && w->mark[m->t->body->result->id] != 1)
            w->mark[m->t->body->result->id] = 2;
        for (int k = 0; k < m->t->n_src; k++) {
            ggl_tensor *s = m->t->src[k];
            if (s && w->mark[s->id] != 1)
                w->mark[s->id] = 2;
            if (s && s->op == GGL_OP_CAST && s->src[0] && w->mark[s->src[0]->id] != 1)
                w->mark[s->src[0]->id] = 2; /* casts are the builder's */
        }
    }
}

/* Why values may be of no use. */
static const char *no_layers(const arch_eval *ev) {
    return ev->n_layer == 0 ? "; the model has no layers (n_layer is 0)" : "";
}

/* What is kept is reported last: mostly it is the whole call that is not of use. */
static bool report_value(walk *w, bool kept) {
    arch_eval *ev = w->ev;
    for (size_t id = 0; id < w->n_ids; id++) {
        arch_made *m = made_at(ev, id);
        if (!m || w->mark[id] || (m->t->op == GGL_OP_KEEP) != kept)
            continue;
        if (m->t->op == GGL_OP_CACHE)
            arch_error(ev, m->place, "no attend reads what is cached here");
        else if (m->target)
            arch_error(ev, m->place, "the value of '%s' does not reach the logits%s", m->target,
                       no_layers(ev));
        else
            arch_error(ev, m->place, "this value does not reach the logits%s", no_layers(ev));
        return false;
    }
    return true;
}

static bool report_weight(walk *w, uint8_t left) {
    arch_eval *ev = w->ev;
    for (size_t i = 0; i < ev->n_weight; i++) {
        const arch_weight *x = ev->weight[i];
        if (w->mark[x->t->id] != left)
            continue;
        const char *hint = x->is_bias ? "linear(x, w) adds a bias; w.bias is it" : NULL;
        ev->status = arch_fail(ev->err, GGL_FORMAT, x->place, x->chain, hint,
                               "tensor %s is declared but does not reach the logits%s", x->name,
                               no_layers(ev));
        return false;
    }
    return true;
}

bool arch_check_use(arch_eval *ev, ggl_tensor *logits) {
    walk w = {0};
    bool ok = walk_init(&w, ev);
    if (ok) {
        visit(&w, logits);
        spread(&w);
        for (size_t i = 0; i < ev->n_read; i++)
            if (!ev->read[i].from)
                visit(&w, ev->read[i].to);
        spread(&w);
        spread_siblings(&w);
        mark_inner(&w);
        ok = ev->status == GGL_OK && report_weight(&w, 0) && report_value(&w, false) &&
             report_value(&w, true) && report_weight(&w, 2);
    }
    walk_fini(&w);
    return ok;
}

/* --- what the source has ---------------------------------------------------------------------- */

void arch_note(arch_eval *ev, const char *fmt, ...) {
    char buf[512];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(buf, sizeof buf, fmt, args);
    va_end(args);
    size_t n = ev->notes ? strlen(ev->notes) : 0, m = strlen(buf);
    if (n > 16384)
        return;
    char *notes = ggl_calloc(n + m + 2, 1);
    if (!notes) {
        arch_nomem(ev);
        return;
    }
    if (n)
        memcpy(notes, ev->notes, n);
    memcpy(notes + n, buf, m);
    notes[n + m] = '\n';
    ggl_free(ev->notes);
    ev->notes = notes;
}

static bool ignored(arch_eval *ev, ggl_str name) {
    arch_place begin = {&ev->arch->text, 0, 1};
    for (size_t k = 0; k < ev->n_ignore; k++)
        if (!arch_step(ev, begin, 4) || arch_match(ev->ignore[k], name.s, name.n))
            return true;
    return false;
}

static bool starts_with(ggl_str s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.s, prefix, n) == 0;
}

static bool is_engine_key(ggl_str k) {
    static const char *const prefixes[] = {"general.", "tokenizer.", "split.", "quantize."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts_with(k, prefixes[i]))
            return true;
    return false;
}

/* Names of keys, in full or below the architecture's. */
typedef struct key_names {
    ggl_str *name;
    ggl_index index;
} key_names;

/* What the descriptor and the engine read; `whole`: in full. False: out of memory. */
static bool known_keys(arch_eval *ev, bool whole, key_names *out) {
    static const char *const engine[] = {"context_length", "vocab_size"};
    size_t n = 2, used = 0;
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        n++;
    out->name = ggl_arena_alloc(&ev->arena, n, sizeof *out->name);
    if (!out->name ||
        ggl_index_init(&out->index, n, sizeof *out->name, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return arch_nomem(ev), false;
    for (size_t i = 0; !whole && i < sizeof engine / sizeof *engine; i++)
        out->name[used++] = (ggl_str){engine[i], strlen(engine[i])};
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        if (k->whole == whole)
            out->name[used++] = (ggl_str){k->name, strlen(k->name)};
    for (size_t i = 0; i < used; i++)
        ggl_index_put(&out->index, out->name, i);
    return true;
}

static bool has_name(const key_names *names, ggl_str key, size_t skip) {
    const ggl_str rest = {key.s + skip, key.n - skip};
    return ggl_index_find(&names->index, names->name, rest) != SIZE_MAX;
}

static void value_of_key(arch_eval *ev, ggl_str name, char *buf, size_t size) {
    char key_name[300];
    llm_arch_key k;
    llm_arch_item item = {0};
    snprintf(key_name, sizeof key_name, "%.*s", (int)(name.n < 256 ? name.n : 256), name.s);
    buf[0] = 0;
    if (!ev->src->find_key(ev->src->ctx, key_name, &k))
        return;
    if (k.is_list)
        snprintf(buf, size, " (a list of %" PRIu64 ")", k.n);
    else if (ev->src->get_item(ev->src->ctx, &k, 0, &item) && k.type == LLM_ARCH_NUMBER)
        snprintf(buf, size, " = %.12g", item.number);
    else if (k.type == LLM_ARCH_BOOL)
        snprintf(buf, size, " = %s", item.flag ? "true" : "false");
    else
        snprintf(buf, size, " = \"%.*s\"", (int)(item.string.n < 64 ? item.string.n : 64),
                 item.string.s);
}

static bool check_each_key(arch_eval *ev, const key_names *whole, const key_names *below) {
    char prefix[ARCH_MAX_NAME + 8], value[128];
    ggl_str key;
    snprintf(prefix, sizeof prefix, "%s.", ev->family);
    for (size_t i = 0; ev->src->key_at && ev->src->key_at(ev->src->ctx, i, &key); i++) {
        bool own = starts_with(key, prefix);
        int n = (int)(key.n < 200 ? key.n : 200);
        if (!arch_step(ev, (arch_place){&ev->arch->text, 0, 1}, 16))
            return false;
        if ((!own && is_engine_key(key)) || has_name(whole, key, 0) ||
            (own && has_name(below, key, strlen(prefix))))
            continue;
        value_of_key(ev, key, value, sizeof value);
        if (!own && !ignored(ev, key)) {
            arch_note(ev, "%s: key %.*s%s is not read by %s", ev->src->name, n, key.s, value,
                      ev->arch->text.name);
        } else if (own) {
            arch_source_error(ev, "key %.*s%s is not known to %s: read it or ignore it", n, key.s,
                              value, ev->arch->text.name);
            return false;
        }
    }
    return ev->status == GGL_OK;
}

static bool check_keys(arch_eval *ev) {
    key_names whole = {0}, below = {0};
    bool ok = known_keys(ev, true, &whole) && known_keys(ev, false, &below) &&
              check_each_key(ev, &whole, &below);
    ggl_index_fini(&whole.index);
    ggl_index_fini(&below.index);
    return ok;
}

/* A bias whose weight is declared without one is the usual case. */
static void unread_tensor(arch_eval *ev, ggl_str name) {
    char full[300], hint[400] = "";
    size_t n = name.n < 256 ? name.n : 256;
    snprintf(full, sizeof full, "%.*s", (int)n, name.s);
    if (n > 5 && strcmp(full + n - 5, ".bias") == 0) {
        strcpy(full + n - 5, ".weight");
        const arch_weight *w = arch_find_weight(ev, full);
        int line, col;
        if (w) {
            arch_line_col(w->place, &line, &col);
            snprintf(hint, sizeof hint, "; its weight is declared in %s:%d without 'bias'",
                     w->place.text->name, line);
        }
    }
    arch_source_error(ev, "tensor %.*s is not read by %s: declare it or ignore it%s", (int)n,
                      name.s, ev->arch->text.name, hint);
}

bool arch_check_source(arch_eval *ev) {
    ggl_str name;
    char full[512];
    for (size_t i = 0; ev->src->tensor_at && ev->src->tensor_at(ev->src->ctx, i, &name); i++) {
        snprintf(full, sizeof full, "%.*s", (int)(name.n < 500 ? name.n : 500), name.s);
        if (arch_find_weight(ev, full) || ignored(ev, name))
            continue;
        unread_tensor(ev, name);
        return false;
    }
    return ev->status == GGL_OK && check_keys(ev);
}
