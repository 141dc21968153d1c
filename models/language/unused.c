/* A top-level name that nothing reads, also of an input or a stage, is an error. Otherwise a limit that is read from a key and
 * then forgotten would go unnoticed, and its key would count as read. It is reported only if
 * there is no other error, so that a descriptor can be written from top to bottom. */
#include <ctype.h>
#include <string.h>

#include "language.h"

typedef struct usage {
    const llm_arch *arch;
    bool read[ARCH_MAX_NAMES]; /* by slot */
    /* the slot that the current statement assigns to; reading it there does not count; -1: none */
    int own;
    int64_t compared;
} usage;

enum { MOST_COMPARED = 4000000 }; /* comparisons of names; more than any serious text needs */

/* Marks names in the braces of a string as read: "blk.{i}.ffn". If braces mean something else,
 * one name too many counts as read. In a text that is made to take long, all names count as
 * read. */
static void read_braces(usage *u, const char *s) {
    const llm_arch *a = u->arch;
    bool inside = false;
    while (s && *s) {
        inside = *s == '{' || (inside && *s != '}');
        if (!inside || !(isalpha((unsigned char)*s) || *s == '_')) {
            s++;
            continue;
        }
        const char *from = s;
        while (isalnum((unsigned char)*s) || *s == '_')
            s++;
        if ((u->compared += a->n_global) > MOST_COMPARED) {
            memset(u->read, true, sizeof u->read);
            return;
        }
        for (int k = 0; k < a->n_global; k++)
            if (strlen(a->global[k]) == (size_t)(s - from) &&
                memcmp(a->global[k], from, (size_t)(s - from)) == 0)
                u->read[k] = true;
    }
}

static void visit_name(void *ctx, arch_expr *e) {
    usage *u = ctx;
    if (e->kind == EX_NAME && e->local < 0 && e->global >= 0 && e->global != u->own)
        u->read[e->global] = true;
    if (e->kind == EX_STRING)
        read_braces(u, e->name);
}

/* Marks the names that statements read. in_fn: in a function, whose targets are locals. */
static void read_stmts(usage *u, const arch_stmt *s, bool in_fn) {
    for (; s; s = s->next) {
        /* `limit = limit + 1` does not count as reading limit */
        u->own = s->kind == ST_ASSIGN && s->n_target == 1 && !in_fn ? s->target[0].slot : -1;
        for (int k = 0; k < s->n_expr; k++)
            llm_arch_walk_expr(s->expr[k], visit_name, u);
        llm_arch_walk_expr(s->other, visit_name, u);
        u->own = -1;
        if (s->kind == ST_WEIGHT || s->kind == ST_STAGE || s->kind == ST_PREFIX) {
            read_braces(u, s->string);
            read_braces(u, s->second);
        }
        for (int k = 0; k < s->n_arm; k++) {
            llm_arch_walk_expr(s->arm[k].cond, visit_name, u);
            read_stmts(u, s->arm[k].body, in_fn);
        }
    }
}

static void read_all(usage *u) {
    const llm_arch *a = u->arch;
    read_stmts(u, a->body, false);
    for (const arch_fn *f = a->fn; f; f = f->next) {
        read_stmts(u, f->body, true);
        for (int k = 0; k < f->n_param; k++)
            llm_arch_walk_expr(f->param[k].fallback, visit_name, u);
    }
    for (const arch_convert *c = a->convert; c; c = c->next)
        for (const arch_mapping *m = c->map; m; m = m->next) {
            llm_arch_walk_expr(m->expr, visit_name, u);
            read_braces(u, m->kind >= MAP_IGNORE ? m->name : NULL);
        }
}

/* Returns the first target that nothing reads, or NULL. One read name per statement is enough. */
static const arch_target *unread_target(const usage *u, const arch_stmt *s) {
    for (; s; s = s->next) {
        int n_read = 0;
        for (int k = 0; k < s->n_target; k++)
            n_read += u->read[s->target[k].slot];
        const bool names = s->kind == ST_ASSIGN || s->kind == ST_INPUT || s->kind == ST_STAGE;
        if (names && s->n_target > 0 && n_read == 0)
            return &s->target[0];
        for (int k = 0; k < s->n_arm; k++) {
            const arch_target *t = unread_target(u, s->arm[k].body);
            if (t)
                return t;
        }
    }
    return NULL;
}

/* A name of an output that another line reads is an ordinary name, as it was before there were outputs
 * other than logits. */
static void find_outputs(llm_arch *a, usage *u) {
    for (int k = 0; k < OUT_COUNT; k++) {
        const int slot = a->output[k];
        if (slot < 0)
            continue;
        if (k != OUT_LOGITS && u->read[slot])
            a->output[k] = -1;
        u->read[slot] = true;
    }
    if (a->guess_token >= 0)
        u->read[a->guess_token] = true;
    if (a->guess_chance >= 0)
        u->read[a->guess_chance] = true;
}

void llm_arch_find_unused(llm_arch *arch) {
    usage u = {.arch = arch, .own = -1};
    read_all(&u);
    find_outputs(arch, &u);
    arch->unused = unread_target(&u, arch->body);
}
