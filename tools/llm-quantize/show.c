/* What llm-quantize prints: tensors, and the summary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"
#include "importance_read.h"
#include "job.h"
#include "llm/internal/arch.h"
#include "report_plot.h"
#include "ggl/internal/os_fs.h"

static const char *shape_of(const ggl_gguf_tensor *t, char *s, size_t size) {
    size_t n = 0;
    s[0] = '\0';
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(s + n, size - n, "%s%lld", d ? "x" : "", (long long)t->ne[d]);
    return s;
}

/* Returns whether the tensor is encoded by a search that importance changes. */
static bool uses_importance(const quant_tensor *t) {
    return t->type->type != t->from->type && t->type->from_float_weighted;
}

static bool lacks_importance(const job *j, const quant_tensor *t) {
    return j->matrix && uses_importance(t) && !j->importance[t - j->plan.tensor];
}

/* The columns of the table that are text. */
typedef struct tensor_row {
    char name[200], shape[96], types[40];
} tensor_row;

/* The marks are explained below the table. */
static tensor_row row_of(const job *j, const quant_tensor *t) {
    tensor_row r;
    const char *old = ggl_type_get((int)t->from->type)->name;
    const bool kept = t->type->type == t->from->type;
    ggl_show(r.name, sizeof r.name, t->shown, strlen(t->shown));
    shape_of(t->from, r.shape, sizeof r.shape);
    snprintf(r.types, sizeof r.types, "%s%s%s%s%s", old, kept ? "" : " -> ",
             kept ? "" : t->type->name, t->wanted ? "*" : "", lacks_importance(j, t) ? "?" : "");
    return r;
}

