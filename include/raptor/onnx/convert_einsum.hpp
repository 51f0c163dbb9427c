#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "raptor/onnx/convert_functions.hpp"
#include "raptor/onnx/node_context.hpp"

/// Einsum: operands are contracted one after the other, each step a transpose, a batched matrix product or a broadcast product.
/// Source: ONNX Operators.md.
namespace raptor::onnx_io::convert {

/// A tensor whose axes have names: letters of the equation, and digits for the axes of an ellipsis ('0' is its last one).
struct labelled {
  tensor_id value;
  std::string labels;
};
/// "ij,jk->ik" taken apart: the labels of each operand and of the result, ellipses spelled out.
struct einsum_equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Errors: malformed, where the equation does not fit the operands.
[[nodiscard]] inline einsum_equation parse_einsum(node_context& c, const std::string& text) {
  std::string equation;
  for (const char ch : text)
    if (ch != ' ') equation += ch;
  const auto arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  const auto is_letter = [](char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); };
  // A term with an ellipsis of `extra` axes, the last one '0'.
  const auto spelled = [&](const std::string& term, std::size_t extra) {
    std::string labels;
    bool seen = false;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (term.compare(i, 3, "...") == 0) {
        c.require(!seen, "equation: an ellipsis is there twice");
        c.require(extra <= 10, "equation: an ellipsis of more than 10 axes");
        for (std::size_t k = extra; k-- > 0;) labels += static_cast<char>('0' + k);
        seen = true;
        i += 2;
      } else {
        c.require(is_letter(term[i]), "equation \"" + text + "\" has a character that is no label");
        labels += term[i];
      }
    }
    return labels;
  };
  einsum_equation e;
  std::size_t most = 0;
  for (std::size_t begin = 0; begin <= left.size();) {
    const auto end = std::min(left.find(',', begin), left.size());
    const std::string term = left.substr(begin, end - begin);
    const auto i = e.operands.size();
    c.require(i < c.input_count(), "equation \"" + text + "\" has more terms than there are operands");
    const auto rank = c.sizes(i).size();
    const bool ellipsis = term.find("...") != std::string::npos;
    const auto letters = term.size() - (ellipsis ? 3 : 0);
    c.require(ellipsis ? letters <= rank : letters == rank, "equation: term \"" + term + "\" does not fit an operand of rank " + std::to_string(rank));
    if (ellipsis) most = std::max(most, rank - letters);
    e.operands.push_back(spelled(term, ellipsis ? rank - letters : 0));
    begin = end + 1;
  }
  c.require(e.operands.size() == c.input_count(), "equation \"" + text + "\" has fewer terms than there are operands");
  if (arrow != std::string::npos) {
    e.result = spelled(equation.substr(arrow + 2), most);
  } else {  // the ellipsis, then the letters that are there once, in alphabetical order
    std::map<char, int> count;
    for (const auto& labels : e.operands)
      for (const char l : labels) ++count[l];
    for (std::size_t k = most; k-- > 0;) e.result += static_cast<char>('0' + k);
    for (const auto& [label, times] : count)
      if (is_letter(label) && times == 1) e.result += label;
  }
  for (const char l : e.result) {
    c.require(std::count(e.result.begin(), e.result.end(), l) == 1, "equation: a label is in the result twice");
    bool known = false;
    for (const auto& labels : e.operands) known = known || labels.find(l) != std::string::npos;
    c.require(known, "equation: a label of the result is in no operand");
  }
  return e;
}

