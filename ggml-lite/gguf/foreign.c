/* Recognizes files of other formats, for messages. */
#include <string.h>

#include "gguf_file.h"

/* The first bytes are from the documentation of each format. */
const char *ggl_gguf_foreign_format(const uint8_t *data, size_t size) {
    static const struct {
        const char *magic, *text;
    } known[] = {
        {"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint"},
        {"version https://git-lfs", "a Git LFS pointer: the model itself has not been downloaded; "
                                    "'git lfs pull' in its folder "
                                    "does that"},
        {"lmgg", "a model in ggml's format before GGUF; llm-convert reads those of speech models"},
        {"fmgg", "a model in ggml's format before GGUF"},
        {"tjgg", "a model in ggml's format before GGUF"},
        {"FUGG", "a GGUF file with its bytes swapped"},
        {"<!DOCTYPE", "a web page"},
        {"<!doctype", "a web page"},
        {"<html", "a web page"},
        {"{", "JSON text"},
        {"Entry not found", "what the Hugging Face Hub answers if the repository has no such file"},
        {"Repository not found",
         "what the Hugging Face Hub answers if there is no such repository"},
        {"Invalid username or password",
         "what the Hugging Face Hub answers if there is no such repository, or it is not public"},
        {"Access to model ", "what the Hugging Face Hub answers if the repository is not public"},
        {"\x1f\x8b", "compressed: unpack it with gunzip"},
        {"\xfd"
         "7zXZ",
         "compressed: unpack it with unxz"},
        {"\x28\xb5\x2f\xfd", "compressed: unpack it with unzstd"},
        {"BZh", "compressed: unpack it with bunzip2"},
        {"\x04\x22\x4d\x18", "compressed: unpack it with unlz4"},
        {"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"},
        {"\x93NUMPY", "a NumPy array"},
        {"_logits_", "what llm-perplexity --kl-divergence-base has recorded"},
        {"ggl-pmt\n", "what llm-cli or llm-server has saved of a conversation"},
        {"\x89HDF", "an HDF5 file"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].magic);
        if (size >= n && memcmp(data, known[i].magic, n) == 0)
            return known[i].text;
    }
    uint64_t header = 0; /* safetensors begins with the length of a JSON header and the header */
    if (size > 9)
        memcpy(&header, data, 8);
    return header > 1 && header <= size - 8 && data[8] == '{' ? "a safetensors file" : NULL;
}