static int wider(int width, const char *text) {
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

static bool has_error(const job *j) {
    return !j->o.dry_run && j->error;
}

/* Prints the tensors: what a dry run would make of them, or their errors. */
void print_tensors(const job *j) {
    char before[AMOUNT_TEXT], after[AMOUNT_TEXT];
    int name = 6, shape = 5, types = 4;
    for (size_t i = 0; i < j->plan.n; i++) {
        const tensor_row r = row_of(j, &j->plan.tensor[i]);
        name = wider(name, r.name);
        shape = wider(shape, r.shape);
        types = wider(types, r.types);
    }
    printf("%-*s %-*s %-*s", name, "tensor", shape, "shape", types, "type");
    if (has_error(j))
        printf(" %8s %8s %8s\n", "rmse", "max", "relative");
    else
        printf(" %8s %8s\n", "size", "new size");
    for (size_t i = 0; i < j->plan.n; i++) {
        const quant_tensor *t = &j->plan.tensor[i];
        const tensor_row r = row_of(j, t);
        const quant_error *e = has_error(j) ? &j->error[i] : NULL;
        printf("%-*s %-*s ", name, r.name, shape, r.shape);
        if (e && e->n > 0)
            printf("%-*s %8.2e %8.2e %8.2e\n", types, r.types, llm_quant_error_rms(e), e->max,
                   llm_quant_error_relative(e));
        else if (e)
            printf("%s\n", r.types);
        else
            printf("%-*s %8s %8s\n", types, r.types, llm_amount_bytes(before, t->from->size),
                   llm_amount_bytes(after, t->size));
    }
}

static double bits(const ggl_type_info *t) {
    return 8 * (double)t->size / (double)t->block;
}

/* Tensors that get one type instead of another one. */
typedef struct narrow {
    const char *wanted, *type;
    size_t n;
} narrow;

/* Adds one to the row of a pair; returns the number of rows, at most 16. */
static size_t count_narrow(narrow *row, size_t n, const quant_tensor *t) {
    size_t k = 0;
    while (k < n && (row[k].wanted != t->wanted || row[k].type != t->type->name))
        k++;
    if (k == n && n < 16)
        row[n++] = (narrow){t->wanted, t->type->name, 0};
    if (k < n)
        row[k].n++;
    return n;
}

/* Prints a note on tensors that could not get the intended type, and what that costs. */
static void print_narrow(const quant_plan *p) {
    narrow row[16];
    size_t n = 0, n_rows = 0, used;
    double size = 0, wanted = 0;
    char text[1200];
    for (size_t i = 0; i < p->n; i++) {
        const quant_tensor *t = &p->tensor[i];
        const ggl_type_info *type = t->wanted ? ggl_type_find(t->wanted) : NULL;
        if (!t->wanted)
            continue;
        n++;
        n_rows = count_narrow(row, n_rows, t);
        size += (double)t->size;
        wanted += (double)t->size / bits(t->type) * bits(type ? type : t->type);
    }
    if (n == 0)
        return;
    used = (size_t)snprintf(text, sizeof text,
                            "%zu tensor%s a larger type (* in the table of -v and --dry-run), "
                            "because the rows are not whole blocks of the intended one: %.2f MiB "
                            "instead of %.2f (",
                            n, n == 1 ? " has" : "s have", size / 0x1p20, wanted / 0x1p20);
    for (size_t k = 0; k < n_rows; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu %s, not %s", k ? "; " : "",
                                 row[k].n, row[k].type, row[k].wanted);
    snprintf(text + used, sizeof text - used, ")");
    tool_print_item("narrow rows", "%s", text);
}

/* Numbers of tensors whose type is encoded by a search that importance changes. */
typedef struct importance_counts {
    size_t n, n_known, n_directed; /* known: the matrix has an entry for them */
    size_t n_bad;                  /* not known, of a type that loses much without */
} importance_counts;

static importance_counts count_importance(const job *j) {
    importance_counts c = {0};
    for (size_t i = 0; i < j->plan.n; i++) {
        const quant_tensor *t = &j->plan.tensor[i];
        const imatrix_entry *e = j->importance ? j->importance[i] : NULL;
        if (!uses_importance(t))
            continue;
        c.n++;
        c.n_known += e != NULL;
        /* rows of an embedding are read, not multiplied: no matrix has an entry for it */
        c.n_bad +=
            !e && llm_quant_type_needs_matrix(t->type) && strcmp(t->name, "token_embd.weight") != 0;
        c.n_directed +=
            e && t->n_part == 1 &&
            importance_has_directions(e, t->part[0]->ne[0], t->part[0]->ne[2] * t->part[0]->ne[3]);
    }
    return c;
}

/* Prints what the importance matrix knows of the tensors. */
static void print_matrix(const job *j, const importance_counts *c) {
    const long long n_chunks = (long long)llm_imatrix_n_chunks(j->matrix);
    char known[64];
    if (c->n_known == c->n)
        snprintf(known, sizeof known, "all %zu", c->n);
    else
        snprintf(known, sizeof known, "%zu of the %zu", c->n_known, c->n);
    tool_print_item(
        "importance", "known for %s tensors that use it, from %lld chunk%s of text%s", known,
        n_chunks, llm_amount_s(n_chunks),
        c->n_known == c->n ? "" : "; the others are marked ? in the table of -v and --dry-run");
    if (c->n_directed > 0)
        tool_print_item("importance",
                        "errors cancel in %zu of these tensors: the matrix tells which of their "
                        "columns vary together",
                        c->n_directed);
    else if (c->n_known > 0)
        tool_print_item("importance",
                        "errors cancel in no tensor: llm-imatrix --directions collects which "
                        "columns vary together, and less is lost");
}

/* Returns whether `--imatrix self` works: the model makes logits of a text. A family that is not known may. */
static bool measures_itself(const job *j) {
    ggl_str family = {"", 0};
    char name[64];
    llm_arch *arch = NULL;
    (void)ggl_gguf_get_string(j->file, "general.architecture", &family, NULL);
    snprintf(name, sizeof name, "%.*s", (int)(family.n < 63 ? family.n : 63), family.s);
    const bool cannot = llm_arch_open(&arch, name, NULL) == GGL_OK &&
                        (!llm_arch_has_output(arch, "logits") || llm_arch_reads_text(arch));
    llm_arch_free(arch);
    return !cannot;
}

/* Prints which tensors are encoded with importance, and what would be better. */
static void print_importance(const job *j) {
    const importance_counts c = count_importance(j);
    const bool advises = !j->o.imatrix && measures_itself(j);
    if (j->matrix)
        print_matrix(j, &c);
    if (c.n_bad > 0)
        tool_print_item("importance",
                        "%zu tensor%s of less than 3.5 bits without importance, and lose%s much "
                        "more than with it%s",
                        c.n_bad, c.n_bad == 1 ? " gets a type" : "s get types",
                        c.n_bad == 1 ? "s" : "", advises ? ": --imatrix self collects it" : "");
    else if (c.n > 0 && advises)
        tool_print_item("importance", "not known: with --imatrix self, less is lost");
}

void print_summary(const job *j) {
    const quant_plan *p = &j->plan;
    quant_error all = {0};
    size_t n_changed = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensor[i].type->type != p->tensor[i].from->type) {
            n_changed++;
            if (j->error)
                llm_quant_error_add(&all, &j->error[i]);
        }
    printf("tensors      %zu, %zu of them in another type\n", p->n, n_changed);
    for (int k = 0; ggl_type_at(k); k++) {
        size_t n = 0, size = 0;
        for (size_t i = 0; i < p->n; i++)
            if (p->tensor[i].type == ggl_type_at(k)) {
                n++;
                size += p->tensor[i].size;
            }
        if (n > 0)
            printf("  %-10s %zu tensor%s, %.2f MiB\n", ggl_type_at(k)->name, n, n == 1 ? "" : "s",
                   (double)size / 0x1p20);
    }
    print_narrow(p);
    print_importance(j);
    printf("size         %.2f -> %.2f MiB, %.2f -> %.2f bits per weight\n",
           (double)p->size_before / 0x1p20, (double)p->size_after / 0x1p20,
           8 * (double)p->size_before / (p->n_elements > 0 ? p->n_elements : 1),
           8 * (double)p->size_after / (p->n_elements > 0 ? p->n_elements : 1));
    if (!j->o.dry_run && all.n > 0)
        tool_print_item("error", "rmse %.4e max %.4e relative %.4e, of the changed tensors%s",
                        llm_quant_error_rms(&all), all.max, llm_quant_error_relative(&all),
                        j->matrix ? ", all columns counted alike" : "");
}

