#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "raptor/onnx/convert_constant.hpp"
#include "raptor/onnx/convert_einsum.hpp"
#include "raptor/onnx/convert_functions.hpp"
#include "raptor/onnx/convert_layers.hpp"
#include "raptor/onnx/convert_movement.hpp"
#include "raptor/onnx/convert_quantization.hpp"
#include "raptor/onnx/convert_recurrent.hpp"
#include "raptor/onnx/convert_resampling.hpp"
#include "raptor/onnx/node_context.hpp"

namespace raptor::onnx_io {

/// One operator of the domain ai.onnx that the importer understands. Adding an operator is adding a row.
struct operator_row {
  std::string_view op;
  std::int64_t since, until;  ///< first and last opset; until 0: no end
  int least_inputs, most_inputs;
  void (*convert)(node_context&);
  std::string_view limits = "";  ///< what is not supported; empty: everything that inference needs

  [[nodiscard]] constexpr bool covers(std::int64_t opset) const noexcept { return opset >= since && (until == 0 || opset <= until); }
};

/// Any number of inputs.
inline constexpr int many = 1 << 30;

/// The operators, by name. `raptor-compile --list-ops` prints this table.
inline constexpr operator_row operator_table[] = {
    {"Abs", 1, 0, 1, 1, convert::constant_function},
    {"Add", 1, 0, 2, 2, convert::arithmetic<model::binary_kind::add>},
    {"And", 7, 0, 2, 2, convert::compare, "constants"},
    {"AveragePool", 1, 0, 1, 1, convert::max_or_average_pool, "up to three spatial axes"},
    {"BatchNormalization", 1, 0, 5, 5, convert::any_batch_norm, "inference"},
    {"Cast", 1, 0, 1, 1, convert::cast, "between floating types, or of constants"},
    {"Ceil", 1, 0, 1, 1, convert::elementary},
    {"Celu", 12, 0, 1, 1, convert::smooth_activation},
    {"Clip", 1, 0, 1, 3, convert::clip},
    {"Concat", 1, 0, 1, many, convert::concat_node},
    {"Constant", 1, 0, 0, 0, convert::constant_node, "dense numbers"},
    {"ConstantOfShape", 9, 0, 1, 1, convert::constant_of_shape, "constant shape"},
    {"Conv", 1, 0, 2, 3, convert::any_conv, "one or two spatial axes"},
    {"ConvTranspose", 1, 0, 2, 3, convert::conv_transpose, "one or two spatial axes"},
    {"DepthToSpace", 1, 0, 1, 1, convert::depth_to_space},
    {"DequantizeLinear", 10, 0, 2, 3, convert::dequantize, "of constants, or of what QuantizeLinear gives"},
    {"Div", 1, 0, 2, 2, convert::divide},
    {"Dropout", 1, 0, 1, 3, convert::dropout, "inference, without mask"},
    {"Einsum", 12, 0, 1, many, convert::einsum},
    {"Elu", 1, 0, 1, 1, convert::smooth_activation},
    {"Equal", 7, 0, 2, 2, convert::compare, "constants"},
    {"Erf", 9, 0, 1, 1, convert::smooth_activation},
    {"Exp", 1, 0, 1, 1, convert::elementary},
    {"Expand", 8, 0, 2, 2, convert::expand, "constant shape"},
    {"Flatten", 1, 0, 1, 1, convert::flatten},
    {"Floor", 1, 0, 1, 1, convert::elementary},
    {"GRU", 7, 0, 3, 6, convert::gru, "static length, constant sequence_lens"},
    {"Gather", 1, 0, 2, 2, convert::gather, "constant indices"},
    {"Gelu", 20, 0, 1, 1, convert::smooth_activation},
    {"Gemm", 1, 0, 2, 3, convert::gemm_node},
    {"GlobalAveragePool", 1, 0, 1, 1, convert::global_pool, "up to three spatial axes"},
    {"GlobalMaxPool", 1, 0, 1, 1, convert::global_pool, "up to three spatial axes"},
    {"Greater", 7, 0, 2, 2, convert::compare, "constants"},
    {"GreaterOrEqual", 12, 0, 2, 2, convert::compare, "constants"},
    {"GroupNormalization", 18, 0, 3, 3, convert::group_normalization},
    {"HardSigmoid", 1, 0, 1, 1, convert::hard_sigmoid},
    {"HardSwish", 14, 0, 1, 1, convert::hard_swish},
    {"Identity", 1, 0, 1, 1, convert::identity},
    {"InstanceNormalization", 1, 0, 3, 3, convert::instance_normalization},
    {"LRN", 1, 0, 1, 1, convert::lrn_node},
    {"LSTM", 7, 0, 3, 8, convert::lstm, "static length, constant sequence_lens, gates not coupled"},
    {"LayerNormalization", 17, 0, 2, 3, convert::layer_normalization},
    {"LeakyRelu", 1, 0, 1, 1, convert::leaky_relu},
    {"Less", 7, 0, 2, 2, convert::compare, "constants"},
    {"LessOrEqual", 12, 0, 2, 2, convert::compare, "constants"},
    {"Log", 1, 0, 1, 1, convert::elementary},
    {"LogSoftmax", 1, 0, 1, 1, convert::log_softmax},
    {"MatMul", 1, 0, 2, 2, convert::matmul_node},
    {"Max", 1, 0, 1, many, convert::variadic<model::binary_kind::maximum>},
    {"MaxPool", 1, 0, 1, 1, convert::max_or_average_pool, "up to three spatial axes, without indices"},
    {"Mean", 1, 0, 1, many, convert::mean_of_operands},
    {"MeanVarianceNormalization", 9, 0, 1, 1, convert::mean_variance_normalization},
    {"Min", 1, 0, 1, many, convert::variadic<model::binary_kind::minimum>},
    {"Mish", 18, 0, 1, 1, convert::smooth_activation},
    {"Mod", 10, 0, 2, 2, convert::modulo, "constants"},
    {"Mul", 1, 0, 2, 2, convert::arithmetic<model::binary_kind::multiply>},
    {"Neg", 1, 0, 1, 1, convert::constant_function},
    {"Not", 1, 0, 1, 1, convert::constant_function, "constants"},
    {"Or", 7, 0, 2, 2, convert::compare, "constants"},
    {"PRelu", 1, 0, 2, 2, convert::prelu},
    {"Pad", 1, 0, 1, 4, convert::pad_node, "modes constant, reflect, edge; constant pads"},
    {"Pow", 1, 0, 2, 2, convert::general_power, "floating-point bases"},
    {"QuantizeLinear", 10, 0, 2, 3, convert::quantize, "of constants, or by scales that are powers of two"},
    {"RNN", 7, 0, 3, 6, convert::rnn, "static length, constant sequence_lens"},
    {"Range", 11, 0, 3, 3, convert::range, "constants"},
    {"Reciprocal", 1, 0, 1, 1, convert::elementary},
    {"ReduceL1", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceL2", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceLogSum", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceLogSumExp", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceMax", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceMean", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceMin", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceProd", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceSum", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"ReduceSumSquare", 1, 0, 1, 2, convert::reduction, "constant axes"},
    {"Relu", 1, 0, 1, 1, convert::activation<model::unary_kind::relu>},
    {"Reshape", 1, 0, 1, 2, convert::reshape_node, "constant shape"},
    {"Resize", 10, 0, 1, 4, convert::resize, "constant scales, sizes and roi; no antialias, no axes"},
    {"Round", 11, 0, 1, 1, convert::elementary},
    {"Selu", 1, 0, 1, 1, convert::smooth_activation},
    {"Shape", 1, 0, 1, 1, convert::shape_of},
    {"Sigmoid", 1, 0, 1, 1, convert::activation<model::unary_kind::sigmoid>},
    {"Sign", 9, 0, 1, 1, convert::elementary},
    {"Size", 1, 0, 1, 1, convert::size_of},
    {"Slice", 1, 0, 1, 5, convert::slice_node, "constant starts, ends, axes and steps"},
    {"Softmax", 1, 0, 1, 1, convert::softmax_node},
    {"Softplus", 1, 0, 1, 1, convert::smooth_activation},
    {"Softsign", 1, 0, 1, 1, convert::smooth_activation},
    {"SpaceToDepth", 1, 0, 1, 1, convert::space_to_depth},
    {"Split", 1, 0, 1, 2, convert::split, "constant lengths"},
    {"Sqrt", 1, 0, 1, 1, convert::elementary},
    {"Squeeze", 1, 0, 1, 2, convert::squeeze, "constant axes"},
    {"Sub", 1, 0, 2, 2, convert::arithmetic<model::binary_kind::subtract>},
    {"Sum", 1, 0, 1, many, convert::variadic<model::binary_kind::add>},
    {"Tanh", 1, 0, 1, 1, convert::activation<model::unary_kind::tanh>},
    {"Tile", 6, 0, 2, 2, convert::tile, "constant repeats"},
    {"Transpose", 1, 0, 1, 1, convert::transpose_node},
    {"Unsqueeze", 1, 0, 1, 2, convert::unsqueeze, "constant axes"},
    {"Upsample", 7, 9, 1, 2, convert::upsample_node, "constant scales"},
    {"Where", 9, 0, 3, 3, convert::where, "constants"},
    {"Xor", 7, 0, 2, 2, convert::compare, "constants"},
};

/// The row for an operator at an opset; null where there is none.
[[nodiscard]] inline const operator_row* find_operator(std::string_view op, std::int64_t opset) noexcept {
  for (const auto& row : operator_table)
    if (row.op == op && row.covers(opset)) return &row;
  return nullptr;
}
/// Whether the operator is known at any opset.
[[nodiscard]] inline bool knows_operator(std::string_view op) noexcept {
  for (const auto& row : operator_table)
    if (row.op == op) return true;
  return false;
}

/// The table in Markdown, as `raptor-compile --list-ops` prints it and the README holds it.
[[nodiscard]] inline std::string operator_list() {
  std::string text = "| operator | opsets | what is supported |\n|---|---|---|\n";
  for (const auto& row : operator_table) {
    text += "| " + std::string(row.op) + " | " + std::to_string(row.since) + (row.until == 0 ? " and later" : " to " + std::to_string(row.until));
    text += " | " + (row.limits.empty() ? "all of inference" : std::string(row.limits)) + " |\n";
  }
  return text;
}

}  // namespace raptor::onnx_io
