/* Made-up models (llm_arch_check): what they obey, and which branches they take. */
#include <stdio.h>
#include <stdlib.h>

#include "arch_test.h"
#include "ggl/alloc.h"
#include "test.h"

/* `want`: the notes without the file's name in the first line; "": there are none. */
static void check_notes(const char *file, int line, const char *top, const char *body,
                        const char *want) {
    char *text = arch_text(top, body), *notes = NULL, full[300] = "";
    ggl_error err = {0};
    llm_arch *a = NULL;
    ggl_status s = llm_arch_parse(&a, text, strlen(text), "t.arch", &err);
    if (s == GGL_OK)
        s = llm_arch_check(a, &notes, &err);
    if (*want)
        snprintf(full, sizeof full, "t.arch:%s", want);
    CHECK_MSG(s == GGL_OK, "%s:%d: %s%s%s", file, line, top, body, err.msg);
    if (s == GGL_OK)
        CHECK_MSG(strcmp(notes ? notes : "", full) == 0, "%s:%d: %s%snotes: %s", file, line, top,
                  body, notes ? notes : "none");
    ggl_free(notes);
    llm_arch_free(a);
    free(text);
}
#define CHECK_NOTES(top, body, want) check_notes(__FILE__, __LINE__, top, body, want)

/* Made-up models obey what a `require` says. */
TEST(made_up_values_obey) {
    static const char *const list[] = {
        ".a.b > 5",
        ".a.b < 1",
        "5 < .a.b",
        ".a.b >= 5 and .a.c <= 1",
        ".a.b != 2",
        ".a.b + .a.c == 9",
        ".a.b * 2 > 9",
        "100 - .a.b / 2 < 20",
        "n_embd % .a.b == 0 and .a.b > 5",
        ".a.b % 7 == 0",
        "n_embd == .a.b * .a.c",
        "1 <= .a.b and .a.b <= n_embd / 2",
        "(.a.b \?\? 2) > 5",
        "not (.a.b < 3 or .a.c < 5)",
        "not (.a.b < 3 and .a.c < 5)",
        ".kind[0]",
        ".on and not .off",
        "n_vocab > 3072",
        "n_vocab % 7 == 3",
        "n_ctx > 100 and n_ctx < 140",
        "n_ctx <= 20",
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char line[96];
        snprintf(line, sizeof line, "require %s\n", list[k]);
        CHECK_NOTES("", line, "");
    }
}

/* Both sides of a condition are met, also where its key comes through a name or a function's parameter; what is not met is
 * reported. */
TEST(made_up_models_take_both_sides) {
    CHECK_NOTES("n = .a.b\n", "if n > 0: x = x * 2\n", "");
    CHECK_NOTES("", "if .a.b > 2:\n  x = x * 2\n", "");
    CHECK_NOTES("", "if 2 <= .a.b: x = x * 2\n", "");
    CHECK_NOTES("", "if .a.b > .c.d: x = x * 2\n", "");
    CHECK_NOTES("", "if (.a.b \?\? 3) >= 3: x = x * 2\n", "");
    CHECK_NOTES("", "layer l < 4:\n  n = .a.b[l]\n  if n > 0: x = x * n\n", "");
    CHECK_NOTES("", "layer l < 4:\n  if .a.b[l]: x = x * 2\n", "");
    CHECK_NOTES("def act(x, on):\n  if on: return x * 2\n  return x * 3\n", "x = act(x, .a.b)\n",
                "");
    CHECK_NOTES("def act(x, n):\n  if n < 2: return x * 2\n  return x * 3\n",
                "layer l < 4:\n  x = act(x, n = .a.b[l])\n", "");
    CHECK_NOTES("", "if n_vocab > 1000: x = x * 2\n",
                "6: this condition is true in no made-up model\n");
    CHECK_NOTES("", "if n_vocab > 1000:\n  x = x * 2\n", "7: no made-up model reaches this line\n");
    CHECK_NOTES("", "if n_vocab < 1000: x = x * 2\n",
                "6: this condition is true in every made-up model\n");
    CHECK_NOTES("", "if .embedding_length > 100000:\n  x = x * 2\n",
                "7: no made-up model reaches this line\n");
    CHECK_NOTES("def act(x):\n  if n_vocab < 1000: return x\n  return x * 3\n", "x = act(x) * 1\n",
                "4: this condition is true in every made-up model\nt.arch:5: no made-up model "
                "reaches this line\n");
}
