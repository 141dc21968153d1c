/* vulkan.odd: devices that this machine lacks, as odd/odd.c imitates them. */
#include "device.h"
#include "odd/asked.h"
#include "vulkan_test.h"

/* Opens the device with these oddities. NULL: refused, as err says, or the case is skipped. */
static ggl_backend *open_masked(const char *words, const char *mask, ggl_error *err) {
    const ggl_backend_params p = {.size = sizeof p, .mask = mask};
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return NULL;
    ggl_backend_close(b);
    setenv("ODD_VULKAN", words, 1);
    b = NULL;
    const ggl_status st = ggl_backend_open(&b, "vulkan0", &p, err);
    CHECK((st == GGL_OK) == (b != NULL));
    return b;
}

static ggl_backend *open_odd(const char *words, ggl_error *err) {
    return open_masked(words, NULL, err);
}

/* What the backend asked the imitation for; fails if another library was loaded. */
static const odd_asked *asked(void) {
    static const odd_asked none = {.family = UINT32_MAX, .memory_type = UINT32_MAX};
    const odd_asked *found = odd_find_asked();
    return CHECK(found) ? found : &none;
}

/* Runs a few bytes through the device. */
static void check_works(ggl_backend *b) {
    const char in[] = "any eight words will do for this, in any order whatsoever";
    char out[sizeof in] = {0};
    ggl_buffer *x = NULL;
    ggl_error err = {0};
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, sizeof in, NULL, &x, &err), &err);
    CHECK_OK(b->v->upload(b, x, 0, in, sizeof in, &err), &err);
    CHECK_OK(b->v->download(b, x, 0, out, sizeof in, &err), &err);
    CHECK_STR(out, in);
    b->v->free(b, x);
}

TEST(a_device_that_leaves_out_parts) {
    ggl_error err = {0};
    ggl_backend *b = open_odd("portability", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    (void)asked();
    check_works(b);
    ggl_backend_close(b);
}

TEST(a_shader_with_few_buffers) {
    ggl_error err = {0};
    ggl_backend *b = open_odd("bindings", &err);
    CHECK(!b);
    if (err.msg[0])
        CHECK_HAS(err.msg, "its shaders can use 4 storage buffers; this backend needs ");
}

/* Makes attention, with an input `end` or without; returns why the device refuses it. */
static const char *refusal_of_attention(const ggl_backend *b, bool to_later_rows) {
    const ggl_graph_params gp = {.size = sizeof gp, .n_pos = 64, .n_batch = 4, .n_slots = 1};
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    if (to_later_rows)
        ggl_graph_input(g, "end", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){4, 1}, true);
    ggl_tensor *kv = ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){x, x}, 2, NULL, 0);
    ggl_tensor *y = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, NULL, 0);
    const char *why = CHECK(y) ? b->v->refuses(b, y) : "no graph";
    ggl_graph_free(g);
    return why;
}

/* Enough buffers for all but attention that reads more than other attention does. */
TEST(a_shader_with_some_buffers) {
    ggl_error err = {0};
    ggl_backend *b = open_odd("some_bindings", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    (void)asked();
    check_works(b);
    CHECK(!refusal_of_attention(b, false));
    const char *why = refusal_of_attention(b, true);
    CHECK_HAS(why ? why : "", "14 storage buffers");
    ggl_backend_close(b);
}

TEST(a_queue_without_graphics) {
    ggl_error err = {0};
    ggl_backend *b = open_odd("families", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    CHECK_INT(asked()->family, 1);
    check_works(b);
    ggl_backend_close(b);
}

/* What the host reads in every run is in memory that it caches; the rest is the device's. */
TEST(what_the_host_reads_is_cached) {
    ggl_error err = {0};
    ggl_buffer *x = NULL;
    ggl_backend *b = open_odd("uncached", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_IO, 4096, NULL, &x, &err), &err);
    CHECK_INT(asked()->memory_type, 1);
    b->v->free(b, x);
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, 4096, NULL, &x, &err), &err);
    CHECK_INT(asked()->memory_type, 0);
    b->v->free(b, x);
    check_works(b);
    ggl_backend_close(b);
}

