# ARM 32-bit Linux (ARMv7 with VFP) from another machine, with Debian's gcc-arm-linux-gnueabihf and libc6-dev-armhf-cross:
# cmake --preset armv7. The portable kernels alone.
set(processor armv7l)
set(triple arm-linux-gnueabihf)
set(emulator arm)
include(${CMAKE_CURRENT_LIST_DIR}/cross_linux.cmake)
