# Models that see pictures, or hear sounds.
if(TARGET llm-server AND TARGET llm-cli AND GGL_PYTHON3)
    foreach(case apis completion saved names errors says_so others addresses folders unloaded sizes several adapted leaves sounds)
        add_test(NAME server.see.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/see.py $<TARGET_FILE:llm-server> ${case} $<TARGET_FILE:llm-cli>)
        ggl_test_properties(server.see.${case} server PART release LONG_TSAN)
        ggl_test_label(threads server.see.${case})
    endforeach()
    ggl_test_label(long server.see.leaves)
endif()
