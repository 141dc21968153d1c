/* What is known while a segment is compiled. */
#ifndef CPU_COMPILER_H
#define CPU_COMPILER_H

#include "cpu.h"

struct cpu_compiler {
    const cpu_backend *b;
    const ggl_segment *s;
    cpu_step *step;
    size_t n_step, cap_step;
    bool in_loop;
};

#endif
