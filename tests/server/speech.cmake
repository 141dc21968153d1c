# Sounds: forms, the queue of a model. The program: tests/numpy/speech_server.py.
if(TARGET tools-server-answer)
    ggl_test(server.multipart multipart.c LIBS tools-server-api)
    ggl_test(server.speech_form speech_form.c LIBS tools-server-answer)
    target_compile_definitions(test-server-speech_form PRIVATE DOCS="${PROJECT_SOURCE_DIR}/docs")
endif()
if(TARGET tools-server)
    ggl_test(server.turn_queue turn_queue.c LIBS tools-server THREADS)
endif()
