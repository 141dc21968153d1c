/* Embeddings: which tokens' vectors are used, and the vector of length 1. */
#include "llm/internal/pooling.h"
#include "ggl/internal/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[LLM_POOL_COUNT] = {LLM_POOLING_NAMES};

/* By the value of pooling_type. */
static const llm_pooling types[] = {LLM_POOL_NONE, LLM_POOL_MEAN, LLM_POOL_CLS, LLM_POOL_LAST,
                                    LLM_POOL_RANK};
enum { N_TYPES = sizeof types / sizeof *types };
#define KNOWN_TYPES "0 to 4: none, mean, cls, last, rank"

const char *llm_pooling_name(llm_pooling p) {
    return names[p];
}

static ggl_status find_name(llm_pooling *out, const char *name, ggl_error *err) {
    for (int i = 0; i < LLM_POOL_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (llm_pooling)i;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE, "pooling: '%.40s' is none of %s, %s, %s, %s and %s", name,
                    LLM_POOLING_NAMES);
}

ggl_status llm_pooling_type(int *out, const char *text, ggl_error *err) {
    for (int i = 0; i < N_TYPES; i++) {
        const char number[] = {(char)('0' + i), 0};
        if (strcmp(text, number) == 0 || strcmp(text, names[types[i]]) == 0) {
            *out = i;
            return GGL_OK;
        }
    }
    return ggl_fail(err, GGL_USAGE, "pooling_type is %.40s (known are " KNOWN_TYPES ")", text);
}

/* Gets the value of the file's key, whose name is written to key[size]. 1: it has one; 0: none; -1: it is no
 * number, which is reported. */
static int find_type(const ggl_gguf *file, char *key, size_t size, int64_t *type, ggl_error *err) {
    ggl_str arch;
    if (ggl_gguf_get_string(file, "general.architecture", &arch, NULL) != 1 || arch.n > 64)
        return 0;
    snprintf(key, size, "%.*s.pooling_type", (int)arch.n, arch.s);
    return ggl_gguf_get_integer(file, key, type, err);
}

static ggl_status refuse_type(const ggl_gguf *file, const char *key, int64_t type, const char *what,
                              ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: key %s is %" PRId64 " (%s). To make embeddings with this model "
                    "nevertheless, choose the pooling (pooling, or --pooling): mean, last or cls",
                    ggl_gguf_name(file), key, type, what);
}

ggl_status llm_pooling_find(llm_pooling *out, const char *name, const ggl_gguf *file,
                            ggl_error *err) {
    char key[96];
    int64_t type;
    *out = LLM_POOL_MEAN;
    if (name)
        return find_name(out, name, err);
    const int found = find_type(file, key, sizeof key, &type, err);
    if (found != 1)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    if (type < 0 || type >= N_TYPES)
        return refuse_type(file, key, type, "known are " KNOWN_TYPES, err);
    *out = types[type];
    return GGL_OK;
}

ggl_status llm_pooling_find_vector(llm_pooling *out, const char *name, const ggl_gguf *file,
                                   ggl_error *err) {
    char key[96];
    int64_t type;
    const ggl_status st = llm_pooling_find(out, name, file, err);
    if (st != GGL_OK || name || (*out != LLM_POOL_NONE && *out != LLM_POOL_RANK) ||
        find_type(file, key, sizeof key, &type, NULL) != 1)
        return st;
    return refuse_type(
        file, key, type,
        *out == LLM_POOL_NONE
            ? "none: the file does not say how one vector is made of a text"
            : "rank: the model gives a score to a query and a text, not a vector to a "
              "text",
        err);
}

void llm_pooling_range(llm_pooling p, int64_t n, int64_t *first, int64_t *end) {
    *first = p == LLM_POOL_LAST ? n - 1 : 0;
    *end = p == LLM_POOL_CLS ? 1 : n;
}

ggl_status llm_pooling_result(const double *sum, int64_t n, int64_t n_rows, float *out,
                              ggl_error *err) {
    double length = 0;
    for (int64_t k = 0; k < n; k++)
        length += sum[k] * sum[k];
    length = sqrt(length);
    if (!isfinite(length))
        return ggl_fail(err, GGL_FORMAT,
                        "the embedding has numbers that are not finite: the model's numbers or "
                        "its descriptor are wrong");
    if (n_rows > 0)
        length = (double)n_rows;
    for (int64_t k = 0; k < n; k++)
        out[k] = length > 0 ? (float)(sum[k] / length) : 0;
    return GGL_OK;
}
