/* JSON, and safetensors files, whose header is JSON. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "convert/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llm_json *doc;
    llm_safetensors *st;
    if (llm_json_parse(&doc, (const char *)data, size, "fuzz", NULL) == GGL_OK)
        llm_json_free(doc);
    volatile unsigned char sum = 0;
    if (llm_safetensors_open_memory(&st, data, size, "fuzz", NULL) == GGL_OK) {
        for (size_t i = 0; i < st->n_tensor; i++) /* what was promised to be there is */
            for (size_t k = 0; k < st->tensor[i].size; k++)
                sum = (unsigned char)(sum + ((const unsigned char *)st->tensor[i].data)[k]);
        llm_safetensors_close(st);
    }
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char text[] =
        "{\"a\": [1, -2.5e1, true, false, null, \"\\ud83d\\ude00\\n\xc3\xa9\", {}, []], \"b\": "
        "{\"c\": 0.1, \"\\n\": -Infinity, \"\": NaN}}";
    static const char head[] = "{\"b\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": "
                               "[4, 28]}, \"c\": {\"dtype\": "
                               "\"BF16\", \"shape\": [2], \"data_offsets\": [0, 4]}}";
    if (k > 1)
        return false;
    *size = k == 0 ? sizeof text - 1 : 8 + sizeof head - 1 + 28;
    *data = calloc(*size, 1);
    if (!*data)
        abort();
    if (k == 0) {
        memcpy(*data, text, sizeof text - 1);
        return true;
    }
    (*data)[0] = sizeof head - 1;
    memcpy(*data + 8, head, sizeof head - 1);
    return true;
}
