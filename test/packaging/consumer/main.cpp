// The toolkit without ONNX, as a user's program sees it, with a policy of the user's own.
#include <raptor/compiler.hpp>
#include <raptor/target/archetype.hpp>

namespace user {
/// Everything in one stage, which has all cores, as the default has it.
struct one_stage {
  template <class Target>
  raptor::schedule::stage_plan operator()(const Target& t, const raptor::lowering::compute_graph& g) const {
    return {std::vector<std::uint32_t>(g.size(), 0), {t.chip().core_count}};
  }
};
}  // namespace user

int main() {
  using namespace raptor;
  model::graph g;
  const auto x = g.add_tensor({"x", model::element_type::f32, {1, 2, 4, 4}, nullptr});
  const auto y = g.add_tensor({"y", model::element_type::f32, {1, 2, 4, 4}, nullptr});
  g.add_node({model::unary{model::unary_kind::relu, 0, 0}, {x}, {y}, {"relu", "Relu", "", 13}});
  g.inputs = {x}, g.outputs = {y};
  const auto policies = default_policies() | with<partition_slot>(user::one_stage{});
  const auto result = basic_compiler(target::archetype{}, policies).compile(g);
  return result.image.global_bytes > 0 && !result.schedule.order.empty() ? 0 : 1;
}
