/* Signatures of everything callable: functions, the operators of ops.def, and builtins, which have no
 * row there. */
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
    [FN_AROUND] = {"around",
                   {{"rows", false, false, false, NAN},
                    {"first", true, false, false, NAN},
                    {"k", true, false, false, NAN}},
                   3},
    [FN_PLANE_AROUND] = {"plane_around",
                         {{"rows", false, false, false, NAN}, {"k", true, false, false, NAN}},
                         2},
    [FN_GIVEN] = {"given",
                  {{"x", false, false, false, NAN},
                   {"together", true, true, false, 0},
                   {"added", true, true, false, 0}},
                  3},
    [FN_GIVEN_MORE] = {"given_more", {{"n", true, false, false, NAN}}, 1},
    [FN_IS_GIVEN] = {"is_given", {{{0}, false, false, false, NAN}}, 0},
    [FN_FLOATS] = {"floats", {{"rows", true, true, false, 0}}, 1},
    [FN_SOUND] = {"sound",
                  {{"rate", true, false, false, NAN},  {"window", true, false, false, NAN},
                   {"step", true, false, false, NAN},  {"seconds", true, false, false, NAN},
                   {"range", true, true, false, 8},    {"filters", false, true, false, NAN},
                   {"whole", true, true, false, 1},    {"begin", false, true, false, NAN},
                   {"end", false, true, false, NAN},   {"fft", true, true, false, NAN},
                   {"scale", false, true, false, NAN}, {"power", true, true, false, 2},
                   {"log", false, true, false, NAN},   {"least", true, true, false, 1e-10},
                   {"level", false, true, false, NAN}, {"emphasis", true, true, false, 0},
                   {"edges", false, true, false, NAN}, {"symmetric", true, true, false, 0},
                   {"taper", false, true, false, NAN}, {"needs", true, true, false, 1},
                   {"apart", true, true, false, 0},    {"shortest", true, true, false, 0},
                   {"after", true, true, false, 0},    {"largest", true, true, false, NAN},
                   {"lead", true, true, false, 0},     {"unit", true, true, false, 1},
                   {"trail", true, true, false, 0},    {"added", true, true, false, 0}},
                  28},
    [FN_SAMPLES] = {"samples",
                    {{"rate", true, false, false, NAN},
                     {"seconds", true, false, false, NAN},
                     {"begin", false, true, false, NAN},
                     {"end", false, true, false, NAN}},
                    4},
    [FN_PICTURE] = {"picture",
                    {{"patch", true, false, false, NAN},    {"mean", false, false, false, NAN},
                     {"std", false, false, false, NAN},     {"size", true, true, false, NAN},
                     {"fit", false, true, false, NAN},      {"resize", false, true, false, NAN},
                     {"block", true, true, false, 1},       {"least", true, true, false, NAN},
                     {"most", true, true, false, NAN},      {"color", false, true, false, NAN},
                     {"first", true, true, false, 0},       {"table", true, true, false, 0},
                     {"begin", false, true, false, NAN},    {"end", false, true, false, NAN},
                     {"line", false, true, false, NAN},     {"origin", true, true, false, 0},
                     {"cells", true, true, false, 0},       {"between", false, true, false, NAN},
                     {"crossed", true, true, false, 0},     {"inner", false, true, false, NAN},
                     {"places", true, true, false, 1},      {"line_end", false, true, false, NAN},
                     {"longest", true, true, false, 0},     {"thin", true, true, false, 0},
                     {"pairs", true, true, false, 0},       {"fill", false, true, false, NAN},
                     {"wide", true, true, false, 0},        {"widened", true, true, false, 0},
                     {"or_begin", false, true, false, NAN}, {"or_end", false, true, false, NAN}},
                    30},
    [FN_TILES] = {"tiles",
                  {{"picture", false, false, false, NAN},  {"by", false, false, false, NAN},
                   {"least", true, true, false, 1},        {"most", true, true, false, NAN},
                   {"grids", false, true, false, NAN},     {"fit", false, true, false, NAN},
                   {"resize", false, true, false, NAN},    {"color", false, true, false, NAN},
                   {"whole_first", true, true, false, 0},  {"begin", false, true, false, NAN},
                   {"end", false, true, false, NAN},       {"tile", false, true, false, NAN},
                   {"tile_end", false, true, false, NAN},  {"next", false, true, false, NAN},
                   {"line", false, true, false, NAN},      {"whole", false, true, false, NAN},
                   {"whole_end", false, true, false, NAN}, {"beside", false, true, false, NAN},
                   {"size", true, true, false, NAN},       {"above", true, true, false, NAN},
                   {"woven", true, true, false, 0},        {"unpad", true, true, false, 0},
                   {"line_end", false, true, false, NAN}},
                  23},
    [FN_PLACE] = {"place", {{"x", false, false, false, NAN}}, 1},
    [FN_IN_TURN] = {"in_turn", {{"x", false, false, false, NAN}}, 1},
    [FN_GUESS_BEFORE] = {"guess_before", {{{0}, false, false, false, NAN}}, 0},
    [FN_ASKED] = {"asked", {{"output", false, false, false, NAN}}, 1},
    [FN_TOKEN_TYPE] = {"token_type", {{"n", true, false, false, NAN}}, 1},
    [FN_VECTOR] = {"vector",
                   {{"list", false, false, false, NAN}, {"n", true, false, false, NAN}},
                   2},
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

const arch_fn *llm_arch_find_fn(const llm_arch *a, const arch_text *text, const char *name) {
    for (int k = text->prelude; k < 2; k++)
        for (const arch_fn *f = k ? a->prelude_fn : a->fn; f; f = f->next)
            if (strcmp(f->name, name) == 0)
                return f;
    return NULL;
}

static const char *number_text(double x, char *buf, size_t size) {
    snprintf(buf, size, "%.12g", x);
    return buf;
}

const char *llm_arch_fn_signature(const arch_fn *fn, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "%s(", fn->name);
    for (int k = 0; k < fn->n_param && n < size; k++) {
        char fallback[48] = "";
        if (fn->param[k].fallback)
            llm_arch_quote(fn->param[k].fallback->place, fallback, sizeof fallback);
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s", k ? ", " : "", fn->param[k].name,
                              fallback[0] ? " = " : "", fallback);
    }
    if (n < size)
        snprintf(buf + n, size - n, ")");
    return buf;
}

/* Returns what stands for an optional argument of an operator that is not given: the name of an input in buf, or "none". */
static const char *instead_of(const char *op, const char *param, char buf[16]) {
    for (int i = 0; i < GGL_OP_COUNT; i++)
        for (int k = 0;
             strcmp(ggl_op_get((ggl_op)i).name, op) == 0 && k < ggl_op_get((ggl_op)i).n_params;
             k++) {
            const ggl_param p = ggl_op_param((ggl_op)i, k);
            if (strcmp(p.name, param) == 0 && p.supplied[0])
                return memcpy(buf, p.supplied, sizeof p.supplied);
        }
    return "none";
}

const char *llm_arch_sig_text(const arch_sig *s, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "%s(", s->name);
    for (int k = 0; k < s->n_param && n < size; k++) {
        const arch_sig_param *p = &s->param[k];
        char num[40], supplied[16];
        bool has_default = p->optional && p->fallback == p->fallback;
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s%s", k ? ", " : "", p->name,
                              p->variadic ? ", .." : "", p->optional ? " = " : "",
                              has_default   ? number_text(p->fallback, num, sizeof num)
                              : p->optional ? instead_of(s->name, p->name, supplied)
                                            : "");
    }
    if (n < size)
        snprintf(buf + n, size - n, ")");
    return buf;
}