/* Draws --report. A tensor that keeps its type has no error; in a dry run, errors are not known. */
int draw_report(const job *j) {
    ggl_error err = {0};
    drawing d = {0};
    const quant_plan *p = &j->plan;
    report_tensor *t = calloc(p->n + 1, sizeof *t);
    size_t n = 0;
    for (size_t i = 0; t && i < p->n; i++) {
        const quant_tensor *x = &p->tensor[i];
        const bool kept = x->type->type == x->from->type;
        if (x->from->n_dims < 2) /* vectors would be most of the rows and none of the bytes */
            continue;
        t[n] = (report_tensor){x->shown, x->type, (double)x->size, 1, 0};
        for (int k = 0; k < x->from->n_dims; k++)
            t[n].elements *= (double)x->from->ne[k];
        t[n++].error = kept ? 0 : j->error ? llm_quant_error_relative(&j->error[i]) : -1;
    }
    const char *name = ggl_os_last_separator(j->o.in);
    char how[80] = "";
    if (j->o.budget.size)
        snprintf(how, sizeof how, " within %.60s", j->o.budget.size);
    else if (j->o.budget.bpw_given)
        snprintf(how, sizeof how, " within %.4g bits", j->o.budget.bpw);
    else if (j->choice.mix || j->choice.type)
        snprintf(how, sizeof how, " as %.60s",
                 j->choice.mix ? j->choice.mix->name : j->choice.type);
    d.title =
        drawing_text(&d, "%.100s%s: %.2f -> %.2f bits per weight", name ? name + 1 : j->o.in, how,
                     8 * (double)p->size_before / (p->n_elements > 0 ? p->n_elements : 1),
                     8 * (double)p->size_after / (p->n_elements > 0 ? p->n_elements : 1));
    ggl_status s = t ? report_plot(&d, t, n, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    free(t);
    if (s == GGL_OK)
        return drawing_save(&d, TOOL, "--report", j->o.report) ? 1 : -1;
    drawing_fini(&d);
    return tool_error(TOOL, 1, "--report: %s", err.msg);
}
