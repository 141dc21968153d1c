/* Shapes of models as text (see tools/common/shapes.txt): finds one by name, and reads it into
 * keys and rules.
 *
 *     bench_shape s;
 *     if (bench_shape_find(&s, text, n, "gpt2-124m", &err) != GGL_OK) ..
 */
#ifndef TOOLS_SHAPES_H
#define TOOLS_SHAPES_H

#include "ggl/gguf.h"

enum {
    BENCH_SHAPE_KEYS = 48,
    BENCH_SHAPE_LIST = 256, /* elements of all lists */
    BENCH_SHAPE_NAME = 64
};

typedef enum bench_key_kind {
    BENCH_KEY_INTEGER,
    BENCH_KEY_FLOAT,
    BENCH_KEY_BOOL,
    BENCH_KEY_STRING,
    BENCH_KEY_LIST
} bench_key_kind;

typedef struct bench_key {
    char name[2 * BENCH_SHAPE_NAME]; /* the full name */
    bench_key_kind kind;
    double number;                 /* INTEGER, FLOAT, BOOL */
    char string[BENCH_SHAPE_NAME]; /* STRING */
    int first, n;                  /* LIST: elements of `list` */
} bench_key;

typedef struct bench_shape {
    char name[BENCH_SHAPE_NAME], arch[BENCH_SHAPE_NAME];
    int64_t n_vocab;
    char tokenizer[BENCH_SHAPE_NAME], pre[BENCH_SHAPE_NAME]; /* pre: "" if none */
    bench_key key[BENCH_SHAPE_KEYS];
    int n_keys;
    int32_t list[BENCH_SHAPE_LIST];
    int n_list;
} bench_shape;

/* Reads a shape. GGL_NOT_FOUND: no such shape, with the nearest name; GGL_FORMAT: an invalid
 * line, with its number; GGL_LIMIT. */
GGL_NODISCARD ggl_status bench_shape_find(bench_shape *out, const char *text, size_t n,
                                          const char *name, ggl_error *err);
/* Writes the name of the k-th shape, k = 0, 1, ..; false: there are fewer. */
bool bench_shape_at(const char *text, size_t n, int k, char name[BENCH_SHAPE_NAME]);

/* Returns whether a line `with NAME..` of the shape names the tensor. */
bool bench_shape_with(const char *text, size_t n, const char *shape, const char *tensor);
/* Whether the tensor stays f32; and the mean and spread of its values. */
bool bench_shape_f32(const char *text, size_t n, const char *tensor);
void bench_shape_values(const char *text, size_t n, const char *tensor, double *mean,
                        double *sigma);

/* Reduces {arch}.block_count, if it is larger, and the lists with an element per layer. */
GGL_NODISCARD ggl_status bench_shape_set_layers(bench_shape *s, int64_t n_layer, ggl_error *err);

#endif
