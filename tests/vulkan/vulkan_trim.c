/* vulkan.trim: code that specialization constants exclude is removed from shaders, and nothing else.
 * A small module is compared word by word with what it must become; all shaders are looked at for
 * what a valid module must have. Whether trimmed shaders compute the same, all other tests of the
 * backend show, and its validation layer checks them. Needs no device. */
#include "ggl/alloc.h"
#include "ggl/types.h"
#include "test.h"
#include "shader_table.h"
#include "trim.h"
#include "vulkan.h"

/* --- a small module --------------------------------------------------------------------------- */

#define WORDS(...)   (sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define OP(op, ...)  (uint32_t)((1 + WORDS(__VA_ARGS__)) << 16 | (op)), __VA_ARGS__
#define RETURN       1 << 16 | 253
#define UNREACHABLE  1 << 16 | 255
#define FUNCTION_END 1 << 16 | 56

enum {
    BOUND = 100,
    MAIN = 1,
    VOID,
    FUNCTION,
    BOOL,
    UINT,
    TYPE, /* specialization constants 0 and 1 */
    ALIGNED,
    TWO,
    THREE,
    IS_TWO,
    A, /* functions */
    B,
    C,
    L /* L + 0, L + 1, ..: labels and results */
};

#define GLOBALS                                                                                    \
    0x07230203, 0x00010300, 0, BOUND, 0, OP(17, 1), OP(14, 0, 1), OP(15, 5, MAIN, 0x6e69616d, 0)
#define CONSTANTS                                                                                  \
    OP(71, TYPE, 1, 0), OP(71, ALIGNED, 1, 1), OP(19, VOID), OP(33, FUNCTION, VOID), OP(20, BOOL), \
        OP(21, UINT, 32, 0), OP(50, UINT, TYPE, 7), OP(48, BOOL, ALIGNED), OP(43, UINT, TWO, 2),   \
        OP(43, UINT, THREE, 3), OP(52, BOOL, IS_TWO, 170, TYPE, TWO)
#define BEGIN(f)                OP(54, VOID, f, 0, FUNCTION)
#define LABEL(l)                OP(248, L + (l))
#define MERGE(l)                OP(247, L + (l), 0)
#define BRANCH(l)               OP(249, L + (l))
#define CONDITIONAL(c, yes, no) OP(250, c, L + (yes), L + (no))
#define CALL(result, f)         OP(57, VOID, L + (result), f)
#define NO_CONTRACTION(result)  OP(71, L + (result), 42)
#define LEAF(f, label, result)                                                                     \
    BEGIN(f), LABEL(label), OP(128, UINT, L + (result), TWO, TYPE), RETURN, FUNCTION_END

/* main: if (TYPE == 2) a(); else b(); switch (TYPE) { case 2: a(); break; case 3: return; default: b(); }
 * if (ALIGNED || !(TYPE == 2)) c(); */
static const uint32_t module[] = {GLOBALS,
                                  NO_CONTRACTION(31),
                                  NO_CONTRACTION(33),
                                  NO_CONTRACTION(35),
                                  CONSTANTS,
                                  LEAF(A, 30, 31),
                                  BEGIN(MAIN),
                                  LABEL(0),
                                  MERGE(3),
                                  CONDITIONAL(IS_TWO, 1, 2),
                                  LABEL(1),
                                  CALL(20, A),
                                  BRANCH(3),
                                  LABEL(2),
                                  CALL(21, B),
                                  BRANCH(3),
                                  LABEL(3),
                                  MERGE(7),
                                  OP(251, TYPE, L + 4, 2, L + 5, 3, L + 6),
                                  LABEL(4),
                                  CALL(22, B),
                                  BRANCH(7),
                                  LABEL(5),
                                  CALL(23, A),
                                  BRANCH(7),
                                  LABEL(6),
                                  RETURN,
                                  LABEL(7),
                                  MERGE(9),
                                  CONDITIONAL(ALIGNED, 9, 8),
                                  LABEL(8),
                                  OP(168, BOOL, L + 24, IS_TWO),
                                  BRANCH(9),
                                  LABEL(9),
                                  OP(245, BOOL, L + 25, ALIGNED, L + 7, L + 24, L + 8),
                                  MERGE(11),
                                  CONDITIONAL(L + 25, 10, 11),
                                  LABEL(10),
                                  CALL(26, C),
                                  BRANCH(11),
                                  LABEL(11),
                                  RETURN,
                                  FUNCTION_END,
                                  LEAF(B, 32, 33),
                                  LEAF(C, 34, 35)};

static void check(const uint32_t *spec, int n_spec, const uint32_t *want, size_t n_want) {
    uint32_t *got;
    const size_t n = ggl_vk_trim(module, sizeof module / 4, spec, n_spec, &got);
    CHECK_INT(n, n_want);
    for (size_t i = 0; i < n && i < n_want; i++)
        if (!CHECK_MSG(got[i] == want[i], "word %zu is %x, expected %x", i, got[i], want[i]))
            break;
    ggl_free(got);
}

#define CHECK_TRIMMED(spec, ...) check(spec, 2, (const uint32_t[]){__VA_ARGS__}, WORDS(__VA_ARGS__))

