# OpenAI's APIs: requests and answers.
foreach(name openai_read openai_write)
    ggl_test(server.${name} ${name}.c LIBS tools-server-api m COUNT_ALLOCATIONS)
    target_include_directories(test-server-${name} PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endforeach()
# Conversations through all programs.
ggl_test(server.talks talks.c SOURCES answer_fixture.c LIBS tools-server-answer llm-training llm-layer llm::models ggl::backends m TIMEOUT 300)
target_include_directories(test-server-talks PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
target_compile_definitions(test-server-talks PRIVATE CHAT_MODEL="${PROJECT_SOURCE_DIR}/models/builtin/stories-chat.gguf")
