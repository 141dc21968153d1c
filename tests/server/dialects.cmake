# Other APIs than OpenAI's: requests and answers.
foreach(api anthropic llamacpp ollama images api_docs api_kinds store)
    ggl_test(server.${api} ${api}.c LIBS tools-server-api m COUNT_ALLOCATIONS)
    target_include_directories(test-server-${api} PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endforeach()
target_compile_definitions(test-server-api_docs PRIVATE DOCUMENT="${PROJECT_SOURCE_DIR}/docs/server-apis.md"
    OPENAI_DOCUMENT="${PROJECT_SOURCE_DIR}/docs/server-openai.md")
target_compile_definitions(test-server-llamacpp PRIVATE STORIES="${PROJECT_SOURCE_DIR}/models/builtin/stories.gguf")

ggl_test(server.api_run api_run.c SOURCES answer_fixture.c LIBS tools-server-answer llm::models ggl::backends m TIMEOUT 300)

# The clients of these APIs from npm, which installs them into the build folder.
if(TARGET llm-server AND GGL_PYTHON3)
    add_test(NAME server.clients COMMAND ${GGL_PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/clients/clients.py $<TARGET_FILE:llm-server>
        ${PROJECT_SOURCE_DIR}/models/builtin/stories-chat.gguf ${PROJECT_BINARY_DIR}/clients)
    ggl_test_properties(server.clients server PART release LONG)
    ggl_test_slow(20 server.clients)
endif()
