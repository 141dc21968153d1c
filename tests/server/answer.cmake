# Fields of requests, and answers.
set_source_files_properties(answer_fixture.c answer_text.c PROPERTIES COMPILE_DEFINITIONS
    BUILTIN_CHAT_MODEL="${PROJECT_SOURCE_DIR}/models/builtin/stories-chat.gguf")
ggl_test(server.read_fields read_fields.c LIBS tools-server-api COUNT_ALLOCATIONS)
target_include_directories(test-server-read_fields PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
ggl_test(server.answer_text answer_text.c LIBS tools-server-answer llm::models)
ggl_test(server.answer answer.c SOURCES answer_fixture.c LIBS tools-server-answer llm::models ggl::backends m TIMEOUT 300)
ggl_test(server.answer_calls answer_calls.c SOURCES answer_fixture.c LIBS tools-server-answer llm::models ggl::backends m TIMEOUT 300)
ggl_test(server.answers answers.c SOURCES answer_fixture.c LIBS tools-server-answer llm::models ggl::backends m TIMEOUT 600 THREADS
    COUNT_ALLOCATIONS LONG_TSAN)
ggl_test(server.stream_logs stream_logs.c LIBS tools-server-answer)
ggl_test(server.embed embed.c SOURCES answer_fixture.c LIBS tools-server-answer llm::models ggl::backends m TIMEOUT 300)
