# Replicas behind a balancer, with the files of the folder deploy.
if(TARGET tools-server)
    ggl_test(server.rate rate.c LIBS tools-server)
endif()
if(TARGET llm-server AND GGL_PYTHON3)
    foreach(case haproxy nginx drain begin prefix sticky)
        add_test(NAME server.replicas.${case} COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/replicas.py $<TARGET_FILE:llm-server> ${case}
            ${PROJECT_SOURCE_DIR}/deploy)
        ggl_test_properties(server.replicas.${case} server)
    endforeach()
endif()
