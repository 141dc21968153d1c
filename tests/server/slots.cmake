# Saved slots.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case save erase place names files room)
        add_test(NAME server.slots.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/slots.py $<TARGET_FILE:llm-server> ${case})
        ggl_test_properties(server.slots.${case} server)
        ggl_test_label(threads server.slots.${case})
    endforeach()
endif()
