#include "budget_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/args.h"
#include "common/units.h"
#include "ggl/alloc.h"
#include "ggl/graph.h"
#include "ggl/internal/types.h"

/* --- options ---------------------------------------------------------------------------------- */

bool budget_wanted(const budget_options *o) {
    return o->size || o->bpw_given;
}

/* Reads "4.2G", "700MB", "3.9GiB" or a number of bytes; false: it is not one. */
static bool read_size(const char *s, uint64_t *out) {
    double x;
    if (!tool_read_unit(s, strlen(s), tool_unit_bytes, &x) || x < 1 || x >= 0x1p62)
        return false;
    *out = (uint64_t)x;
    return true;
}

/* Reads --types. */
static int read_types(budget *b) {
    char name[64];
    for (const char *s = b->o->types; s && *s;) {
        const size_t n = strcspn(s, ",");
        ggl_error err = {0};
        const ggl_type_info *t = NULL;
        snprintf(name, sizeof name, "%.*s", (int)(n < 60 ? n : 60), s);
        if (n > 0 && !(t = llm_quant_type_find(name, &err)))
            return tool_error(b->tool, 2, "--types: '%s' is not a type that can be written%s%s",
                              name, *err.msg ? ": " : "", err.msg);
        bool known = n == 0;
        for (int k = 0; k < b->n_named; k++)
            known = known || b->named[k] == t;
        if (!known && b->n_named < BUDGET_MAX_TYPES - 1)
            b->named[b->n_named++] = t;
        s += n + (s[n] == ',');
    }
    return b->o->types && b->n_named == 0 ? tool_error(b->tool, 2, "--types names no type") : -1;
}

static int check_options(budget *b) {
    const budget_options *o = b->o;
    if (o->size && o->bpw_given)
        return tool_error(b->tool, 2, "--budget and --bpw are two limits; give one of them");
    if (o->size && !read_size(o->size, &b->limit))
        return tool_error(b->tool, 2, "--budget: '%s' is not a size, as 4.2G, 700M or 3.9GiB",
                          o->size);
    if (!o->text && (o->n_ctx || o->n_chunk || o->n_pass))
        return tool_error(b->tool, 2, "%s is for the text of --calibration TEXT",
                          o->n_ctx     ? "-c"
                          : o->n_chunk ? "--chunks"
                                       : "--passes");
    return read_types(b);
}

/* --- what may be chosen ----------------------------------------------------------------------- */

static const char *const usual[] = {
    "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "q2_k", "iq2_s", "iq3_xxs", "iq3_s", "q3_k", "iq4_xs",
    "q4_0",  "q4_k",  "iq4_nl",  "q4_1",   "q5_0", "q5_k",  "q5_1",    "q6_k",  "q8_0", NULL};

static void add_type(budget_tensor *t, const ggl_type_info *type) {
    for (int k = 0; k < t->n; k++)
        if (t->type[k] == type)
            return;
    if (type && llm_quant_type_usable(type) && t->n < BUDGET_MAX_TYPES)
        t->type[t->n++] = type;
}

static void add_named(budget_tensor *t, const char *name) {
    add_type(t, ggl_type_find(llm_quant_fit(name, t->from->ne[0])));
}

static double bits_of(const ggl_type_info *t) {
    return 8.0 * (double)t->size / (double)t->block;
}

/* Sets the candidates of a tensor: --types; else the usual types of at least that many bits that are smaller
 * than the tensor is, and with `own` its type. */
static void list_types(const budget *b, budget_tensor *t, double least_bits, bool own) {
    t->n = 0;
    for (int k = 0; k < b->n_named; k++)
        add_named(t, b->named[k]->name);
    if (b->n_named > 0)
        return;
    for (size_t k = 0; usual[k]; k++)
        if (bits_of(ggl_type_find(usual[k])) >= least_bits)
            add_named(t, usual[k]);
    int n = 0;
    for (int k = 0; k < t->n; k++) {
        size_t size;
        if (ggl_row_size_checked(t->type[k]->type, t->from->ne[0], &size) &&
            size < ggl_row_size(t->from->type, t->from->ne[0]))
            t->type[n++] = t->type[k];
    }
    t->n = n;
    if (own || t->n == 0)
        add_type(t, ggl_type_get((int)t->from->type));
}

/* Bytes of a tensor in OUT, with the padding where the limit is the file's. */
static uint64_t size_in(const budget *b, const budget_tensor *t, const ggl_type_info *type) {
    int64_t n = 1;
    for (int d = 0; d < t->from->n_dims; d++)
        n *= t->from->ne[d];
    /* smaller than what is there, or checked by the plan */
    const size_t size = ggl_bytes_before(type, t->from->ne[0], n);
    const uint64_t a = b->limit ? b->s->alignment : 1;
    return (size + a - 1) / a * a;
}

