#include "raptor/onnx/convert_einsum.hpp"

#include <map>

#include "import_support.hpp"

using namespace raptor;
using namespace raptor::onnx_io;
using namespace raptor::onnx_io::testing;

namespace {

/// The definition: the product of all operands at every assignment of all labels, added to the result's element. Letters only.
std::vector<float> direct(const std::string& left, const std::string& result, const std::vector<shape>& sizes, const std::vector<std::vector<float>>& values) {
  std::vector<std::string> terms(1);
  for (const char ch : left) {
    if (ch == ',') terms.emplace_back();
    else terms.back() += ch;
  }
  std::map<char, std::int64_t> extent;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t d = 0; d < terms[i].size(); ++d) extent[terms[i][d]] = std::max(extent[terms[i][d]], sizes[i][d]);
  const auto offset = [&](const std::string& labels, const shape& own, std::map<char, std::int64_t>& at) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < labels.size(); ++d) index = index * own[d] + (own[d] == 1 ? 0 : at[labels[d]]);
    return static_cast<std::size_t>(index);
  };
  shape out;
  for (const char l : result) out.push_back(extent[l]);
  std::vector<double> sums(static_cast<std::size_t>(element_count(out)), 0.0);
  std::map<char, std::int64_t> at;
  const auto visit = [&](const auto& self, std::map<char, std::int64_t>::const_iterator next) -> void {
    if (next == extent.end()) {
      double product = 1;
      for (std::size_t i = 0; i < terms.size(); ++i) product *= double{values[i][offset(terms[i], sizes[i], at)]};
      sums[offset(result, out, at)] += product;
      return;
    }
    for (std::int64_t v = 0; v < next->second; ++v) {
      at[next->first] = v;
      self(self, std::next(next));
    }
  };
  visit(visit, extent.begin());
  return {sums.begin(), sums.end()};
}
::onnx::ModelProto einsum_model(const std::string& equation, const std::vector<shape>& sizes) {
  auto b = at_opset(12);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sizes.size(); ++i) names.push_back(b.input("x" + std::to_string(i), sizes[i]));
  b.node("Einsum", names, "y").attribute("equation", equation);
  return finish(std::move(b), {"y"});
}
std::vector<std::vector<float>> operands(const std::vector<shape>& sizes) {
  std::vector<std::vector<float>> values;
  for (const auto& s : sizes) {
    values.push_back(counting(static_cast<std::size_t>(element_count(s)), -3 + static_cast<float>(values.size())));
    for (auto& v : values.back()) v *= 0.25F;
  }
  return values;
}

}  // namespace

TEST_CASE("Einsum computes its definition") {
  struct example {
    std::string left, result;
    std::vector<shape> sizes;
  };
  const example examples[] = {{"ij,jk", "ik", {{2, 3}, {3, 4}}},
                              {"ij,jk", "ki", {{2, 3}, {3, 4}}},
                              {"bij,bjk", "bik", {{2, 3, 4}, {2, 4, 5}}},
                              {"bhqd,bhkd", "bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
                              {"bqhd,bkhd", "bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
                              {"i,i", "", {{5}, {5}}},
                              {"i,j", "ij", {{2}, {3}}},
                              {"ij", "ji", {{2, 3}}},
                              {"ij", "i", {{2, 3}}},
                              {"ij", "", {{2, 3}}},
                              {"ij", "ij", {{2, 3}}},
                              {"bii", "bi", {{2, 3, 3}}},
                              {"ii", "", {{4, 4}}},
                              {"iji", "j", {{3, 2, 3}}},
                              {"ij,ij", "ij", {{2, 3}, {2, 3}}},
                              {"ij,ij", "", {{2, 3}, {2, 3}}},
                              {"ijk,jl", "il", {{2, 3, 4}, {3, 2}}},
                              {"ab,bc,cd", "ad", {{2, 3}, {3, 4}, {4, 2}}},
                              {"ab,ac,ad", "bcd", {{3, 2}, {3, 2}, {3, 2}}},
                              {"ij,jk", "ik", {{2, 1}, {3, 4}}},
                              {"bij,bjk", "bik", {{1, 3, 4}, {2, 4, 5}}},
                              {"Ab,bC", "AC", {{2, 3}, {3, 2}}}};
  for (const auto& e : examples) {
    CAPTURE(e.left);
    CAPTURE(e.result);
    const auto values = operands(e.sizes);
    check_close(run(einsum_model(e.left + "->" + e.result, e.sizes), values)[0].floats(), direct(e.left, e.result, e.sizes, values));
  }
}

TEST_CASE("Einsum: ellipses and equations without a result") {
  const std::vector<shape> batched{{2, 2, 3, 4}, {2, 4, 5}};
  const auto values = operands(batched);
  const auto y = run(einsum_model("...ij, ...jk -> ...ik", batched), values)[0];
  CHECK(y.sizes == shape{2, 2, 3, 5});
  check_close(y.floats(), direct("abij,bjk", "abik", batched, values));
  // The letters that are there once, in alphabetical order, after the ellipsis.
  const std::vector<shape> matrices{{2, 3}, {4, 3}};
  const auto m = operands(matrices);
  check_close(run(einsum_model("zj,kj", matrices), m)[0].floats(), direct("zj,kj", "kz", matrices, m));
  CHECK(run(einsum_model("...i,i", {{2, 3, 4}, {4}}), operands({{2, 3, 4}, {4}}))[0].sizes == shape{2, 3});
}

TEST_CASE("a batched product of matrices needs no transposes") {
  const auto g = import_checked(einsum_model("bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}));
  CHECK(g.node_count() == 1);
}

TEST_CASE("Einsum: equations that do not fit") {
  const auto code = [](const std::string& equation, const std::vector<shape>& sizes) { return failure(einsum_model(equation, sizes)).code(); };
  CHECK(code("ij,jk->ik", {{2, 3}}) == error_code::malformed);
  CHECK(code("ij->ij", {{2, 3}, {2}}) == error_code::malformed);
  CHECK(code("ijk->i", {{2, 3}}) == error_code::malformed);
  CHECK(code("ij->k", {{2, 3}}) == error_code::malformed);
  CHECK(code("ij->ii", {{2, 3}}) == error_code::malformed);
  CHECK(code("i%->i", {{2, 3}}) == error_code::malformed);
  CHECK(code("ii->i", {{2, 3}}) == error_code::malformed);
  CHECK(code("ij,jk->ik", {{2, 3}, {4, 5}}) == error_code::malformed);
  CHECK(code("", {{2, 3}}) == error_code::malformed);
}
