/* In whose form the errors of a path are. */
#include <string.h>

#include "server.h"

#define ANTHROPIC (&api_anthropic_messages)
#define LLAMACPP  (&api_llamacpp_completion)

/* Those of all other paths have OpenAI's form. Paths of /v1 may be called without it. */
static const struct {
    const char *path;
    const dialect *form;
} forms[] = {{"/v1/messages", ANTHROPIC},  {"/v1/messages/*", ANTHROPIC},
             {"/api/*", &api_ollama_chat}, {"/completion", LLAMACPP},
             {"/completions", LLAMACPP},   {"/infill", LLAMACPP},
             {"/embedding", LLAMACPP},     {"/embeddings", LLAMACPP},
             {"/v1/rerank", LLAMACPP},     {"/v1/reranking", LLAMACPP},
             {"/v2/rerank", LLAMACPP},     {"/tokenize", LLAMACPP},
             {"/detokenize", LLAMACPP},    {"/apply-template", LLAMACPP},
             {"/v1/stream", LLAMACPP},     {"/v1/streams/lookup", LLAMACPP},
             {"/models/load", LLAMACPP},   {"/models/unload", LLAMACPP},
             {"/props", LLAMACPP},         {"/slots", LLAMACPP},
             {"/slots/*", LLAMACPP},       {"/lora-adapters", LLAMACPP},
             {"/metrics", LLAMACPP},       {"/v1/health", LLAMACPP},
             {"/ready", LLAMACPP}};

bool path_fits_pattern(const char *pattern, const char *path) {
    const char *star = strchr(pattern, '*');
    if (!star || star == pattern)
        return strcmp(pattern, path) == 0;
    const size_t n = (size_t)(star - pattern);
    if (strncmp(pattern, path, n) != 0 || !path[n])
        return false;
    const size_t n_part = strcspn(path + n, "/");
    return !star[1] || (n_part > 0 && strcmp(star + 1, path + n + n_part) == 0);
}

const dialect *path_errors(const char *path) {
    static const char v1[] = "/v1";
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *pattern = forms[i].path;
        const bool has_v1 = strncmp(pattern, v1, sizeof v1 - 1) == 0;
        if (path_fits_pattern(pattern, path) ||
            (has_v1 && path_fits_pattern(pattern + sizeof v1 - 1, path)))
            return forms[i].form;
    }
    return &api_openai_chat;
}

const dialect *request_errors(const http_request *q) {
    static const char *const shared[] = {"/v1/models", "/v1/models/*", "/models", "/models/*"};
    const dialect *form = path_errors(q->path);
    bool is_shared = false;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        is_shared = is_shared || path_fits_pattern(shared[i], q->path);
    return is_shared && form == &api_openai_chat && q->header(q, "anthropic-version") ? ANTHROPIC
                                                                                      : form;
}
