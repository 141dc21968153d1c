/* What stages over rows consist of: run over whole inputs (stage_rows.c), or over inputs that come piece by piece (stage_flow.c). */
#ifndef RUN_STAGE_ROWS_IMPL_H
#define RUN_STAGE_ROWS_IMPL_H

#include "llm/internal/stage_rows.h"

/* Rows of the input or of a stage; its index is that in llm_arch_result.source. */
typedef struct llm_stage_rows {
    llm_session *session; /* NULL: the input */
    const llm_arch_rows_of *of;
    int64_t n, n_row;       /* how many there are, and the numbers of each */
    int64_t n_run;          /* how many run, with those that fill windows */
    int64_t at_once, first; /* how many run at once, and the first one of those */
    const float *row;
    float *own; /* [n][n_row]; NULL: row is the caller's */
    size_t cap_own;
    llm_rows_windows windows;
    /* Of rows that come piece by piece, n of them so far: own[0] is row `base`; those before it are not read any more. */
    int64_t base;
} llm_stage_rows;

struct llm_stages {
    int n_sources;
    llm_arch_rows_of of[LLM_ARCH_MAX_SOURCES];
    llm_stage_rows source[LLM_ARCH_MAX_SOURCES];
    float *gathered[LLM_MAX_ROWS_INPUTS]; /* the inputs of the stage that runs, in its session */
    int64_t n_most, n_input;              /* rows of the input: at most, and of what runs */
    bool is_read;                         /* tokens read the last stage, in its session */
    bool is_lent;                         /* that session is the caller's */
    bool is_within;                       /* the model has tokens, which do not run here */
    const llm_row_places *places;
    bool is_flowing; /* an input comes piece by piece (llm_stages_flow) */
};
enum {
    LLM_STAGE_PIECE = 256 /* rows of a stage whose rows see no others */
};

#endif
