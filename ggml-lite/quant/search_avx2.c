/* The searches of search.h, eight runs at once: the same operations in the same order for each run, so
 * the same bits as those of search.c. The build compiles this file for AVX2, without fused
 * multiplications and additions; on other machines it is empty. */
#ifdef __AVX2__
#include "search.h"

#define LANES        8
#define SEARCH_TABLE ggl_search_eight
#include "search_lanes_tmpl.h"
#else
typedef int ggl_no_avx2; /* a file may not be empty */
#endif
