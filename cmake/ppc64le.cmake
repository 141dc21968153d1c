# PowerPC 64-bit little endian Linux from another machine, with Debian's gcc-powerpc64le-linux-gnu and libc6-dev-ppc64el-cross:
# cmake --preset ppc64le. vectors/ has the kernels, by VSX.
set(processor ppc64le)
set(triple powerpc64le-linux-gnu)
set(emulated power9)
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
