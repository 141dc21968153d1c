/* What the generator, the judge and the engine's side all ask of a program. */
#include "program.h"

#include <math.h>
#include <string.h>

#include "weights.h"

const char *const r_op_name[R_OP_COUNT] = {
#define X(ID, name) [R_##ID] = name,
    R_OPS(X)
#undef X
        [R_BEGIN] = "begin",
};

static double uniform(uint64_t salt, double spread) {
    return (double)(float)(spread * ((double)(salt >> 11) * 0x1p-52 - 1));
}

double r_input_value(const r_node *t, uint64_t salt, int e) {
    uint64_t s = r_mix(r_mix(t->salt, salt), (uint64_t)e);
    return t->integer ? (double)((s >> 8) % (uint64_t)t->limit) : uniform(s, t->spread);
}

double r_const_value(const r_node *t, int e) {
    return t->spread == 0 ? t->num[0] : uniform(r_mix(t->salt, (uint64_t)e), t->spread);
}

/* Dense: no gaps within, so that another shape needs no copy. */
static bool is_view(const r_program *p, int i, int *type, bool *dense) {
    const r_node *t = &p->node[i];
    if (t->op == R_WEIGHT) {
        *type = t->type;
        return *dense = true;
    }
    if ((t->op != R_RESHAPE && t->op != R_SPLIT) || !is_view(p, t->src[0], type, dense))
        return false;
    int block = w_types[*type].block;
    if (t->op == R_RESHAPE)
        return *dense && t->ne[0] % block == 0;
    *dense = *dense && t->num[0] == p->node[t->src[0]].n_dims - 1;
    return t->num[0] != 0 || (fmod(t->num[1], block) == 0 && fmod(t->num[2], block) == 0);
}

bool r_of_weight(const r_program *p, int i, int *type) {
    const r_node *t = &p->node[i];
    bool dense;
    if (t->op == R_PARAM) /* a view is one in a body, too; chosen matrices come in as values */
        return p->node[t->src[0]].op != R_PICK && r_of_weight(p, t->src[0], type);
    return is_view(p, i, type, &dense) ||
           (t->op == R_PICK && p->node[t->src[0]].n_dims == 3 && r_of_weight(p, t->src[0], type));
}

void r_needed(const r_program *p, bool *needed) {
    memset(needed, 0, (size_t)p->n * sizeof *needed);
    for (int k = 0; k < p->n_outputs; k++)
        needed[p->output[k]] = true;
    for (int i = p->n; i-- > 0;) {
        const r_node *t = &p->node[i];
        for (int c = i + 1; c < p->n && t->op == R_KEEP; c++)
            needed[i] =
                needed[i] || (p->node[c].op == R_CALL && p->node[c].begin == t->body && needed[c]);
        if (t->op == R_PARAM && needed[i])
            needed[t->body] = true;
        for (int k = 0; k < t->n_src && needed[i]; k++)
            if (t->src[k] >= 0)
                needed[t->src[k]] = true;
        if (needed[i] && t->op == R_CALL)
            needed[t->begin] = true;
        for (int k = 0; k < t->n_src && t->op == R_BEGIN && needed[i]; k++)
            needed[i + 1 + k] = true;
    }
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_shape(const r_node *t, FILE *out) {
    fprintf(out, "[");
    for (int d = 0; d < t->n_dims; d++)
        fprintf(out, "%s%d", d ? ", " : "", t->ne[d]);
    fprintf(out, "%s]", t->batched ? " | n" : "");
}

static void print_leaf(const r_node *t, FILE *out) {
    if (t->position)
        fprintf(out, "the position");
    else if (t->op == R_INPUT && t->integer)
        fprintf(out, "an index below %d", t->limit);
    else if (t->op == R_INPUT)
        fprintf(out, "numbers up to %g", t->spread);
    else if (t->op == R_WEIGHT)
        fprintf(out, "%s, up to %g", w_types[t->type].name, t->spread);
    else if (t->spread == 0)
        fprintf(out, "%.17g", t->num[0]);
    else
        fprintf(out, "numbers up to %g, salt %llu", t->spread, (unsigned long long)t->salt);
}

static void print_node(const r_program *p, int i, FILE *out) {
    const r_node *t = &p->node[i];
    const char *comma = "";
    int depth = 0;
    for (int b = t->body; b >= 0; b = p->node[b].body)
        depth++;
    fprintf(out, "%*st%d = %s", 2 * depth, "", i, t->call ? t->call : r_op_name[t->op]);
    fprintf(out, "(");
    if (r_is_leaf(t))
        print_leaf(t, out);
    for (int k = 0; k < t->n_src; k++, comma = ", ")
        if (t->src[k] >= 0)
            fprintf(out, "%st%d", comma, t->src[k]);
        else
            fprintf(out, "%s-", comma);
    for (int k = 0; k < t->n_num && t->op != R_CONST; k++, comma = ", ")
        fprintf(out, "%s%.9g", comma, t->num[k]);
    fprintf(out, ")");
    if (t->op != R_CACHE && t->op != R_KEEP && t->op != R_BEGIN) {
        fprintf(out, " -> ");
        print_shape(t, out);
    }
    if (t->op == R_CALL)
        fprintf(out, "  ends t%d", t->begin);
    if (t->group >= 0)
        fprintf(out, "  group %d", t->group);
    fprintf(out, "\n");
}

static void print_action(const r_action *a, FILE *out) {
    static const char *const form[] = {
        [R_CLEAR] = "clear slot %d",
        [R_COPY] = "slot %d = copy of slot %d",
        [R_CUT] = "slot %d goes back (%d) to position %d",
        [R_SAVE] = "slot %d into snapshot %d, %d positions",
        [R_RESTORE] = "slot %d from snapshot %d, %d positions",
        [R_RESTORE_STATES] = "states of slot %d from snapshot %d",
        [R_CHANGE] = "new values for inputs without a batch",
    };
    char text[96];
    /* the forms are the literals above */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, form[a->kind], a->slot, a->other, a->n_pos);
#pragma GCC diagnostic pop
    fprintf(out, "  %s\n", text);
}

void r_print(const r_program *p, FILE *out) {
    fprintf(out, "seed %llu: %d positions, batches of %d, %d slots, keys %s, values %s\n",
            (unsigned long long)p->seed, p->n_pos, p->n_batch, p->n_slots, w_types[p->type_k].name,
            w_types[p->type_v].name);
    for (int i = 0; i < p->n; i++)
        print_node(p, i, out);
    for (int i = 0; i < p->n_outputs; i++)
        fprintf(out, "output t%d\n", p->output[i]);
    for (int i = 0, a = 0; i < p->n_tokens; i++) {
        for (; a < p->n_actions && p->action[a].before <= i; a++) {
            fprintf(out, "\n");
            print_action(&p->action[a], out);
        }
        fprintf(out, "%s%d@%d", i ? " " : "tokens (slot@position): ", p->token[i].slot,
                p->token[i].pos);
    }
    fprintf(out, "\n");
}
