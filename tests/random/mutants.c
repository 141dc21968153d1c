#include "mutants.h"

#include <math.h>
#include <string.h>

#include "faulty.h"
#include "gen.h"
#include "weights.h"

enum { MOST_GRAPHS = 400 };

/* --- programs with a fault -------------------------------------------------------------------- */

/* Another operator in the place of one. */
static const struct {
    r_op op, instead;
} swapped[] = {
    {R_ADD, R_SUB},
    {R_SUB, R_ADD},
    {R_MUL, R_MAX},
    {R_DIV, R_MUL},
    {R_POW, R_MUL},
    {R_MOD, R_SUB},
    {R_EQ, R_NE},
    {R_NE, R_EQ},
    {R_LT, R_GE},
    {R_LE, R_GT},
    {R_GT, R_LE},
    {R_GE, R_LT},
    {R_LT, R_LE},
    {R_GT, R_GE},
    {R_MIN, R_MAX},
    {R_MAX, R_MIN},
    {R_EXP, R_SIGMOID},
    {R_LOG, R_SQRT},
    {R_SQRT, R_ABS},
    {R_FLOOR, R_ABS},
    {R_ABS, R_FLOOR},
    {R_TANH, R_ERF},
    {R_ERF, R_TANH},
    {R_SIGMOID, R_TANH},
    {R_SIN, R_COS},
    {R_COS, R_SIN},
    {R_CAST, R_ABS},
    {R_SUM, R_AMAX},
    {R_AMAX, R_SUM},
    {R_RANK, R_ABS},
    {R_ROPE_HALF, R_ROPE_PAIR},
    {R_ROPE_PAIR, R_ROPE_HALF},
};

enum { N_SWAPPED = sizeof swapped / sizeof *swapped };

static bool no_bias(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_LINEAR && t->src[2] >= 0;
    t->src[2] = had ? -1 : t->src[2];
    return had;
}

/* As if the matrix had its rows in the other order. */
static bool other_rows(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_LINEAR_BACK || p->node[t->src[1]].op != R_WEIGHT)
        return false;
    p->node[t->src[1]].salt++;
    return true;
}

static bool from_nothing(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_OUTER_SUM && t->src[3] >= 0;
    t->src[3] = had ? -1 : t->src[3];
    return had;
}

/* As if products of gradients were not in bf16, or were. */
static bool other_numbers(r_program *p, int i) {
    r_node *t = &p->node[i];
    const bool is = t->op == R_LINEAR_BACK || t->op == R_OUTER_SUM;
    double *bf16 = &t->num[t->op == R_OUTER_SUM];
    *bf16 = is ? *bf16 == 0 : *bf16;
    return is;
}

static bool no_back_sinks(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND_BACK || t->src[4] < 0)
        return false;
    p->node[t->src[4]].salt++;
    return true;
}

static bool other_back_row(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND_BACK || t->src[10] < 0)
        return false;
    p->node[t->src[10]].salt++;
    return true;
}

static bool no_sinks(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_ATTEND && t->src[2] >= 0;
    t->src[2] = had ? -1 : t->src[2];
    return had;
}

static bool no_alibi(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_ATTEND && t->src[3] >= 0;
    t->src[3] = had ? -1 : t->src[3];
    return had;
}

static bool no_biases(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_ATTEND && t->src[4] >= 0;
    t->src[4] = had ? -1 : t->src[4];
    return had;
}

static bool no_relative(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_ATTEND && t->src[7] >= 0;
    for (int k = 5; had && k < 8; k++)
        t->src[k] = -1;
    return had;
}

/* As if the first table were the second one. */
static bool other_table(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND || (t->src[5] >= 0) == (t->src[6] >= 0))
        return false;
    const int was = t->src[5];
    t->src[5] = t->src[6];
    t->src[6] = was;
    return true;
}

static bool no_chosen(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_ATTEND && t->n_src > 9 && t->src[9] >= 0;
    if (had)
        t->src[9] = -1;
    return had;
}

static bool fewer_chosen(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_CHOOSE_ROWS || t->num[0] < 2 || t->num[2] >= t->num[0])
        return false;
    t->num[0] -= 1;
    t->ne[0] -= (int)t->num[1];
    return true;
}

/* Of the groups, only whole ones compete by their last keys, or also those of which a token sees a part by all of theirs. */
static bool other_groups(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_CHOOSE_ROWS || t->num[1] < 2)
        return false;
    const bool had = !isnan(t->num[2]);
    t->num[2] = had ? NAN : 0;
    t->ne[0] += (had ? 1 : -1) * ((int)t->num[1] - 1);
    return true;
}

static bool one_nearer(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_CHOOSE_ROWS || !(t->num[2] < t->num[0]))
        return false;
    t->num[2] += 1;
    return true;
}

