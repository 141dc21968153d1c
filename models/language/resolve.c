/* Checks that need no model: finds the function of each call and checks its arguments, gives
 * each name its slot, and collects the keys that the descriptor mentions. Covers branches that
 * no model takes. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/nearest.h"
#include "language.h"

const char *const llm_arch_predefined[SLOT_FIRST_FREE] = {"token", "pos", "n_ctx", "n_vocab",
                                                          "arch",  "pi",  "inf"};

const char *const llm_arch_output_names[OUT_COUNT] = {"logits", "embedding", "score",
                                                      "guess",  "rows",      "alignment"};

/* --- calls ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int min, max;
    bool dim;
} conversions[CONVERSION_COUNT] = {
#define CONVERSION(name, min, max, dim, what) {#name, min, max, dim},
#include "conversions.def"
};

/* Resolves a call in a convert section, if it is one of `conversions` (*found). False: reported. */
static bool resolve_conversion(arch_parser *p, arch_expr *e, bool *found) {
    char most[32] = "";
    for (int k = 0; k < CONVERSION_COUNT; k++) {
        if (strcmp(e->name, conversions[k].name) != 0)
            continue;
        *found = true;
        e->callee = CALL_BUILTIN;
        e->builtin = FN_BUILTIN_COUNT + k;
        int n = 0;
        while (n < e->n_arg && !e->arg[n].name)
            n++;
        const bool named = n < e->n_arg,
                   dim = n + 1 == e->n_arg && strcmp(e->arg[n].name, "dim") == 0;
        if (named && !(dim && conversions[k].dim))
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[n].place,
                                          "%s in a conversion has no argument '%s'", e->name,
                                          e->arg[n].name);
        const bool of_three = conversions[k].max == 3 && conversions[k].min == 1;
        if (of_three)
            snprintf(most, sizeof most, " or 3");
        else if (conversions[k].max > conversions[k].min)
            snprintf(most, sizeof most, " to %d", conversions[k].max);
        if (n < conversions[k].min || n > conversions[k].max || (of_three && n == 2))
            return llm_arch_parse_fail_at(
                p, GGL_FORMAT, e->mark, "%s in a conversion needs %d%s argument%s, not %d", e->name,
                conversions[k].min, most, conversions[k].min == 1 && !most[0] ? "" : "s", n);
        return true;
    }
    return true;
}

/* Reports a call of an unknown function, with the function that may be meant. */
static bool unknown_function(arch_parser *p, const arch_expr *e) {
    char sig[420] = "";
    if (p->in_fn && strcmp(p->in_fn, e->name) == 0)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark,
                                      "'%s' calls itself: there is no recursion", e->name);
    const char *meant = llm_arch_meant_function(p->arch, p->text, e->name, sig, sizeof sig);
    if (meant)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark, "unknown function '%s'; %s", e->name,
                                      meant);
    ggl_nearest near = ggl_nearest_to(e->name);
    for (const arch_fn *f = p->arch->fn; f; f = f->next)
        ggl_nearest_try(&near, f->name, SIZE_MAX);
    for (const arch_fn *f = p->arch->prelude_fn; f; f = f->next)
        ggl_nearest_try(&near, f->name, SIZE_MAX);
    const char *name;
    for (int k = 0; (name = llm_arch_primitive_name(k)); k++)
        ggl_nearest_try(&near, name, SIZE_MAX);
    if (!near.best)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark,
                                      "unknown function '%s': there is none of that name above",
                                      e->name);
    llm_arch_signature(p->arch, p->text, near.best, sig, sizeof sig);
    return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark, "unknown function '%s'; did you mean %s?",
                                  e->name, sig);
}

