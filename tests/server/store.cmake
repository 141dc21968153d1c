# Answers that are kept.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case chain kept owners conversations full threads)
        add_test(NAME server.stored.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/stored.py $<TARGET_FILE:llm-server> ${case})
        ggl_test_properties(server.stored.${case} server LONG_TSAN)
        ggl_test_label(threads server.stored.${case})
    endforeach()
endif()
