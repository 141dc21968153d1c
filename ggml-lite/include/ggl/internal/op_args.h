/* The indices of operators' arguments: in src[] of a node or step and, for those that a signature writes with #, in num[].
 * Constants, so any thread may use them. Made from ops.def by `tests/unit/op_args.py . --write`; do not edit. */
#ifndef GGL_INTERNAL_OP_ARGS_H
#define GGL_INTERNAL_OP_ARGS_H

enum { SUM_X = 0, SUM_DIM = 0 };
enum { AMAX_X = 0, AMAX_DIM = 0 };
enum { TOPK_X = 0, TOPK_K = 0 };
enum { NGRAMS_X = 0, NGRAMS_BY = 1, NGRAMS_INTO = 2, NGRAMS_FIRST = 3, NGRAMS_ROWS = 0 };
enum { PICK_T = 0, PICK_I = 1 };
enum { RESHAPE_X = 0, RESHAPE_SIZE = 0 };
enum { SPLIT_X = 0, SPLIT_DIM = 0, SPLIT_FIRST = 1, SPLIT_SIZE = 2 };
enum { CONCAT_X = 0, CONCAT_Y = 1, CONCAT_DIM = 0 };
enum { REPEAT_X = 0, REPEAT_SIZE = 0 };
enum { TRANSPOSE_X = 0, TRANSPOSE_A = 0, TRANSPOSE_B = 1 };
enum { LINEAR_X = 0, LINEAR_W = 1, LINEAR_BIAS = 2, LINEAR_INDEX = 3 };
enum { LINEAR_BACK_DY = 0, LINEAR_BACK_W = 1, LINEAR_BACK_BF16 = 0 };
enum {
    OUTER_SUM_X = 0,
    OUTER_SUM_DY = 1,
    OUTER_SUM_I = 2,
    OUTER_SUM_INTO = 3,
    OUTER_SUM_N = 0,
    OUTER_SUM_BF16 = 1
};
enum { ROPE_HALF_X = 0, ROPE_HALF_F = 1, ROPE_HALF_AT = 2, ROPE_HALF_MAG = 0 };
enum { ROPE_PAIR_X = 0, ROPE_PAIR_F = 1, ROPE_PAIR_AT = 2, ROPE_PAIR_MAG = 0 };
enum { CACHE_K = 0, CACHE_V = 1, CACHE_POS = 2, CACHE_SLOT = 3, CACHE_PAGE = 4 };
enum {
    ATTEND_Q = 0,
    ATTEND_KV = 1,
    ATTEND_SINKS = 2,
    ATTEND_ALIBI = 3,
    ATTEND_POS = 4,
    ATTEND_SLOT = 5,
    ATTEND_PAGE = 6,
    ATTEND_BIAS = 7,
    ATTEND_END = 8,
    ATTEND_REL_K = 9,
    ATTEND_REL_Q = 10,
    ATTEND_REL_ROW = 11,
    ATTEND_WITHIN = 12,
    ATTEND_CHOSEN = 13,
    ATTEND_SCALE = 0,
    ATTEND_WINDOW = 1,
    ATTEND_CAP = 2
};
enum {
    CHOOSE_ROWS_Q = 0,
    CHOOSE_ROWS_KV = 1,
    CHOOSE_ROWS_W = 2,
    CHOOSE_ROWS_POS = 3,
    CHOOSE_ROWS_SLOT = 4,
    CHOOSE_ROWS_PAGE = 5,
    CHOOSE_ROWS_BEST = 0,
    CHOOSE_ROWS_EVERY = 1,
    CHOOSE_ROWS_NEAR = 2
};
enum {
    ATTEND_BACK_Q = 0,
    ATTEND_BACK_K = 1,
    ATTEND_BACK_V = 2,
    ATTEND_BACK_DY = 3,
    ATTEND_BACK_SINKS = 4,
    ATTEND_BACK_ALIBI = 5,
    ATTEND_BACK_POS = 6,
    ATTEND_BACK_SLOT = 7,
    ATTEND_BACK_BIAS = 8,
    ATTEND_BACK_END = 9,
    ATTEND_BACK_WITHIN = 10,
    ATTEND_BACK_Q_REL = 11,
    ATTEND_BACK_K_REL = 12,
    ATTEND_BACK_REL_ROW = 13,
    ATTEND_BACK_SCALE = 0,
    ATTEND_BACK_WINDOW = 1,
    ATTEND_BACK_CAP = 2,
    ATTEND_BACK_BY_BIAS = 3
};
enum { STATE_SLOT = 0, STATE_SIZE = 0 };
enum { KEEP_STATE = 0, KEEP_X = 1, KEEP_SLOT = 2 };

#endif
