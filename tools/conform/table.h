/* The table of a backend, with a row for each operator and type. */
#ifndef TOOLS_CONFORM_TABLE_H
#define TOOLS_CONFORM_TABLE_H

#include "speed.h"

typedef struct conform_row {
    const char *op;
    char type[24]; /* of weights; for attention those of keys and values */
    int n_cases, n_right, n_refused, n_wrong; /* wrong: includes those that failed */
    /* right, but the backend does not know the composite's name */
    bool by_body;
    char reason[CONFORM_TEXT]; /* why the first refused one was refused */
    /* the largest error of the right ones, as a share of the bound */
    double share;
    conform_result wrong; /* if n_wrong > 0: the first, made smaller */
    bool right_alone;     /* it is right if only this operator runs on the backend */
    conform_speed speed;  /* ns 0: not timed */
    double percent;       /* of the device's limit; 0: not known */
} conform_row;

typedef struct conform_selection {
    const char *op;   /* a shell pattern; NULL: all */
    const char *type; /* NULL: all */
    bool quick;       /* few forms of each case */
    double seconds;   /* time for timing a row; 0: rows are not timed */
    /* if not NULL, called after each case */
    void (*each)(void *ctx, const conform_case *info, const conform_result *r);
    void *ctx;
} conform_selection;

/* Fills row[] with at most `most` rows of a selection, with only op and type set; returns how
 * many. */
int conform_rows_of(const conform_selection *s, conform_row *row, int most);
/* Runs the cases of a row and sets its results. */
void conform_row_run(const conform_selection *s, conform_row *row, ggl_backend *b,
                     const conform_limits *limits);

#endif