/* Checks that each argument has a parameter, and each parameter an argument or a default. */
static bool check_fn_args(arch_parser *p, const arch_expr *e) {
    const arch_fn *fn = e->fn;
    bool given[ARCH_MAX_ARGS] = {false};
    char sig[256];
    llm_arch_fn_signature(fn, sig, sizeof sig);
    for (int k = 0; k < e->n_arg; k++) {
        int i = k;
        if (e->arg[k].name) {
            ggl_nearest near = ggl_nearest_to(e->arg[k].name);
            for (i = 0; i < fn->n_param && strcmp(fn->param[i].name, e->arg[k].name) != 0; i++)
                ggl_nearest_try(&near, fn->param[i].name, SIZE_MAX);
            if (i == fn->n_param)
                return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].place,
                                              "%s has no argument '%s'%s%s%s", sig, e->arg[k].name,
                                              near.best ? "; did you mean '" : "",
                                              near.best ? near.best : "", near.best ? "'?" : "");
        }
        if (i >= fn->n_param)
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].value->place,
                                          "too many arguments for %s", sig);
        if (given[i])
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].place, "argument '%s' twice",
                                          e->arg[k].name);
        given[i] = true;
    }
    for (int i = 0; i < fn->n_param; i++)
        if (!given[i] && !fn->param[i].fallback)
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark, "argument '%s' of %s is missing",
                                          fn->param[i].name, sig);
    return true;
}

/* The same check for an operator or builtin. */
static bool check_sig_args(arch_parser *p, const arch_expr *e, const arch_sig *s) {
    bool given[ARCH_MAX_SIG] = {false};
    char text[256];
    llm_arch_sig_text(s, text, sizeof text);
    int at = 0; /* the parameter of the next positional argument */
    for (int k = 0; k < e->n_arg; k++) {
        int i = at;
        if (e->arg[k].name) {
            for (i = 0; i < s->n_param &&
                        (strcmp(s->param[i].name, e->arg[k].name) != 0 || s->param[i].variadic);
                 i++)
                ;
            if (i == s->n_param)
                return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].place,
                                              "%s has no argument '%s'", text, e->arg[k].name);
            if (given[i])
                return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].place, "argument '%s' twice",
                                              e->arg[k].name);
        } else if (i >= s->n_param) {
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->arg[k].value->place,
                                          "too many arguments for %s", text);
        } else {
            at += !s->param[i].variadic;
        }
        given[i] = true;
    }
    for (int i = 0; i < s->n_param; i++)
        if (!given[i] && !s->param[i].optional)
            return llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark, "argument '%s' of %s is missing",
                                          s->param[i].name, text);
    return true;
}

bool llm_arch_resolve_call(arch_parser *p, arch_expr *e) {
    bool found = false;
    if (p->in_convert && (!resolve_conversion(p, e, &found) || found))
        return found && p->status == GGL_OK;
    int builtin = llm_arch_find_builtin(e->name);
    ggl_op op = ggl_op_find(e->name);
    if (builtin < FN_BUILTIN_COUNT) {
        arch_sig s = llm_arch_sig_of_builtin(builtin);
        e->callee = CALL_BUILTIN;
        e->builtin = builtin;
        return check_sig_args(p, e, &s);
    }
    if (op < GGL_OP_COUNT && ggl_op_get(op).callable) {
        arch_sig s = llm_arch_sig_of_op(op);
        e->callee = CALL_OP;
        e->op = op;
        p->saw_state |= op == GGL_OP_STATE;
        return check_sig_args(p, e, &s);
    }
    e->callee = CALL_FN;
    e->fn = llm_arch_find_fn(p->arch, p->text, e->name);
    return e->fn ? check_fn_args(p, e) : unknown_function(p, e);
}

/* --- names ------------------------------------------------------------------------------------ */

typedef struct names {
    arch_parser *p;
    arch_fn *fn; /* NULL: top level */
    const char **local;
    size_t cap_local;
} names;

static int find_name(const char *const *list, int n, const char *name) {
    int k = 0;
    while (k < n && strcmp(list[k], name) != 0)
        k++;
    return k < n ? k : -1;
}

/* Returns the index of a name in a list, to which it is added if new. 0 after an error. */
static int add_name(arch_parser *p, const char ***list, size_t *cap, int *n, const char *name) {
    int k = find_name(*list, *n, name);
    if (k >= 0)
        return k;
    if (*n == ARCH_MAX_NAMES) {
        llm_arch_parse_fail_at(p, GGL_LIMIT, (arch_place){p->text, 0, 1},
                               "more than %d names (at '%s')", ARCH_MAX_NAMES, name);
        return 0;
    }
    if (!ggl_grow(list, cap, (size_t)*n + 1, sizeof **list)) {
        if (p->status == GGL_OK)
            p->status = ggl_fail(p->err, GGL_NOMEM, "%s: out of memory", p->text->name);
        return 0;
    }
    (*list)[*n] = name;
    return (*n)++;
}

