/* A module of SPIR-V is a sequence of instructions: a word with the number of words and the
 * opcode, then operands, most of which are ids. A function is a sequence of blocks, which begin
 * with a label and end with a branch:
 *
 *     source                  before                                   after
 *
 *     if (TYPE == F16)        OpSelectionMerge %end                    OpBranch %else
 *         a();                OpBranchConditional %f16 %then %else
 *     else                    %then: call a, OpBranch %end             %else: call b, OpBranch %end
 *         b();                %else: call b, OpBranch %end             %end:
 *                             %end:
 *
 * A block stands after the blocks that branch to it, except those at the end of a loop. So one pass
 * from a function's first block to its last finds the blocks that can be reached. The same pass
 * computes what depends only on constants. */
#include "trim.h"

#include <stdbool.h>
#include <string.h>

#include "ggl/alloc.h"

/* Numbers of the SPIR-V specification: opcodes, and the decoration SpecId. */
enum {
    OP_NAME = 5,
    OP_ENTRY_POINT = 15,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT_FALSE = 42,
    OP_CONSTANT = 43,
    OP_SPEC_TRUE = 48,
    OP_SPEC_FALSE = 49,
    OP_SPEC = 50,
    OP_SPEC_OP = 52,
    OP_FUNCTION = 54,
    OP_FUNCTION_END = 56,
    OP_CALL = 57,
    OP_DECORATE = 71,
    OP_U_DIV = 134,
    OP_U_MOD = 137,
    OP_LOGICAL_OR = 166,
    OP_LOGICAL_AND = 167,
    OP_LOGICAL_NOT = 168,
    OP_SELECT = 169,
    OP_PHI = 245,
    OP_LOOP_MERGE = 246,
    OP_SELECTION_MERGE = 247,
    OP_LABEL = 248,
    OP_BRANCH = 249,
    OP_CONDITIONAL = 250,
    OP_SWITCH = 251,
    OP_UNREACHABLE = 255,
    SPEC_ID = 1
};
enum { HEADER = 5 /* words before the first instruction */ };

/* What is known of an id. */
typedef struct info {
    uint32_t value; /* if known; of a boolean 0 or 1 */
    uint32_t spec;  /* 1 + the number of the specialization constant; 0: it is not one */
    uint32_t taken; /* a label: its block branches to this one alone; 0: to all that it names */
    bool is_word;   /* a type of booleans or of integers of 32 bits */
    bool known;
    bool reached;  /* a function or a label */
    bool passed;   /* likewise: the pass has seen it */
    bool is_merge; /* a label: a selection or a loop ends there, so it must remain */
    bool remains;  /* the result of an instruction that is kept */
} info;

typedef struct module {
    const uint32_t *code;
    size_t n_words, n_out;
    uint32_t bound; /* ids are less */
    uint32_t block; /* the label of the present block; 0: before a function's first one */
    uint32_t merge; /* where the selection ends that the present block begins; 0: it begins none */
    info *id;
    uint32_t *out;
    bool failed; /* blocks have an order that is not understood */
} module;

static uint32_t op_of(const uint32_t *i) {
    return *i & 0xffff;
}

static uint32_t size_of(const uint32_t *i) {
    return *i >> 16;
}

static info *id_of(const module *m, uint32_t id) {
    return &m->id[id < m->bound ? id : 0]; /* literals are not ids, and some are looked up here */
}

/* --- constants -------------------------------------------------------------------------------- */

/* FOLD(opcode, result): operators of words a and b. In a division, b is not 0. */
#define FOLDS                                                                                      \
    FOLD(128, a + b)                                                                               \
    FOLD(130, a - b)                                                                               \
    FOLD(132, (a * b))                                                                             \
    FOLD(OP_U_DIV, a / b)                                                                          \
    FOLD(OP_U_MOD, a % b)                                                                          \
    FOLD(164, a == b)                                                                              \
    FOLD(165, a != b)                                                                              \
    FOLD(OP_LOGICAL_OR, a | b)                                                                     \
    FOLD(OP_LOGICAL_AND, (a & b))                                                                  \
    FOLD(170, a == b)                                                                              \
    FOLD(171, a != b)                                                                              \
    FOLD(172, a > b)                                                                               \
    FOLD(174, a >= b)                                                                              \
    FOLD(176, a < b)                                                                               \
    FOLD(178, a <= b)                                                                              \
    FOLD(194, b < 32 ? a >> b : 0)                                                                 \
    FOLD(196, b < 32 ? a << b : 0)                                                                 \
    FOLD(197, a | b)                                                                               \
    FOLD(199, (a & b))

static bool fold(uint32_t op, uint32_t a, uint32_t b, uint32_t *out) {
    if (b == 0 && (op == OP_U_DIV || op == OP_U_MOD))
        return false;
    switch (op) {
#define FOLD(opcode, result)                                                                       \
    case opcode:                                                                                   \
        *out = result;                                                                             \
        return true;
        FOLDS
#undef FOLD
    }
    return false;
}

