/* Numbers of packed types (RECIPE_PACKED): codes of a few bits in one tensor of a folder, factors in others.
 *
 *     w[row][column] = (value(code) - zero) * factor * by + bias
 *
 * Zero, factor and bias belong to a group: some columns of one row or of some rows. By such a description all published
 * forms are read: section_packed.c makes it from a folder's tensors.
 *
 * Where a block type of GGUF has the same form, the codes become its codes, as they are (packed_blocks.c). */
#ifndef LLM_PACKED_H
#define LLM_PACKED_H

#include "recipe.h"

/* Codes in units of 8, 16 or 32 bits, which are stored little-endian. Line: a row of the matrix, or a column if `down`.
 * A line's codes follow one another from the lowest bit of its first unit on. */
typedef struct packed_codes {
    const st_tensor *t; /* NULL: none */
    int bits, unit;
    bool is_signed; /* two's complement */
    bool down;      /* a unit has codes of several rows, of one column */
    bool gaps;      /* no code continues in the next unit: the bits that are left over are unused */
    bool
        high_first; /* a unit's first code is in its highest bits; of codes without gaps that are adjacent columns' */
    /* 1 was subtracted from each code: in units as whole numbers, so that a 0 borrows from the next code, or, of 3 bits, in each code */
    bool less_one;
    int64_t next,
        line; /* units from a line's unit to its next one, and to the same one of the next line */
    int64_t
        plane; /* above 0: code x is in unit x % plane, after those of x - plane, x - 2 * plane .. */
    const unsigned char *order; /* the places of each eight codes; NULL: 0, 1, 2 .. */
} packed_codes;

typedef enum factor_kind {
    FACTOR_NUMBER, /* of the tensor's type */
    FACTOR_E8M0,   /* a byte, the exponent of 2, plus 127 */
    FACTOR_E4M3,   /* a byte, a float of 8 bits */
    FACTOR_MAPPED  /* a byte, the index into a table: offset + map[byte] * inner[i / inner_block] */
} factor_kind;

typedef struct packed_factors {
    const st_tensor *t; /* NULL: 1 */
    factor_kind kind;
    bool divides;          /* a number is multiplied by 1 / factor */
    int64_t columns, rows; /* that share one */
    int64_t next,
        line;         /* elements from a factor to that of the next columns, and of the next rows */
    const float *map; /* of MAPPED: of 256 numbers */
    const st_tensor *inner;
    int64_t inner_block;
    float offset;
} packed_factors;

enum { PACKED_TENSORS = 8 };

typedef struct packed_numbers {
    int64_t n_column, n_row; /* of a matrix; an outer dimension counts on with rows */
    int64_t n_factor_row;    /* lines of factors for each n_row rows */
    packed_codes code, zero; /* zero: its columns are the groups */
    int zero_of_all;         /* added to each zero */
    packed_factors factor;
    const st_tensor *bias;  /* beside each factor */
    const st_tensor *group; /* I32: the group of each column; NULL: column / factor.columns */
    const float *value;     /* of each code; NULL: the codes themselves */
    float by;               /* 1: none */
    bool
        of_linear; /* by a program whose layers have rows of outputs, whatever the class had before */
    /* all tensors above, for reading ahead and for dropping */
    const st_tensor *tensor[PACKED_TENSORS];
    int n_tensor;
} packed_numbers;

/* Returns in how many parts a matrix was saved, side by side on as many devices, each of which has whole blocks of rows: as it has more factors, one for each block, than the
 * whole would have. 1: it was not, or several numbers fit. */
int64_t llm_packed_parts(int64_t rows, int64_t n_factor, int64_t block);

/* The numbers of floats of 4 bits (E2M1) and of 8 bits (E4M3, which has no infinities; 0x7f and 0xff are NaN). */
extern const float llm_packed_e2m1[16];
float llm_packed_e4m3(int code);

/* Returns element i of a tensor of F16, BF16, F32 or F64, which need not be aligned. */
float llm_packed_number(const st_tensor *t, int64_t i);
/* Returns the code of a row and column. */
int llm_packed_code(const packed_codes *c, int64_t row, int64_t column);
/* Reads elements first .. first + n - 1 of a RECIPE_PACKED. */
void llm_packed_read(const recipe *r, int64_t first, int64_t n, float *out);
/* Reads n codes less their zeros, which are adjacent in a row and belong to one group. */
void llm_packed_read_codes(const packed_numbers *p, int64_t row, int64_t column, int n, int *out);
/* The factor of an element, the zero that is subtracted from its code, and its bias. */
float llm_packed_factor(const packed_numbers *p, int64_t row, int64_t column);
int llm_packed_zero(const packed_numbers *p, int64_t row, int64_t column);
/* The place of the factor in its tensor. */
int64_t llm_packed_factor_place(const packed_numbers *p, int64_t row, int64_t column);
float llm_packed_bias(const packed_numbers *p, int64_t row, int64_t column);

/* Returns the type of numbers that is nearest to those of the recipe, a RECIPE_PACKED of whole codes: f32 if the factors are,
 * else f16 or bf16, by the error of some of the groups. */
ggl_type llm_packed_number_type(const recipe *r);
/* Makes the nearest type of each RECIPE_PACKED in the recipe bf16 where it is f16 and one of all its numbers may be too
 * large for that. Reads all factors and biases of these. */
void llm_packed_settle(recipe *r);
/* Returns the error of some groups in r->nearest: the root mean square, relative to the numbers'. */
double llm_packed_number_error(const recipe *r);
/* Returns the block type that has the same codes as all sources of the recipe, and in which they stay blocks; -1 if none.
 * Reads all factors, zeros and biases. *error: as above, if a factor is rounded. */
int llm_packed_block_type(const recipe *r, double *error);
/* True if blocks of that type leave out what the numbers of each matrix are multiplied by: stores this for n matrices, those of the
 * last dimension of a recipe with three dimensions, else one. */
bool llm_packed_has_factors(const recipe *r, ggl_type type, float *out, int64_t n);
/* Writes elements first .. first + n - 1, whole blocks, as blocks of that type. Adds the block's elements to *bad for each
 * block with a factor or bias that is no number. */
void llm_packed_pack(const recipe *r, ggl_type type, int64_t first, int64_t n, void *out,
                     size_t *bad);
/* Returns the first RECIPE_PACKED of a recipe; NULL: it has none. */
const recipe *llm_packed_of(const recipe *r);

#endif
