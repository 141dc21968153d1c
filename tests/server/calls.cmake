# Calls of tools and reasoning in all APIs, with models that give a fixed answer.
if(TARGET llm-server AND TARGET llm-cli AND GGL_PYTHON3)
    foreach(case mistakes order thoughts)
        add_test(NAME server.calls.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/calls.py $<TARGET_FILE:llm-server> ${case} $<TARGET_FILE:llm-cli>)
        ggl_test_properties(server.calls.${case} server PART release)
    endforeach()
endif()
