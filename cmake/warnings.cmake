# Two interface targets, linked privately by all targets of the project: nothing is set globally.
#   ggl_warnings  the warnings of the compiler
#   ggl_numeric   the flags that the numeric contract needs (docs/numeric.md): no contraction, no reordering
set(GGL_ALL -Wall -Wextra)
set(GGL_NUMERIC -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(MSVC) # clang-cl, whose -Wall means every warning that there is, and which knows the options of clang after /clang:
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "the sources need a compiler with the extensions of gcc and clang; on Windows that is clang-cl (in Visual Studio: cmake -T ClangCL), not ${CMAKE_C_COMPILER_ID}'s")
    endif()
    set(GGL_ALL /W4)
    list(TRANSFORM GGL_NUMERIC PREPEND /clang:)
endif()
add_library(ggl_warnings INTERFACE)
target_compile_options(ggl_warnings INTERFACE ${GGL_ALL} -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wpointer-arith $<$<BOOL:${GGL_WERROR}>:-Werror>)
target_compile_features(ggl_warnings INTERFACE c_std_11)

add_library(ggl_numeric INTERFACE)
target_compile_options(ggl_numeric INTERFACE ${GGL_NUMERIC})

# With sanitizers, functions of kernels are not expanded (backends/cpu/unroll.h); otherwise each file takes a minute. If a type is
# not a constant, gcc warns about the unused half of a pair of registers as if it were read.
option(GGL_SMALL "Kernels that compile faster and run slower, and tools that are not optimized" OFF)
set(GGL_SMALL_KERNELS)
if(GGL_SMALL OR GGL_SANITIZE)
    set(GGL_SMALL_KERNELS -DCPU_SMALL_KERNELS $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
# ./run's first build: what tokens do not wait for (files, options, descriptors, templates, tools) is optimized less, which takes
# half of the compiler's time for it. Kernels, tokenizers, grammars, samplers and the loop over tokens stay as they are.
option(GGL_QUICK "Optimize only what tokens wait for" OFF)
set(GGL_COLD)
if(GGL_QUICK)
    set(GGL_COLD -O1)
endif()
if(GGL_SANITIZE)
    add_compile_options(-fsanitize=${GGL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${GGL_SANITIZE})
endif()
