#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "raptor/layout/planner.hpp"
#include "raptor/lowering/compute_graph.hpp"
#include "raptor/lowering/materialize.hpp"
#include "raptor/model/graph.hpp"
#include "raptor/program/program.hpp"

namespace raptor::lowering {

/// How a softmax is done: by the extension instruction, or by standard instructions alone, which pimsim-nn can time.
enum class softmax_lowering : std::uint8_t { vsoftmax, standard };

/// Run-time choices of the lowerings (CLI, "Planning").
struct lowering_options {
  std::string convolution = "auto";                   ///< strategy to force
  std::map<std::string, std::string> convolution_of;  ///< by name of a node: strategy to force there instead
  std::int64_t im2col_max_elements = 1048576;         ///< most elements materialized for one convolution
  std::int64_t stream_chunk_positions = 1024;         ///< most output positions in one chunk
  double crossbar_weight = 0.3;                       ///< how much crossbars count beside time where strategies compete; 1: all crossbars as much as all cores
  double energy_weight = 4;                           ///< picoseconds of a core that a picojoule of the crossbars is worth, where strategies compete
  double large_part = 1.2;                            ///< penalty on parts that leave less than half of a core's crossbars to others: they pack badly
  double part_share = 1;                              ///< share of a core's crossbars that one part of a convolution may take: smaller ones leave room for parts of other layers
  std::int64_t tile_time = 20'000'000;                ///< picoseconds that a tile of a convolution should take: rows that take longer are cut
  double late_tiles = 1;                              ///< least share of tile_time for layers of few rows, see context::tile_time
  std::int64_t join_reads = std::numeric_limits<std::int64_t>::max();  ///< most computed values that an operation without weights reads to be done where weights are (merge_trivial)
  bool siblings = true;                               ///< are convolutions that read the same tensor lowered together where that costs less (siblings.hpp)?
  softmax_lowering softmax = softmax_lowering::vsoftmax;
  bool deliver_intermediates = false;                 ///< every tensor that survives becomes a further output (observe.hpp)

  /// The strategy to force at a node; "auto": none.
  [[nodiscard]] const std::string& convolution_at(const std::string& node) const {
    const auto known = convolution_of.find(node);
    return known == convolution_of.end() ? convolution : known->second;
  }
};

/// Duration in picoseconds of one instruction of a number of elements: the target's cost model.
using instruction_time = std::function<std::int64_t(isa::opcode, std::int64_t)>;
/// Energy in picojoules of one product of a number of weight columns.
using product_energy = std::function<double(std::int64_t)>;

/// What a lowering works with: the planned model graph on one side, the growing compute graph on the other.
class context {
 public:
  context(const model::graph& planned, const layout::plan& layouts, const program::geometry& geometry,
          const lowering_options& choices, instruction_time cost, compute_graph& computes, product_energy joules = {})
      : model(planned), plan(layouts), chip(geometry), options(choices), time(std::move(cost)), out(computes), energy_(std::move(joules)) {}

