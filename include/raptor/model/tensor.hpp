#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "raptor/support/box.hpp"
#include "raptor/support/strong_id.hpp"

namespace raptor::model {

struct tensor_tag;
/// Index of a tensor in its graph.
using tensor_id = strong_id<tensor_tag>;

/// Element types that a model graph distinguishes. Every floating type of a file is converted to f32 and every
/// integer type to i64 on import; booleans stay apart for diagnostics.
enum class element_type : std::uint8_t { f32, i64, boolean };

[[nodiscard]] constexpr const char* name(element_type type) noexcept {
  switch (type) {
    case element_type::f32: return "f32";
    case element_type::i64: return "i64";
    case element_type::boolean: return "bool";
  }
  return "?";
}

/// Contents of a constant tensor, row major. The alternative follows the element type (booleans are i64 0 or 1).
struct constant {
  std::variant<std::vector<float>, std::vector<std::int64_t>> values;

  [[nodiscard]] const std::vector<float>& floats() const { return std::get<std::vector<float>>(values); }
  [[nodiscard]] const std::vector<std::int64_t>& integers() const { return std::get<std::vector<std::int64_t>>(values); }
};
/// Constants are shared between graphs, never copied.
using constant_ptr = std::shared_ptr<const constant>;

/// A tensor of a model graph: always of full static shape.
struct tensor {
  std::string name;
  element_type type = element_type::f32;
  shape sizes;
  constant_ptr data;  ///< null: computed, or a graph input

  [[nodiscard]] bool is_constant() const noexcept { return data != nullptr; }
};

}  // namespace raptor::model
