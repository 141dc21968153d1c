/* Backends in shared objects: what is wrong with one is said with names and numbers, and a right
 * one computes. */
#include <dlfcn.h>
#include <math.h>

#include "../models/toy_run.h"
#include "ggl/program.h"
#include "test.h"

static ggl_status open_error(const char *path, ggl_error *err) {
    ggl_backend *b = NULL;
    *err = (ggl_error){0};
    ggl_status st = ggl_backend_open(&b, path, NULL, err);
    CHECK_MSG(st != GGL_OK && !b, "%s was opened", path);
    ggl_backend_close(b);
    return st;
}

TEST(errors) {
    static const struct {
        const char *name;
        ggl_status status;
        const char *words;
    } wrong[] = {
        {"other_abi", GGL_UNSUPPORTED, "version 77 of the interface"},
        {"other_size", GGL_UNSUPPORTED, "functions of 8 bytes"},
        {"other_types", GGL_UNSUPPORTED, "knows 12 types of elements"},
        {"no_symbol", GGL_FORMAT, "no symbol 'ggl_backend_plugin'"},
        {"no_name", GGL_FORMAT, "has no name"},
        {"no_open", GGL_FORMAT, "has no function 'open'"},
        {"no_run", GGL_DEVICE, "backend 'mine' has no function 'run'"},
        {"no_refuses", GGL_DEVICE, "backend 'mine' has no function 'refuses'"},
        {"half_marks", GGL_DEVICE, "backend 'mine' has no function 'mark'"},
        {"half_repack", GGL_DEVICE, "backend 'mine' has no function 'repack_size'"},
        {"fails", GGL_DEVICE, "the device is asleep"},
        {"no_backend", GGL_DEVICE, "returns no backend"},
        {"not_there", GGL_NOT_FOUND, "No such file"},
    };
    ggl_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char path[1024];
        snprintf(path, sizeof path, PLUGINS "/%s.so", wrong[i].name);
        CHECK_INT(open_error(path, &err), wrong[i].status);
        CHECK_HAS(err.msg, wrong[i].words);
        CHECK_HAS(err.msg, wrong[i].name);
    }
}

TEST(no_shared_object) {
    ggl_error err;
    const char *text = test_path("text.so");
    REQUIRE(test_write_file(text, "#!/bin/sh\n", 10));
    CHECK_INT(open_error(text, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "text.so");
    CHECK_INT(open_error(test_folder(), &err), GGL_FORMAT); /* a folder */
    char *endless = calloc(1, 10000);
    REQUIRE(endless);
    memset(endless, '/', 9999);
    CHECK_INT(open_error(endless, &err), GGL_NOT_FOUND);
    free(endless);
}

/* Logits of a prompt, to free(). */
static float *logits_of(const toy_model *t, ggl_backend *b, ggl_backend *fold, size_t *n) {
    toy_run r;
    ggl_error err = {0};
    float *logits = NULL;
    if (CHECK_MSG(toy_start(&r, t, &b, 1, fold, -1, GGL_F32, &err), "%s", err.msg)) {
        *n = (size_t)r.n_vocab * 20;
        logits = calloc(*n, sizeof *logits);
        CHECK_MSG(logits && toy_prompt(&r, 0, 20, 7, logits, &err), "%s", err.msg);
        toy_stop(&r);
    }
    return logits;
}

TEST(computes) {
    const char *name, *text;
    size_t size, n = 0, m = 0;
    ggl_error err = {0};
    ggl_backend *mine = NULL, *again = NULL, *reference = NULL;
    toy_model t;
    REQUIRE_OK(ggl_backend_open(&mine, PLUGINS "/mine.so", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&again, PLUGINS "/mine.so", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    CHECK_STR(mine->name, "mine");
    int k = 0;
    while (llm_arch_builtin(k, &name, &text, &size) && strcmp(name, "llama.arch") != 0)
        k++;
    REQUIRE(llm_arch_builtin(k, &name, &text, &size));
    if (CHECK_MSG(toy_open(&t, name, text, size, 0, &err), "%s", err.msg)) {
        float *got = logits_of(&t, mine, reference, &n),
              *want = logits_of(&t, reference, reference, &m);
        double most = 0, off = 0;
        for (size_t i = 0; got && want && i < n && i < m; i++) {
            most = fmax(most, fabs((double)want[i]));
            off = fmax(off, fabs((double)(got[i] - want[i])));
        }
        CHECK_MSG(n == m && off < 1e-4 * most, "off by %g of %g", off, most);
        free(got);
        free(want);
        toy_close(&t);
    }
    ggl_backend_close(mine);
    void *object = dlopen(PLUGINS "/mine.so", RTLD_NOW | RTLD_NOLOAD);
    CHECK(object); /* the other one is open */
    if (object)
        dlclose(object);
    ggl_backend_close(again);
#ifdef __GLIBC__ /* musl never unloads one */
    CHECK(!dlopen(PLUGINS "/mine.so", RTLD_NOW | RTLD_NOLOAD));
#endif
    ggl_backend_close(reference);
}

TEST(traced) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    const char *path = test_path("trace.json");
    REQUIRE_OK(ggl_backend_open(
                   &b, "trace:" PLUGINS "/mine.so",
                   &(ggl_backend_params){.size = sizeof(ggl_backend_params), .trace = path}, &err),
               &err);
    CHECK_STR(b->name, "mine");
    ggl_backend_close(b);
    CHECK(access(path, R_OK) == 0);
}

/* The sizes of this version of the interface. A change of one of these raises GGL_BACKEND_ABI,
 * unless no release has had the version yet; then put the new sizes here. */
TEST(abi) {
    if (sizeof(void *) != 8)
        SKIP("the sizes are those of 64 bits");
#define IS(what, want)                                                                             \
    { #what, what, want }
    const struct {
        const char *name;
        size_t got, want;
    } part[] = {
        IS(GGL_BACKEND_ABI, 5), /* the version, and what it stands for */
        IS(GGL_MAX_SRC, 14),         IS(sizeof(ggl_backend_vtable), 176),
        IS(sizeof(ggl_shared), 64),  IS(sizeof(ggl_backend), 368),
        IS(sizeof(ggl_segment), 72), IS(sizeof(ggl_loc), 24),
        IS(sizeof(ggl_plan), 8),     IS(sizeof(ggl_tensor), 224),
        IS(sizeof(ggl_store), 96),   IS(sizeof(ggl_body), 56),
        IS(sizeof(ggl_error), 2052), IS(sizeof(ggl_plugin), 40),
        IS(sizeof(ggl_op_info), 40), IS(sizeof(ggl_backend_params), 56),
        IS(GGL_OP_COUNT, 54),        IS(GGL_TYPE_COUNT, 47),
        IS(GGL_TYPE_LIMIT, 158),     IS(GGL_STATUS_COUNT, 11),
    };
#undef IS
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        CHECK_MSG(part[i].got == part[i].want,
                  "%s is %zu, version %d of the interface has %zu: raise GGL_BACKEND_ABI in "
                  "ggl/backend.h, unless no release has had this version, and write "
                  "IS(%s, %zu) here",
                  part[i].name, part[i].got, GGL_BACKEND_ABI, part[i].want, part[i].name,
                  part[i].got);
}
