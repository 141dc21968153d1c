/* Finds the keys of a model's file, or the values of a folder's files, that an error depends on, so that a message about a built-in descriptor leads with the file: the
 * descriptor is tested, so the file's keys are more likely wrong. For other descriptors they end the message. */
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/show.h"

enum {
    MOST_KEYS = 6,    /* of a message; the others are counted */
    MOST_STEPS = 500, /* expressions looked at */
    FIELD = 300
};

typedef struct blame {
    arch_eval *ev;
    const arch_frame *frame;     /* whose names the expression reads; NULL: the top level's */
    char name[MOST_KEYS][FIELD]; /* of keys; of values of a folder: with the value */
    char file[FIELD];            /* of the last value of a folder */
    int n, n_steps;
    bool asks_caller;  /* a parameter was read: its value is the caller's */
    bool names_absent; /* values that the folder lacks are added, too */
    char *buf;
    size_t size, used;
} blame;

bool llm_arch_is_builtin(const llm_arch *a) {
    const char *file, *text;
    size_t n;
    return llm_arch_builtin_named(a->text.name, &file, &text, &n) && n == a->text.n &&
           memcmp(text, a->text.s, n) == 0;
}

/* True if the user gave the key another value than the file has. */
static bool is_overridden(const llm_arch_source *s, const char *name) {
    ggl_str key;
    for (size_t i = 0; s->is_changed && s->key_at && s->key_at(s->ctx, i, &key); i++)
        if (ggl_str_is(key, name))
            return s->is_changed(s->ctx, i);
    return false;
}

/* Counts what is to be appended. False: it is there already, or there are enough. */
static bool is_new(blame *b, const char *name) {
    for (int k = 0; k < b->n && k < MOST_KEYS; k++)
        if (strcmp(b->name[k], name) == 0)
            return false;
    if (b->n++ >= MOST_KEYS)
        return false;
    snprintf(b->name[b->n - 1], FIELD, "%s", name);
    return true;
}

static void append(blame *b, const char *text) {
    const size_t n = strlen(text), room = b->size - 1 - b->used;
    const size_t kept = n <= room ? n : ggl_utf8_cut(text, n, room);
    memcpy(b->buf + b->used, text, kept);
    b->buf[b->used += kept] = '\0';
}

static bool add_expr(blame *b, const arch_expr *e);

/* Appends ", llama.block_count = 4259844" if the file has the key and it is not there yet; of a conversion, the values of which it is made. whole: the name
 * has its family. False: the file lacks the key. */
static bool add_key(blame *b, const char *given, bool whole) {
    arch_eval *ev = b->ev;
    char name[96], value[200];
    llm_arch_key key = {0};
    snprintf(name, sizeof name, "%s%s%s", whole ? "" : ev->family, whole ? "" : ".", given);
    if (ev->convert) {
        const arch_frame *before = b->frame;
        b->frame = NULL;
        const bool any = add_expr(b, ev->convert->made_by(ev, name));
        b->frame = before;
        return any;
    }
    if (!ev->src->find_key(ev->src->ctx, name, &key))
        return false;
    if (!is_new(b, name))
        return true;
    append(b, b->used ? ", " : "");
    append(b, name);
    append(b, llm_arch_value_of_key(ev, (ggl_str){name, strlen(name)}, value, sizeof value));
    append(b, is_overridden(ev->src, name) ? " (overridden)" : "");
    return true;
}

/* Appends ", num_hidden_layers = 0" if a file of the folder has the value, behind the file's name if the value before is not of the same file. */
static bool add_value(blame *b, const arch_expr *e) {
    char file[FIELD], text[FIELD];
    if (!b->ev->convert || !b->ev->convert->value(b->ev, e, b->names_absent, file, text, FIELD))
        return false;
    if (!is_new(b, text))
        return true;
    append(b, b->used ? ", " : "");
    if (strcmp(b->file, file) != 0) {
        append(b, file);
        append(b, ": ");
        strcpy(b->file, file);
    }
    append(b, text);
    return true;
}

/* Returns the statement that assigns to the name at this place; NULL: there is none. */
static const arch_stmt *assigning(const arch_stmt *s, arch_place p) {
    for (const arch_stmt *found; s; s = s->next) {
        for (int k = 0; k < s->n_target; k++)
            if (s->target[k].place.text == p.text && s->target[k].place.at == p.at)
                return s;
        for (int k = 0; k < s->n_arm; k++)
            if ((found = assigning(s->arm[k].body, p)))
                return found;
    }
    return NULL;
}