/* Gives each name that a statement assigns to a slot. */
static void bind_targets(names *n, arch_stmt *s) {
    llm_arch *a = n->p->arch;
    for (; s; s = s->next) {
        for (int k = 0; k < s->n_target; k++) {
            arch_target *t = &s->target[k];
            t->slot = n->fn ? add_name(n->p, &n->local, &n->cap_local, &n->fn->n_local, t->name)
                            : add_name(n->p, &a->global, &a->cap_global, &a->n_global, t->name);
        }
        for (int k = 0; k < s->n_arm; k++)
            bind_targets(n, s->arm[k].body);
    }
}

static bool unknown_name(names *n, const arch_expr *e) {
    const llm_arch *a = n->p->arch;
    ggl_nearest near = ggl_nearest_to(e->name);
    for (int k = 0; n->fn && k < n->fn->n_local; k++)
        ggl_nearest_try(&near, n->fn->local[k], SIZE_MAX);
    for (int k = 0; k < (n->p->text->prelude ? SLOT_FIRST_FREE : a->n_global); k++)
        ggl_nearest_try(&near, a->global[k], SIZE_MAX);
    const arch_fn *fn = llm_arch_find_fn(a, n->p->text, e->name);
    if (fn)
        return llm_arch_parse_fail_at(n->p, GGL_FORMAT, e->mark,
                                      "'%s' is a function: call it with '('", e->name);
    if (llm_arch_meant_name(e->name))
        near.best = llm_arch_meant_name(e->name);
    return llm_arch_parse_fail_at(n->p, GGL_FORMAT, e->mark, "unknown name '%s'%s%s%s", e->name,
                                  near.best ? "; did you mean '" : "", near.best ? near.best : "",
                                  near.best ? "'?" : "");
}

static void resolve_name(void *ctx, arch_expr *e) {
    names *n = ctx;
    const llm_arch *a = n->p->arch;
    bool is_config = n->p->in_convert && e->kind == EX_NAME &&
                     (strcmp(e->name, "config") == 0 || strcmp(e->name, "rope") == 0 ||
                      strcmp(e->name, "generation") == 0 || strcmp(e->name, "processor") == 0 ||
                      strcmp(e->name, "target") == 0);
    if (e->kind != EX_NAME || n->p->status != GGL_OK || is_config)
        return;
    e->local = n->fn ? find_name(n->fn->local, n->fn->n_local, e->name) : -1;
    e->global = find_name(a->global, n->p->text->prelude ? SLOT_FIRST_FREE : a->n_global, e->name);
    /* `e` is the expert's index in list(..) and stack(..) */
    const bool counts = n->p->in_convert && strcmp(e->name, "e") == 0;
    if (e->local < 0 && e->global < 0 && !counts)
        unknown_name(n, e);
}

/* Reports a state(..) that is not the whole right side of `s = state(..)` in a function. */
static void refuse_state(void *ctx, arch_expr *e) {
    names *n = ctx;
    if (e->kind == EX_CALL && e->callee == CALL_OP && e->op == GGL_OP_STATE)
        llm_arch_parse_fail_at(
            n->p, GGL_FORMAT, e->mark,
            n->fn ? "give a state a name first: s = state(..)"
                  : "a state is allowed only in a def or op, whose body runs token after token");
}

static void check_states(names *n, arch_stmt *s) {
    for (; s; s = s->next) {
        for (int k = 0; k < s->n_expr; k++) {
            bool bound =
                n->fn && s->kind == ST_ASSIGN && s->n_target == 1 && s->expr[k]->kind == EX_CALL;
            for (int i = 0; bound && i < s->expr[k]->n_arg; i++)
                llm_arch_walk_expr(s->expr[k]->arg[i].value, refuse_state, n);
            if (!bound)
                llm_arch_walk_expr(s->expr[k], refuse_state, n);
        }
        llm_arch_walk_expr(s->other, refuse_state, n);
        for (int k = 0; k < s->n_arm; k++) {
            llm_arch_walk_expr(s->arm[k].cond, refuse_state, n);
            check_states(n, s->arm[k].body);
        }
    }
}

