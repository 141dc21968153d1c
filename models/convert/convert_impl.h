/* Shared by convert*.c, report.c and the room `load`. */
#ifndef LLM_CONVERT_IMPL_H
#define LLM_CONVERT_IMPL_H

#include "conversion.h"
#include "hf_tokenizer.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/convert.h"
#include "lora.h"

typedef struct tensor_turn { /* argument of the writer's callback */
    llm_converter *c;
    size_t i;
} tensor_turn;

/* A module of sentence-transformers after the pooling. */
enum { ST_MOST_MODULES = 16 };
typedef struct st_module {
    ggl_str folder;                /* its own; empty: none */
    const char *kind, *activation; /* as the keys have them (docs/gguf.md) */
    bool adds_input, biased;
    int64_t n_in, n_out; /* of a Dense module and of a LayerNorm; of others 0 */
} st_module;

struct llm_converter {
    llm_convert_params params;
    ggl_arena arena;
    const char *folder, *name, *origin, *class_name;
    const char *
        passed; /* a section for the class whose condition does not hold, for messages; NULL: none */
    llm_json *config, *generation; /* generation: NULL: there is no generation_config.json */
    llm_json *processor[2];        /* how pictures are prepared; NULL: there is no such file */
    llm_json *plain_config; /* what config was before reranker.c replaced it; NULL: it was not */
    llm_json *modules,
        *prompts,  /* convert_modules.c; NULL: the folder is not of sentence-transformers */
        *artifact; /* of ColBERT's own program; NULL: there is none */
    const char *model_folder; /* `folder`, or one in it that has the model itself */
    const char *config_path;  /* of config.json */
    const char *usual_class;  /* where config.json names none; NULL: that is an error */
    llm_json *bare_config;    /* what config was before modules were added; NULL: none were */
    st_module after[ST_MOST_MODULES];
    int n_after;
    bool has_head;        /* they are no part of the descriptor */
    const char *poolings; /* side by side: "cls+mean" */
    int n_poolings;       /* 0: there is no module for it */
    int pooling;       /* the value of {arch}.pooling_type; 0: unknown; -1: it has none for this */
    bool skips_prompt; /* include_prompt is false */
    int64_t longest;   /* max_seq_length; 0: unknown */
    int64_t n_dims;    /* truncate_dim; 0: none */
    llm_arch *arch;
    llm_safetensors *source;
    bool is_file; /* `folder` is a model in one file, of another format: file_kinds of convert.c */
    ggl_status (*open_tokens)(llm_converter *c, int64_t n, ggl_error *err); /* of such a file */
    llm_lora *lora; /* the adapter; NULL: the folder itself is converted */
    llm_converter *
        eye; /* of an adapter with pairs for the eye of the folder: makes these; of an eye: the ear beside it; else NULL */
    llm_converter
        *whole; /* of such an eye: the converter that it belongs to, which reports progress */
    arch_conversion conv;
    llm_hf_tokenizer *tokenizer; /* NULL: the folder has none */
    bool borrows_tokenizer;      /* that of params.target is written */
    tensor_turn *turn;
    char *notes;
    size_t done, size;
    ggl_error bad_input; /* an error in one of the folder's weights; msg "": none */
    bool built;          /* the descriptor was built, so it is known which tensors are read */
};

/* convert.c: true if the path is a model in one file, which is opened as what a folder has. */
bool llm_converter_is_file(const char *path);
/* convert_notes.c: adds a note. False: out of memory. */
bool llm_converter_note(llm_converter *c, const char *text);
ggl_status llm_converter_no_memory(ggl_error *err);
/* convert_class.c: sets the class name: the caller's, else the first of "architectures". path: the
 * file that config.json was read from, for messages. */
GGL_NODISCARD ggl_status llm_converter_choose_class(llm_converter *c, const char *path,
                                                    ggl_error *err);
/* Opens the caller's descriptor, else the built-in one with a section for the class. */
GGL_NODISCARD ggl_status llm_converter_choose_section(llm_converter *c, ggl_error *err);
/* Opens the built-in one; without an error, c->arch is NULL if there is none. */
GGL_NODISCARD ggl_status llm_converter_find_builtin(llm_converter *c, ggl_error *err);
/* True if the descriptor is of an ear. */
bool llm_converter_hears(const llm_arch *arch);
/* True if config.json has the objects and values that the section is about. */
bool llm_converter_has_part(const llm_converter *c);
/* Sets the model's name: that of the folder or checkpoint, of its repository in the Hugging Face cache,
 * or the end of config.json's _name_or_path. */
