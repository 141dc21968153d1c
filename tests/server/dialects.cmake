# Other APIs than OpenAI's: requests and answers.
foreach(api anthropic llamacpp ollama)
    ggl_test(server.${api} ${api}.c LIBS tools-server-api m)
    target_include_directories(test-server-${api} PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endforeach()
target_compile_definitions(test-server-llamacpp PRIVATE STORIES="${PROJECT_SOURCE_DIR}/models/builtin/stories.gguf")