static bool wider_window(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND || isnan(t->num[1]))
        return false;
    t->num[1] += 1;
    return true;
}

static bool other_scale(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND || isnan(t->num[0]))
        return false;
    t->num[0] *= 1.001;
    return true;
}

static bool other_cap(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_ATTEND || isnan(t->num[2]))
        return false;
    t->num[2] *= 1.01;
    return true;
}

static bool other_magnitude(r_program *p, int i) {
    r_node *t = &p->node[i];
    if ((t->op != R_ROPE_HALF && t->op != R_ROPE_PAIR) || isnan(t->num[0]))
        return false;
    t->num[0] *= 1.0001;
    return true;
}

static bool other_branch(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_WHERE)
        return false;
    int a = t->src[1];
    t->src[1] = t->src[2];
    t->src[2] = a;
    return true;
}

/* The part after the requested one. */
static bool next_part(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_SPLIT)
        return false;
    int dim = (int)t->num[0];
    bool room = t->num[1] + t->num[2] < p->node[t->src[0]].ne[dim] && dim > 0;
    t->num[1] += room;
    return room;
}

static bool other_order(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_CONCAT ||
        memcmp(p->node[t->src[0]].ne, p->node[t->src[1]].ne, sizeof t->ne) != 0)
        return false;
    int a = t->src[0];
    t->src[0] = t->src[1];
    t->src[1] = a;
    return true;
}

/* Elements stay in their order, only the shape is that of the transpose. */
static bool only_shape(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_TRANSPOSE || t->num[0] == t->num[1])
        return false;
    t->op = R_RESHAPE;
    t->n_num = t->n_dims;
    for (int d = 0; d < t->n_dims; d++)
        t->num[d] = t->ne[d];
    return true;
}

/* Always the first of several. */
static bool first_index(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_PICK || p->node[t->src[1]].op != R_INPUT)
        return false;
    p->node[t->src[1]].limit = 1;
    return true;
}

static bool first_matrix(r_program *p, int i) {
    int type;
    return p->node[i].op == R_PICK && p->node[i].n_dims > 1 && r_of_weight(p, i, &type) &&
           first_index(p, i);
}

/* The operator's result is something else altogether. */
static bool something(r_program *p, int i, r_op op) {
    r_node *t = &p->node[i];
    if (t->op != op || t->body >= 0)
        return false;
    t->op = R_INPUT;
    t->n_src = t->n_num = 0;
    t->spread = 1;
    return true;
}

static bool other_topk(r_program *p, int i) {
    return something(p, i, R_TOPK);
}
static bool other_ngrams(r_program *p, int i) {
    return something(p, i, R_NGRAMS);
}
static bool other_reshape(r_program *p, int i) {
    return something(p, i, R_RESHAPE);
}
static bool other_repeat(r_program *p, int i) {
    return something(p, i, R_REPEAT);
}
static bool other_iota(r_program *p, int i) {
    return something(p, i, R_IOTA);
}

static bool forgets(r_program *p, int i) {
    r_node *t = &p->node[i];
    bool had = t->op == R_KEEP && t->src[1] != t->src[0];
    t->src[1] = had ? t->src[0] : t->src[1];
    return had;
}

static bool other_keys(r_program *p, int i) {
    if (p->node[i].op != R_CACHE || p->type_k != W_F16)
        return false;
    p->type_k = W_BF16;
    return true;
}

static bool other_weight(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_WEIGHT || t->n_dims < 2)
        return false;
    t->spread *= 1.01;
    return true;
}

static bool other_constant(r_program *p, int i) {
    r_node *t = &p->node[i];
    if (t->op != R_CONST || t->spread != 0)
        return false;
    t->num[0] += 1e-4;
    return true;
}

static const struct {
    const char *name;
    bool (*apply)(r_program *p, int i);
} changed[] = {
    {"linear without its bias", no_bias},
    {"linear_back of another matrix", other_rows},
    {"outer_sum from nothing", from_nothing},
    {"products of gradients in other numbers", other_numbers},
    {"attend_back with other sinks", no_back_sinks},
    {"attend_back with other relative positions", other_back_row},
    {"attend without sinks", no_sinks},
    {"attend without alibi", no_alibi},
    {"attend without biases", no_biases},
    {"attend without relative positions", no_relative},
    {"attend with keys' relative positions for queries", other_table},
    {"attend to all rows, not to chosen ones", no_chosen},
    {"choose_rows with one fewer", fewer_chosen},
    {"choose_rows among other groups", other_groups},
    {"choose_rows with one more group near", one_nearer},
    {"attend with a window one wider", wider_window},
    {"attend with a scale a thousandth larger", other_scale},
    {"attend with a cap a hundredth larger", other_cap},
    {"rope with a magnitude a ten thousandth larger", other_magnitude},
    {"where the other way round", other_branch},
    {"split one further", next_part},
    {"concat in the other order", other_order},
    {"transpose as a reshape", only_shape},
    {"pick of the first", first_index},
    {"the first of the matrices", first_matrix},
    {"topk of anything", other_topk},
    {"ngrams of anything", other_ngrams},
    {"reshape of anything", other_reshape},
    {"repeat of anything", other_repeat},
    {"iota of anything", other_iota},
    {"keep that forgets", forgets},
    {"keys in bf16 instead of f16", other_keys},
    {"weights a hundredth larger", other_weight},
    {"constants 0.0001 larger", other_constant},
};