/* Adds the keys of the sizes of a weight. */
static bool add_sizes(blame *b, const arch_stmt *s) {
    bool any = false;
    for (int k = 0; k < s->n_expr; k++)
        any = add_expr(b, s->expr[k]) || any;
    return any;
}

/* True if a tensor has the same value for all rows. */
static bool is_constant(const arch_eval *ev, const ggl_tensor *t) {
    return (size_t)t->id >= ev->cap_rows_of || ev->rows_of[t->id] == ROWS_NONE;
}

/* Adds the keys from which a name has its value. Of tensors, those of weights and constants are followed: the others depend on nearly
 * all keys. */
static bool add_name(blame *b, const arch_expr *e) {
    arch_eval *ev = b->ev;
    const arch_slot *s = NULL;
    if (b->frame && e->local >= 0)
        s = &b->frame->local[e->local];
    else if (e->global == SLOT_N_VOCAB)
        return add_key(b, "vocab_size", false);
    else if (e->global >= SLOT_FIRST_FREE)
        s = &ev->global[e->global];
    if (!s || !s->bound || !s->place.text)
        return false;
    const bool is_local = b->frame && e->local >= 0;
    const arch_stmt *by = assigning(is_local ? b->frame->fn->body : ev->arch->body, s->place);
    if (by && by->kind == ST_WEIGHT)
        return add_sizes(b, by);
    b->asks_caller = b->asks_caller || (is_local && !by);
    if (!by || by->kind != ST_ASSIGN || (s->v.kind == VAL_TENSOR && !is_constant(ev, s->v.t)))
        return false;
    const arch_frame *before = b->frame;
    b->frame = is_local ? before : NULL;
    const bool any = add_expr(b, by->expr[0]);
    b->frame = before;
    return any;
}

/* Adds the keys that an expression reads, itself or through names. False: the file has none of them. */
static bool add_expr(blame *b, const arch_expr *e) {
    if (!e || b->n_steps++ >= MOST_STEPS)
        return false;
    if (e->kind == EX_KEY)
        return add_key(b, e->name, e->whole);
    if (e->kind == EX_FIELD)
        return add_value(b, e);
    if (e->kind == EX_NAME)
        return add_name(b, e);
    if (e->kind == EX_OR_ELSE)
        return add_expr(b, e->a) || add_expr(b, e->b);
    bool any = add_expr(b, e->a);
    any = add_expr(b, e->b) || any;
    any = add_expr(b, e->c) || any;
    for (int k = 0; k < e->n_arg; k++)
        any = add_expr(b, e->arg[k].value) || any;
    return any;
}

typedef struct search {
    arch_place place;
    const arch_expr *found;
} search;

static void visit(void *ctx, arch_expr *e) {
    search *s = ctx;
    const bool is_it = e->place.text == s->place.text &&
                       ((e->place.at == s->place.at && e->place.n == s->place.n) ||
                        (e->mark.at == s->place.at && e->mark.n == s->place.n));
    if (!s->found && is_it)
        s->found = e;
}

/* True if p is the name of a weight in a layer of which the file has no tensor: the number of layers is wrong. */
static bool lacks_layer(const arch_eval *ev, const arch_stmt *at, arch_place p) {
    char begin[32];
    ggl_str name;
    if (ev->layer < 0 || ev->stage || at->kind != ST_WEIGHT || at->target[0].place.at != p.at ||
        !ev->src->tensor_at)
        return false;
    snprintf(begin, sizeof begin, "blk.%lld.", (long long)ev->layer);
    for (size_t i = 0; ev->src->tensor_at(ev->src->ctx, i, &name); i++)
        if (name.n > strlen(begin) && memcmp(name.s, begin, strlen(begin)) == 0)
            return false;
    return true;
}

/* Adds the keys that give the number of layers. stages: also of those of stages. */
static void add_layers(blame *b, const arch_stmt *s, bool stages) {
    for (; s; s = s->next) {
        if (s->kind == ST_LAYER)
            (void)add_expr(b, s->expr[0]);
        for (int k = 0; k < s->n_arm && stages && s->kind == ST_STAGE; k++)
            add_layers(b, s->arm[k].body, stages);
    }
}

