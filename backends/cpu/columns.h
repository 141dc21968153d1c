/* Which columns of a product each of several matrices has. Threads: one thread sorts, then any number may read. */
#ifndef CPU_COLUMNS_H
#define CPU_COLUMNS_H

#include "cpu.h"

/* The columns of matrix m are order[start[m]] .. order[start[m + 1] - 1], ascending; active[] lists the matrices that
 * have any. */
typedef struct cpu_lists {
    int32_t *order, *start, *active;
    int64_t n_active, n_matrices;
} cpu_lists;

/* Returns the number of the matrix that a column has; -1: none. */
typedef int64_t cpu_matrix_fn(const cpu_task *t, int64_t column);

/* Returns the bytes of the lists. */
size_t ggl_cpu_lists_size(int64_t n_columns, int64_t n_matrices);
/* Returns the lists in this memory; n_active is not set. */
cpu_lists ggl_cpu_lists_at(char *memory, int64_t n_columns, int64_t n_matrices);
/* Sorts the columns by matrix, and sets n_active. Columns without a matrix are in no list. */
void ggl_cpu_lists_sort(cpu_lists *l, int64_t n_columns, cpu_matrix_fn *matrix, const cpu_task *t);

/* These are for LINEAR and LINEAR_BACK. True if an index (src[LINEAR_INDEX]) picks the matrix of each column. */
bool ggl_cpu_has_index(const cpu_task *t);
/* Returns the number of the column's matrix; -1: the column's index is out of range. */
int64_t ggl_cpu_matrix_of(const cpu_task *t, int64_t column);
/* True if all columns have the same matrix, so that they need no sorting. */
bool ggl_cpu_one_matrix(const cpu_task *t);

#endif