enum { N_CHANGED = sizeof changed / sizeof *changed };

/* The fault in all nodes that can have it; false: there are none. */
static bool spoil(r_program *p, int mutant) {
    bool any = false;
    for (int i = 0, n = p->n; i < n; i++) {
        if (mutant >= N_SWAPPED) {
            any |= changed[mutant - N_SWAPPED].apply(p, i);
        } else if (p->node[i].op == swapped[mutant].op) {
            p->node[i].op = swapped[mutant].instead;
            p->node[i].n_num = p->node[i].op == R_ABS ? 0 : p->node[i].n_num;
            any = true;
        }
    }
    return any;
}

static const char *mutant_name(int k, char *buf, size_t size) {
    if (k < N_SWAPPED)
        snprintf(buf, size, "%s for %s", r_op_name[swapped[k].instead], r_op_name[swapped[k].op]);
    else
        snprintf(buf, size, "%s", changed[k - N_SWAPPED].name);
    return buf;
}

/* --- finding them ----------------------------------------------------------------------------- */

static r_program right, wrong;

static void next_program(int seed) {
    r_source s = {.state = r_mix((uint64_t)seed, 7)};
    r_generate(&right, (uint64_t)seed, &s);
}

static bool report(FILE *out, const char *name, int had, bool found) {
    fprintf(out, "%-48s %s after %d graphs that have it\n", name, found ? "found" : "NOT FOUND",
            had);
    return found;
}

static bool find_mutant(r_bench *b, int k, FILE *out) {
    char name[64];
    int had = 0;
    bool found = false;
    for (int seed = 1; seed <= MOST_GRAPHS && !found; seed++) {
        r_result r;
        next_program(seed);
        wrong = right;
        if (!spoil(&wrong, k))
            continue;
        had++;
        b->instead = &wrong;
        found = !r_check(b, &right, "cpu", &r) && r.fault == R_WRONG;
        b->instead = NULL;
    }
    return report(out, mutant_name(k, name, sizeof name), had, found);
}

/* Backends with a fault: tests/conformance/faulty.h. */
static bool find_faulty(r_bench *b, fault_kind kind, ggl_op op, const char *name, FILE *out) {
    bool found = false;
    int had = 0;
    b->engine[R_SPOILED] = faulty_open(b->engine[R_CPU], kind, op, GGL_TYPE_LIMIT);
    for (int seed = 1; seed <= MOST_GRAPHS && !found && b->engine[R_SPOILED]; seed++, had++) {
        r_result r;
        next_program(seed);
        found = !r_check(b, &right, "cpu", &r) && r.fault == R_WRONG;
    }
    faulty_close(b->engine[R_SPOILED]);
    b->engine[R_SPOILED] = NULL;
    return report(out, name, had, found);
}

/* That the CPU rounds activations shows: a judge that does not know it finds the CPU wrong. */
static bool find_rounding(r_bench *b, FILE *out) {
    bool found = false;
    int had = 0;
    b->other_judge = true;
    for (int seed = 1; seed <= MOST_GRAPHS && !found; seed++, had++) {
        r_result r;
        next_program(seed);
        found = !r_check(b, &right, "cpu", &r) && r.fault == R_WRONG;
    }
    b->other_judge = false;
    return report(out, "activations that are not rounded", had, found);
}

bool r_mutants(r_bench *b, const char *only, FILE *out) {
    bool all = true;
    char name[64];
    for (int k = 0; k < N_SWAPPED + N_CHANGED; k++)
        if (!only || strcmp(only, mutant_name(k, name, sizeof name)) == 0)
            all &= find_mutant(b, k, out);
    if (only)
        return all;
    all &=
        find_faulty(b, FAULT_BATCH, GGL_OP_LINEAR, "a backend: linear, second of the batch", out);
    all &= find_faulty(b, FAULT_TAIL, GGL_OP_ADD, "a backend: +, last element of a row", out);
    all &= find_faulty(b, FAULT_VIEW, GGL_OP_CONCAT, "a backend: concat of a part", out);
    all &= find_faulty(b, FAULT_CONFUSED, GGL_OP_TANH, "a backend: tanh as sigmoid", out);
    return find_rounding(b, out) && all;
}
