/* Which operators the runtime for boards has (models/small/ops.c). */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "small/program.h"
#include "test.h"

/* Every operator that a model that writes text can have is in the table, but the choice of rows and n-grams, which models have that no board can hold; those of
 * gradients are not. */
TEST(operators_have_rows) {
    for (int op = 0; op < GGL_OP_COUNT; op++) {
        const ggl_tensor t = {.op = (ggl_op)op, .ne = {1, 1, 1, 1}};
        const bool is_leaf = ggl_op_get(t.op).kind == GGL_KIND_LEAF && op != GGL_OP_IOTA,
                   is_absent = op == GGL_OP_LINEAR_BACK || op == GGL_OP_OUTER_SUM ||
                               op == GGL_OP_ATTEND_BACK || op == GGL_OP_CHOOSE_ROWS ||
                               op == GGL_OP_NGRAMS;
        if (op != GGL_OP_CALL && !is_leaf)
            CHECK_MSG((llm_small_refuses(NULL, &t) == NULL) == !is_absent, "'%s'",
                      ggl_op_get(t.op).name);
    }
}

/* Numbers are those of C, also where C's library writes another point. */
TEST(numbers_are_written_whole) {
    static const char *const names[] = {"C", "de_DE.UTF-8", "ps_AF.UTF-8", "fa_IR.UTF-8"};
    const double x[] = {0, -0.0, 1, 1.25, -0.1, 1e-45, 0x1.fffffep127, 5e-324};
    char text[64];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!setlocale(LC_ALL, names[k]))
            continue;
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
            llm_small_number(x[i], text);
            CHECK_MSG(strspn(text, "0123456789abcdefxp+-.") == strlen(text), "%s", text);
            setlocale(LC_ALL, "C");
            const double y = strtod(text, NULL);
            CHECK_MSG(memcmp(&x[i], &y, sizeof y) == 0, "%s: %a, not %a", text, y, x[i]);
            setlocale(LC_ALL, names[k]);
        }
    }
    setlocale(LC_ALL, "C");
    CHECK_STR(llm_small_number((double)NAN, text), "(0.0/0.0)");
    CHECK_STR(llm_small_number(-(double)INFINITY, text), "(-1.0/0.0)");
}

TEST(a_missing_operator_is_named) {
    ggl_error err = {0};
    small_call call;
    const ggl_tensor t = {.op = GGL_OP_OUTER_SUM, .ne = {1, 1, 1, 1}};
    ggl_step s = {.kind = GGL_STEP_NODE, .node = &t, .dst = {.region = -1}};
    CHECK(llm_small_call(&s, &call, &err) == GGL_UNSUPPORTED);
    CHECK_MSG(strstr(err.msg, "'<outer_sum>'") && strstr(err.msg, "small boards"), "%s", err.msg);
}

TEST(a_wrong_type_is_named) {
    ggl_error err = {0};
    small_call call;
    const ggl_tensor t = {.op = GGL_OP_ADD, .ne = {1, 1, 1, 1}};
    ggl_step s = {.kind = GGL_STEP_NODE,
                  .node = &t,
                  .dst = {.region = 0},
                  .src = {{.region = 0, .type = GGL_I32}, {.region = 0}},
                  .n_src = 2};
    CHECK(llm_small_call(&s, &call, &err) == GGL_UNSUPPORTED);
    CHECK_MSG(strstr(err.msg, "'+'") && strstr(err.msg, "i32"), "%s", err.msg);
}