/* Bytes that the limit leaves for what is chosen; *fixed: what other tensors and the head take. */
static uint64_t fixed_size(const budget *b) {
    const quant_plan *p = b->s->plan;
    uint64_t fixed = b->limit ? b->s->head : 0;
    const uint64_t a = b->limit ? b->s->alignment : 1;
    for (size_t i = 0, k = 0; i < p->n; i++) {
        if (k < b->n && strcmp(b->tensor[k].name, p->tensor[i].name) == 0)
            k++;
        else
            fixed += (p->tensor[i].size + a - 1) / a * a;
    }
    return fixed;
}

static uint64_t bytes_of(const budget *b, double bpw) {
    const double bytes = bpw * b->s->plan->n_elements / 8;
    return bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
}

static uint64_t allowed_size(const budget *b) {
    return b->limit ? b->limit : bytes_of(b, b->o->bpw);
}

/* Returns the least --bpw, in thousandths, that allows `bytes`. */
static double least_bpw(const budget *b, uint64_t bytes) {
    double thousandths = ceil(8000 * (double)bytes / b->s->plan->n_elements);
    while (bytes_of(b, thousandths / 1000) < bytes) /* a quotient is rounded, too */
        thousandths++;
    return thousandths / 1000;
}

static void list_all(budget *b, double least_bits, bool own, uint64_t *least, uint64_t *most) {
    *least = *most = fixed_size(b);
    for (size_t i = 0; i < b->n; i++) {
        uint64_t low = UINT64_MAX, high = 0;
        list_types(b, &b->tensor[i], least_bits, own);
        for (int k = 0; k < b->tensor[i].n; k++) {
            const uint64_t size = size_in(b, &b->tensor[i], b->tensor[i].type[k]);
            low = size < low ? size : low;
            high = size > high ? size : high;
        }
        *least += low;
        *most += high;
    }
}

/* Writes a size as the limit was given. A limit of the number that is written holds that size. */
static const char *size_text(const budget *b, uint64_t bytes, char buf[64]) {
    char amount[AMOUNT_TEXT];
    if (b->limit)
        snprintf(buf, 64, "%s (%llu bytes)", llm_amount_bytes(amount, bytes),
                 (unsigned long long)bytes);
    else
        snprintf(buf, 64, "%.3f bits per weight", least_bpw(b, bytes));
    return buf;
}

static int impossible(const budget *b, uint64_t least) {
    char limit[64], low[64];
    return tool_error(b->tool, 2, "--%s: %s is too little: with %s, the smallest choice has %s",
                      b->limit ? "budget" : "bpw", size_text(b, b->allowed, limit),
                      b->n_named ? "the types of --types" : "all types that can be written",
                      size_text(b, least, low));
}

/* Returns how many bits the limit leaves for each weight that gets a type. */
static double bits_left(const budget *b) {
    double n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += (double)ggl_extents(b->tensor[i].from->ne, 0, GGL_MAX_DIMS, 1);
    return 8 * ((double)b->allowed - (double)fixed_size(b)) / n;
}

/* Sets the candidates; with the tensors' own types if the limit is above the largest choice without. A type
 * with two bits less than the mean loses 16 times as much: it is not chosen, so the time to try it is saved. */
static int list_candidates(budget *b) {
    uint64_t least, most;
    b->allowed = allowed_size(b);
    const double bits = bits_left(b), least_bits = bits < 6 ? bits - 2 : 4;
    list_all(b, least_bits, false, &least, &most);
    if (b->allowed < least) /* rows that fit no small type leave less to the others */
        list_all(b, 0, false, &least, &most);
    else if (b->allowed > most)
        list_all(b, least_bits, true, &least, &most);
    return b->allowed < least ? impossible(b, least) : -1;
}

/* --- the choice ------------------------------------------------------------------------------- */

/* Called by the plan. At first it notes which tensors can be chosen; then it gives their types. */
static const char *pick(void *ctx, const quant_tensor *t) {
    budget *b = ctx;
    if (!b->solved) {
        if (t->from->ne[0] > 0 && ggl_grow(&b->tensor, &b->cap, b->n + 1, sizeof *b->tensor)) {
            budget_tensor *x = &b->tensor[b->n++];
            *x = (budget_tensor){.from = t->from, .weight = 1};
            snprintf(x->name, sizeof x->name, "%s", t->name);
        }
        return "q8_0"; /* so that the plan refuses what must not be quantized again */
    }
    for (size_t turn = 0; turn < b->n; turn++) {
        const budget_tensor *x = &b->tensor[(b->next + turn) % b->n];
        if (strcmp(x->name, t->name) == 0) {
            b->next = (size_t)(x - b->tensor) + 1;
            return x->type[x->chosen]->name;
        }
    }
    return NULL;
}

