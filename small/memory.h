/* Memory for the text functions of the large engine. */
#ifndef SMALL_MEMORY_H
#define SMALL_MEMORY_H

#include <stddef.h>

/* From now on ggl_calloc takes from here. memory: at a multiple of 16. */
void small_use_memory(char *memory, size_t size);
/* Returns a place to which small_release gives back all that was taken after it. */
char *small_mark(void);
void small_release(char *mark);

#endif
