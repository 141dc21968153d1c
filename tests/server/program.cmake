# The program: options, keys, admin endpoints, signals.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case options admin text echoes unknown overflow prefill habits shift progress errors keys loading left signals unix opens descriptors memory leaks cut draft embeddings)
        add_test(NAME server.program.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/program.py $<TARGET_FILE:llm-server> ${case})
        ggl_test_properties(server.program.${case} server)
        ggl_test_label(threads server.program.${case})
    endforeach()
endif()
# Models that see texts whole.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case embed rerank causal unlike several tasks writes diffuses)
        add_test(NAME server.encoders.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/encoders.py $<TARGET_FILE:llm-server> ${case} $<TARGET_FILE:llm-cli>)
        ggl_test_properties(server.encoders.${case} server)
        ggl_test_label(threads server.encoders.${case})
    endforeach()
endif()
if(TARGET tools-server)
    ggl_test(server.endpoints endpoints.c LIBS tools-server)
    target_include_directories(test-server-endpoints PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endif()
# Several models.
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case folder load busy storm looks presets reload)
        add_test(NAME server.router.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/router.py $<TARGET_FILE:llm-server>
            ${PROJECT_SOURCE_DIR}/models/builtin ${case})
        ggl_test_properties(server.router.${case} server)
        ggl_test_label(threads server.router.${case})
    endforeach()
endif()
