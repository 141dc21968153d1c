/* Visits all expressions of statements. */
#include "language.h"

void llm_arch_walk_expr(arch_expr *e, void (*visit)(void *, arch_expr *), void *ctx) {
    if (!e)
        return;
    visit(ctx, e);
    llm_arch_walk_expr(e->a, visit, ctx);
    llm_arch_walk_expr(e->b, visit, ctx);
    llm_arch_walk_expr(e->c, visit, ctx);
    for (int k = 0; k < e->n_arg; k++)
        llm_arch_walk_expr(e->arg[k].value, visit, ctx);
}

void llm_arch_walk_stmts(arch_stmt *s, void (*visit)(void *, arch_expr *), void *ctx) {
    for (; s; s = s->next) {
        for (int k = 0; k < s->n_expr; k++)
            llm_arch_walk_expr(s->expr[k], visit, ctx);
        llm_arch_walk_expr(s->other, visit, ctx);
        for (int k = 0; k < s->n_arm; k++) {
            llm_arch_walk_expr(s->arm[k].cond, visit, ctx);
            llm_arch_walk_stmts(s->arm[k].body, visit, ctx);
        }
    }
}
