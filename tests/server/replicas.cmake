# Replicas behind a balancer, with the files of the folder deploy.
if(TARGET tools-server)
    ggl_test(server.rate rate.c LIBS tools-server)
endif()
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case haproxy nginx drain begin prefix sticky shared)
        add_test(NAME server.replicas.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/replicas.py $<TARGET_FILE:llm-server> ${case}
            ${PROJECT_SOURCE_DIR}/deploy)
        ggl_test_properties(server.replicas.${case} server PART release LONG_TSAN)
    endforeach()
    foreach(case drain shared)
        ggl_test_label(threads server.replicas.${case})
    endforeach()
    foreach(case units schemas)
        add_test(NAME server.deploy.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/deploy/deploy.py $<TARGET_FILE:llm-server> ${case}
            ${PROJECT_SOURCE_DIR}/deploy ${CMAKE_CURRENT_BINARY_DIR}/deploy)
        ggl_test_properties(server.deploy.${case} server PART release)
    endforeach()
endif()
