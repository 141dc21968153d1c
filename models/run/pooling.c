/* Embeddings: which tokens' vectors are used, and the vector of length 1. */
#include "llm/internal/pooling.h"
#include "ggl/internal/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[LLM_POOL_COUNT + 1] = {LLM_POOLING_NAMES, "several"};
enum { N_NAMES = LLM_POOL_COUNT };

/* By the value of pooling_type. */
static const llm_pooling types[] = {LLM_POOL_NONE, LLM_POOL_MEAN, LLM_POOL_CLS, LLM_POOL_LAST,
                                    LLM_POOL_RANK};
enum { N_TYPES = sizeof types / sizeof *types };
#define KNOWN_TYPES "0 to 4: none, mean, cls, last, rank"

const char *llm_pooling_name(llm_pooling p) {
    return names[p];
}

static ggl_status find_name(llm_pooling *out, const char *name, ggl_error *err) {
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (llm_pooling)i;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_USAGE, "pooling: '%.40s' is none of %s, %s, %s, %s, %s, %s, %s and %s",
                    name, LLM_POOLING_NAMES);
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

/* --- the key of sentence-transformers --------------------------------------------------------- */

#define KEY "sentence_transformers.pooling"

/* Poolings that a part of its value may name. */
static bool is_part(llm_pooling p) {
    return p != LLM_POOL_NONE && p != LLM_POOL_RANK;
}

/* Gets the text of the key. 1: there is one; 0: none; -1: it is no text, which is reported. */
static int find_parts(ggl_str *out, const ggl_gguf *file, ggl_error *err) {
    return ggl_gguf_get_string(file, KEY, out, err);
}

ggl_status llm_pooling_parts(llm_pooling out[LLM_POOL_MOST_PARTS], int *n, const ggl_gguf *file,
                             ggl_error *err) {
    ggl_str left = {"", 0};
    *n = 0;
    if (find_parts(&left, file, err) < 0)
        return GGL_FORMAT;
    while (left.n > 0 && *n < LLM_POOL_MOST_PARTS) {
        const char *plus = memchr(left.s, '+', left.n);
        const ggl_str name = {left.s, plus ? (size_t)(plus - left.s) : left.n};
        int i = 0;
        while (i < N_NAMES && !(is_part((llm_pooling)i) && ggl_str_is(name, names[i])))
            i++;
        if (i == N_NAMES || (plus && name.n + 1 == left.n))
            break;
        out[(*n)++] = (llm_pooling)i;
        const size_t used = name.n + (plus ? 1 : 0);
        left = (ggl_str){left.s + used, left.n - used};
    }
    return left.n == 0 && *n > 0
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "%s: key " KEY " is not made of at most %d of mean, last, cls, max, "
                          "mean_sqrt_len_tokens and weightedmean, as in cls+mean",
                          ggl_gguf_name(file), LLM_POOL_MOST_PARTS);
}

/* Gets the pooling that the key says. 1, 0, -1: as of find_parts, or it has an unknown value. */
static int find_own(llm_pooling *out, const ggl_gguf *file, ggl_error *err) {
    llm_pooling part[LLM_POOL_MOST_PARTS];
    ggl_str text;
    int n;
    const int found = find_parts(&text, file, err);
    if (found != 1)
        return found;
    if (llm_pooling_parts(part, &n, file, err) != GGL_OK)
        return -1;
    *out = n == 1 ? part[0] : LLM_POOL_SEVERAL;
    return 1;
}

/* --- the key of the architecture -------------------------------------------------------------- */

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
    const int own = find_own(out, file, err);
    if (own != 0)
        return own < 0 ? (err && err->status != GGL_OK ? err->status : GGL_FORMAT) : GGL_OK;
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

/* --- the labels of scores --------------------------------------------------------------------- */

/* Writes the first labels to text[size], ", .." in place of those that it has no room for. */
static void list_labels(const ggl_gguf_value *labels, char *text, size_t size) {
    size_t n = 0;
    for (uint64_t k = 0; k < labels->n; k++) {
        ggl_str s = {"", 0};
        (void)ggl_gguf_string(labels, k, &s);
        if (n + s.n + sizeof ", , .." > size) {
            snprintf(text + n, size - n, "%s", k > 0 ? ", .." : "..");
            return;
        }
        n += (size_t)snprintf(text + n, size - n, "%s%.*s", k > 0 ? ", " : "", (int)s.n, s.s);
    }
}

ggl_status llm_pooling_check_ranks(const ggl_gguf *file, ggl_error *err) {
    char key[112], list[96] = "";
    ggl_str arch, first;
    if (ggl_gguf_get_string(file, "general.architecture", &arch, NULL) != 1 || arch.n > 64)
        return GGL_OK;
    snprintf(key, sizeof key, "%.*s.classifier.output_labels", (int)arch.n, arch.s);
    const ggl_gguf_value *labels = ggl_gguf_find(file, key);
    if (!labels || labels->n < 2 || !ggl_gguf_string(labels, 0, &first) || ggl_str_is(first, "yes"))
        return GGL_OK;
    list_labels(labels, list, sizeof list);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the model is a classifier with %" PRIu64 " labels (%s), none of which says "
                    "how well a text answers a query",
                    labels->n, list);
}

void llm_pooling_range(llm_pooling p, int64_t n_before, int64_t n, int64_t *first, int64_t *end) {
    const int64_t begin = n_before < n ? n_before : n - 1;
    *first = p == LLM_POOL_LAST ? n - 1 : begin;
    *end = p == LLM_POOL_CLS ? begin + 1 : n;
}

ggl_status llm_pooling_result(const double *sum, int64_t n, double by, float *out, ggl_error *err) {
    double length = 0;
    for (int64_t k = 0; k < n; k++)
        length += sum[k] * sum[k];
    length = sqrt(length);
    if (!isfinite(length))
        return ggl_fail(err, GGL_FORMAT,
                        "the embedding has numbers that are not finite: the model's numbers or "
                        "its descriptor are wrong");
    if (by > 0)
        length = by;
    for (int64_t k = 0; k < n; k++)
        out[k] = length > 0 ? (float)(sum[k] / length) : 0;
    return GGL_OK;
}
