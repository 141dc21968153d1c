/* The search of fit_scale_tmpl.h for eight runs at once. Processors with AVX2 have instructions for that. */
#ifdef __AVX2__

#define LANES     8
#define FIT(name) name##_eight
#include "fit_scale_tmpl.h"

#else
typedef int ggl_no_avx2; /* a file may not be empty */
#endif
