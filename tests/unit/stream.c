/* Weights that do not all have room in memory: which stay, and that steps find what they read. */
#include <stdlib.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "base/os_file.h"
#include "base/os_parts.h"
#include "sched/stream.h"
#include "test.h"

/* --- what stays --------------------------------------------------------------------------------------- */

#define MB ((size_t)1 << 20)

TEST(memory_is_divided) {
    static const struct {
        stream_needs n;
        stream_plan want;
    } rows[] = {
        {{0, 10 * MB, 1 * MB, 0}, {0, 0, 0}}, /* not known */
        {{10 * MB, 10 * MB, 1 * MB, 0}, {0, 0, 0}},
        {{100 * MB, 60 * MB, 1 * MB, 40 * MB}, {0, 0, 0}},
        {{1000 * MB, 2000 * MB, 10 * MB, 0}, {936 * MB, 64 * MB, 0}},
        {{1000 * MB, 2000 * MB, 200 * MB, 0},
         {800 * MB, 200 * MB, 0}}, /* half of the largest passes, and of the next */
        {{100 * MB, 2000 * MB, 10 * MB, 0}, {75 * MB, 25 * MB, 0}},
        {{100 * MB, 2000 * MB, 1000 * MB, 0}, {50 * MB, 50 * MB, 0}},
        {{1000 * MB, 300 * MB, 10 * MB, 5000 * MB},
         {300 * MB, 0, 700 * MB}}, /* a byte that each run reads comes first */
        {{1000 * MB, 990 * MB, 8 * MB, 5000 * MB}, {875 * MB - 64 * MB, 64 * MB, 125 * MB}},
        {{1000 * MB, 990 * MB, 8 * MB, 20 * MB}, {916 * MB, 64 * MB, 20 * MB}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const stream_plan p = ggl_stream_plan(&rows[i].n);
        CHECK_MSG(p.kept == rows[i].want.kept && p.window == rows[i].want.window &&
                      p.chosen == rows[i].want.chosen,
                  "row %zu: %zu kept, %zu pass, %zu chosen", i, p.kept, p.window, p.chosen);
    }
}

TEST(what_stays_is_spread) {
    static const struct {
        size_t kept, size[12];
        const char *want; /* k: it stays */
    } rows[] = {
        {6, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "k-k-k-k-k-k-"},
        {3, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "-k---k---k--"},
        {9, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "kk-kkk-kkk-k"},
        {0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "------------"},
        {12, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "kkkkkkkkkkkk"},
        {10, {1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_kept[12];
        char got[13] = "";
        size_t kept = 0;
        ggl_stream_keep(&(stream_plan){.kept = rows[i].kept}, rows[i].size, 12, is_kept);
        for (int k = 0; k < 12; k++) {
            got[k] = is_kept[k] ? 'k' : '-';
            kept += is_kept[k] ? rows[i].size[k] : 0;
        }
        CHECK(kept <= rows[i].kept);
        if (rows[i].want)
            CHECK_STR(got, rows[i].want);
    }
}

/* --- a file of weights ------------------------------------------------------------------------------------ */

enum { N_WEIGHTS = 10, N_EXPERTS = 16, N_STACKS = 3, N_ALL = N_WEIGHTS + N_STACKS, HEAD = 1056 };
static const size_t each = 1500 * 1000, expert = 300 * 1000; /* neither is of whole pages */

typedef struct fixture {
    char *bytes;
    size_t size;
    os_map map;
    ggl_tensor t[N_ALL], index, *reads[N_WEIGHTS], *stacks[N_STACKS], *by[N_STACKS];
    ggl_loc loc[N_ALL], repacked[N_ALL];
    bool otherwise[N_ALL], waits[N_ALL];
    ggl_host_range host;
    device dev;
    schedule plan;
    stream s;
    ggl_backend b;
    ggl_error err;
} fixture;

static void start(fixture *f, const char *memory) {
    test_set_variable("GGL_MEMORY_LEFT", memory);
    CHECK(ggl_stream_start(&f->s, &f->plan));
    test_set_variable("GGL_MEMORY_LEFT", NULL);
    if (ggl_stream_is_on(&f->s))
        ggl_stream_lend(&f->s, &f->b, 0, true);
}

static bool open_file(fixture *f, int n_weights, int n_stacks) {
    uint64_t seed = 1;
    f->size = HEAD + (size_t)n_weights * each + (size_t)n_stacks * N_EXPERTS * expert;
    f->bytes = malloc(f->size);
    for (size_t i = 0; i < f->size; i++)
        f->bytes[i] = (char)test_random(&seed);
    if (!test_write_file(test_path("weights"), f->bytes, f->size) ||
        !CHECK_OK(ggl_os_map_open(&f->map, test_path("weights"), &(os_map_params){0}, &f->err),
                  &f->err))
        return false;
    const char *at = (const char *)f->map.data + HEAD;
    for (int i = 0; i < n_weights + n_stacks; i++) {
        const bool is_stack = i >= n_weights;
        f->t[i] = (ggl_tensor){.id = i,
                               .op = GGL_OP_WEIGHT,
                               .ne = {1, 1, is_stack ? N_EXPERTS : 1, 1},
                               .data = at,
                               .size = is_stack ? N_EXPERTS * expert : each,
                               .view_of = &f->t[i]};
        at += f->t[i].size;
        f->repacked[i].region = -1;
        *(is_stack ? &f->stacks[i - n_weights] : &f->reads[i]) = &f->t[i];
        f->by[is_stack ? i - n_weights : 0] = &f->index;
    }
    f->host = (ggl_host_range){f->map.data, f->map.size, true};
    f->dev = (device){.b = &f->b, .loc = {f->loc, f->loc}};
    f->dev.repack.loc = f->repacked;
    f->dev.repack.read_otherwise = f->otherwise;
    f->dev.repack.waits = f->waits;
    f->plan = (schedule){.dev = &f->dev, .n_dev = 1};
    f->plan.params.host = &f->host;
    f->plan.params.n_host = 1;
    f->plan.reads = (node_list){.at = f->reads, .n = (size_t)n_weights};
    f->plan.stacks = (node_list){.at = f->stacks, .n = (size_t)n_stacks};
    f->plan.stack_index = (node_list){.at = f->by, .n = (size_t)n_stacks};
    return true;
}

static void close_file(fixture *f) {
    ggl_stream_stop(&f->s);
    CHECK(memcmp(f->map.data, f->bytes, f->size) == 0);
    ggl_os_map_close(&f->map);
    free(f->bytes);
}

/* Returns how many of the parts in [data, data + size) are filled, and in *n how many there are. */
static int filled(fixture *f, const void *data, size_t size, int *n) {
    const char *at = data;
    int is = 0;
    *n = 0;
    ggl_os_mutex_lock(&f->s.lock);
    for (int i = 0; i < f->s.n; i++) {
        const stream_part *p = &f->s.part[i];
        if (p->at + p->size <= at || p->at >= at + size)
            continue;
        ++*n;
        is += p->state == PART_READY;
    }
    ggl_os_mutex_unlock(&f->s.lock);
    return is;
}

static bool same_bytes(const fixture *f, const void *data, size_t size) {
    return memcmp(data, f->bytes + ((const char *)data - (const char *)f->map.data), size) == 0;
}

/* A step that reads the weight: all of it is filled when it begins. */
static void step(fixture *f, int i) {
    const ggl_tensor *t = &f->t[i];
    int n;
    f->b.reads(f->b.reads_ctx, t->data, t->size);
    f->b.reads(f->b.reads_ctx, NULL, 0);
    const int is = filled(f, t->data, t->size, &n);
    CHECK_MSG(n > 0 && is == n, "weight %d: %d of %d parts are filled", i, is, n);
    CHECK(same_bytes(f, t->data, t->size));
    ggl_os_mutex_lock(&f->s.lock);
    CHECK(f->s.passing <= f->s.plan.window);
    ggl_os_mutex_unlock(&f->s.lock);
}

static void run(fixture *f, const int *order, int n) {
    for (int i = 0; i < n; i++)
        step(f, order[i]);
}

static int n_filled_for_good(const fixture *f, bool *all) {
    int n = 0;
    *all = true;
    for (int i = 0; i < f->s.n; i++)
        if (f->s.part[i].kind == PART_KEPT) {
            n++;
            *all = *all && f->s.part[i].state == PART_READY;
        }
    return n;
}

static bool can_stream(fixture *f) {
    start(f, "9000000"); /* of 15 MB */
    return ggl_stream_is_on(&f->s);
}

/* Only Linux can do it. */
#ifdef __linux__
#define NEEDS(can, f) REQUIRE(can)
#else
#define NEEDS(can, f)                                                                              \
    if (!(can)) {                                                                                  \
        close_file(&f);                                                                            \
        SKIP("this system cannot put private memory in the place of a mapped file's pages");       \
    }
#endif

TEST(steps_find_their_weights) {
    static const struct {
        const char *what;
        int order[N_WEIGHTS], n;
    } runs[] = {{"as planned", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10},
                {"again", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10},
                {"without outputs", {0, 1, 2, 3, 4, 5, 6, 7, 8}, 9},
                {"another order within a layer", {1, 0, 3, 2, 4, 6, 5, 7, 8, 9}, 10},
                {"backwards", {9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 10},
                {"one again and again", {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 10},
                {"as planned at last", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 10}};
    fixture f = {0};
    bool all;
    REQUIRE(open_file(&f, N_WEIGHTS, 0));
    NEEDS(can_stream(&f), f);
    CHECK(f.s.plan.kept + f.s.plan.window < 9000000 && f.s.kept_size > 9000000 / 2);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        run(&f, runs[i].order, runs[i].n);
    CHECK(n_filled_for_good(&f, &all) > 0 && all);
    ggl_os_map_drop(f.map.data, f.map.size); /* as after repacking: must not lose what is filled */
    CHECK(same_bytes(&f, f.map.data, f.map.size));
    close_file(&f);
}

TEST(a_file_is_claimed_once) {
    fixture f = {0};
    REQUIRE(open_file(&f, N_WEIGHTS, 0));
    NEEDS(can_stream(&f), f);
    CHECK(!ggl_os_parts_claim(f.map.data));
    ggl_stream_stop(&f.s);
    os_parts *claimed = ggl_os_parts_claim(f.map.data);
    CHECK(claimed);
    start(&f, "9000000");
    CHECK(!ggl_stream_is_on(&f.s)); /* the system manages the file's pages */
    if (claimed)
        ggl_os_parts_release(claimed);
    close_file(&f);
}

TEST(weights_that_fit_are_left_alone) {
    fixture f = {0};
    REQUIRE(open_file(&f, N_WEIGHTS, N_STACKS));
    start(&f, "100000000");
    CHECK(!ggl_stream_is_on(&f.s) && f.s.n == 0);
    start(&f, "31000000"); /* of 29.4 */
    CHECK(!ggl_stream_is_on(&f.s));
    close_file(&f);
}

static bool start_and_stop(void *arg) {
    fixture *f = arg;
    const bool ok = ggl_stream_start(&f->s, &f->plan);
    ggl_stream_stop(&f->s);
    return ok;
}

TEST(out_of_memory) {
    fixture f = {0};
    REQUIRE(open_file(&f, N_WEIGHTS, N_STACKS));
    test_set_variable("GGL_MEMORY_LEFT", "9000000");
    CHECK(alloc_fail_each(start_and_stop, &f) > 8);
    test_set_variable("GGL_MEMORY_LEFT", NULL);
    close_file(&f);
}

/* --- stacks ------------------------------------------------------------------------------------------------- */

static const char *matrix(const fixture *f, int stack, int m) {
    return (const char *)f->stacks[stack]->data + (size_t)m * expert;
}

/* True if the whole pages of the matrix are filled. */
static bool has(fixture *f, int stack, int m) {
    int n;
    const int is = filled(f, matrix(f, stack, m), expert, &n);
    return n > 0 && is == n;
}

static void step_of(fixture *f, int stack, const int *m, int n) {
    for (int i = 0; i < n; i++)
        f->b.reads(f->b.reads_ctx, matrix(f, stack, m[i]), expert);
    f->b.reads(f->b.reads_ctx, NULL, 0);
    for (int i = 0; i < n; i++)
        CHECK(has(f, stack, m[i]) && same_bytes(f, matrix(f, stack, m[i]), expert));
}

TEST(matrices_stay_by_use) {
    fixture f = {0};
    REQUIRE(open_file(&f, 1, N_STACKS)); /* 14.4 MB of stacks */
    start(&f, "6000000");
    NEEDS(ggl_stream_is_on(&f.s), f);
    for (int run = 0; run < 40; run++) {
        const int m[2] = {5, run % N_EXPERTS};
        ggl_stream_lend(&f.s, &f.b, 0, true);
        step(&f, 0);
        if (run > 0)
            CHECK_MSG(has(&f, 0, 5) && has(&f, 1, 5) && has(&f, 2, 5),
                      "run %d: what all runs use is gone", run);
        for (int k = 0; k < N_STACKS; k++)
            step_of(&f, k, m, m[1] == 5 ? 1 : 2);
        ggl_os_mutex_lock(&f.s.lock);
        CHECK(f.s.chosen <= f.s.plan.chosen);
        ggl_os_mutex_unlock(&f.s.lock);
    }
    /* what one stack reads, the others' threads read without being asked */
    for (int m = 0; m < N_EXPERTS; m++)
        if (!has(&f, 1, m)) {
            step_of(&f, 0, &m, 1);
            for (int tries = 0; tries < 10000 && !(has(&f, 1, m) && has(&f, 2, m)); tries++)
                usleep(1000);
            CHECK(has(&f, 1, m) && has(&f, 2, m));
            break;
        }
    close_file(&f);
}