  const model::graph& model;
  const layout::plan& plan;
  const program::geometry& chip;
  const lowering_options& options;
  const instruction_time time;
  compute_graph& out;
  /// What cores and crossbars are worth to each other, where the strategies of convolutions compete: see resource_cost.
  struct prices {
    double share = 0;     ///< picoseconds that one core has for the convolutions' work in a fair division; 0: not known yet
    double crossbar = 0;  ///< picoseconds of a core that a crossbar is worth
  };
  prices price;
  /// Picoseconds that a tile of a layer of `rows` rows should take: less where there are few. Such layers come late in a network, where each row is
  /// waited for.
  [[nodiscard]] double tile_time(std::int64_t rows) const {
    constexpr double many = 56;
    return static_cast<double>(options.tile_time) * std::clamp(static_cast<double>(rows) / many, options.late_tiles, 1.0);
  }
  /// Picoseconds of one product over `slices` crossbars' rows: each gives a partial result of `columns` columns, which are added.
  [[nodiscard]] double product_time(std::int64_t slices, std::int64_t columns) const {
    return static_cast<double>(slices * time(isa::opcode::mvmul, columns)) + static_cast<double>((slices - 1) * time(isa::opcode::vvadd, columns));
  }
  /// Crossbars that one part of a convolution may take.
  [[nodiscard]] std::int64_t part_crossbars() const {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(options.part_share * static_cast<double>(chip.crossbars_per_core)), 1, chip.crossbars_per_core);
  }
  /// How many cores bring `work` picoseconds down to a fair share; one of them may have little to do.
  [[nodiscard]] double copies(double work) const { return price.share > 0 ? std::max(1.0, work / price.share) : 1.0; }
  /// What one product of `columns` columns adds to a cost beside its time: its energy at its price.
  [[nodiscard]] double product_price(std::int64_t columns) const { return energy_ ? options.energy_weight * energy_(columns) : 0.0; }
  /// Cost of `parts` parts, each of `work` picoseconds, `crossbars` crossbars and products that cost `energy`: the work, the energy, and the crossbars
  /// of as many copies as bring a part down to a fair share.
  [[nodiscard]] double resource_cost(double parts, double work, double crossbars, double energy) const {
    return parts * (work + energy + price.crossbar * crossbars * copies(work));
  }

  /// The alternative chosen for a node.
  [[nodiscard]] const layout::alternative& chosen(model::vertex v) const { return plan.chosen.at(v); }

  /// The value that holds a tensor in a layout. Constants become constant values and inputs are loaded in the layout where
  /// a core can do so (dense, or rows as C × W); other mismatches become an explicit materialize compute, made once.
  [[nodiscard]] std::uint32_t operand(model::tensor_id t, layout::physical wanted) {
    const auto known = values_.find({t, wanted});
    if (known != values_.end()) return known->second;
    const auto& tensor = model.at(t);
    if (tensor.is_constant()) return remember(t, wanted, out.add_value({tensor.name, tensor.sizes, layout::physical::dense, origin::constant, tensor.data}));
    if (model.producer(t) == model::graph::no_vertex) {
      if (wanted != layout::physical::nhwc_row_strip) {
        value v{tensor.name, tensor.sizes, wanted, origin::input, {}};
        v.input = position(model.inputs, t);
        return remember(t, wanted, out.add_value(std::move(v)));
      }
      return materialized(t, operand(t, layout::physical::nchw_row_strip), wanted);
    }
    return materialized(t, result(t), wanted);
  }
  /// The value that a node writes for one of its output tensors, in the layout planned for it.
  [[nodiscard]] std::uint32_t result(model::tensor_id t) {
    const auto planned = layout::layout_of(model, plan, t);
    const auto known = values_.find({t, planned});
    if (known != values_.end()) return known->second;
    return remember(t, planned, out.add_value({model.at(t).name, model.at(t).sizes, planned, origin::computed, {}}));
  }
  /// The value in row strips that a node writes for an output tensor: the planned one, or one that complete_rows turns into it.
  [[nodiscard]] std::uint32_t result_in_rows(model::tensor_id t) {
    const auto planned = result(t);
    if (out.values()[planned].layout == layout::physical::nhwc_row_strip) return planned;
    return intermediate(model.at(t).name + ".rows", model.at(t).sizes, layout::physical::nhwc_row_strip);
  }
  /// After the computes that write `rows` = result_in_rows(t): the planned result, where it is another value.
  void complete_rows(model::tensor_id t, std::uint32_t rows) {
    const auto planned = result(t);
    if (planned != rows) out.add_compute(materialize(out, rows, planned));
  }
  /// Makes a tensor the graph's result number `position`: computed values are marked where they are dense; inputs,
  /// constants, strips and values that already are a result are copied.
  void deliver(model::tensor_id t, std::int32_t position) {
    const bool computed = model.producer(t) != model::graph::no_vertex;
    const auto from = computed ? result(t) : operand(t, layout::physical::dense);
    auto& source = out.value_at(from);
    if (computed && source.layout == layout::physical::dense && source.result < 0) {
      source.result = position;
      return;
    }
    value v{source.name, source.sizes, layout::physical::dense, origin::computed, {}};
    v.result = position;
    // A result that only leaves the chip is stored row by row.
    if (source.layout == layout::physical::nhwc_row_strip) v.layout = layout::physical::nchw_row_strip;
    const auto to = out.add_value(std::move(v));
    out.add_compute(source.layout == layout::physical::nhwc_row_strip ? materialize(out, from, to) : copy_dense(out, from, to));
  }