void llm_arch_keys_of_layers(arch_eval *ev, bool stages, char *buf, size_t size) {
    blame b = {.ev = ev, .buf = buf, .size = size};
    buf[0] = '\0';
    add_layers(&b, ev->arch->body, stages);
    b.names_absent = b.n == 0; /* a default says it */
    if (b.names_absent)
        add_layers(&b, ev->arch->body, stages);
}

/* Appends the keys and the file to the message about a descriptor of the user's, in which its own line comes first. */
static void end_with_file(char *msg, size_t size, const char *file, const char *keys,
                          const char *more) {
    char text[1300];
    const size_t n = (size_t)snprintf(text, sizeof text, "\n  %s%s%s%s", file,
                                      *file ? " has " : "by ", keys, more),
                 had = strlen(msg);
    const size_t kept = ggl_utf8_cut(text, n < sizeof text ? n : sizeof text - 1, size - 1 - had);
    memcpy(msg + had, text, kept);
    msg[had + kept] = '\0';
}

/* Adds the values that the statement at p reads, and those of its callers if it is one of a function and reads what they pass. */
static void add_frames(blame *b, arch_place p) {
    arch_eval *ev = b->ev;
    const arch_frame *f = ev->frame;
    for (bool more = true; more;) {
        search s = {.place = p};
        llm_arch_walk_stmts(f ? f->fn->body : ev->arch->body, visit, &s);
        if (!f && !s.found && ev->convert)
            ev->convert->walk(ev, visit, &s);
        b->frame = f;
        const arch_stmt *weight = !s.found && ev->status == GGL_SHAPE
                                      ? assigning(f ? f->fn->body : ev->arch->body, p)
                                      : NULL;
        if (weight && weight->kind == ST_WEIGHT)
            (void)add_sizes(b, weight);
        b->asks_caller = false;
        (void)add_expr(b, s.found);
        more = f != NULL && (b->n == 0 || b->asks_caller);
        if (f) {
            p = f->call;
            f = f->up;
        }
    }
}

void llm_arch_lead_with_file(arch_eval *ev, arch_place p) {
    char buf[600] = "", name[600], more_keys[32] = "", text[sizeof name + sizeof buf + 40];
    const bool is_builtin = llm_arch_is_builtin(ev->arch),
               is_made_up = ev->src->require_key != NULL;
    if (!ev->err || !ev->global || (is_made_up && !is_builtin))
        return;
    blame b = {.ev = ev, .buf = buf, .size = sizeof buf};
    if (ev->lacks_source) { /* no value is wrong, or that which says how many layers there are */
        b.names_absent = ev->lacks_layer && ev->layers && !add_expr(&b, ev->layers->expr[0]);
        if (b.names_absent) /* a default says it */
            (void)add_expr(&b, ev->layers->expr[0]);
    } else if ((ev->ran && ev->n_layer == 0 && !ev->convert) ||
               (ev->at && !ev->frame && lacks_layer(ev, ev->at, p))) {
        add_layers(&b, ev->arch->body, false);
    } else {
        add_frames(&b, p);
        if (b.n == 0 && ev->convert && ev->status == GGL_SHAPE) { /* a default is wrong */
            b.names_absent = true;
            add_frames(&b, p);
        }
    }
    ggl_show(name, sizeof name, ev->src->name, strlen(ev->src->name));
    if (b.n > MOST_KEYS)
        snprintf(more_keys, sizeof more_keys, ", and %d more", b.n - MOST_KEYS);
    const char *file = ev->convert ? "" : name; /* values of a folder begin with their files */
    if (b.n == 0 && (!is_builtin || ev->convert))
        return;
    if (!is_builtin) {
        end_with_file(ev->err->msg, sizeof ev->err->msg, file, buf, more_keys);
        return;
    }
    snprintf(text, sizeof text, "%s%s%s%s%s", file, *file ? ": " : "", buf, more_keys,
             b.n > 0 ? ": " : "");
    char *msg = ev->err->msg;
    const size_t n = strlen(text), most = sizeof ev->err->msg - 1 - n, had = strlen(msg);
    const size_t kept = ggl_utf8_cut(msg, had, most);
    memmove(msg + n, msg, kept);
    memcpy(msg, text, n);
    msg[n + kept] = '\0';
}
