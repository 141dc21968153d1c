/* The weights of an ONNX file (onnx.proto3 of the ONNX project, which is protobuf): initializers of the graph and of those within its nodes, and constants, which are named by
 * what the node makes. The graph itself is not read: a descriptor says what is computed.
 *
 *   ModelProto: 7 graph | GraphProto: 1 node, 5 initializer | NodeProto: 2 output, 5 attribute | AttributeProto: 5 tensor, 6 graph
 *   TensorProto: 1 dims, 2 type (1 f32, 10 f16, 16 bf16), 4 f32 numbers, 8 name, 9 bytes */
#ifndef LLM_ONNX_H
#define LLM_ONNX_H

#include "safetensors.h"

/* Returns true if the n bytes that a file begins with are those of such a file, whose name ends so. */
bool llm_onnx_is(const char *path, const char *head, size_t n);

/* Adds the tensors of floating-point numbers that have a dimension, as an st_reader does, and makes the index. GGL_FORMAT, GGL_UNSUPPORTED (weights in files beside it), GGL_LIMIT,
 * GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_onnx_read(llm_safetensors *st, const void *data, size_t size,
                                       ggl_error *err);

#endif