TEST(a_full_kind_of_memory) {
    ggl_error err = {0};
    ggl_buffer *x = NULL;
    ggl_backend *b = open_odd("uncached full", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    const uint32_t before = asked()->n_refused;
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, 4096, NULL, &x, &err), &err);
    CHECK_INT(asked()->n_refused, before + 1); /* each kind is tried once */
    CHECK_INT(asked()->memory_type, 1);
    b->v->free(b, x);
    ggl_backend_close(b);
}

/* Memory for devices with a feature that is not used must not be taken, even if other kinds are full. */
TEST(memory_for_another_feature) {
    ggl_error err = {0};
    ggl_buffer *x = NULL;
    ggl_backend *b = open_odd("uncached full coherent", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, 4096, NULL, &x, &err), &err);
    CHECK_INT(asked()->memory_type, 2);
    b->v->free(b, x);
    ggl_backend_close(b);
}

/* Transfers for which there is no memory fail and leave nothing behind; later ones succeed. */
TEST(no_memory_for_transfers) {
    ggl_error err = {0};
    ggl_buffer *x = NULL;
    char in[] = "these bytes need memory on their way", out[sizeof in] = {0};
    ggl_backend *b = open_masked("", "map", &err);
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, sizeof in, NULL, &x, &err), &err);
    REQUIRE_OK(b->v->wait(b, &err),
               &err); /* the next transfer begins a piece that has no memory yet */
    const uint32_t before = asked()->n_buffers;
    setenv("ODD_VULKAN", "full", 1);
    for (int i = 0; i < 3; i++)
        CHECK_INT(b->v->upload(b, x, 0, in, sizeof in, &err), GGL_NOMEM);
    CHECK_INT(asked()->n_buffers, before);
    setenv("ODD_VULKAN", "", 1);
    err = (ggl_error){0};
    CHECK_OK(b->v->upload(b, x, 0, in, sizeof in, &err), &err);
    CHECK_OK(b->v->download(b, x, 0, out, sizeof in, &err), &err);
    CHECK_STR(out, in);
    b->v->free(b, x);
    ggl_backend_close(b);
}

TEST(no_kind_of_memory) {
    ggl_error err = {0};
    ggl_backend *b = open_odd("no_memory", &err);
    CHECK(!b);
    if (err.msg[0])
        CHECK_HAS(err.msg, "vulkan0: the driver has no kind of memory for a buffer of ");
}

/* If a submission fails, so does all that comes after it, because transfers are missing. */
TEST(work_that_cannot_be_submitted) {
    ggl_error err = {0};
    ggl_buffer *x = NULL;
    char in[] = "these bytes wait for a submission", out[sizeof in] = {0};
    ggl_backend *b = open_masked("", "map", &err); /* so that transfers are submitted */
    if (!b && !err.msg[0])
        return;
    REQUIRE_OK(b ? GGL_OK : GGL_UNSUPPORTED, &err);
    (void)asked();
    REQUIRE_OK(b->v->alloc(b, GGL_REGION_WEIGHT, sizeof in, NULL, &x, &err), &err);
    CHECK_OK(b->v->upload(b, x, 0, in, sizeof in, &err), &err);
    setenv("ODD_VULKAN", "no_submit", 1);
    CHECK_INT(b->v->wait(b, &err), GGL_NOMEM);
    setenv("ODD_VULKAN", "", 1);
    for (int i = 0; i < 2; i++) {
        err = (ggl_error){0};
        CHECK_INT(b->v->download(b, x, 0, out, sizeof in, &err), GGL_NOMEM);
        CHECK_HAS(err.msg, "vulkan0: out of memory");
    }
    b->v->free(b, x);
    ggl_backend_close(b);
}
