# Toolchain: ARM 64-bit Linux from another machine, with Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross. Programs
# are static, so that qemu-aarch64-static (package qemu-user-static) runs them as they are; ctest calls it.
#   cmake --preset aarch64 && cmake --build build/aarch64 && ctest --test-dir build/aarch64
# With -DCMAKE_C_COMPILER=aarch64-linux-musl-gcc, of Debian's musl-dev:arm64, they contain musl.
# GGL_EMULATED_CPU: a processor that `qemu-aarch64-static -cpu help` lists.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT CMAKE_C_COMPILER)
    set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
endif()
foreach(tool ar ranlib strip) # for musl's compiler, too, beside which there are none
    string(TOUPPER ${tool} name)
    set(CMAKE_${name} aarch64-linux-gnu-${tool} CACHE FILEPATH "")
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(GGL_EMULATED_CPU max CACHE STRING "Which processor qemu-aarch64-static is")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu ${GGL_EMULATED_CPU})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(GGL_CURL OFF CACHE BOOL "Programs are static")
set(GGL_SNDFILE OFF CACHE BOOL "Programs are static")
set(GGL_PNG OFF CACHE BOOL "Programs are static")
set(GGL_JPEG OFF CACHE BOOL "Programs are static")
set(GGL_WEBP OFF CACHE BOOL "Programs are static")
