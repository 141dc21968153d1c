/* Values of specialization constants, for C and shaders. */
#ifndef VULKAN_KINDS_H
#define VULKAN_KINDS_H

/* A column of f16 (linear_halves.comp) is padded to a multiple of it. */
#define HALVES_DEEP 64

/* elementwise.comp */
#define EW_EXP        0
#define EW_LOG        1
#define EW_SQRT       2
#define EW_FLOOR      3
#define EW_ABS        4
#define EW_TANH       5
#define EW_ERF        6
#define EW_SIGMOID    7
#define EW_SIN        8
#define EW_COS        9
#define EW_RELU       10
#define EW_SILU       11
#define EW_GELU       12
#define EW_GELU_ERF   13
#define EW_GELU_QUICK 14
#define EW_SOFTPLUS   15
#define EW_IOTA       16
#define EW_ADD        17
#define EW_SUB        18
#define EW_MUL        19
#define EW_DIV        20
#define EW_POW        21
#define EW_MOD        22
#define EW_EQ         23
#define EW_NE         24
#define EW_LT         25
#define EW_LE         26
#define EW_GT         27
#define EW_GE         28
#define EW_MIN        29
#define EW_MAX        30
#define EW_WHERE      31

/* move.comp and pick.comp: conversions */
#define FROM_WORD 0 /* copies 32 bits */
#define FROM_I32  1 /* this and the following convert to float */
#define FROM_F16  2
#define FROM_BF16 3

/* cache.comp: what becomes of a part's rows */
#define PART_NONE         0
#define PART_ROTATED      1 /* rotated, to y */
#define PART_KEYS         2 /* stored */
#define PART_ROTATED_KEYS 3
#define PART_VALUES       4

/* rows.comp and reduce.comp */
#define ROW_SUM        0
#define ROW_AMAX       1
#define ROW_SOFTMAX    2
#define ROW_RMS        3
#define ROW_CENTER     4
#define ROW_L2         5
#define ROW_NORMALISED 6

/* route.comp: what is done to scores or shares, besides functions of one number (EW_..) */
#define ROUTE_NONE       32
#define ROUTE_SOFTMAX    33
#define ROUTE_NORMALISED 34

/* linear_vec.comp, weighted.comp: the kind of a norm of the results, one of ROW_RMS .. ROW_NORMALISED, or 0; and what is done besides */
#define THEN_WEIGHT 16
#define THEN_ROUND  32
#define THEN_STORE  64
#define THEN_ADD    128 /* the norm is added to other values, */
#define THEN_AGAIN  256 /* and the same kind of norm is made of their sum */

#endif
