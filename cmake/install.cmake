# The files that `cmake --install` installs: headers, libraries, the CMake package ggml-lite, pkg-config files (ggml-lite: the tensor library with its
# backends; llm: all of it in one library, with the models; llm-train: what lets models learn, on top of it), and the licence. With BUILD_SHARED_LIBS there is one
# library below libllm-train.so, libllm.so, and the other names stand for it.
option(GGL_INSTALL "Install the library and the tools" ${PROJECT_IS_TOP_LEVEL})
if(NOT GGL_INSTALL)
    return()
endif()
include(CMakePackageConfigHelpers)

install(DIRECTORY ggml-lite/include/ backends/include/ library/include/ train/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    PATTERN internal EXCLUDE)
set(places ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ggml-lite)
if(BUILD_SHARED_LIBS)
    set(ggml_lite_libs -lllm)
else()
    if(TARGET ggl-vulkan)
        set(vulkan ggl-vulkan)
        set(vulkan_lib "-lggl-vulkan ")
    endif()
    list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE dl)
    set(ggml_lite_libs "-lggl-backends ${vulkan_lib}-lggl-cpu -lggl-reference -lggl-core -lm -pthread ${dl}")
    install(TARGETS ggl-core ggl-reference ggl-cpu ${vulkan} ggl-backends EXPORT ggl ${places})
    install(EXPORT ggl NAMESPACE ggl:: FILE ggl-targets.cmake DESTINATION ${package})
    if(GGL_SHARED_LIBLLM)
        install(TARGETS llm-shared llm-train-shared EXPORT llm ${places})
    endif()
endif()
if(BUILD_SHARED_LIBS)
    set(train llm-train-shared)
else()
    set(train llm-training)
endif()
install(TARGETS llm ${train} EXPORT llm ${places})
install(EXPORT llm NAMESPACE llm:: FILE llm-targets.cmake DESTINATION ${package})

configure_package_config_file(cmake/ggml-lite-config.cmake.in ${PROJECT_BINARY_DIR}/ggml-lite-config.cmake
    INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ggml-lite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ggml-lite-config.cmake ${PROJECT_BINARY_DIR}/ggml-lite-config-version.cmake
    DESTINATION ${package})

list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE GGL_DL_FLAGS)
foreach(pc ggml-lite llm llm-train)
    configure_file(cmake/${pc}.pc.in ${PROJECT_BINARY_DIR}/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
