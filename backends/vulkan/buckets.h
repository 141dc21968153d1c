/* Sizes of batches. A recording is made for a bucket, which serves every batch that is not larger
 * than it and larger than the next smaller bucket. So there are few recordings, and few pipelines
 * to make when a plan is compiled. Buckets are 1 to 8; multiples of 16 up to 64; multiples of 64;
 * and the plan's largest batch. Products compute their columns in tiles of these sizes, so that
 * the additional tokens cost them little. */
#ifndef VULKAN_BUCKETS_H
#define VULKAN_BUCKETS_H

#include <stdint.h>

enum { VK_SMALL_BUCKETS = 8, VK_LARGE_BUCKET = 64 };

/* Returns the smallest bucket that is at least n, 1 <= n <= n_max. */
int64_t ggl_vk_bucket_for(int64_t n, int64_t n_max);
/* Returns the largest bucket that is at most n, 1 <= n <= n_max. */
int64_t ggl_vk_bucket_within(int64_t n, int64_t n_max);

#endif
