#include "other_text.h"

#include <string.h>

#include "text_file.h"

#define PARQUET "PAR1"

/* How the kinds begin. */
static const struct {
    const char *magic;
    size_t n;
    llm_other_file file;
} kinds[] = {
    {PARQUET, 4, {"a Parquet file", LLM_TABLE_ADVICE("read_parquet")}},
    {"ARROW1", 6, {"an Arrow file", LLM_TABLE_ADVICE("read_feather")}},
    {"\x1f\x8b", 2, {"compressed (gzip)", "unpack it first: gzip -dk FILE"}},
    {"\x28\xb5\x2f\xfd", 4, {"compressed (zstd)", "unpack it first: zstd -d FILE"}},
    {"\xfd\x37zXZ", 5, {"compressed (xz)", "unpack it first: xz -dk FILE"}},
    {"PK\x03\x04", 4, {"a ZIP archive", "unpack it first: unzip FILE"}},
    {"GGUF", 4, {"a GGUF file", NULL}},
    {"%PDF-", 5, {"a PDF file", "take the text out of it first: pdftotext FILE"}},
    {"\177ELF", 4, {"a program", NULL}},
    {"\x89PNG", 4, {"a picture (PNG)", NULL}},
    {"\xff\xd8\xff", 3, {"a picture (JPEG)", NULL}},
    {LLM_LFS_POINTER,
     sizeof LLM_LFS_POINTER - 1,
     {"a Git LFS pointer", "'git lfs pull' in its folder downloads the file"}},
};

const llm_other_file *llm_other_file_of(ggl_str bytes) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (bytes.n >= kinds[i].n && memcmp(bytes.s, kinds[i].magic, kinds[i].n) == 0)
            return &kinds[i].file;
    return NULL;
}

bool llm_is_parquet(ggl_str bytes) {
    const size_t n = sizeof PARQUET - 1;
    return bytes.n >= n && memcmp(bytes.s, PARQUET, n) == 0;
}

bool llm_is_binary(ggl_str bytes) {
    size_t n_control = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        const unsigned char c = (unsigned char)bytes.s[i];
        if (c == 0)
            return true;
        n_control += c < ' ' && !(c >= '\t' && c <= '\r') && c != 0x1b;
    }
    return n_control > bytes.n / 32;
}
