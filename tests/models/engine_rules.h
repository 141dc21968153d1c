/* What tests of the engine's rules share. One file of a test program includes this. */
#ifndef TESTS_ENGINE_RULES_H
#define TESTS_ENGINE_RULES_H

#include "engine_test.h"

static fixture f; /* large */

enum { LONG_STEPS = 200000000 }; /* two of the long steps of the fixture's clock */

#define FEW                                                                                        \
    { .n_ubatch = 16, .n_slots = 4, .n_rows = 4, .n_parallel = 2 }

static bool start(const char *text, const fixture_params *p) {
    return fixture_open(&f, text, 1) && fixture_start(&f, p);
}

static void finish(void) {
    if (f.e)
        CHECK(fixture_finish(&f) && fixture_check(&f));
    fixture_close(&f);
}

static job *add(int what, size_t n, int64_t n_max, uint64_t client) {
    job *j = job_plain(&f, what, n, n_max);
    CHECK_OK(
        job_add(j, (llm_sequence_params){.size = sizeof(llm_sequence_params), .client = client})
            ? GGL_OK
            : j->status,
        &f.err);
    return j;
}

#endif
