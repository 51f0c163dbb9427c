#include "raptor/report/dataflow.hpp"

#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "raptor/communication/realize.hpp"
#include "raptor/report/graphviz.hpp"
#include "scheduled.hpp"

using namespace raptor;
using namespace raptor::test;

namespace {

/// Rows of a CSV text without quoted fields, by column name.
std::vector<std::map<std::string, std::string>> rows(const std::string& text) {
  std::vector<std::map<std::string, std::string>> result;
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields{""};
    for (const char c : line) {
      if (c == ',') fields.emplace_back();
      else fields.back() += c;
    }
    if (names.empty()) {
      names = fields;
      continue;
    }
    REQUIRE(fields.size() == names.size());
    result.emplace_back();
    for (std::size_t i = 0; i < fields.size(); ++i) result.back()[names[i]] = fields[i];
  }
  return result;
}
std::int64_t sum(const std::vector<std::map<std::string, std::string>>& table, const std::string& column) {
  std::int64_t total = 0;
  for (const auto& row : table) total += std::stoll(row.at(column));
  return total;
}

}  // namespace

TEST_CASE("dataflow of computes") {
  const auto files = report::dataflow(small_graph(), small_chip());
  CHECK(files.nodes ==
        "Id,Label,Kind,Operator,Strategy,Node,Lanes,Groups,Crossbars,Statements\n"
        "0,conv1,compute,convolution,streamed-patch,3,1x8,1,1,6\n"
        "1,relu1,compute,relu,,,1x8,0,0,1\n"
        "2,y,compute,materialize,,,1x8,0,0,1\n"
        "3,image,input,,,,1x1x8x8,0,0,0\n"
        "4,y,output,,,,1x4x8x8,0,0,0\n");
  CHECK(files.edges ==
        "Source,Target,Type,Id,Label,Shape,Layout,Elements,Bytes\n"
        "0,1,Directed,0,conv,1x4x8x8,nhwc_row_strip,256,1024\n"
        "1,2,Directed,1,relu,1x4x8x8,nhwc_row_strip,256,1024\n"
        "3,0,Directed,2,image,1x1x8x8,nchw_row_strip,64,256\n"
        "2,4,Directed,3,y,1x4x8x8,nchw_row_strip,256,1024\n");
}

TEST_CASE("dataflow of shares and transfers") {
  const auto g = small_graph();
  const auto s = spread(g);
  const auto transfers = communication::collect_transfers(g, s);
  const auto all = report::shares_of(g, s, &transfers);
  REQUIRE(all.shares.size() == 5);  // two, two and one
  CHECK(all.shares[1].compute == 0);
  CHECK(all.shares[1].core == 1);
  CHECK(all.shares[1].tiles == 4);
  CHECK(all.shares[4].tiles == 8);
  CHECK(all.shares[4].finish == s.predicted);
  schedule::picoseconds busy = 0, expected = 0;
  for (const auto& share : all.shares) busy += share.busy;
  for (const auto& p : s.place) expected += p.finish - p.start;
  CHECK(busy == expected);

  // Only the relu's rows of core 0 cross: four rows of 32 elements.
  std::int64_t sent = 0;
  for (const auto& f : all.flows) sent += f.sent;
  CHECK(sent == 4 * 32);
  const auto files = report::dataflow(g, s, small_chip(), &transfers);
  const auto nodes = rows(files.nodes), edges = rows(files.edges);
  CHECK(nodes.size() == 7);
  CHECK(nodes[4].at("Label") == "y#0");
  CHECK(nodes[4].at("Core") == "1");
  CHECK(nodes[4].at("Finish") == std::to_string(s.predicted));
  CHECK(sum(edges, "SentBytes") == 4 * 4 * 32);
  CHECK(sum(edges, "Messages") == 4);
  for (const auto& e : edges) {
    CHECK(std::stoul(e.at("Source")) < nodes.size());
    CHECK(std::stoul(e.at("Target")) < nodes.size());
    if (e.at("Kind") == "remote") CHECK(e.at("Elements") == "128");
  }
  // The realized program sends as much.
  const auto program = communication::rendezvous_communication{}(g, s, small_chip());
  std::int64_t messages = 0, elements = 0;
  for (const auto& core : program.cores)
    for (const auto& i : core.body)
      if (const auto* o = std::get_if<program::operation>(&i.what); o != nullptr && o->op == isa::opcode::send) ++messages, elements += o->length;
  CHECK(messages == 4);
  CHECK(elements == 128);
  // Without transfers the same edges, without what is sent.
  const auto scheduled = rows(report::dataflow(g, s, small_chip()).edges);
  CHECK(scheduled.size() == edges.size());
  CHECK(!scheduled[0].contains("SentBytes"));
}

TEST_CASE("names with commas and quotes stay one field") {
  lowering::compute_graph g;
  lowering::compute c;
  c.name = "a,\"b\"";
  g.add_compute(c);
  CHECK(report::dataflow(g, small_chip()).nodes.find("\n0,\"a,\"\"b\"\"\",compute,") != std::string::npos);
}

TEST_CASE("Graphviz") {
  const auto g = small_graph();
  const auto plain = report::graphviz(g);
  CHECK(plain.find("digraph \"small \\\"net\\\"\" {\n") == 0);
  CHECK(plain.find("  c0 [label=\"conv1\\nconvolution, streamed-patch\\nlanes 1x8, 1 array group\", style=filled, fillcolor=\"#dce6f2\"];\n") != plain.npos);
  CHECK(plain.find("  c0 -> c1 [label=\"1x4x8x8\\nnhwc_row_strip\"];\n") != plain.npos);
  CHECK(plain.find("  in0 -> c0 [") != plain.npos);
  CHECK(plain.find("  c2 -> out0 [") != plain.npos);
  CHECK(plain.back() == '\n');
  const auto s = spread(g);
  const auto scheduled = report::graphviz(g, &s);
  CHECK(scheduled.find("lanes 1x8\\n8 tiles, core 0 1\\n") != scheduled.npos);
  CHECK(scheduled.find("lanes 1x8\\n8 tiles, core 1\\n") != scheduled.npos);
}
