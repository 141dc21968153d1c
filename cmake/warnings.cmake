# Two interface targets, linked privately by all targets of the project: nothing is set globally.
#   ggl_warnings  what the compiler should complain about
#   ggl_numeric   what the numeric contract needs (docs/numeric.md): no contraction, no reordering
add_library(ggl_warnings INTERFACE)
target_compile_options(ggl_warnings INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wpointer-arith $<$<BOOL:${GGL_WERROR}>:-Werror>)
target_compile_features(ggl_warnings INTERFACE c_std_11)

add_library(ggl_numeric INTERFACE)
target_compile_options(ggl_numeric INTERFACE -ffp-contract=off -fno-math-errno -fno-trapping-math)

# For the kernels of products of quantized types (cpu/x86/quant_*): each is one file that the compiler unrolls for every type,
# and takes a minute under address and undefined, while a whole build takes some. They are functions of their arguments that
# share no state and allocate nothing. What a sanitizer would see there, tests/conformance sees in every build: buffers of the
# tests end where a page without access begins, and have canaries around what is written. Races between threads that write
# one output show in the portable kernels, which are instrumented: conformance.cpu runs them on several threads, too.
set(GGL_NO_SANITIZER)
if(GGL_SANITIZE)
    set(GGL_NO_SANITIZER -fno-sanitize=all -g1)
    add_compile_options(-fsanitize=${GGL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${GGL_SANITIZE})
endif()
