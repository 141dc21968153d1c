/* Unpacks quantized weights with AVX2. */
#include "lanes_avx2.h"
#include "unpack_avx2.h"

#include "../quant/interleave_tmpl.h"
