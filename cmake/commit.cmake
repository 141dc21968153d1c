# cmake -DSOURCE=FOLDER -DOUT=FILE -P commit.cmake: writes a C file with the commit from which the programs are built (tools/common/commit.h).
# Each build runs it; the file changes only if the commit does, so that programs are linked again only then.
set(commit "")
set(number 0)
set(git ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 git -C ${SOURCE}) # reading must not disturb who works there
if(EXISTS ${SOURCE}/.git) # an archive may lie in somebody else's checkout
    execute_process(COMMAND ${git} describe --always --dirty --abbrev=10 --exclude=* OUTPUT_VARIABLE out ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(out MATCHES "^[0-9a-f]+(-dirty)?$")
        set(commit ${out})
        execute_process(COMMAND ${git} rev-list --count HEAD OUTPUT_VARIABLE number ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "/* Written by cmake/commit.cmake. */
#include \"common/commit.h\"

const char tool_commit[] = \"${commit}\";
const long tool_commit_number = ${number};
")
