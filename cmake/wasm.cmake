# Toolchain: WebAssembly with WASI, with Debian's clang, lld, wasi-libc and libclang-rt-VERSION-dev-wasm32 (clang 14 or later).
#   cmake -B build/wasm -DCMAKE_TOOLCHAIN_FILE=cmake/wasm.cmake -DGGL_TESTS=OFF && cmake --build build/wasm
# Programs are bin/llm-*.wasm; `node npm/run.mjs FILE ..` runs them, and so does any other program for WASI whose machine has exceptions.
# Addresses have 32 bits, unless -DGGL_WASM64=FOLDER names the C library for those of 64 bits, which scripts/wasm64-library.sh makes.
set(CMAKE_SYSTEM_NAME Generic)
set(GGL_WASM ON)
set(GGL_WASM64 "" CACHE PATH "C library for addresses of 64 bits; empty: addresses have 32")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GGL_WASM64)
if(GGL_WASM64)
    set(CMAKE_SYSTEM_PROCESSOR wasm64)
    set(CMAKE_SYSROOT ${GGL_WASM64})
    set(most 17179869184) # as much as engines have
    set(compilers clang-19) # those before write single lanes of vectors wrongly with such addresses
else()
    set(CMAKE_SYSTEM_PROCESSOR wasm32)
    set(most 4294967296)
    set(compilers clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang)
endif()
set(target ${CMAKE_SYSTEM_PROCESSOR}-wasi)
option(GGL_WASM_SIMD "Use the vector instructions of WebAssembly, which all browsers have since 2023" ON)
if(NOT CMAKE_C_COMPILER)
    foreach(name IN LISTS compilers)
        find_program(GGL_WASM_${name} ${name})
        mark_as_advanced(GGL_WASM_${name})
        if(GGL_WASM_${name} AND NOT CMAKE_C_COMPILER) # the newest that has its library for WebAssembly
            execute_process(COMMAND ${GGL_WASM_${name}} --target=${target} -print-libgcc-file-name OUTPUT_VARIABLE library ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
            if(EXISTS "${library}")
                set(CMAKE_C_COMPILER ${GGL_WASM_${name}})
            endif()
        endif()
    endforeach()
    if(NOT CMAKE_C_COMPILER)
        message(FATAL_ERROR "no clang has its library for WebAssembly (Debian, Ubuntu: clang-19 lld-19 wasi-libc libclang-rt-19-dev-${CMAKE_SYSTEM_PROCESSOR})")
    endif()
endif()
if(GGL_WASM64)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -dumpversion OUTPUT_VARIABLE version ERROR_QUIET)
    if(version VERSION_LESS 19)
        message(FATAL_ERROR "addresses of 64 bits need clang 19 or later")
    endif()
endif()
set(CMAKE_ASM_COMPILER ${CMAKE_C_COMPILER})
set(CMAKE_C_COMPILER_TARGET ${target})
set(CMAKE_ASM_COMPILER_TARGET ${target})
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)
# Signals are C's own, and raised by the program alone. Exceptions: base/os_attempt_wasm.S.
# Threads: atomic instructions, which all machines know that know the others. No variable is a thread's own: such threads (base/os_thread_wasm.c) use none,
# errno is one that the C library defines without, and modules without shared memory do not set them.
set(CMAKE_C_FLAGS_INIT "-D_WASI_EMULATED_SIGNAL -mexception-handling -matomics -mbulk-memory -mthread-model posix -D_Thread_local=")
if(GGL_WASM_SIMD)
    string(APPEND CMAKE_C_FLAGS_INIT " -msimd128")
endif()
set(CMAKE_ASM_FLAGS_INIT "-mexception-handling -Wno-unused-command-line-argument") # those for C
if(GGL_WASM64) # clang 19 refuses the indirect calls that it writes itself
    string(APPEND CMAKE_ASM_FLAGS_INIT " -Wa,--no-type-check")
endif()
# The stack lies first, so that what goes past its end is a fault and no other data.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-lwasi-emulated-signal -Wl,-z,stack-size=8388608 -Wl,--stack-first -Wl,--max-memory=${most}")
if(GGL_WASM64) # npm/wasi.mjs reads the module's features
    string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,--keep-section=target_features")
endif()
# Each program is linked twice: NAME.wasm has its own memory, as WASI wants it, and one thread; NAME.threads.wasm takes memory that JavaScript shares
# with workers (npm/threads.mjs). --no-check-features: the C library has no atomic instructions, and only one thread calls it.
set(link "<CMAKE_C_COMPILER> <FLAGS> <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> <OBJECTS>")
string(JOIN "," shared -Wl --import-memory --export-memory --shared-memory --initial-memory=67108864 --no-check-features --export-table --export=__stack_pointer
    --export-if-defined=ggl_os_threads_host)
set(CMAKE_C_LINK_EXECUTABLE "${link} -o <TARGET> <LINK_LIBRARIES>" "${link} ${shared} -o <TARGET_BASE>.threads.wasm <LINK_LIBRARIES>")
set(CMAKE_CROSSCOMPILING_EMULATOR node;--no-warnings;${CMAKE_CURRENT_LIST_DIR}/../npm/run.mjs)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(GGL_SHARED_LIBLLM OFF CACHE BOOL "There are no shared libraries")
foreach(library CURL SNDFILE PNG JPEG WEBP) # there are none to link
    set(GGL_${library} OFF CACHE BOOL "Programs need no other library")
endforeach()