static void set(info *r, uint32_t value) {
    r->known = true;
    r->value = value;
}

/* Computes r from n operands, if it depends only on known ones. */
static void compute(const module *m, info *r, uint32_t op, const uint32_t *operand, uint32_t n) {
    const info *a = id_of(m, n > 0 ? operand[0] : 0), *b = id_of(m, n > 1 ? operand[1] : 0);
    const bool absorbs = op == OP_LOGICAL_OR;
    uint32_t value;
    if (op == OP_LOGICAL_NOT && a->known) {
        set(r, !a->value);
    } else if (op == OP_SELECT && a->known && n == 3) {
        const info *chosen = a->value ? b : id_of(m, operand[2]);
        if (chosen->known)
            set(r, chosen->value);
    } else if ((op == OP_LOGICAL_OR || op == OP_LOGICAL_AND) &&
               ((a->known && a->value == absorbs) || (b->known && b->value == absorbs))) {
        set(r, absorbs);
    } else if (n == 2 && a->known && b->known && fold(op, a->value, b->value, &value)) {
        set(r, value);
    }
}

/* True if the branch from block `from` to block `to` can be taken. */
static bool is_taken(const module *m, uint32_t from, uint32_t to) {
    const info *f = id_of(m, from);
    return f->reached && (f->taken == 0 || f->taken == to);
}

/* A value that depends on the block before: known if it is the same after all that are reached. */
static void compute_phi(const module *m, info *r, const uint32_t *i) {
    const info *same = NULL;
    for (uint32_t k = 3; k < size_of(i); k += 2) {
        const info *v = id_of(m, i[k]);
        if (!id_of(m, i[k + 1])->passed)
            return; /* the end of a loop */
        if (!is_taken(m, i[k + 1], m->block))
            continue;
        if (!v->known || (same && same->value != v->value))
            return;
        same = v;
    }
    if (same)
        set(r, same->value);
}

/* An instruction before the first function. */
static void read_global(module *m, const uint32_t *i, const uint32_t *spec, int n_spec) {
    const uint32_t op = op_of(i);
    if (op == OP_ENTRY_POINT)
        id_of(m, i[2])->reached = true;
    for (uint32_t k = 1; k < 3 && k < size_of(i) && op != OP_NAME && op != OP_DECORATE; k++)
        id_of(m, i[k])->remains = true; /* one of them is the result */
    if (op == OP_TYPE_BOOL || (op == OP_TYPE_INT && i[2] == 32))
        id_of(m, i[1])->is_word = true;
    if (op == OP_DECORATE && size_of(i) == 4 && i[2] == SPEC_ID)
        id_of(m, i[1])->spec = i[3] + 1;
    if (size_of(i) < 3 || !id_of(m, i[1])->is_word)
        return;
    info *r = id_of(m, i[2]);
    if (op == OP_CONSTANT_TRUE || op == OP_CONSTANT_FALSE)
        set(r, op == OP_CONSTANT_TRUE);
    else if (op == OP_CONSTANT)
        set(r, i[3]);
    else if (op == OP_SPEC_OP)
        compute(m, r, i[3], i + 4, size_of(i) - 4);
    else if ((op == OP_SPEC || op == OP_SPEC_TRUE || op == OP_SPEC_FALSE) && r->spec > 0)
        if (r->spec <= (uint32_t)n_spec)
            set(r, op == OP_SPEC ? spec[r->spec - 1] : spec[r->spec - 1] != 0);
}

/* --- which blocks are reached ----------------------------------------------------------------- */

static void reach(module *m, uint32_t label) {
    info *l = id_of(m, label);
    m->failed |= l->passed && !l->reached;
    l->reached = true;
}

/* Returns the target of a switch for a value. */
static uint32_t case_of(const uint32_t *i, uint32_t value) {
    for (uint32_t k = 3; k < size_of(i); k += 2)
        if (i[k] == value)
            return i[k + 1];
    return i[2];
}

/* The branch at the end of a block. A loop's condition stays as it is, because a loop needs its
 * blocks. */
static void read_branch(module *m, const uint32_t *i) {
    const uint32_t op = op_of(i);
    const bool known = op != OP_BRANCH && m->merge && id_of(m, i[1])->known;
    info *block = id_of(m, m->block);
    if (known && op == OP_CONDITIONAL)
        block->taken = id_of(m, i[1])->value ? i[2] : i[3];
    else if (known)
        block->taken = case_of(i, id_of(m, i[1])->value);
    if (m->merge && !(known && op == OP_CONDITIONAL))
        id_of(m, m->merge)->is_merge = true;
    if (known)
        reach(m, block->taken);
    else if (op == OP_BRANCH)
        reach(m, i[1]);
    for (uint32_t k = 2; k < size_of(i) && !known; k += op == OP_SWITCH ? 2 : 1)
        reach(m, i[k]);
}

static void read_label(module *m, const uint32_t *i) {
    info *l = id_of(m, i[1]);
    l->passed = true;
    l->reached |= m->block == 0;
    l->remains |= l->reached;
    m->block = i[1];
    m->merge = 0;
}

