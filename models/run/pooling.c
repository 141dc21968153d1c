/* Embeddings: which tokens' vectors are used, and the vector of length 1. */
#include "llm/internal/pooling.h"
#include "ggl/internal/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[LLM_POOL_COUNT] = {"mean", "last", "cls"};

/* By the value of pooling_type. */
static const struct {
    int pooling; /* -1: vectors are not made of the tokens' vectors in this way */
    const char *text;
} types[] = {{-1, "none: the file does not say how one vector is made of a text"},
             {LLM_POOL_MEAN, NULL},
             {LLM_POOL_CLS, NULL},
             {LLM_POOL_LAST, NULL},
             {-1, "rank: the model gives a score to a query and a text, not a vector to a text"}};
enum { N_TYPES = sizeof types / sizeof *types };

const char *llm_pooling_name(llm_pooling p) {
    return names[p];
}

static ggl_status find_name(llm_pooling *out, const char *name, ggl_error *err) {
    for (int i = 0; i < LLM_POOL_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (llm_pooling)i;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE, "pooling: '%.40s' is none of mean, last and cls", name);
}

ggl_status llm_pooling_find(llm_pooling *out, const char *name, const ggl_gguf *file,
                            ggl_error *err) {
    ggl_str arch;
    char key[96];
    int64_t type;
    *out = LLM_POOL_MEAN;
    if (name)
        return find_name(out, name, err);
    if (ggl_gguf_get_string(file, "general.architecture", &arch, NULL) != 1 || arch.n > 64)
        return GGL_OK;
    snprintf(key, sizeof key, "%.*s.pooling_type", (int)arch.n, arch.s);
    const int found = ggl_gguf_get_integer(file, key, &type, err);
    if (found != 1)
        return found < 0 ? GGL_FORMAT : GGL_OK;
    const bool known = type >= 0 && type < N_TYPES;
    if (known && types[type].pooling >= 0) {
        *out = (llm_pooling)types[type].pooling;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: key %s is %" PRId64 " (%s). To make embeddings with this model "
                    "nevertheless, choose the pooling: mean, last or cls",
                    ggl_gguf_name(file), key, type,
                    known ? types[type].text
                          : "1, 2 and 3 are known: mean, the first and the last token");
}

void llm_pooling_range(llm_pooling p, int64_t n, int64_t *first, int64_t *end) {
    *first = p == LLM_POOL_LAST ? n - 1 : 0;
    *end = p == LLM_POOL_CLS ? 1 : n;
}

ggl_status llm_pooling_result(const double *sum, int64_t n, float *out, ggl_error *err) {
    double length = 0;
    for (int64_t k = 0; k < n; k++)
        length += sum[k] * sum[k];
    length = sqrt(length);
    if (!isfinite(length))
        return ggl_fail(err, GGL_FORMAT,
                        "the embedding has numbers that are not finite: the model's numbers or "
                        "its descriptor are wrong");
    for (int64_t k = 0; k < n; k++)
        out[k] = length > 0 ? (float)(sum[k] / length) : 0;
    return GGL_OK;
}
