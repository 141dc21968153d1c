/* Calls in answers: the first byte chooses the format, the second the size of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "fuzz.h"
#include "llm/internal/calls.h"

/* Reads the answer in pieces; returns a sum of the parts, which must not depend on the pieces. */
static uint64_t parts_of(ggl_str format, const char *text, size_t n, size_t piece) {
    static const char tools[] =
        "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"type\": "
        "\"string\"}}}}}]";
    llm_json *doc = NULL;
    llm_calls *c;
    llm_calls_part part;
    uint64_t sum = 0;
    if (llm_json_parse(&doc, tools, sizeof tools - 1, "tools", NULL) != GGL_OK)
        abort();
    const llm_calls_params p = {.size = sizeof p, .format = format, .tools = &doc->root};
    if (llm_calls_new(&c, &p, NULL) != GGL_OK)
        abort();
    for (size_t i = 0;; i += piece) {
        const size_t k = i < n ? (n - i < piece ? n - i : piece) : 0;
        if ((k ? llm_calls_add(c, text + i, k, NULL) : llm_calls_finish(c, NULL)) != GGL_OK)
            abort();
        while (llm_calls_next(c, &part)) {
            const ggl_str s[] = {part.text, part.name, part.arguments, part.id};
            sum = part.begins ? sum * 31 + part.kind : sum;
            for (int j = 0; j < 4; j++)
                for (size_t b = 0; b < s[j].n; b++)
                    sum = sum * 31 + (unsigned char)s[j].s[b];
            if ((part.kind == LLM_CALLS_BROKEN) != (part.error != NULL))
                abort();
        }
        if (!k)
            break;
    }
    llm_calls_free(c);
    llm_json_free(doc);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int n_formats = 0;
    while (llm_calls_format_name(n_formats).n > 0)
        n_formats++;
    if (size < 2)
        return 0;
    const ggl_str format = llm_calls_format_name(data[0] % n_formats);
    const char *text = (const char *)data + 2;
    if (parts_of(format, text, size - 2, size) !=
        parts_of(format, text, size - 2, 1 + data[1] % 16))
        abort();
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const struct {
        const char *format, *text;
    } seed[] = {
        {"hermes", "<think>a</think> b <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1]}}"
                   "</tool_call>"},
        {"llama3", "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\"}<|python_tag|>f.call(a"
                   "='b', c=[1, {'d': None}])"},
        {"mistral", "[TOOL_CALLS]f[CALL_ID]1[ARGS]{\"a\": \"b\"}[TOOL_CALLS] [{\"name\": \"f\"}]"},
        {"qwen3-coder", "<tool_call><function=f><parameter=a>\n1\n</parameter></function>"
                        "</tool_call><tool_call>"},
        {"gemma4", "<|tool_call>call:f{a:[<|\"|>x<|\"|>],b:{c:1}}<tool_call|>"},
        {"harmony", "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary "
                    "to=functions.f:0 json<|message|>{}<|call|>"},
    };
    if (k >= (int)(sizeof seed / sizeof *seed))
        return false;
    const size_t n = strlen(seed[k].text);
    int format = 0;
    while (!ggl_str_is(llm_calls_format_name(format), seed[k].format))
        format++;
    *size = n + 2;
    *data = malloc(*size);
    if (!*data)
        abort();
    (*data)[0] = (uint8_t)format;
    (*data)[1] = 1;
    memcpy(*data + 2, seed[k].text, n);
    return true;
}
