# For Windows, by clang-cl, clang with the options of Microsoft's compiler: cmake -DCMAKE_TOOLCHAIN_FILE=cmake/msvc.cmake
# -DCMAKE_SYSTEM_PROCESSOR=AMD64 (or ARM64) -DCMAKE_C_FLAGS="-imsvc FOLDER ..", folders with the headers of Windows and its C library. It is for compiling
# on other systems (tests/e2e/msvc.py), where there is nothing to link with. On Windows itself, clang-cl needs no such file.
set(CMAKE_SYSTEM_NAME Windows)
if(NOT CMAKE_C_COMPILER)
    find_program(GGL_CLANG NAMES clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang REQUIRED)
    # Its name says whose options it has. In PATH, the program may be a link to ccache, which goes by the name, too.
    get_filename_component(name ${GGL_CLANG} NAME)
    execute_process(COMMAND ${GGL_CLANG} -print-prog-name=${name} OUTPUT_VARIABLE program OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(CREATE_LINK ${program} ${CMAKE_BINARY_DIR}/clang-cl SYMBOLIC)
    set(CMAKE_C_COMPILER ${CMAKE_BINARY_DIR}/clang-cl)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "ARM64")
    set(CMAKE_C_COMPILER_TARGET aarch64-pc-windows-msvc)
else()
    set(CMAKE_C_COMPILER_TARGET x86_64-pc-windows-msvc)
endif()
set(CMAKE_SIZEOF_VOID_P 8) # nothing is there to find it out with
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(tool AR LINKER MT RC_COMPILER) # cmake asks for all of them
    set(CMAKE_${tool} true)
endforeach()
