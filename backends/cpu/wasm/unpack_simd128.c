/* Unpacks quantized weights with WebAssembly's SIMD. */
#include "lanes_simd128.h"
#include "unpack_simd128.h"

#include "../quant/interleave_tmpl.h"