int budget_new(budget **out, const char *tool, const budget_options *o, int n_threads,
               quant_choice *c) {
    budget *b = *out = ggl_calloc(1, sizeof *b);
    if (!b)
        return tool_error(tool, 1, "out of memory");
    b->tool = tool;
    b->o = o;
    b->n_threads = n_threads;
    b->choice = c;
    c->pick = pick;
    c->pick_ctx = b;
    if (c->merge_experts)
        return tool_error(
            tool, 2,
            "--merge-experts: first join the experts: llm-quantize --merge-experts IN "
            "JOINED COPY; then give JOINED a budget");
    if (c->prune)
        return tool_error(tool, 2,
                          "--prune-layers: first remove the layers: llm-quantize --prune-layers "
                          "LIST IN SHORTER COPY; then give SHORTER a budget");
    return check_options(b);
}

void budget_free(budget *b) {
    if (!b)
        return;
    trial_free(b->trial);
    loss_list_fini(&b->known);
    ggl_free(b->tensor);
    ggl_free(b);
}

/* Leaves out the types that cannot hold the tensor's weights, and sets sizes and losses. */
static int set_options(budget *b, budget_tensor *t) {
    int n = 0;
    for (int k = 0; k < t->n; k++) {
        if (!isfinite(t->error[k]))
            continue;
        t->type[n] = t->type[k];
        t->error[n] = t->error[k];
        /* numbers of --loss may be absurd */
        const double loss = t->weight * t->error[k];
        t->option[n] = (knapsack_option){size_in(b, t, t->type[k]),
                                         loss < KNAPSACK_MAX_LOSS ? loss : KNAPSACK_MAX_LOSS};
        n++;
    }
    t->n = n;
    return n > 0 ? -1
                 : tool_error(b->tool, 1,
                              "%s: tensor '%s' has weights that are no numbers, or that are too "
                              "large for every type",
                              b->s->path, t->name);
}

static int choose(budget *b) {
    ggl_error err = {0};
    const uint64_t fixed = b->fixed = fixed_size(b);
    uint64_t least, most;
    int code = -1;
    knapsack_item *item = ggl_calloc(b->n + 1, sizeof *item);
    int *choice = ggl_calloc(b->n + 1, sizeof *choice);
    if (!item || !choice)
        code = tool_error(b->tool, 1, "out of memory");
    for (size_t i = 0; code < 0 && i < b->n; i++) {
        code = set_options(b, &b->tensor[i]);
        item[i] = (knapsack_item){b->tensor[i].option, b->tensor[i].n};
    }
    if (code < 0) {
        knapsack_range(item, b->n, &least, &most);
        if (b->allowed < fixed + least)
            code = impossible(b, fixed + least);
    }
    if (code < 0 &&
        knapsack_solve(item, b->n, b->allowed - fixed, choice, &b->result, &err) != GGL_OK)
        code = tool_error(b->tool, 1, "%s", err.msg);
    for (size_t i = 0; code < 0 && i < b->n; i++)
        b->tensor[i].chosen = choice[i];
    b->size = fixed + b->result.size;
    ggl_free(item);
    ggl_free(choice);
    return code;
}

static int choose_by_guess(budget *b) {
    const quant_mix *mix = NULL;
    int code = -1, best = 0;
    budget_guess_begin(b);
    for (int degree = 0; code < 0 && degree < BUDGET_DEGREES; degree++) {
        budget_guess_weights(b, degree);
        code = choose(b);
        if (code < 0)
            budget_guess_note(b, degree);
    }
    if (code < 0)
        code = budget_guess_best(b, &best, &mix);
    if (code >= 0)
        return code;
    budget_guess_weights(b, best);
    code = choose(b);
    return code < 0 && mix ? budget_take_mix(b, mix) : code;
}

int budget_solve(budget *b, const budget_source *s) {
    b->source = *s;
    b->s = &b->source;
    for (size_t i = 0, k = 0; s->importance && i < s->plan->n && k < b->n; i++)
        if (strcmp(b->tensor[k].name, s->plan->tensor[i].name) == 0)
            b->tensor[k++].entry = s->importance[i];
    if (b->n == 0)
        return tool_error(b->tool, 1,
                          "%s: there is nothing to choose: no tensor can be quantized, or "
                          "--tensor-type names them all",
                          s->path);
    int code = list_candidates(b);
    if (code < 0)
        code = budget_measure(b);
    if (code < 0)
        code = b->measured ? choose(b) : choose_by_guess(b);
    if (code < 0)
        code = budget_check(b);
    b->solved = true;
    return code;
}
