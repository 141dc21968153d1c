/* The table of a backend: a row for each operator and type. */
#ifndef TOOLS_CONFORM_TABLE_H
#define TOOLS_CONFORM_TABLE_H

#include "speed.h"

typedef struct conform_row {
    const char *op;
    char type[24]; /* of weights; of attention those of keys and values */
    int n_cases, n_right, n_refused, n_wrong; /* wrong: or failed */
    bool by_body;                             /* right, but it does not know the composite's name */
    char reason[CONFORM_TEXT];                /* of the first that was refused */
    double share;                             /* the largest error of right ones, of the bound */
    conform_result wrong;                     /* n_wrong > 0: the first, made small */
    bool right_alone;    /* that is right where only this operator runs on the backend */
    conform_speed speed; /* ns 0: not timed */
    double percent;      /* of the limit; 0: not known */
} conform_row;

typedef struct conform_selection {
    const char *op;   /* a pattern of fnmatch; NULL: all */
    const char *type; /* NULL: all */
    bool quick;       /* few forms of each */
    double seconds;   /* to time a row; 0: none is */
    /* Called after each case, if not NULL. */
    void (*each)(void *ctx, const conform_case *info, const conform_result *r);
    void *ctx;
} conform_selection;

/* The rows of a selection, in order, with op and type alone set; how many, at most `most`. */
int conform_rows_of(const conform_selection *s, conform_row *row, int most);
/* Runs its cases. */
void conform_row_run(const conform_selection *s, conform_row *row, ggl_backend *b,
                     const conform_limits *limits);

#endif
