# Fields of requests, and answers.
ggl_test(server.read_fields read_fields.c LIBS tools-server-api COUNT_ALLOCATIONS)
target_include_directories(test-server-read_fields PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
