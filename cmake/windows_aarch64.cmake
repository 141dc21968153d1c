# For Windows on ARM, by clang and mingw-w64 (Debian: clang-16, lld-16, llvm-16). scripts/windows-libraries.sh --aarch64 FOLDER builds what Debian's packages lack:
#   cmake -DCMAKE_TOOLCHAIN_FILE=cmake/windows_aarch64.cmake -DCMAKE_FIND_ROOT_PATH=FOLDER
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_FIND_ROOT_PATH)
if(NOT CMAKE_FIND_ROOT_PATH)
    message(FATAL_ERROR "-DCMAKE_FIND_ROOT_PATH=FOLDER is missing, which scripts/windows-libraries.sh --aarch64 FOLDER makes")
endif()
list(GET CMAKE_FIND_ROOT_PATH 0 CMAKE_SYSROOT)
set(CMAKE_C_COMPILER clang-16)
set(CMAKE_C_COMPILER_TARGET aarch64-w64-mingw32)
set(CMAKE_AR llvm-ar-16 CACHE FILEPATH "")
set(CMAKE_RANLIB llvm-ranlib-16 CACHE FILEPATH "")
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld-16 -Wl,--no-insert-timestamp") # the same sources give the same bytes
endforeach()
set(CMAKE_RC_COMPILER llvm-windres-16)
set(CMAKE_RC_FLAGS_INIT --target=aarch64-w64-mingw32) # otherwise for this machine
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
