# The files that `cmake --install` installs: headers, libraries, the CMake package ggml-lite, the pkg-config files ggml-lite.pc (the tensor
# library with its backends) and llm-models.pc (the models on top of it), and the licence.
include(CMakePackageConfigHelpers)

install(DIRECTORY ggml-lite/include/ backends/include/ models/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET ggl-vulkan)
    set(vulkan ggl-vulkan)
    set(vulkan_lib "-lggl-vulkan ")
endif()
install(TARGETS ggl-core ggl-reference ggl-cpu ${vulkan} ggl-backends llm-models EXPORT ggml-lite
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ggml-lite)
install(EXPORT ggml-lite NAMESPACE ggl:: FILE ggml-lite-targets.cmake DESTINATION ${package})
configure_package_config_file(cmake/ggml-lite-config.cmake.in ${PROJECT_BINARY_DIR}/ggml-lite-config.cmake
    INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ggml-lite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ggml-lite-config.cmake ${PROJECT_BINARY_DIR}/ggml-lite-config-version.cmake
    DESTINATION ${package})

list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE GGL_DL_FLAGS)
foreach(pc ggml-lite llm-models)
    configure_file(cmake/${pc}.pc.in ${PROJECT_BINARY_DIR}/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
