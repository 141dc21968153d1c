/* Structs of parameters that grow: programs and libraries of different versions. */
#include "ggl/internal/params.h"

#include "ggl/gguf.h"
#include "ggl/graph.h"
#include "test.h"

/* Three versions of one struct. */
typedef struct old_params {
    size_t size;
    int64_t a;
} old_params;
typedef struct own_params {
    size_t size;
    int64_t a;
    int32_t b, c;
} own_params;
typedef struct new_params {
    size_t size;
    int64_t a;
    int32_t b, c;
    const char *d;
} new_params;

static const own_params defaults = {.size = sizeof defaults, .a = 1, .b = 2, .c = 3};

static ggl_status take(own_params *p, const void *from, ggl_error *err) {
    *p = defaults;
    p->size = 0;
    return GGL_READ_PARAMS(own_params, p, from, err);
}

TEST(none_given) {
    own_params p;
    ggl_error err;
    REQUIRE_OK(take(&p, NULL, &err), &err);
    CHECK(memcmp(&p, &defaults, sizeof p) == 0);
}

TEST(same_version) {
    own_params p;
    ggl_error err;
    REQUIRE_OK(take(&p, &(own_params){.size = sizeof p, .a = 7}, &err), &err);
    CHECK(p.size == sizeof p && p.a == 7 && p.b == 0 && p.c == 0);
}

TEST(older_program) {
    own_params p;
    ggl_error err;
    REQUIRE_OK(take(&p, &(old_params){.size = sizeof(old_params), .a = 7}, &err), &err);
    CHECK(p.size == sizeof p && p.a == 7 && p.b == 2 && p.c == 3);
}

TEST(newer_program) {
    own_params p;
    ggl_error err;
    new_params with = {.size = sizeof with, .a = 7, .b = 8};
    REQUIRE_OK(take(&p, &with, &err), &err);
    CHECK(p.size == sizeof p && p.a == 7 && p.b == 8);
    with.d = "x";
    CHECK_INT(take(&p, &with, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg,
              "own_params has 32 bytes in the program and 24 in this library, which is older");
    CHECK_INT(p.a, 1); /* unchanged */
}

TEST(wrong_size) {
    own_params p;
    ggl_error err;
    CHECK_INT(take(&p, &(own_params){.a = 7}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "own_params.size is 0: set it to sizeof(own_params), which is 24");
    CHECK_INT(take(&p, &(own_params){.size = sizeof(void *)}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "own_params.size is 8");
    CHECK_INT(take(&p, &(own_params){.size = 1 << 20}, &err), GGL_USAGE);
    for (size_t odd = 1; odd < sizeof(size_t); odd++) /* it would end within a member */
        CHECK_INT(take(&p, &(new_params){.size = sizeof p + odd, .a = 7}, &err), GGL_USAGE);
    CHECK_INT(p.a, 1); /* unchanged */
    CHECK_INT(take(&p, &(own_params){.a = 7}, NULL), GGL_USAGE);
}

TEST(results) {
    ggl_error err;
    old_params small = {.size = sizeof small, .a = -1};
    new_params large = {.size = sizeof large, .d = "x"};
    REQUIRE_OK(GGL_WRITE_PARAMS(own_params, &small, &defaults, &err), &err);
    CHECK(small.size == sizeof small && small.a == 1);
    REQUIRE_OK(GGL_WRITE_PARAMS(own_params, &large, &defaults, &err), &err);
    CHECK(large.size == sizeof large && large.a == 1 && large.c == 3 && !large.d);
    large.size = sizeof large - 7;
    CHECK_INT(GGL_WRITE_PARAMS(own_params, &large, &defaults, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "own_params.size is 25");
    large.size = 0;
    CHECK_INT(GGL_WRITE_PARAMS(own_params, &large, &defaults, &err), GGL_USAGE);
}

TEST(functions_that_give_defaults) {
    ggl_graph_params p;
    memset(&p, 'x', sizeof p);
    ggl_graph_fill_default(&p, 16); /* a program for which this is all of the struct */
    CHECK(p.size == 16 && p.n_pos == 4096 && *(const char *)&p.n_batch == 'x');
    p = ggl_graph_default();
    CHECK(p.size == sizeof p && p.n_batch == 512);
}

TEST(callers_of_the_library) {
    ggl_error err;
    ggl_gguf *f;
    const ggl_gguf_params no_size = {.meta_only = true};
    CHECK_INT(ggl_gguf_open(&f, "none.gguf", &no_size, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "ggl_gguf_params.size is 0");
    CHECK(!f);
    ggl_graph_params gp = ggl_graph_default();
    gp.size = 0;
    ggl_graph *g = ggl_graph_new(&gp);
    REQUIRE(g);
    CHECK_INT(ggl_graph_finish(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "ggl_graph_params.size is 0");
    ggl_graph_free(g);
}
