/* Memory of one device that another one copies from. Its handle is a dma-buf, which any device of the
 * system may be able to reach, or, if the driver exports none, an opaque handle, which only the same
 * device and driver take. */
#ifndef VULKAN_SHARE_H
#define VULKAN_SHARE_H

#include "allocate.h"

/* Makes a VkBuffer whose memory can be exported as a handle, and sets buf->shared. False: that is
 * not possible, and buf stays as it is. */
bool ggl_vk_make_shared(vk_backend *b, ggl_buffer *buf, const vk_memory_wish *wish);

ggl_status ggl_vk_share(ggl_backend *b, const ggl_buffer *buf, ggl_shared *out, ggl_error *err);
ggl_status ggl_vk_borrow(ggl_backend *b, const ggl_shared *from, ggl_buffer **out, ggl_error *err);

#endif