TEST(a_case_is_taken) {
    CHECK_TRIMMED(((const uint32_t[]){2, 0}), GLOBALS, NO_CONTRACTION(31), CONSTANTS,
                  LEAF(A, 30, 31), BEGIN(MAIN), LABEL(0), BRANCH(1), LABEL(1), CALL(20, A),
                  BRANCH(3), LABEL(3), MERGE(7), OP(251, TYPE, L + 5), LABEL(5), CALL(23, A),
                  BRANCH(7), LABEL(7), BRANCH(8), LABEL(8), OP(168, BOOL, L + 24, IS_TWO),
                  BRANCH(9), LABEL(9), OP(245, BOOL, L + 25, L + 24, L + 8), BRANCH(11), LABEL(11),
                  RETURN, FUNCTION_END);
}

TEST(the_default_is_taken) {
    CHECK_TRIMMED(((const uint32_t[]){0, 1}), GLOBALS, NO_CONTRACTION(33), NO_CONTRACTION(35),
                  CONSTANTS, BEGIN(MAIN), LABEL(0), BRANCH(2), LABEL(2), CALL(21, B), BRANCH(3),
                  LABEL(3), MERGE(7), OP(251, TYPE, L + 4), LABEL(4), CALL(22, B), BRANCH(7),
                  LABEL(7), BRANCH(9), LABEL(9), OP(245, BOOL, L + 25, ALIGNED, L + 7), BRANCH(10),
                  LABEL(10), CALL(26, C), BRANCH(11), LABEL(11), RETURN, FUNCTION_END,
                  LEAF(B, 32, 33), LEAF(C, 34, 35));
}

/* The end of the switch is not reached, but the switch must have one. */
TEST(the_end_of_a_switch_remains) {
    CHECK_TRIMMED(((const uint32_t[]){3, 1}), GLOBALS, NO_CONTRACTION(33), CONSTANTS, BEGIN(MAIN),
                  LABEL(0), BRANCH(2), LABEL(2), CALL(21, B), BRANCH(3), LABEL(3), MERGE(7),
                  OP(251, TYPE, L + 6), LABEL(6), RETURN, LABEL(7), UNREACHABLE, FUNCTION_END,
                  LEAF(B, 32, 33));
}

/* A constant without a value has the module's own, which a driver may be given another way. */
TEST(constants_without_a_value) {
    check(NULL, 0, module, sizeof module / 4);
}

/* --- the shaders ------------------------------------------------------------------------------ */

static size_t trim(int k, const uint32_t *spec, uint32_t **out) {
    return ggl_vk_trim((const uint32_t *)(const void *)shader[k].code, *shader[k].size / 4, spec,
                       VK_MAX_SPEC, out);
}

/* Marks the labels and functions that an instruction defines, or names if `names`. */
static void mark(const uint32_t *i, bool names, unsigned char *at) {
    const uint32_t op = *i & 0xffff, n = *i >> 16;
    if (!names && (op == 248 || op == 54)) /* OpLabel, OpFunction */
        at[i[op == 248 ? 1 : 2]] = 1;
    if (!names)
        return;
    if (op == 57) /* OpFunctionCall */
        at[i[3]] = 1;
    if (op == 247 || op == 246 || op == 249) /* OpSelectionMerge, OpLoopMerge, OpBranch */
        at[i[1]] = 1;
    if (op == 246)
        at[i[2]] = 1;
    for (uint32_t k = 2; k < n && (op == 250 || op == 251); k += op == 251 ? 2 : 1)
        at[i[k]] = 1; /* OpBranchConditional, OpSwitch */
    for (uint32_t k = 4; k < n && op == 245; k += 2)
        at[i[k]] = 1; /* OpPhi */
}

/* All labels and functions that are named are there. */
static void check_whole(const char *name, const uint32_t *code, size_t n) {
    static unsigned char defined[1 << 16], named[1 << 16];
    memset(defined, 0, sizeof defined);
    memset(named, 0, sizeof named);
    REQUIRE(code[3] < sizeof defined);
    for (size_t at = 5; at < n; at += code[at] >> 16) {
        mark(code + at, false, defined);
        mark(code + at, true, named);
    }
    for (uint32_t id = 0; id < code[3]; id++)
        if (!CHECK_MSG(!named[id] || defined[id], "%s: %%%u is not defined", name, id))
            return;
}

TEST(shaders_are_whole) {
    uint64_t state = 1;
    for (int k = 0; k < VK_SHADER_COUNT; k++)
        for (int turn = 0; turn < 16; turn++) {
            uint32_t spec[VK_MAX_SPEC], *once, *twice;
            for (int i = 0; i < VK_MAX_SPEC; i++)
                spec[i] =
                    (uint32_t)(test_random(&state) % (i == 1 && turn % 2 ? GGL_TYPE_COUNT : 3));
            const size_t n = trim(k, spec, &once),
                         n_twice = ggl_vk_trim(once, n, spec, VK_MAX_SPEC, &twice);
            check_whole(shader[k].name, once, n);
            CHECK_MSG(n == n_twice && memcmp(once, twice, n * 4) == 0, "%s is trimmed further",
                      shader[k].name);
            ggl_free(once);
            ggl_free(twice);
        }
}

/* A product with q4_0 has no code of other types. */
TEST(most_of_a_product_is_removed) {
    const uint32_t spec[VK_MAX_SPEC] = {64, GGL_Q4_0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1};
    const int k[] = {VK_SHADER_LINEAR_VEC, VK_SHADER_LINEAR_MAT, VK_SHADER_LINEAR_VEC_IDOT};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        uint32_t *code;
        const size_t n = trim(k[i], spec, &code), whole = *shader[k[i]].size / 4;
        CHECK_MSG(n < whole * 2 / 3, "%s: %zu of %zu words", shader[k[i]].name, n, whole);
        ggl_free(code);
    }
}
