/* vulkan.steps: how many dispatches and barriers a token takes, for a made-up model of each family, as
 * steps.txt has them. Weights are copied to one region, as on a device with memory of its own. After a change that is meant:
 *
 *     GGL_STEPS_WRITE=1 ctest --test-dir build/release -R vulkan.steps */
#include "../models/toy_run.h"
#include "vulkan_test.h"

/* Prints what the plans for one token do: "12 dispatches, 9 barriers", for each segment. */
static void print_runs(FILE *out, const ggl_sched *s) {
    static const char mark[] = "for one element: ";
    char *text = NULL;
    size_t size = 0;
    FILE *plan = open_memstream(&text, &size);
    ggl_sched_print(s, plan, false);
    fclose(plan);
    for (const char *at = text; (at = strstr(at, mark)); at++)
        fprintf(out, "; %.*s", (int)strcspn(at + sizeof mark - 1, "\n"), at + sizeof mark - 1);
    fprintf(out, "\n");
    free(text);
}

/* Prints a line for the toy. false: a failure was reported. */
static bool print_toy(FILE *out, const char *name, const toy_model *t, ggl_backend *vulkan,
                      ggl_backend *reference) {
    toy_run r;
    ggl_error err = {0};
    if (!toy_start(&r, t, &vulkan, 1, reference, -1, GGL_F16, &err)) {
        /* an operator that is left to other backends: the line says so, until there is a kernel */
        fprintf(out, "%s; refused: %.*s\n", name, (int)strcspn(err.msg, " "), err.msg);
        return CHECK_MSG(strstr(err.msg, "there is no kernel for it") ||
                             strstr(err.msg, "chosen rows is not there"),
                         "%s: %s", name, err.msg);
    }
    fprintf(out, "%s", name);
    print_runs(out, r.sched);
    toy_stop(&r);
    return true;
}

static void print_all(FILE *out, ggl_backend *vulkan, ggl_backend *reference) {
    const char *name, *text;
    size_t n;
    ggl_error err = {0};
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        toy_model t;
        if (!CHECK_MSG(toy_open(&t, name, text, n, 0, &err), "%s: %s", name, err.msg))
            continue;
        print_toy(out, name, &t, vulkan, reference);
        toy_close(&t);
    }
}

/* Compares text with the file, line by line; skipped if the file is of another device, as its first
 * line says: attention is divided as the device's size asks for. */
static void compare(const char *text, FILE *in) {
    char want[512], have[512];
    for (int line = 1; fgets(want, sizeof want, in); line++) {
        const size_t n = strcspn(text, "\n") + (*text != 0);
        snprintf(have, sizeof have, "%.*s", (int)n, text);
        if (line == 1 && strcmp(want, have) != 0)
            SKIP("steps.txt is of another device");
        CHECK_MSG(strcmp(want, have) == 0, "steps.txt, line %d:\n  %s  now:\n  %s", line, want,
                  have);
        text += n;
    }
    CHECK_MSG(!*text, "steps.txt ends before: %s", text);
}

TEST(of_one_token) {
    ggl_error err = {0};
    ggl_backend *vulkan = vulkan_open("idot,import"), *reference = NULL;
    char *text = NULL;
    size_t size = 0;
    if (!vulkan)
        return;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "%.*s\n", (int)strcspn(vulkan->description, ";"), vulkan->description);
    print_all(out, vulkan, reference);
    fclose(out);
    FILE *file = fopen(STEPS, getenv("GGL_STEPS_WRITE") ? "w" : "r");
    if (CHECK(file) && getenv("GGL_STEPS_WRITE"))
        fputs(text, file);
    else if (file)
        compare(text, file);
    if (file)
        fclose(file);
    free(text);
    ggl_backend_close(vulkan);
    ggl_backend_close(reference);
}
