/* --imatrix: the importance of the columns of each tensor. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/calibration.h"
#include "common/pattern.h"
#include "ggl/alloc.h"
#include "ggl/graph.h"
#include "importance_read.h"
#include "job.h"

int open_importance(job *j) {
    ggl_error err = {0};
    if (!j->o.imatrix) {
        const char *flag = j->o.include.n ? "--include-weights" : "--exclude-weights";
        return j->o.include.n || j->o.exclude.n
                   ? tool_error(TOOL, 2, "%s: there is no --imatrix whose entries it could choose",
                                flag)
                   : -1;
    }
    if (j->o.include.n && j->o.exclude.n)
        return tool_error(TOOL, 2, "--include-weights and --exclude-weights: give one of them");
    j->choice.has_matrix = true;
    if (calibration_is_own(j->o.imatrix))
        return -1; /* collected once it is known that IN can be quantized */
    if (llm_imatrix_open(&j->matrix, j->o.imatrix, 0, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--imatrix: %s", err.msg);
    return -1;
}

/* The patterns of --include-weights or --exclude-weights. */
typedef struct patterns {
    llm_pattern **p;
    size_t n;
    bool include;
} patterns;

static int read_patterns(patterns *to, const job *j) {
    const arg_list *list = j->o.include.n ? &j->o.include : &j->o.exclude;
    ggl_error err = {0};
    *to = (patterns){.include = j->o.include.n > 0};
    to->p = calloc(list->n + 1, sizeof *to->p);
    if (!to->p)
        return tool_error(TOOL, 1, "out of memory");
    for (; to->n < list->n; to->n++)
        if (llm_pattern_read(&to->p[to->n], (ggl_str){list->s[to->n], strlen(list->s[to->n])},
                             &err) != GGL_OK)
            return tool_error(TOOL, 2, "%s: %s",
                              to->include ? "--include-weights" : "--exclude-weights", err.msg);
    return -1;
}

static bool is_used(const patterns *p, const char *name) {
    bool matches = false;
    for (size_t i = 0; i < p->n; i++)
        matches |= llm_pattern_matches(p->p[i], (ggl_str){name, strlen(name)});
    return p->n == 0 || matches == p->include;
}

/* Finds the entry of a tensor. An embedding may have one of another size, as a table of rows is not
 * multiplied with: then it has none. */
static int find_entry(job *j, const patterns *p, size_t i) {
    const quant_tensor *t = &j->plan.tensor[i];
    char name[sizeof t->name];
    snprintf(name, sizeof name, "%.*s", (int)t->from->name.n, t->from->name.s);
    const imatrix_entry *e = is_used(p, name) ? llm_imatrix_find(j->matrix, name) : NULL;
    const int64_t n_mat = ggl_extents(t->from->ne, 2, 4, 1);
    j->importance[i] = NULL;
    if (!e)
        return -1;
    if (llm_imatrix_fits(e, t->from->ne[0], n_mat))
        j->importance[i] = e;
    else if (strcmp(name, "token_embd.weight") != 0)
        return tool_error(TOOL, 1,
                          "--imatrix: %s: entry '%s' has %" PRId64 " columns and %" PRId64
                          " matrices, but the tensor of %s has %" PRId64 " and %" PRId64
                          ": it was made for another model",
                          j->o.imatrix, t->shown, e->n_col, e->n_mat, j->o.in, t->from->ne[0],
                          n_mat);
    return -1;
}

int find_importance(job *j) {
    patterns p = {0};
    const bool own = calibration_is_own(j->o.imatrix);
    if (!j->o.imatrix || (own && j->o.dry_run && !j->budget)) /* it would not be used */
        return -1;
    int code = read_patterns(&p, j);
    if (code < 0 && own)
        code = collect_importance(j);
    j->importance = calloc(j->plan.n + 1, sizeof *j->importance);
    if (code < 0 && !j->importance)
        code = tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; code < 0 && i < j->plan.n; i++)
        code = find_entry(j, &p, i);
    size_t n_found = 0;
    for (size_t i = 0; code < 0 && i < j->plan.n; i++)
        n_found += j->importance[i] != NULL;
    if (code < 0 && n_found == 0 && p.n == 0)
        code = tool_error(TOOL, 1,
                          "--imatrix: %s: none of its %zu entries is of a tensor of %s: it was "
                          "made for another model",
                          j->o.imatrix, llm_imatrix_n(j->matrix), j->o.in);
    for (size_t i = 0; code < 0 && i < llm_imatrix_n(j->matrix); i++)
        j->n_used += is_used(&p, llm_imatrix_at(j->matrix, i)->name.s);
    if (code < 0 && j->n_used == 0)
        code = tool_error(TOOL, 2, "--%s-weights: no entry of %s is left",
                          p.include ? "include" : "exclude", j->o.imatrix);
    for (size_t i = 0; i < p.n; i++)
        llm_pattern_free(p.p[i]);
    free(p.p);
    return code;
}

ggl_status importance_of(const job *j, size_t i, size_t k, quant_importance *out, ggl_error *err) {
    const quant_tensor *t = &j->plan.tensor[i];
    const imatrix_entry *e = j->importance ? j->importance[i] : NULL;
    const int64_t n_col = t->part[k]->ne[0], n_mat = t->part[k]->ne[2] * t->part[k]->ne[3];
    *out = (quant_importance){0};
    return e ? importance_read(e, n_col, t->n_part > 1 ? (int64_t)k * n_mat : 0, n_mat, out, err)
             : GGL_OK;
}
