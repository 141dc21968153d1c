/* The operator table, made from ops.def, and the parser of its signatures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/number.h"

enum { rounded, exact }; /* as the rows say */

static const struct {
    const char *name, *signature, *text;
    bool exact;
    ggl_op_kind kind;
} ops[GGL_OP_COUNT] = {
#define OP(ID, name, signature, rule, result, bits, kind, text)                                    \
    [GGL_OP_##ID] = {name, signature, text, bits, GGL_KIND_##kind},
#include "ggl/ops.def"
#undef OP
};

static int count_words(const char *s) {
    int n = 0;
    for (bool in = false; *s; s++) {
        if (*s == ' ')
            in = false;
        else if (!in)
            n++, in = true;
    }
    return n;
}

ggl_op_info ggl_op_get(ggl_op op) {
    const char *name = ops[op].name;
    bool word = (name[0] >= 'a' && name[0] <= 'z');
    return (ggl_op_info){name, ops[op].signature, ops[op].text, count_words(ops[op].signature),
                         word, ops[op].exact,     ops[op].kind};
}

ggl_param ggl_op_param(ggl_op op, int k) {
    ggl_param p = {.kind = GGL_PARAM_TENSOR, .fallback = NAN};
    const char *s = ops[op].signature;
    while (k-- > 0) {
        s += strcspn(s, " ");
        s += strspn(s, " ");
    }
    if (*s == '#' || *s == '@')
        p.kind = *s++ == '#' ? GGL_PARAM_NUMBER : GGL_PARAM_SUPPLIED;
    size_t n = strcspn(s, " ?=.");
    memcpy(p.name, s, n < sizeof p.name ? n : sizeof p.name - 1);
    s += n;
    p.variadic = *s == '.';
    p.optional = *s == '?' || *s == '=';
    if (s[0] == '=' && s[1] == '@') {
        n = strcspn(s + 2, " ");
        memcpy(p.supplied, s + 2, n < sizeof p.supplied ? n : sizeof p.supplied - 1);
    } else if (*s == '=')
        p.fallback = ggl_number_value(s + 1, strlen(s + 1));
    return p;
}

bool ggl_op_supplies(ggl_op op, int i_src) {
    const int n = ggl_op_get(op).n_params;
    for (int k = 0; k < n; k++) {
        const ggl_param p = ggl_op_param(op, k);
        if (p.kind != GGL_PARAM_NUMBER && i_src-- == 0)
            return p.kind == GGL_PARAM_SUPPLIED || p.supplied[0];
    }
    return false;
}

ggl_op ggl_op_find(const char *name) {
    int op = 0;
    while (op < GGL_OP_COUNT && strcmp(ops[op].name, name) != 0)
        op++;
    return (ggl_op)op;
}
