/* Signatures of everything callable besides functions: the operators of ops.def, and builtins,
 * which have no row there. */
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "language.h"

static const arch_sig builtins[FN_BUILTIN_COUNT] = {
    [FN_SPLIT] = {"split",
                  {{"x", false, false, false, NAN},
                   {"size", true, false, true, NAN},
                   {"dim", true, true, false, 0}},
                  3},
    [FN_CONCAT] = {"concat", {{"x", false, false, true, NAN}, {"dim", true, true, false, 0}}, 2},
    [FN_SIZE] = {"size", {{"x", false, false, false, NAN}, {"dim", true, true, false, 0}}, 2},
    [FN_COUNT] = {"count", {{"x", false, false, false, NAN}}, 1},
    [FN_CEIL] = {"ceil", {{"x", true, false, false, NAN}}, 1},
    [FN_LOG2] = {"log2", {{"x", true, false, false, NAN}}, 1},
};

int llm_arch_find_builtin(const char *name) {
    int k = 0;
    while (k < FN_BUILTIN_COUNT && strcmp(builtins[k].name, name) != 0)
        k++;
    return k;
}

arch_sig llm_arch_sig_of_builtin(int k) {
    return builtins[k];
}

arch_sig llm_arch_sig_of_op(ggl_op op) {
    ggl_op_info info = ggl_op_get(op);
    arch_sig s = {.name = info.name};
    for (int k = 0; k < info.n_params && s.n_param < ARCH_MAX_SIG; k++) {
        ggl_param p = ggl_op_param(op, k);
        if (p.kind == GGL_PARAM_SUPPLIED)
            continue;
        arch_sig_param *to = &s.param[s.n_param++];
        *to = (arch_sig_param){.number = p.kind == GGL_PARAM_NUMBER,
                               .optional = p.optional,
                               .variadic = p.variadic,
                               .fallback = p.fallback};
        memcpy(to->name, p.name, sizeof to->name);
    }
    return s;
}

const char *llm_arch_primitive_name(int k) {
    if (k < FN_BUILTIN_COUNT)
        return builtins[k].name;
    for (int op = 0; op < GGL_OP_COUNT; op++)
        if (ggl_op_get((ggl_op)op).callable && k-- == FN_BUILTIN_COUNT)
            return ggl_op_get((ggl_op)op).name;
    return NULL;
}
