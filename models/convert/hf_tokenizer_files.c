/* The files of a Hugging Face tokenizer, and its notes; see hf_tokenizer_impl.h. */

#include "common/text_file.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "hf_tokenizer_impl.h"

ggl_status llm_hf_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

bool llm_hf_note(llm_hf_tokenizer *t, const char *text) {
    return text && t->n_note < (int)(sizeof t->note / sizeof *t->note) &&
           (t->note[t->n_note++] = text);
}

int llm_hf_shown(ggl_str s) {
    return (int)ggl_utf8_cut(s.s, s.n, 60);
}

char *llm_hf_path(llm_hf_tokenizer *t, const char *name) {
    return ggl_arena_printf(&t->arena, "%s/%s", t->folder, name);
}

bool llm_hf_is_there(const char *path) {
    os_stat st;
    return ggl_os_stat_link(path, &st);
}

ggl_status llm_hf_read_optional(llm_hf_tokenizer *t, const char *name, llm_json **out,
                                ggl_error *err) {
    char *path = llm_hf_path(t, name);
    if (!path)
        return llm_hf_no_memory(err);
    return llm_hf_is_there(path) ? llm_json_read(out, path, LLM_HF_MAX_FILE, err) : GGL_OK;
}

ggl_status llm_hf_read_text(llm_hf_tokenizer *t, const char *name, char **text, size_t *n,
                            ggl_error *err) {
    char *path = llm_hf_path(t, name);
    if (!path)
        return llm_hf_no_memory(err);
    const ggl_status s =
        llm_hf_is_there(path) ? llm_read_text_file(path, LLM_HF_MAX_FILE, text, n, err) : GGL_OK;
    return s == GGL_OK && *text && llm_is_lfs_pointer(*text, *n)
               ? ggl_fail(err, GGL_FORMAT, "%s: " LLM_LFS_ADVICE, path)
               : s;
}

void llm_hf_tokenizer_free(llm_hf_tokenizer *t) {
    if (!t)
        return;
    llm_sentence_pieces_fini(&t->pieces);
    ggl_file_map_close(&t->map);
    llm_json_free(t->file);
    llm_json_free(t->beside);
    llm_json_free(t->config);
    llm_json_free(t->vocab);
    llm_json_free(t->added);
    llm_json_free(t->generation);
    llm_json_free(t->tekken);
    ggl_free(t->merges_text);
    ggl_free(t->template_text);
    ggl_index_fini(&t->by_piece);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

bool llm_hf_next_word(ggl_str *list, ggl_str *word) {
    if (list->n == 0) { /* which may have no text at all */
        *word = (ggl_str){"", 0};
        return false;
    }
    const char *space = memchr(list->s, ' ', list->n);
    *word = (ggl_str){list->s, space ? (size_t)(space - list->s) : list->n};
    const size_t n = word->n + (space != NULL);
    *list = (ggl_str){list->s + n, list->n - n};
    return word->n > 0;
}
