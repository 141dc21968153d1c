# Two interface targets, linked privately by all targets of the project: nothing is set globally.
#   ggl_warnings  the warnings of the compiler
#   ggl_numeric   the flags that the numeric contract needs (docs/numeric.md): no contraction, no reordering
add_library(ggl_warnings INTERFACE)
target_compile_options(ggl_warnings INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wpointer-arith $<$<BOOL:${GGL_WERROR}>:-Werror>)
target_compile_features(ggl_warnings INTERFACE c_std_11)

add_library(ggl_numeric INTERFACE)
target_compile_options(ggl_numeric INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)

# With sanitizers, functions of kernels are not expanded (backends/cpu/unroll.h); otherwise each file takes a minute. If a type is
# not a constant, gcc warns about the unused half of a pair of registers as if it were read.
option(GGL_SMALL "Kernels that compile faster and run slower, and tools that are not optimized" OFF)
set(GGL_SMALL_KERNELS)
if(GGL_SMALL OR GGL_SANITIZE)
    set(GGL_SMALL_KERNELS -DCPU_SMALL_KERNELS $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(GGL_SANITIZE)
    add_compile_options(-fsanitize=${GGL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${GGL_SANITIZE})
endif()
