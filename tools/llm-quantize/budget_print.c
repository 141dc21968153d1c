#include <stdio.h>
#include <string.h>

#include "budget_impl.h"
#include "common/amounts.h"
#include "common/report.h"
#include "ggl/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"

typedef struct row {
    size_t n;
    double elements, bytes, loss;
    int n_of[GGL_TYPE_LIMIT]; /* tensors of each type */
} row;

static void add_tensor(row *r, const budget_tensor *t) {
    double n = 1;
    for (int d = 0; d < t->from->n_dims; d++)
        n *= (double)t->from->ne[d];
    const ggl_type_info *type = t->type[t->chosen];
    r->n++;
    r->elements += n;
    r->bytes += n / (double)type->block * (double)type->size;
    r->loss += t->option[t->chosen].loss;
    r->n_of[type->type]++;
}

/* "20 q3_k, 12 q4_k", the smallest type first */
static void print_row(const char *name, const row *r) {
    char types[512] = "", amount[AMOUNT_TEXT];
    bool done[GGL_TYPE_LIMIT] = {false};
    size_t used = 0;
    for (;;) {
        const ggl_type_info *next = NULL;
        for (int k = 0; ggl_type_at(k); k++) {
            const ggl_type_info *t = ggl_type_at(k);
            if (r->n_of[t->type] && !done[t->type] &&
                (!next ||
                 (double)t->size / (double)t->block < (double)next->size / (double)next->block))
                next = t;
        }
        if (!next || used >= sizeof types)
            break;
        done[next->type] = true;
        used += (size_t)snprintf(types + used, sizeof types - used, "%s%d %s", used ? ", " : "",
                                 r->n_of[next->type], next->name);
    }
    ggl_fprint(stdout, "%-20s", name);
    printf(" %5zu %9s %6.3f %8.1e  ", r->n, llm_amount_bytes(amount, (uint64_t)(r->bytes + 0.5)),
           r->elements > 0 ? 8 * r->bytes / r->elements : 0, r->loss);
    tool_print_wrapped(types, 54, 54);
}

static void print_result(const budget *b) {
    char size[AMOUNT_TEXT], limit[AMOUNT_TEXT];
    if (b->limit)
        printf("limit        %s for the file; it has %s\n", llm_amount_bytes(limit, b->limit),
               llm_amount_bytes(size, b->size));
    else
        printf("limit        %.4f bits per weight; chosen are %.4f\n", b->o->bpw,
               8 * (double)b->size / b->s->plan->n_elements);
    if (b->mix)
        tool_print_item("choice", "%s: %s", b->mix->name,
                        b->checked
                            ? "on the text, this mix loses less than the types with the least sum"
                            : "no other types are estimated to lose clearly less than this mix");
    if (b->result.exact)
        printf("loss         %.4e, the least possible with these sizes\n", b->result.loss);
    else
        printf("loss         %.4e; less than %.4e is not possible\n", b->result.loss,
               b->result.bound);
    if (b->checked) {
        tool_print_item("measured",
                        "KL divergence %.6f ± %.6f with all types together (sum of the tensors' "
                        "%.6f)",
                        b->kl.value, b->kl.error, b->result.loss);
        printf("perplexity   %.4f -> %.4f on that text\n", b->ppl_base.value, b->ppl.value);
    }
}

void budget_print(const budget *b) {
    char stem[128];
    row all = {0};
    int64_t layer;
    size_t n, *first = ggl_calloc(b->n, sizeof *first);
    tensor_name *t = ggl_calloc(b->n, sizeof *t);
    row *r = ggl_calloc(b->n, sizeof *r);
    printf("%-20s %5s %9s %6s %8s  %s\n", "tensors", "n", "size", "bits",
           b->measured ? "KL" : "error", "types");
    for (size_t i = 0; t && i < b->n; i++)
        t[i].name = b->tensor[i].name;
    const bool grouped = first && r && t && tensor_groups(t, b->n, 0, first, &n);
    for (size_t i = 0; i < b->n; i++) {
        add_tensor(&all, &b->tensor[i]);
        if (grouped)
            add_tensor(&r[first[i]], &b->tensor[i]);
    }
    for (size_t i = 0; grouped && i < b->n; i++)
        if (r[i].n > 0)
            print_row(tensor_stem(b->tensor[i].name, stem, &layer), &r[i]);
    print_row("all of these", &all);
    print_result(b);
    putchar('\n');
    ggl_free(first);
    ggl_free(t);
    ggl_free(r);
}