[[nodiscard]] inline std::int64_t size_of_label(node_context& c, const labelled& t, char label) {
  const auto at = t.labels.find(label);
  return at == std::string::npos ? 1 : c.at(t.value).sizes[at];
}
/// The axes in the order of `labels`, which are those of the tensor.
[[nodiscard]] inline labelled arranged(node_context& c, labelled t, const std::string& labels) {
  if (t.labels == labels) return t;
  transpose op;
  for (const char l : labels) op.permutation.push_back(static_cast<std::int64_t>(t.labels.find(l)));
  return {c.add(std::move(op), {t.value}), labels};
}
/// A label that is there twice becomes one: the diagonal, every (size + 1)-th element of the two axes.
[[nodiscard]] inline labelled with_diagonals(node_context& c, labelled t) {
  for (std::size_t i = 0; i < t.labels.size(); ++i) {
    const auto again = t.labels.find(t.labels[i], i + 1);
    if (again == std::string::npos) continue;
    const char label = t.labels[i];
    const auto size = c.at(t.value).sizes[i];
    c.require(size == c.at(t.value).sizes[again], "equation: the axes of a diagonal differ in size");
    transpose last;
    std::string rest;
    for (std::size_t d = 0; d < t.labels.size(); ++d)
      if (d != i && d != again) last.permutation.push_back(static_cast<std::int64_t>(d)), rest += t.labels[d];
    last.permutation.push_back(static_cast<std::int64_t>(i));
    last.permutation.push_back(static_cast<std::int64_t>(again));
    auto value = c.add(std::move(last), {t.value});
    shape flat = c.at(value).sizes;
    flat.pop_back();
    flat.back() = checked::multiply(size, size);
    value = c.reshaped(value, flat);
    slice diagonal{axis_values(flat.size(), 0), axis_values(flat.size(), 1)};
    diagonal.step.back() = size + 1;
    flat.back() = size;
    t = {c.add(std::move(diagonal), {value}, std::move(flat)), rest + label};
    i = static_cast<std::size_t>(-1);  // from the beginning
  }
  return t;
}
/// Sums over the labels that are not in `kept`.
[[nodiscard]] inline labelled summed(node_context& c, labelled t, const std::string& kept) {
  std::vector<bool> axes;
  std::string labels;
  shape sizes;
  for (std::size_t d = 0; d < t.labels.size(); ++d) {
    axes.push_back(kept.find(t.labels[d]) == std::string::npos);
    if (axes.back()) continue;
    labels += t.labels[d];
    sizes.push_back(c.at(t.value).sizes[d]);
  }
  if (labels.size() == t.labels.size()) return t;
  return {c.reshaped(reduced(c, t.value, reduce_kind::sum, axes), std::move(sizes)), labels};
}
/// Axes of size 1 whose label is longer in the other operand broadcast: they are left out.
[[nodiscard]] inline labelled without_broadcast(node_context& c, labelled t, const labelled& other) {
  std::string labels;
  shape sizes;
  for (std::size_t d = 0; d < t.labels.size(); ++d) {
    const auto size = c.at(t.value).sizes[d], wanted = size_of_label(c, other, t.labels[d]);
    if (size == 1 && wanted != 1) continue;
    c.require(other.labels.find(t.labels[d]) == std::string::npos || wanted == size || wanted == 1, "equation: a label has two sizes");
    labels += t.labels[d];
    sizes.push_back(size);
  }
  return {c.reshaped(t.value, std::move(sizes)), labels};
}
/// Product of two operands, summed over the labels that are not in `kept`.
[[nodiscard]] inline labelled contracted(node_context& c, labelled a, labelled b, const std::string& kept) {
  const labelled whole_a = a;
  a = without_broadcast(c, a, b);
  b = without_broadcast(c, b, whole_a);
  a = summed(c, a, kept + b.labels);
  b = summed(c, b, kept + a.labels);
  const auto in = [](const std::string& labels, char l) { return labels.find(l) != std::string::npos; };
  std::string batch, inner, left, right;
  for (const char l : a.labels) (!in(b.labels, l) ? left : in(kept, l) ? batch : inner) += l;
  for (const char l : b.labels)
    if (!in(a.labels, l)) right += l;
  const auto sizes_of = [&](const labelled& t, const std::string& labels) {
    shape sizes;
    for (const char l : labels) sizes.push_back(size_of_label(c, t, l));
    return sizes;
  };
  if (inner.empty()) {  // a product without a sum: both in the order of the result, with 1 for what one of them has not
    const std::string result = batch + left + right;
    const auto aligned = [&](labelled t, const std::string& own) {
      t = arranged(c, t, own);
      return c.reshaped(t.value, sizes_of(t, result));
    };
    return {times(c, aligned(a, batch + left), aligned(b, batch + right)), result};
  }
  shape result = sizes_of(a, batch);
  const auto batches = element_count(result), m = element_count(sizes_of(a, left)), k = element_count(sizes_of(a, inner)), n = element_count(sizes_of(b, right));
  for (const auto size : sizes_of(a, left)) result.push_back(size);
  for (const auto size : sizes_of(b, right)) result.push_back(size);
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) { return batch.empty() ? shape{rows, columns} : shape{batches, rows, columns}; };
  const auto x = c.reshaped(arranged(c, a, batch + left + inner).value, matrix(m, k)), y = c.reshaped(arranged(c, b, batch + inner + right).value, matrix(k, n));
  return {c.reshaped(c.add(matmul{}, {x, y}), std::move(result)), batch + left + right};
}

inline void einsum(node_context& c) {
  const auto equation = parse_einsum(c, c.text("equation", ""));
  labelled value;
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    std::string kept = equation.result;  // and what later operands have
    for (std::size_t k = i + 1; k < equation.operands.size(); ++k) kept += equation.operands[k];
    const auto operand = with_diagonals(c, {c.input(i), equation.operands[i]});
    value = i == 0 ? summed(c, operand, kept) : contracted(c, value, operand, kept);
  }
  // A label of the result that broadcasts from size 1 alone may have been left out on one side only, so all are there.
  value = arranged(c, value, equation.result);
  bool own = true;
  for (std::size_t i = 0; i < c.input_count(); ++i) own = own && value.value != c.input(i);
  c.result(own ? value.value : function(c, unary_kind::identity, value.value));
}

}  // namespace raptor::onnx_io::convert
