# Manual pages and completion of command lines: each tool prints its own, from its table of options. The build writes them beside the
# programs, and `cmake --install` puts them where man, bash, zsh and fish look for them. Programs for another machine can print theirs by an
# emulator only; those with sanitizers, and those for WebAssembly, are not installed.
if(GGL_SANITIZE OR GGL_WASM)
    return()
endif()
if(CMAKE_CROSSCOMPILING)
    list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 emulator)
    find_program(GGL_EMULATOR "${emulator}")
    mark_as_advanced(GGL_EMULATOR)
    if(NOT emulator OR NOT GGL_EMULATOR)
        return()
    endif()
endif()

get_property(tools GLOBAL PROPERTY GGL_TOOL_NAMES)
set(folder ${PROJECT_BINARY_DIR}/docs)
file(MAKE_DIRECTORY ${folder})
set(all)
# ggl_printed(TOOL FILE FOLDER FLAG..): what TOOL FLAG.. prints becomes FILE, which is installed in FOLDER.
function(ggl_printed tool file destination)
    add_custom_command(OUTPUT ${folder}/${file} COMMAND ${CMAKE_COMMAND} -E env COLUMNS=80 ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${tool}> ${ARGN} > ${folder}/${file}
        DEPENDS ${tool} VERBATIM)
    set(all ${all} ${folder}/${file} PARENT_SCOPE)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "[.]bash$" "" name ${name}) # bash looks for a file of the program's name
    install(FILES ${folder}/${file} DESTINATION ${destination} RENAME ${name} OPTIONAL)
endfunction()
foreach(tool IN LISTS tools)
    ggl_printed(${tool} ${tool}.1 ${CMAKE_INSTALL_MANDIR}/man1 --man)
    ggl_printed(${tool} ${tool}.bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions --completion bash)
    ggl_printed(${tool} _${tool} ${CMAKE_INSTALL_DATADIR}/zsh/site-functions --completion zsh)
    ggl_printed(${tool} ${tool}.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d --completion fish)
endforeach()
add_custom_target(tool-docs ALL DEPENDS ${all})
