/* What section_packed.c and packed_*.c share: making a description of numbers (packed.h) from the tensors of a folder. */
#ifndef LLM_UNPACKING_H
#define LLM_UNPACKING_H

#include "conversion.h"
#include "packed.h"

typedef struct unpacking {
    arch_eval *ev;
    const arch_expr *e;
    recipe *r;
    st_tensor *t, *scale;
    packed_numbers *p;
    ggl_str stem; /* the name of t without the form's ending */
} unpacking;

/* Reports what does not fit. Always false. */
bool llm_unpack_odd(const unpacking *u, const char *fmt, ...) GGL_PRINTF(2, 3);
/* Always false. */
bool llm_unpack_no_memory(const unpacking *u);
bool llm_unpack_no_factors(const unpacking *u);
void llm_unpack_add_tensor(unpacking *u, st_tensor *t);
/* Returns the tensor named stem + end, and adds it to those that are read. NULL: there is none. */
st_tensor *llm_unpack_beside(unpacking *u, const char *end);
bool llm_unpack_is(const st_tensor *t, const char *dtype);
int64_t llm_unpack_count(const st_tensor *t);
/* Returns a value of config.json's "quantization_config". NULL: it has none of that kind. */
const json_value *llm_unpack_setting(const unpacking *u, const char *name, json_kind kind);
/* Returns a whole number of it from 1 to most; 0: none. */
int64_t llm_unpack_whole_setting(const unpacking *u, const char *name, int64_t most);
/* True if tensors have the same dimensions except the innermost ones. */
bool llm_unpack_same_rows(const st_tensor *a, const st_tensor *b);
/* Sets the matrix: rows of n_column codes, and a factor for each `columns` of a row. Rows follow one another, those of outer
 * dimensions too. */
void llm_unpack_set_rows(unpacking *u, int64_t n_column, int64_t columns);
/* Codes of rows, with the units of a row's side by side. */
packed_codes llm_unpack_row_codes(const st_tensor *t, int bits, int unit, int64_t units);
/* Floats of 4 bits, two in a byte. */
void llm_unpack_set_e2m1(unpacking *u);
/* Floats of 8 bits. False: out of memory. */
bool llm_unpack_set_e4m3(unpacking *u);
/* Makes by what all numbers are multiplied by: the number of a tensor, or 1 divided by it. */
bool llm_unpack_set_by(unpacking *u, const st_tensor *t, bool divide);

/* The forms, for the table in section_packed.c. Each describes u->t and u->scale in u->p and u->r. False: reported. */
bool llm_unpack_bnb4(unpacking *u);
bool llm_unpack_bnb8(unpacking *u);
bool llm_unpack_bytes(unpacking *u);
bool llm_unpack_divided(unpacking *u);
bool llm_unpack_fp4(unpacking *u);
bool llm_unpack_fp4_packed(unpacking *u);
bool llm_unpack_fp8(unpacking *u);
bool llm_unpack_integers(unpacking *u);
bool llm_unpack_mlx(unpacking *u);
bool llm_unpack_mxfp4(unpacking *u);
bool llm_unpack_qweight(unpacking *u);
bool llm_unpack_ternary(unpacking *u);
bool llm_unpack_words(unpacking *u);

#endif
