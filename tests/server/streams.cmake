# Streams that are resumed.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case replay goes_on cancel limits storm reset_at_once)
        add_test(NAME server.streams.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/streams.py $<TARGET_FILE:llm-server> ${case})
        ggl_test_properties(server.streams.${case} server LONG_TSAN)
        ggl_test_label(threads server.streams.${case})
    endforeach()
    ggl_test_label(long server.streams.goes_on server.streams.limits)
endif()