  /// A value between the computes of one operator.
  [[nodiscard]] std::uint32_t intermediate(std::string name, shape sizes, layout::physical layout = layout::physical::dense) {
    return out.add_value({std::move(name), std::move(sizes), layout, origin::computed, {}});
  }
  /// A constant made by a lowering (a bias for packed windows, a divisor …); loaded by the cores that read it. Equal ones are one value, which a
  /// core loads once: the first name stays.
  [[nodiscard]] std::uint32_t constant(std::string name, shape sizes, std::vector<float> elements) {
    std::vector<std::uint32_t> bits;
    bits.reserve(elements.size());
    for (const float x : elements) bits.push_back(std::bit_cast<std::uint32_t>(x));
    const auto [known, fresh] = constants_.try_emplace({sizes, std::move(bits)}, 0);
    if (fresh) {
      auto data = std::make_shared<const model::constant>(model::constant{std::move(elements)});
      known->second = out.add_value({std::move(name), std::move(sizes), layout::physical::dense, origin::constant, std::move(data)});
    }
    return known->second;
  }

  /// A number for computes that share their weights (compute::family).
  [[nodiscard]] std::int64_t new_family() noexcept { return families_++; }
  /// How a weight matrix is made of constants of the model: of contractions with equal keys a core holds the matrix once.
  struct matrix_key {
    const model::constant *weights = nullptr, *bias = nullptr;
    float alpha = 1, beta = 1;
    bool transposed = false;
    friend auto operator<=>(const matrix_key&, const matrix_key&) = default;
  };
  /// The family of the computes that multiply by part number `part` of a matrix.
  [[nodiscard]] std::int64_t family_of(const matrix_key& key, std::size_t part) {
    const auto [known, fresh] = matrices_.try_emplace({key, part}, families_);
    if (fresh) ++families_;
    return known->second;
  }

  /// Adds a compute of a node of the model; `op`: what it does, where that is more than the node's operator.
  vertex add(model::vertex node, kernel_builder& kernel, std::string strategy = {}, const std::string& op = {}) {
    compute c = kernel.take();
    c.node = static_cast<std::uint32_t>(node);
    c.op = op.empty() ? name(model.at(node).op) : op;
    c.strategy = std::move(strategy);
    return out.add_compute(std::move(c));
  }

 private:
  std::uint32_t remember(model::tensor_id t, layout::physical layout, std::uint32_t v) {
    values_.emplace(std::pair{t, layout}, v);
    return v;
  }
  std::uint32_t materialized(model::tensor_id t, std::uint32_t from, layout::physical wanted) {
    if (out.values()[from].layout == wanted) return from;
    const auto& tensor = model.at(t);
    const auto to = out.add_value({tensor.name + "." + layout::name(wanted), tensor.sizes, wanted, origin::computed, {}});
    out.add_compute(materialize(out, from, to));
    return remember(t, wanted, to);
  }
  static std::int32_t position(const std::vector<model::tensor_id>& list, model::tensor_id t) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i] == t) return static_cast<std::int32_t>(i);
    throw error(error_code::internal, "a tensor that nothing produces is no graph input");
  }

  product_energy energy_;
  std::map<std::pair<model::tensor_id, layout::physical>, std::uint32_t> values_;
  std::map<std::pair<matrix_key, std::size_t>, std::int64_t> matrices_;
  std::map<std::pair<shape, std::vector<std::uint32_t>>, std::uint32_t> constants_;  // by sizes and bits
  std::int64_t families_ = 0;
};

}  // namespace raptor::lowering
