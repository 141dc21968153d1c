#include "kernels.h"

void cpu_kernels_init(cpu_kernels *k, uint32_t features) {
    *k = (cpu_kernels){0};
    cpu_kernels_elementwise(k);
    cpu_kernels_rows(k);
    cpu_kernels_quantize(k);
    cpu_kernels_dot(k);
    cpu_kernels_rope(k);
    cpu_kernels_attend(k);
    cpu_kernels_recur(k);
#if defined(__x86_64__)
    cpu_kernels_init_x86(k, features);
#elif defined(__aarch64__)
    cpu_kernels_init_arm(k, features);
#else
    (void)features;
#endif
}
