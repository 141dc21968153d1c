/* A conversion in which each allocation fails in its turn. */
#ifndef TESTS_CONVERT_ALLOC_H
#define TESTS_CONVERT_ALLOC_H

#include "alloc_fail.h"
#include "convert_test.h"

static inline bool convert_once(const llm_convert_params *params) {
    llm_converter *c;
    ggl_error e = {0};
    ggl_status s = llm_converter_open(&c, test_folder(), params, &e);
    if (s == GGL_OK)
        s = llm_converter_write(c, test_path("out.gguf"), &e);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s: %s", ggl_status_text(s), e.msg);
    llm_converter_free(c);
    return s == GGL_OK;
}

/* Converts the test's folder until no allocation fails any more: out.gguf is then complete. */
static inline void check_failing_allocations(const llm_convert_params *params) {
    long k = 0;
    bool ok = false;
    do { /* some are not missed: a node's origin is for messages only */
        alloc_fail_at(++k);
        ok = convert_once(params);
    } while (alloc_has_failed() && k < 10000);
    alloc_fail_at(0);
    CHECK_MSG(ok && k > 100 && k < 10000, "%ld allocations", k);
}

#endif
