/* The model files of a repository: read from a hub's answer or from a folder, and which of them is meant. A repository may have GGUF
 * files, and at its top a Hugging Face folder: config.json, safetensors, the tokenizer's files, and folders that may be of the model.
 *
 *     hub_list list = {0};
 *     st = llm_hub_list_add_json(&list, text, n, "the answer", &next, &err);
 *     llm_hub_list_sort(&list);
 *     const hub_file *f = llm_hub_list_choose(&list, &what, &n_others);
 *     llm_hub_list_fini(&list); */
#ifndef HUB_LIST_H
#define HUB_LIST_H

#include <stdbool.h>

#include "ggl/internal/alloc.h"

enum { HUB_MOST_PATH = 512 }; /* bytes of a file's path within its repository, with the NUL */

#define HUB_CONFIG  "config.json"
#define HUB_MODULES "modules.json"                 /* of a folder of sentence-transformers */
#define HUB_INDEX   "model.safetensors.index.json" /* which file has which tensor */

typedef enum hub_kind {
    HUB_OTHER, /* nothing that is read */
    HUB_GGUF, /* a model in one file, in any folder: of GGUF, or as ggml-base.bin of its older format */
    /* at the top of the repository, or in a folder there, which may be read or not: */
    HUB_WEIGHTS, /* safetensors */
    HUB_TEXT,    /* another file of a Hugging Face folder, such as config.json or tokenizer.model */
    HUB_PICKLE   /* weights at the top as a pickle of PyTorch, which is never downloaded */
} hub_kind;

typedef struct hub_file {
    hub_kind kind;    /* GGUF, WEIGHTS or TEXT */
    const char *path; /* within the repository: "Q4_K_M/model.gguf"; hub_is_path holds */
    uint64_t size;
    const char *
        version; /* changes when the file does: its digest as file_digest.h has it; "": not known */
} hub_file;

typedef struct hub_list {
    hub_file *file; /* [n] */
    size_t n, cap;
    bool no_weights;    /* a folder needs no weights; set by the caller */
    ggl_arena arena;    /* the strings */
    const char *unsafe; /* a path that was left out because hub_is_path does not hold; NULL: none */
    const char *pickle; /* a pickle, the first of the answer; NULL: none */
} hub_list;

/* The file of a repository that the user asked for: `file`, or else one of this quantization; both NULL: the default. */
typedef struct hub_wish {
    const char *quant, *file;
} hub_wish;

/* Returns what the file of that path is. The path need not be safe. */
hub_kind llm_hub_kind_of(const char *path);
/* True if a path from a hub can be appended to the cache folder: its parts are separated by single slashes, none is empty, begins
 * with a dot or ends as the files that a download puts beside others (.version, .part, .unfinished), it has no control character and no backslash, and its kind is GGUF, WEIGHTS or TEXT. */
bool llm_hub_is_path(const char *path);
/* True for USER/REPO. */
bool llm_hub_is_repo(const char *name);

/* Adds the model files of a hub's answer to /api/models/USER/REPO/tree/REVISION?recursive=true: an array of objects with "type",
 * "path", "size", "oid", and "lfs" with "oid", a SHA-256. GGL_FORMAT: the text is not such an array; GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_hub_list_add_json(hub_list *l, const char *text, size_t n,
                                               const char *name, ggl_error *err);
/* Adds the model files in a folder and those below it, without version. Folders that cannot be read have none. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_hub_list_add_folder(hub_list *l, const char *folder, ggl_error *err);
/* Sorts the files by path, and drops duplicates. Call it before the functions below. */
void llm_hub_list_sort(hub_list *l);
void llm_hub_list_fini(hub_list *l);

/* Returns the file with that path; NULL: none. */
const hub_file *llm_hub_list_find(const hub_list *l, const char *path);
/* Returns config.json, or without one modules.json, if there are safetensors, too, or if no_weights is set; NULL: there is no Hugging
 * Face folder. */
const hub_file *llm_hub_list_folder(const hub_list *l);
/* True for safetensors of a Hugging Face folder: at the top, or without a config.json there in the folders of modules.json. The list may
 * be unsorted. */
bool llm_hub_list_has_weights(const hub_list *l);
/* True for a file of a Hugging Face folder that is in a folder of the repository. */
bool llm_hub_is_within(const hub_file *f);
/* Returns the number of GGUF files. */
size_t llm_hub_list_n_gguf(const hub_list *l);

/* Returns the file that the user asked for; for a split model, its first part; for a Hugging Face folder, what llm_hub_list_folder returns; NULL if
 * the list has no such file. A named file is
 * always accepted. Without a name, projectors (mmproj) and importance matrices are left out. The default is Q4_K_M, else Q8_0,
 * else the first GGUF file, else the folder. If several have the quantization, the one with the shortest name is chosen, and *n_others is the number of the others. */
const hub_file *llm_hub_list_choose(const hub_list *l, const hub_wish *wish, size_t *n_others);

/* Returns the eye (mmproj) that belongs to a model of the list: of several, the one in the model's folder, and of f16, else bf16, q8_0, f32, or the first. NULL:
 * there is none. */
const hub_file *llm_hub_list_eye(const hub_list *l, const hub_file *model);

#endif
