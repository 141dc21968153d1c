/* Judges each key of a source: the descriptor mentions it, the engine reads it, the table of
 * known keys (known_keys.arch) calls it harmless, or nothing reads it. */
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "rotate.h"
#include "ggl/internal/text.h"

#define FAR 4 /* names with an edit distance of FAR or more are not suggested */
/* For so many unread keys a name is looked for: no more are listed, and a hostile file may have any number. */
#define SUGGESTIONS 20

/* --- what the descriptor and the engine know -------------------------------------------------- */

/* A set of key names, either full names or names after "{arch}.". */
typedef struct key_names {
    ggl_str *name;
    const arch_known_key **of; /* NULL: read by the engine */
    ggl_index index;
} key_names;

static bool is_engine_key(ggl_str k) {
    static const char *const prefixes[] = {"general.",  "tokenizer.", "split.",
                                           "quantize.", "diffusion.", "sentence_transformers."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (ggl_str_begins_with(k, prefixes[i]))
            return true;
    return llm_arch_rotate_reads(k);
}

/* Keys below "{arch}." that the engine reads. */
static const char *const engine[] = {"context_length", "decoder_start_token_id", "pooling_type",
                                     "vocab_size"};

bool llm_arch_engine_reads(const arch_eval *ev, ggl_str key) {
    const size_t n = strlen(ev->family) + 1;
    bool is = is_engine_key(key);
    for (size_t i = 0; key.n > n && i < sizeof engine / sizeof *engine; i++)
        is = is || (ggl_str_begins_with(key, ev->family) && key.s[n - 1] == '.' &&
                    ggl_str_is((ggl_str){key.s + n, key.n - n}, engine[i]));
    return is;
}

/* Collects the names that the descriptor and the engine read: full names if `whole`, else those
 * after "{arch}.". False: out of memory, reported. */
static bool known_names(arch_eval *ev, bool whole, key_names *out) {
    size_t n = sizeof engine / sizeof *engine, used = 0;
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        n++;
    out->name = ggl_arena_alloc(&ev->arena, n, sizeof *out->name);
    out->of = ggl_arena_alloc(&ev->arena, n, sizeof *out->of);
    if (!out->name || !out->of ||
        ggl_index_init(&out->index, n, sizeof *out->name, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return llm_arch_nomem(ev), false;
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        if (k->whole == whole) {
            out->of[used] = k;
            out->name[used++] = (ggl_str){k->name, strlen(k->name)};
        }
    for (size_t i = 0; !whole && i < sizeof engine / sizeof *engine; i++)
        out->name[used++] = (ggl_str){engine[i], strlen(engine[i])};
    for (size_t i = 0; i < used; i++)
        ggl_index_put(&out->index, out->name, i);
    return true;
}

struct arch_judge {
    arch_eval *ev;
    key_names whole, below;
    char prefix[ARCH_MAX_NAME + 8]; /* "llama." */
    const arch_known_key *by;       /* the mention of the key judged last, or NULL */
    arch_eval cond;                 /* evaluates conditions of `ignore`; drops its errors */
    ggl_error err;
    size_t n_suggested; /* unread keys that were compared with the descriptor's */
};

arch_judge *llm_arch_judge_new(arch_eval *ev) {
    arch_judge *j = ggl_calloc(1, sizeof *j);
    if (!j)
        return llm_arch_nomem(ev), NULL;
    j->ev = ev;
    snprintf(j->prefix, sizeof j->prefix, "%s.", ev->family);
    if (known_names(ev, true, &j->whole) && known_names(ev, false, &j->below))
        return j;
    llm_arch_judge_free(j);
    return NULL;
}

void llm_arch_judge_free(arch_judge *j) {
    if (!j)
        return;
    ggl_index_fini(&j->whole.index);
    ggl_index_fini(&j->below.index);
    llm_arch_known_free(j->cond.known);
    llm_arch_eval_fini(&j->cond);
    ggl_free(j);
}

/* --- conditions of `ignore` ------------------------------------------------------------------- */

/* True if an expression consists of keys and literals, so that it can be evaluated before the
 * descriptor runs. */
static bool is_plain(const arch_expr *e) {
    if (!e)
        return true;
    if (e->kind == EX_NAME || e->kind == EX_CALL || e->kind == EX_PART || e->kind == EX_FIELD)
        return false;
    for (int i = 0; i < e->n_arg; i++)
        if (!is_plain(e->arg[i].value))
            return false;
    return is_plain(e->a) && is_plain(e->b) && is_plain(e->c);
}

/* Evaluates a condition. Returns false if that fails. */
static bool holds(arch_judge *j, const arch_expr *e) {
    arch_eval *c = &j->cond;
    bool yes = false;
    if (!c->arch) {
        *c = (arch_eval){.arch = j->ev->arch,
                         .src = j->ev->src,
                         .err = &j->err,
                         .family = j->ev->family,
                         .layer = -1};
        c->arena.limit = ARCH_MAX_MEMORY;
        if (!llm_arch_eval_init(c))
            return llm_arch_nomem(j->ev), false;
    }
    c->status = GGL_OK;
    c->steps = 0;
    arch_value v = llm_arch_eval_expr(c, e);
    yes = v.kind != VAL_FAIL && llm_arch_want_bool(c, e, &v, &yes) && yes;
    j->ev->steps += c->steps;
    if (c->status == GGL_NOMEM)
        llm_arch_nomem(j->ev);
    return yes && c->status == GGL_OK;
}

/* Judges a key mentioned by `ignore .key if ..`. Only a condition at top level can be evaluated
 * here; that of an `ignore` in a branch or a function is evaluated when the `ignore` runs. */
static void judge_condition(arch_judge *j, const arch_known_key *k, llm_arch_judged *out) {
    char quote[200], text[240];
    const arch_stmt *s = k->condition;
    const bool plain = !k->in_branch && is_plain(s->other);
    if (plain && holds(j, s->other))
        return;
    snprintf(text, sizeof text, "%sif %s", plain ? "ignored only " : "",
             llm_arch_quote(s->other->place, quote, sizeof quote));
    out->use = plain ? LLM_ARCH_UNREAD : LLM_ARCH_IGNORED;
    out->reason = plain && s->string ? s->string : llm_arch_strdup(j->ev, text);
}

/* --- names that may be meant ------------------------------------------------------------------ */

/* Returns the name after "{arch}." of the key that `name`, without that prefix, may be meant for: one that the descriptor reads and
 * the source lacks. NULL: none is near. */
static const char *nearest_key(const arch_judge *j, ggl_str name) {
    char wanted[ARCH_MAX_NAME + 1], full[2 * ARCH_MAX_NAME + 16];
    llm_arch_key found;
    if (name.n >= sizeof wanted)
        return NULL;
    snprintf(wanted, sizeof wanted, "%.*s", (int)name.n, name.s);
    ggl_nearest near = ggl_nearest_to(wanted);
    near.distance = near.distance < FAR ? near.distance : FAR;
    for (const arch_known_key *k = j->ev->arch->key; k; k = k->next) {
        snprintf(full, sizeof full, "%s%s", j->prefix, k->name);
        if (!k->whole && !k->ignored && !j->ev->src->find_key(j->ev->src->ctx, full, &found))
            ggl_nearest_try(&near, k->name, SIZE_MAX);
    }
    for (size_t i = 0; i < sizeof engine / sizeof *engine; i++) {
        snprintf(full, sizeof full, "%s%s", j->prefix, engine[i]);
        if (!j->ev->src->find_key(j->ev->src->ctx, full, &found))
            ggl_nearest_try(&near, engine[i], SIZE_MAX);
    }
    return near.best;
}

/* --- one key ---------------------------------------------------------------------------------- */

/* Returns the first pattern of an `ignore` that matches the name, or NULL. */
static const arch_known_key *find_pattern(arch_eval *ev, ggl_str name) {
    for (const arch_known_key *p = ev->arch->key_pattern; p; p = p->next)
        if (!llm_arch_step_patterns(ev, 1, name) || arch_match(p->name, name.s, name.n))
            return p;
    return NULL;
}

/* True if the descriptor mentions a key, a pattern of its `ignore` lines matches it, or the
 * engine reads it. Fills in out->use and out->reason. `own`: the key begins with "{arch}.". */
static bool named(arch_judge *j, ggl_str key, bool own, llm_arch_judged *out) {
    const size_t skip = own ? strlen(j->prefix) : 0;
    const ggl_str rest = {key.s + skip, key.n - skip};
    size_t i = ggl_index_find(&j->whole.index, j->whole.name, key);
    const key_names *names = &j->whole;
    if (i == SIZE_MAX && own) {
        names = &j->below;
        i = ggl_index_find(&names->index, names->name, rest);
    }
    j->by = i != SIZE_MAX ? names->of[i] : own ? find_pattern(j->ev, rest) : NULL;
    out->use = !j->by ? LLM_ARCH_ENGINE : j->by->ignored ? LLM_ARCH_IGNORED : LLM_ARCH_READ;
    if (j->by && j->by->condition)
        judge_condition(j, j->by, out);
    return j->by || i != SIZE_MAX;
}

/* Judges a key of another namespace. A key outside of "{arch}." can change what the weights mean as well as one within, so that only those of
 * the table are harmless. */
static llm_arch_judged judge_foreign(arch_eval *ev, ggl_str key) {
    const char *harmless = llm_arch_judge_foreign(ev, key);
    return (llm_arch_judged){.key = key,
                             .use = harmless ? LLM_ARCH_FOREIGN : LLM_ARCH_UNREAD,
                             .is_foreign = true,
                             .reason = harmless};
}

llm_arch_judged llm_arch_judge_key(arch_judge *j, ggl_str key) {
    arch_eval *ev = j->ev;
    llm_arch_judged out = {.key = key};
    const bool own = ggl_str_begins_with(key, j->prefix);
    const size_t skip = strlen(j->prefix);
    j->by = NULL;
    if (!llm_arch_step(ev, (arch_place){&ev->arch->text, 0, 1}, 16) || named(j, key, own, &out))
        return out;
    out.use = LLM_ARCH_ENGINE;
    if (!own)
        return is_engine_key(key) ? out : judge_foreign(ev, key);
    const arch_verdict v = llm_arch_judge_known(ev, (ggl_str){key.s + skip, key.n - skip});
    out.use = v.harmless ? LLM_ARCH_HARMLESS : LLM_ARCH_UNREAD;
    out.reason = v.reason;
    if (!v.harmless && !v.reason && j->n_suggested++ < SUGGESTIONS)
        out.near = nearest_key(j, (ggl_str){key.s + skip, key.n - skip});
    if (v.harmless && v.cond) {
        char quote[200];
        out.reason = llm_arch_strdup(ev, llm_arch_quote(v.cond->place, quote, sizeof quote));
    }
    return out;
}

ggl_status llm_arch_judge_keys(const llm_arch *arch, const llm_arch_source *source,
                               void (*each)(void *ctx, const llm_arch_judged *key), void *ctx,
                               ggl_error *err) {
    arch_eval ev = {.arch = arch, .src = source, .err = err, .layer = -1};
    ggl_str key;
    ev.arena.limit = ARCH_MAX_MEMORY;
    arch_judge *j =
        llm_arch_find_family(&ev) && llm_arch_eval_init(&ev) ? llm_arch_judge_new(&ev) : NULL;
    for (size_t i = 0; j && source->key_at && source->key_at(source->ctx, i, &key); i++) {
        llm_arch_judged judged = llm_arch_judge_key(j, key);
        if (ev.status == GGL_OK && j->by) {
            const arch_place p = j->by->place;
            int col;
            llm_arch_step(&ev, p, p.at / 64); /* finding the line number takes steps */
            llm_arch_line_col(p, &judged.line, &col);
            judged.file = p.text->name;
        }
        if (ev.status != GGL_OK)
            break;
        each(ctx, &judged);
    }
    llm_arch_judge_free(j);
    llm_arch_known_free(ev.known);
    llm_arch_eval_fini(&ev);
    return ev.status;
}
