/* What a parsed text says about itself: its names, outputs and stages. */
#include <string.h>

#include "language.h"

const char *llm_arch_name(const llm_arch *a) {
    return a->text.name;
}
const char *llm_arch_family(const llm_arch *a, int k) {
    return k >= 0 && k < a->n_family ? a->family[k] : NULL;
}
bool llm_arch_has_output(const llm_arch *a, const char *name) {
    for (int k = 0; k < OUT_COUNT; k++)
        if (strcmp(llm_arch_output_names[k], name) == 0)
            return a->output[k] >= 0;
    return false;
}
bool llm_arch_is_draft(const llm_arch *a) {
    return llm_arch_has_output(a, "guess") && !llm_arch_has_output(a, "logits");
}
bool llm_arch_sees_all(const llm_arch *a) {
    return a->n_stages > 0 && !a->has_tokens;
}
bool llm_arch_is_sense(const llm_arch *a) {
    return llm_arch_reads_rows(a) && !llm_arch_reads_text(a);
}

bool llm_arch_has_tokens(const llm_arch *a) {
    return a->has_tokens || !a->last_stage || !a->last_stage->of_rows;
}
bool llm_arch_reads_text(const llm_arch *a) {
    return a->n_stages > 0 && a->has_tokens;
}

/* A stage may stand in an `if`. */
static const char *rows_stage_in(const llm_arch *a, const arch_stmt *s, int *k) {
    const char *found = NULL;
    for (; s && !found; s = s->next) {
        if (s->kind == ST_STAGE && s->of_rows &&
            (a->has_tokens || strcmp(s->target[0].name, a->last_stage->target[0].name) != 0) &&
            (*k)-- == 0)
            return s->target[0].name;
        for (int i = 0; s->kind == ST_IF && i < s->n_arm && !found; i++)
            found = rows_stage_in(a, s->arm[i].body, k);
    }
    return found;
}

static const char *rows_input_in(const arch_stmt *s) {
    const char *found = NULL;
    for (; s && !found; s = s->next) {
        if (s->kind == ST_INPUT && s->of_rows)
            return s->target[0].name;
        for (int i = 0; s->kind == ST_IF && i < s->n_arm && !found; i++)
            found = rows_input_in(s->arm[i].body);
    }
    return found;
}

const char *llm_arch_reads_rows(const llm_arch *a) {
    return a->last_stage && a->last_stage->of_rows ? rows_input_in(a->body) : NULL;
}

const char *llm_arch_rows_stage(const llm_arch *a, int k) {
    return rows_stage_in(a, a->body, &k);
}

const char *llm_arch_last_stage(const llm_arch *a) {
    return a->last_stage ? a->last_stage->target[0].name : NULL;
}

int llm_arch_n_lines(const llm_arch *a) {
    return a->n_lines;
}

const char *llm_arch_text(const llm_arch *a, size_t *n) {
    *n = a->text.n;
    return a->text.s;
}
