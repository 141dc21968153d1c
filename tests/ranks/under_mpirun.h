/* test.h for programs that mpirun starts as several processes: rank 0 runs the cases, and the others compute for it. Started by
 * itself, a program has no ranks, and its cases are skipped (RANKS_OR_SKIP). */
#ifndef UNDER_MPIRUN_H
#define UNDER_MPIRUN_H

#define main test_main
static int test_main(int argc, char **argv);
#include "test.h"
#undef main

#include "ggl/internal/backends.h"

#ifndef JOIN
#define JOIN(code, err) ggl_ranks_begin(code, NULL, err)
#endif

enum { N_RANKS = 4 };

#define RANKS_OR_SKIP()                                                                            \
    do {                                                                                           \
        if (ggl_ranks_count() != N_RANKS)                                                          \
            SKIP("no mpirun, or this build has no plug-in for MPI (Debian: libopenmpi-dev, "       \
                 "openmpi-bin)");                                                                  \
    } while (0)

int main(int argc, char **argv) {
    ggl_error err = {0};
    int code = -1;
    if (JOIN(&code, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    return code >= 0 ? code : test_main(argc, argv);
}

#endif
