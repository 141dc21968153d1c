# OpenAI's APIs: requests and answers.
foreach(name openai_read openai_write)
    ggl_test(server.${name} ${name}.c LIBS tools-server-api m COUNT_ALLOCATIONS)
    target_include_directories(test-server-${name} PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endforeach()
ggl_test(server.answer_talk answer_talk.c LIBS tools-server-answer llm::models COUNT_ALLOCATIONS)
