# RISC-V 64-bit Linux from another machine, with Debian's gcc-riscv64-linux-gnu and libc6-dev-riscv64-cross: cmake --preset riscv64.
# The kernels of the vector extension need a compiler that knows it: clang 16 (-DCMAKE_C_COMPILER=clang-16), gcc 14 or later.
set(processor riscv64)
set(triple riscv64-linux-gnu)
set(emulated rv64,v=true,vlen=256,vext_spec=v1.0)
set(CMAKE_C_COMPILER_TARGET ${triple}) # for clang
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
