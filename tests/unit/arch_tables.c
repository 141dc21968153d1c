/* llm-arch show and init of files with very many tensors: steps are linear in them. */
#include "arch_tool.h"
#include "ggl/gguf.h"
#include "steps.h"

/* Tensors of so many names, or of one name in as many layers, each of another shape. */
static bool write_model(const char *path, int n, bool layers) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_error err = {0};
    ggl_gguf_put_string(w, "general.architecture", "x", 1);
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, layers ? "blk.%d.a.weight" : i % 2 ? "a%d.bias" : "a%d.weight", i);
        ggl_gguf_put_tensor(w, name, GGL_F32, 2, (int64_t[]){0, i}, "");
    }
    ggl_status s = ggl_gguf_writer_write(w, path, &err);
    ggl_gguf_writer_free(w);
    return CHECK_OK(s, &err);
}

static uint64_t steps_of(arch_command *command, char *name, int n, bool layers) {
    char path[1100];
    snprintf(path, sizeof path, "%s", test_path("model.gguf"));
    if (!write_model(path, n, layers))
        return 0;
    char tool[] = "llm-arch", *argv[] = {tool, path, NULL, NULL};
    if (name) {
        argv[1] = name;
        argv[2] = path;
    }
    ggl_n_steps = 0;
    CHECK_INT(command(name ? 3 : 2, argv), 0);
    return ggl_n_steps;
}

static void check(arch_command *command, char *name) {
    REQUIRE(freopen("/dev/null", "w", stdout)); /* what they print */
    for (int layers = 0; layers < 2; layers++)
        test_linear(layers ? "a name in many layers" : "many names", steps_of(command, name, 2000, layers),
                    steps_of(command, name, 20000, layers), 10);
}

TEST(show) {
    check(arch_show, NULL);
}

TEST(init) {
    char name[] = "x";
    check(arch_init, name);
}