/* An instruction of a function that is called. */
static void read_instruction(module *m, const uint32_t *i) {
    const uint32_t op = op_of(i);
    if (op == OP_LABEL)
        read_label(m, i);
    if (op == OP_LABEL || !(m->block == 0 || id_of(m, m->block)->reached))
        return;
    if (size_of(i) > 2) {
        info *r = id_of(m, i[2]); /* or another operand, if there is no result */
        r->remains = true;
        if (id_of(m, i[1])->is_word && op == OP_PHI)
            compute_phi(m, r, i);
        else if (id_of(m, i[1])->is_word)
            compute(m, r, op, i + 3, size_of(i) - 3);
    }
    if (op == OP_CALL)
        id_of(m, i[3])->reached = true;
    if (op == OP_SELECTION_MERGE)
        m->merge = i[1];
    if (op == OP_LOOP_MERGE) {
        id_of(m, i[1])->is_merge = true;
        reach(m, i[2]);
    }
    if (op == OP_BRANCH || op == OP_CONDITIONAL || op == OP_SWITCH)
        read_branch(m, i);
}

/* Reads the functions that are called; again, if one stands before its caller. */
static void read_functions(module *m, size_t first) {
    bool reading, again = true;
    while (again) {
        reading = again = false;
        for (size_t at = first; at < m->n_words; at += size_of(m->code + at)) {
            const uint32_t *i = m->code + at;
            if (op_of(i) == OP_FUNCTION) {
                info *f = id_of(m, i[2]);
                reading = f->reached && !f->passed;
                f->passed |= reading;
                again |= reading;
                m->block = 0;
            }
            if (reading)
                read_instruction(m, i);
        }
    }
}

/* --- the result ------------------------------------------------------------------------------- */

static void put(module *m, const uint32_t *i, uint32_t n) {
    memcpy(m->out + m->n_out, i, n * sizeof *i);
    m->n_out += n;
}

/* Copies the values of a phi whose branches can be taken. */
static void put_phi(module *m, const uint32_t *i) {
    uint32_t *head = m->out + m->n_out;
    put(m, i, 3);
    for (uint32_t k = 3; k < size_of(i); k += 2)
        if (is_taken(m, i[k + 1], m->block))
            put(m, i + k, 2);
    *head = (uint32_t)(m->out + m->n_out - head) << 16 | OP_PHI;
}

/* An instruction of a block. */
static void put_instruction(module *m, const uint32_t *i) {
    const uint32_t op = op_of(i), next = op_of(i + size_of(i)), taken = id_of(m, m->block)->taken;
    if (!id_of(m, m->block)->reached) {
        if (op == OP_LABEL && id_of(m, m->block)->is_merge) {
            put(m, i, 2);
            put(m, (const uint32_t[]){1 << 16 | OP_UNREACHABLE}, 1);
        }
    } else if (op == OP_PHI) {
        put_phi(m, i);
    } else if (op == OP_CONDITIONAL && taken) {
        put(m, (const uint32_t[]){2 << 16 | OP_BRANCH, taken}, 2);
    } else if (op == OP_SWITCH && taken) {
        put(m, (const uint32_t[]){3 << 16 | OP_SWITCH, i[1], taken}, 3);
    } else if (!(op == OP_SELECTION_MERGE && next == OP_CONDITIONAL && taken)) {
        put(m, i, size_of(i));
    }
}

static void write(module *m, size_t first) {
    bool writing = true;
    put(m, m->code, HEADER);
    for (size_t at = HEADER; at < m->n_words; at += size_of(m->code + at)) {
        const uint32_t *i = m->code + at, op = op_of(i);
        if (op == OP_FUNCTION) {
            writing = id_of(m, i[2])->reached;
            m->block = 0;
        }
        if (op == OP_LABEL)
            m->block = i[1];
        if (!writing ||
            (at < first && (op == OP_NAME || op == OP_DECORATE) && !id_of(m, i[1])->remains))
            continue;
        if (at < first || m->block == 0 || op == OP_FUNCTION_END)
            put(m, i, size_of(i));
        else
            put_instruction(m, i);
    }
}

size_t ggl_vk_trim(const uint32_t *code, size_t n_words, const uint32_t *spec, int n_spec,
                   uint32_t **out) {
    module m = {.code = code, .n_words = n_words, .bound = code[3]};
    size_t at = HEADER;
    m.id = ggl_calloc(m.bound, sizeof *m.id);
    m.out = ggl_calloc(n_words, sizeof *m.out);
    *out = m.out;
    if (m.id && m.out) {
        for (; at < n_words && op_of(code + at) != OP_FUNCTION; at += size_of(code + at))
            read_global(&m, code + at, spec, n_spec);
        read_functions(&m, at);
        if (m.failed)
            put(&m, code, (uint32_t)n_words);
        else
            write(&m, at);
    } else {
        ggl_free(m.out);
        *out = NULL;
    }
    ggl_free(m.id);
    return m.n_out;
}