static bool resolve_fn(arch_parser *p, arch_fn *fn) {
    names n = {.p = p, .fn = fn};
    for (int k = 0; k < fn->n_param; k++)
        add_name(p, &n.local, &n.cap_local, &fn->n_local, fn->param[k].name);
    bind_targets(&n, fn->body);
    fn->local = llm_arch_parse_alloc(p, (size_t)fn->n_local, sizeof *fn->local);
    if (fn->local && fn->n_local > 0)
        memcpy(fn->local, n.local, (size_t)fn->n_local * sizeof *fn->local);
    ggl_free(n.local);
    if (!fn->local)
        return false;
    names outside = {.p = p}; /* a default sees only top-level names */
    for (int k = 0; k < fn->n_param; k++) {
        llm_arch_walk_expr(fn->param[k].fallback, resolve_name, &outside);
        llm_arch_walk_expr(fn->param[k].fallback, refuse_state, &outside);
    }
    llm_arch_walk_stmts(fn->body, resolve_name, &n);
    check_states(&n, fn->body);
    return p->status == GGL_OK;
}

/* Counts a step of work that grows faster than the text. False: too many, reported. */
static bool work(arch_parser *p, arch_place place) {
    if (++p->work > ARCH_MAX_STEPS)
        llm_arch_parse_fail_at(p, GGL_LIMIT, place,
                               "the text takes too long to read: too many names and weights");
    return p->status == GGL_OK;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Adds a mention of a key, or of a pattern in an `ignore`. NULL: reported. */
static arch_known_key *add_key(arch_parser *p, const arch_expr *e, bool ignored) {
    const bool pattern = e->kind == EX_STRING;
    const char *name = e->name + pattern; /* without its dot */
    arch_known_key **list = pattern ? &p->arch->key_pattern : &p->arch->key, *k = *list;
    int n = 0;
    for (; k && (k->whole != e->whole || strcmp(k->name, name) != 0); k = k->next)
        n++;
    if (n >= ARCH_MAX_NAMES)
        llm_arch_parse_fail_at(p, GGL_LIMIT, e->place, "more than %d keys", ARCH_MAX_NAMES);
    if (!k && p->status == GGL_OK) {
        if (!(k = llm_arch_parse_alloc(p, 1, sizeof *k)))
            return NULL;
        *k = (arch_known_key){
            .name = name, .place = e->place, .whole = e->whole, .required = true, .next = *list};
        *list = k;
    }
    if (!k)
        return NULL;
    k->required = k->required && !e->lazy && !ignored;
    k->ignored |= ignored;
    k->own |= !e->place.text->prelude;
    /* visit_key counted all mentions; this takes back those by `ignore` */
    k->n_reads += ignored ? -1 : 1;
    return k;
}

/* Marks the key left of '??' or in has(..) as one that may be absent: e itself, the list that it
 * indexes, both arms of an `if`, or the key assigned to the name e. */
static void mark_lazy(arch_parser *p, arch_expr *e) {
    if (!e)
        return;
    if (e->kind == EX_KEY)
        e->lazy = true;
    if (e->kind == EX_INDEX || e->kind == EX_IF)
        mark_lazy(p, e->a);
    if (e->kind == EX_IF)
        mark_lazy(p, e->b);
    if (e->kind != EX_NAME || e->global < 0)
        return;
    /* n = .key, and later has(n) */
    for (arch_stmt *s = p->arch->body; s && work(p, e->place); s = s->next)
        if (s->kind == ST_ASSIGN && s->n_target == 1 && s->target[0].slot == e->global &&
            s->expr[0]->kind == EX_KEY)
            s->expr[0]->lazy = true;
}

static void visit_lazy(void *ctx, arch_expr *e) {
    if (e->kind == EX_OR_ELSE || e->kind == EX_HAS)
        mark_lazy(ctx, e->a);
}

/* Marks keys in the condition of an `ignore` as ones that may be absent. The condition is
 * evaluated only if the ignored key is present. */
static void visit_condition(void *ctx, arch_expr *e) {
    (void)ctx;
    if (e->kind == EX_KEY)
        e->lazy = true;
}

static void mark_conditions(arch_stmt *s) {
    for (; s; s = s->next) {
        if (s->kind == ST_IGNORE)
            llm_arch_walk_expr(s->other, visit_condition, NULL);
        for (int k = 0; k < s->n_arm; k++)
            mark_conditions(s->arm[k].body);
    }
}

static void visit_used(void *ctx, arch_expr *e) {
    (void)ctx;
    if (e->kind == EX_CALL && e->callee == CALL_FN)
        ((arch_fn *)e->fn)->used = true; /* the parser may still change the tree */
}

static void visit_key(void *ctx, arch_expr *e) {
    if (e->kind == EX_KEY)
        add_key(ctx, e, false);
}

/* Takes back the count of a key in the condition of an `ignore`, which does not compute with it. */
static void visit_not_read(void *ctx, arch_expr *e) {
    arch_parser *p = ctx;
    for (arch_known_key *k = p->arch->key; e->kind == EX_KEY && k && work(p, e->place); k = k->next)
        if (k->whole == e->whole && strcmp(k->name, e->name) == 0) {
            k->n_reads--;
            return;
        }
}

/* Marks the keys that `ignore` mentions. top: these are top-level statements. */
static void add_ignored(arch_parser *p, const arch_stmt *s, bool top) {
    for (; s; s = s->next) {
        if (s->kind == ST_IGNORE)
            llm_arch_walk_expr(s->other, visit_not_read, p);
        for (int k = 0; s->kind == ST_IGNORE && k < s->n_expr; k++)
            if (s->expr[k]->kind == EX_KEY || s->expr[k]->name[0] == '.') {
                arch_known_key *key = add_key(p, s->expr[k], true);
                if (key && s->other) {
                    key->condition = s;
                    key->in_branch = !top;
                }
            }
        for (int k = 0; k < s->n_arm; k++)
            add_ignored(p, s->arm[k].body, false);
    }
}

/* Collects the keys of the top-level statements and of all functions they call, directly or not.
 * A function is declared above its callers, and the prelude comes first, so one pass from the
 * last function to the first finds them. */
static void collect_keys(arch_parser *p) {
    llm_arch *a = p->arch;
    const arch_fn *list[2] = {a->fn, a->prelude_fn};
    llm_arch_walk_stmts(a->body, visit_used, p);
    for (int k = 0; k < 2; k++)
        for (const arch_fn *f = list[k]; f; f = f->next) {
            if (f->used)
                llm_arch_walk_stmts(f->body, visit_used, p);
            for (int i = 0; f->used && i < f->n_param; i++)
                llm_arch_walk_expr(f->param[i].fallback, visit_used, p);
        }
    mark_conditions(a->body);
    llm_arch_walk_stmts(a->body, visit_lazy, p);
    for (int k = 0; k < 2; k++)
        for (const arch_fn *f = list[k]; f; f = f->next) {
            mark_conditions(f->body);
            llm_arch_walk_stmts(f->body, visit_lazy, p);
        }
    llm_arch_walk_stmts(a->body, visit_key, p);
    for (int k = 0; k < 2; k++)
        for (const arch_fn *f = list[k]; f; f = f->next)
            if (f->used)
                llm_arch_walk_stmts(f->body, visit_key, p);
    add_ignored(p, a->body, true);
    for (int k = 0; k < 2; k++)
        for (const arch_fn *f = list[k]; f; f = f->next)
            if (f->used)
                add_ignored(p, f->body, false);
}

/* --- the text --------------------------------------------------------------------------------- */

/* True if a `weight` among these statements binds the name. */
static bool find_weight_stmt(arch_parser *p, const arch_stmt *s, const char *name) {
    for (; s && work(p, s->place); s = s->next) {
        if (s->kind == ST_WEIGHT && strcmp(s->target[0].name, name) == 0)
            return true;
        for (int k = 0; k < s->n_arm; k++)
            if (find_weight_stmt(p, s->arm[k].body, name))
                return true;
    }
    return false;
}

/* Returns the name of the weight that the line makes, or compares with; NULL: it does neither. */
static const char *named_weight(const arch_mapping *m) {
    return m->kind == MAP_WEIGHT ? m->name : m->kind == MAP_COPY ? m->other : NULL;
}

static bool is_declared(arch_parser *p, const arch_mapping *m) {
    const char *name = named_weight(m);
    bool declared = !name || find_weight_stmt(p, p->arch->body, name);
    for (const arch_fn *f = p->arch->fn; f && !declared; f = f->next)
        declared = find_weight_stmt(p, f->body, name);
    for (const arch_fn *f = p->arch->prelude_fn; f && !declared; f = f->next)
        declared = f->used && find_weight_stmt(p, f->body, name);
    return declared;
}

/* True if a stage or a `prefix` of the descriptor has the prefix of the line's weight. */
static bool has_prefix(arch_parser *p, const arch_mapping *m) {
    const arch_stmt *s = p->arch->body;
    while (s && work(p, m->place) &&
           ((s->kind != ST_STAGE && s->kind != ST_PREFIX) || !s->string ||
            strcmp(s->string, m->other) != 0))
        s = s->next;
    return s != NULL;
}

static bool same_string(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Returns the first line of a section that maps the same key or weight, or names the same folder, as m; m itself if it is
 * the first. */
static const arch_mapping *first_of(arch_parser *p, const arch_convert *c, const arch_mapping *m) {
    const arch_mapping *x = c->map;
    while (work(p, m->place) && x != m &&
           (x->kind != m->kind || x->bias != m->bias || x->whole != m->whole ||
            strcmp(x->name, m->name) != 0 || !same_string(x->other, m->other)))
        x = x->next;
    return x;
}

/* Reports a source tensor in a function that cannot convert it: log(".."). */
static void refuse_source(void *ctx, arch_expr *e) {
    arch_parser *p = ctx;
    const bool conversion =
        e->kind == EX_CALL &&
        ((e->callee == CALL_BUILTIN && e->builtin >= FN_BUILTIN_COUNT) ||
         (e->callee == CALL_OP && (e->op == GGL_OP_MAX || e->op == GGL_OP_MIN)));
    for (int k = 0; e->kind == EX_CALL && !conversion && k < e->n_arg; k++)
        if (e->arg[k].value->kind == EX_STRING)
            llm_arch_parse_fail_at(p, GGL_FORMAT, e->mark,
                                   "%s(..) does not accept a source tensor: in a conversion, only "
#define TENSOR(name) #name ", "
#define VALUE(name)
#define CONVERSION(name, min, max, dim, what) what(name)
#include "conversions.def"
                                   "and arithmetic with numbers do",
                                   e->name);
}

/* True for the layer loop's counter and for `e`. */
static bool is_turn(const llm_arch *a, const char *name) {
    bool turn = strcmp(name, "e") == 0;
    for (const arch_stmt *s = a->body; s && !turn; s = s->next)
        turn = s->kind == ST_LAYER && strcmp(s->target[0].name, name) == 0;
    return turn;
}

static void check_ignored_name(arch_parser *p, const arch_mapping *m, const char *name, bool sum) {
    const llm_arch *a = p->arch;
    if (sum && is_turn(a, name))
        llm_arch_parse_fail_at(
            p, GGL_FORMAT, m->place,
            "{%s} stands for the number of any layer or expert, so nothing can be added to it",
            name);
    else if (strcmp(name, "e") != 0 && strspn(name, "0123456789") != strlen(name) &&
             find_name(a->global, a->n_global, name) < 0)
        llm_arch_parse_fail_at(p, GGL_FORMAT, m->place,
                               "'{%s}' is not a name of this descriptor: use one of its numbers, "
                               "the layers' index, or {e} for experts; '*' matches anything",
                               name);
}

/* Checks the names in braces of an `ignore` in a convert section, e.g. "blk.{n}.*": each is a
 * name of the descriptor, `e` (an expert's index), or a term of a sum of such names and numbers. */
static void check_ignored(arch_parser *p, const arch_mapping *m) {
    char name[ARCH_MAX_NAME + 1];
    for (const char *s = strchr(m->name, '{'), *end; s && (end = strchr(s, '}'));
         s = strchr(end, '{')) {
        const size_t whole = (size_t)(end - s - 1);
        ggl_str term;
        for (s++; work(p, m->place) && llm_arch_next_term(&s, end, &term); s++) {
            snprintf(name, sizeof name, "%.*s",
                     (int)(term.n < ARCH_MAX_NAME ? term.n : ARCH_MAX_NAME), term.s);
            check_ignored_name(p, m, name, term.n != whole);
        }
    }
}

/* Reports a class that has two convert sections. */
static void check_classes(arch_parser *p, const arch_convert *c) {
    int line, col;
    for (const arch_convert *x = c; x; x = x->next)
        for (int i = 0; i < c->n_name; i++)
            for (int k = 0; k < (x == c ? i : x->n_name); k++) {
                if (!work(p, c->place) || strcmp(c->name[i], x->name[k]) != 0)
                    continue;
                llm_arch_line_col(x->place, &line, &col);
                llm_arch_parse_fail_at(p, GGL_FORMAT, c->place,
                                       "'%s' already has a convert section, in line %d", c->name[i],
                                       line);
            }
}

static bool resolve_convert(arch_parser *p) {
    names n = {.p = p};
    p->in_convert = true;
    for (arch_convert *c = p->arch->convert; c && p->status == GGL_OK; c = c->next) {
        check_classes(p, c);
        llm_arch_walk_expr(c->cond, resolve_name, &n);
        for (arch_mapping *m = c->map; m && p->status == GGL_OK; m = m->next) {
            if (m->kind == MAP_WEIGHT && m->other && !has_prefix(p, m))
                llm_arch_parse_fail_at(p, GGL_FORMAT, m->place,
                                       "'%s%s': no stage and no 'prefix' of the descriptor has "
                                       "\"%s\", and after a weight's name only '.bias' may follow",
                                       m->other, m->name, m->other);
            else if (!is_declared(p, m))
                llm_arch_parse_fail_at(p, GGL_FORMAT, m->place,
                                       "the descriptor declares no weight '%s'", named_weight(m));
            else if ((m->kind <= MAP_ARCH || m->kind == MAP_FOLDER) && first_of(p, c, m) != m)
                llm_arch_parse_fail_at(p, GGL_FORMAT, m->place, "'%s' has two lines", m->name);
            else if (m->kind >= MAP_IGNORE && m->name)
                check_ignored(p, m);
            else if (m->kind == MAP_WEIGHT || m->kind == MAP_TENSOR)
                llm_arch_walk_expr(m->expr, refuse_source, p);
            llm_arch_walk_expr(m->expr, resolve_name, &n);
        }
    }
    p->in_convert = false;
    return p->status == GGL_OK;
}

/* True if `full`, from a `from` string, names this weight: "blk.{l}.attn_qkv.weight" for
 * attn_qkv. */
static bool is_name_of(const char *full, const char *name) {
    const size_t n = strlen(name);
    for (const char *s = full; s; s = strchr(s, '.')) {
        s += *s == '.';
        if (strncmp(s, name, n) == 0 && (s[n] == '.' || s[n] == 0))
            return true;
    }
    return false;
}

static bool declares(arch_parser *p, const arch_stmt *s, const char *name) {
    for (; s && work(p, s->place); s = s->next) {
        p->work += s->string ? (int64_t)strlen(s->string) / 8 : 0;
        if (s->kind == ST_WEIGHT &&
            (s->string ? is_name_of(s->string, name) || is_name_of(s->second, name)
                       : strcmp(s->target[0].name, name) == 0))
            return true;
        for (int k = 0; k < s->n_arm; k++)
            if (declares(p, s->arm[k].body, name))
                return true;
    }
    return false;
}

static bool declares_anywhere(arch_parser *p, const char *name) {
    bool yes = declares(p, p->arch->body, name);
    for (const arch_fn *f = p->arch->fn; f && !yes; f = f->next)
        yes = declares(p, f->body, name);
    for (const arch_fn *f = p->arch->prelude_fn; f && !yes; f = f->next)
        yes = f->used && declares(p, f->body, name);
    return yes;
}

/* Checks that the parts in the descriptor's own lines are declared. The prelude's lines apply
 * only to descriptors that declare such parts and not the whole tensor. */
static bool resolve_fused(arch_parser *p) {
    for (arch_fused *f = p->arch->fused; f && p->status == GGL_OK; f = f->next) {
        f->own = f->place.text->prelude && declares_anywhere(p, f->whole);
        if (f->place.text->prelude)
            continue;
        for (int k = 0; k < f->n_part; k++)
            if (!declares_anywhere(p, f->part[k]))
                llm_arch_parse_fail_at(p, GGL_FORMAT, f->part_place[k],
                                       "the descriptor declares no weight '%s'", f->part[k]);
    }
    return p->status == GGL_OK;
}

static void visit_token(void *ctx, arch_expr *e) {
    llm_arch *a = ctx;
    a->has_tokens |= e->kind == EX_NAME && e->local < 0 && e->global == SLOT_TOKEN;
}

/* Sets a->has_tokens if the statement, or one in it that is not in a stage, reads `token`. */
static void find_tokens(llm_arch *a, arch_stmt *s) {
    if (s->kind == ST_STAGE)
        return;
    for (int k = 0; k < s->n_expr; k++)
        llm_arch_walk_expr(s->expr[k], visit_token, a);
    for (int k = 0; k < s->n_arm; k++)
        for (arch_stmt *x = s->arm[k].body; x; x = x->next)
            find_tokens(a, x);
}

/* Fails at the top-level name that is nearest to that of an output. False: none is near to one. */
static bool fail_near_output(arch_parser *p) {
    const arch_target *at = NULL;
    const char *output = NULL;
    size_t distance = SIZE_MAX;
    for (const arch_stmt *s = p->arch->body; s; s = s->next)
        for (int k = 0; s->kind == ST_ASSIGN && k < s->n_target; k++) {
            ggl_nearest near = ggl_nearest_to(s->target[k].name);
            for (int o = 0; o < OUT_COUNT; o++)
                if (p->arch->language >= 2 || o == OUT_LOGITS)
                    ggl_nearest_try(&near, llm_arch_output_names[o], SIZE_MAX);
            if (near.best && near.distance < distance) {
                at = &s->target[k];
                output = near.best;
                distance = near.distance;
            }
        }
    if (at)
        llm_arch_parse_fail_at(p, GGL_FORMAT, at->place,
                               "the descriptor has no output; did you mean '%s'?", output);
    return at != NULL;
}

bool llm_arch_resolve_text(arch_parser *p) {
    llm_arch *a = p->arch;
    names n = {.p = p};
    for (int k = 0; k < SLOT_FIRST_FREE; k++)
        add_name(p, &a->global, &a->cap_global, &a->n_global, llm_arch_predefined[k]);
    bind_targets(&n, a->body);
    for (arch_fn *f = p->text->prelude ? a->prelude_fn : a->fn; f; f = f->next)
        if (!resolve_fn(p, f))
            return false;
    llm_arch_walk_stmts(a->body, resolve_name, &n);
    /* the prelude has only functions, known_keys.arch only rows */
    if (p->text->prelude)
        return p->status == GGL_OK;
    check_states(&n, a->body);
    for (arch_stmt *s = a->body; s; s = s->next)
        find_tokens(a, s);
    bool any = false;
    for (int k = 0; k < OUT_COUNT; k++) {
        a->output[k] = a->language < 2 && k != OUT_LOGITS
                           ? -1
                           : find_name(a->global, a->n_global, llm_arch_output_names[k]);
        any |= a->output[k] >= 0;
    }
    a->guess_token =
        a->output[OUT_GUESS] < 0 ? -1 : find_name(a->global, a->n_global, "guess_token");
    a->guess_chance =
        a->output[OUT_GUESS] < 0 ? -1 : find_name(a->global, a->n_global, "guess_chance");
    if (p->status == GGL_OK && !any && !fail_near_output(p))
        llm_arch_parse_fail(
            p, "the descriptor has no output: its last statement must be logits = .. (scores for "
               "the next token), embedding = .. (a vector), score = .., or rows = .. (of a stage "
               "over rows)");
    if (p->status == GGL_OK)
        collect_keys(p);
    if (p->status != GGL_OK || !resolve_fused(p) || !resolve_convert(p))
        return false;
    llm_arch_find_unused(a);
    return true;
}
