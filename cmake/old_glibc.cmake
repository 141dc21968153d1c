# ggl_old_glibc(TARGET): lets a shared library run with glibc 2.17 and later, though it is linked with a newer one. library/glibc/old_glibc.c has
# the functions, and says how.
set(GGL_OLD_GLIBC_SOURCE ${CMAKE_CURRENT_LIST_DIR}/../library/glibc/old_glibc.c)
function(ggl_old_glibc target)
    file(STRINGS ${GGL_OLD_GLIBC_SOURCE} wraps REGEX "^WRAP[A-Z_]*\\(")
    list(TRANSFORM wraps REPLACE "^[A-Z_]+\\([^,]*, ([a-z0-9_]+),.*" "LINKER:--wrap=\\1")
    target_sources(${target} PRIVATE ${GGL_OLD_GLIBC_SOURCE})
    target_link_options(${target} PRIVATE ${wraps})
    target_link_libraries(${target} PRIVATE -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2) # parts of libc since 2.34
endfunction()
