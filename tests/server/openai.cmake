# OpenAI's APIs: requests and answers.
foreach(name openai_fields openai_read openai_write)
    ggl_test(server.${name} ${name}.c LIBS tools-server-api m COUNT_ALLOCATIONS)
    target_include_directories(test-server-${name} PRIVATE ${PROJECT_SOURCE_DIR}/models) # private headers
endforeach()
target_compile_definitions(test-server-openai_fields PRIVATE DOCS="${PROJECT_SOURCE_DIR}/docs/server-openai.md")
