# ARM 64-bit Linux from another machine, with Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross:
#   cmake --preset aarch64 && cmake --build build/aarch64 && ctest --test-dir build/aarch64
# With -DCMAKE_C_COMPILER=aarch64-linux-musl-gcc, of Debian's musl-dev:arm64, programs contain musl.
set(processor aarch64)
set(triple aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