GGL_NODISCARD ggl_status llm_converter_choose_name(llm_converter *c, ggl_error *err);
/* convert_bin.c: opens the tokenizer of a llama2.c checkpoint of n tokens: the given one, or one next
 * to the checkpoint. A note reports a missing tokenizer. */
GGL_NODISCARD ggl_status llm_converter_open_bin(llm_converter *c, int64_t n, ggl_error *err);
/* convert_modules.c: finds the folder of the model itself, by the modules of sentence-transformers. Of one without a config.json it makes
 * c->config. */
GGL_NODISCARD ggl_status llm_converter_find_model(llm_converter *c, ggl_error *err);
/* Calls `each` once for each folder of a module. */
GGL_NODISCARD ggl_status llm_converter_each_module(llm_converter *c, llm_convert_on_folder *each,
                                                   void *user, ggl_error *err);
/* Reads the modules, if the folder has them. */
GGL_NODISCARD ggl_status llm_converter_read_modules(llm_converter *c, ggl_error *err);
/* The modules after the pooling that change more than the length, and whether the last one makes it 1. */
int llm_converter_n_after(const llm_converter *c);
bool llm_converter_normalizes(const llm_converter *c);
/* Checks, when the keys are made, that the first module that says how long its vectors are takes those of the model. */
GGL_NODISCARD ggl_status llm_converter_check_width(const llm_converter *c, ggl_error *err);
/* Decides, when the section is known, whether its descriptor computes them, and adds those to c->config. */
GGL_NODISCARD ggl_status llm_converter_place_modules(llm_converter *c, ggl_error *err);
/* convert_sentence.c: adds their tensors to c->source, as modules.Dense_0.linear.weight or, of others, sentence.0.linear.weight. */
GGL_NODISCARD ggl_status llm_converter_add_modules(llm_converter *c, ggl_error *err);
/* Makes the tensors of those that the descriptor does not compute: sentence.0.weight. */
GGL_NODISCARD ggl_status llm_converter_make_modules(llm_converter *c, ggl_error *err);
/* Puts the keys of pooling, modules and prompts. */
GGL_NODISCARD ggl_status llm_converter_put_modules(llm_converter *c, ggl_gguf_writer *w,
                                                   ggl_error *err);
/* convert_target.c: sets c->conv.target, if the model for which this one guesses was given. */
GGL_NODISCARD ggl_status llm_converter_read_target(llm_converter *c, ggl_error *err);
/* Of a draft without a tokenizer: decides that it gets that of this model; without one it gets none, and a note. n_vocab: tokens of the
 * draft; 0: unknown. GGL_UNSUPPORTED: the model has other tokens. GGL_NOT_FOUND: it has none. */
GGL_NODISCARD ggl_status llm_converter_borrow_tokenizer(llm_converter *c, int64_t n_vocab,
                                                        ggl_error *err);
void llm_converter_put_borrowed(const llm_converter *c, ggl_gguf_writer *w);
/* reranker.c: adds the value "reranker" to c->config, if the section reads it (is_read), and the folder is to become one. */
GGL_NODISCARD ggl_status llm_converter_add_reranker(llm_converter *c, bool is_read, ggl_error *err);
/* generation_keys.c: puts the keys that generation_config.json has for every family; w NULL: adds notes on values that cannot be
 * keys, once the section has run. */
GGL_NODISCARD ggl_status llm_converter_take_generation(llm_converter *c, ggl_gguf_writer *w,
                                                       ggl_error *err);
/* convert_groups.c: sets the block types of all tensors, and adds notes on sources that are codes in
 * groups. */
GGL_NODISCARD ggl_status llm_converter_choose_blocks(llm_converter *c, ggl_error *err);
/* convert_write.c: returns the type that a tensor has in the file. */
ggl_type llm_converter_type(const llm_converter *c, const converted_tensor *t);
/* Puts all keys of the file. */
GGL_NODISCARD ggl_status llm_converter_put_keys(llm_converter *c, ggl_gguf_writer *w,
                                                ggl_error *err);

#endif
