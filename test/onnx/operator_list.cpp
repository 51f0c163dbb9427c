#include "raptor/onnx/operators.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

using namespace raptor::onnx_io;

TEST_CASE("the README's table of operators is what the importer's table generates") {
  std::ifstream in(RAPTOR_SOURCE_DIR "/README.md", std::ios::binary);
  REQUIRE(in.good());
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  INFO("put the output of raptor-compile --list-ops under README.md, \"Operators\"");
  CHECK(text.find("\n\n" + operator_list() + "\n") != std::string::npos);
}

TEST_CASE("operators are listed by name, once an opset") {
  const operator_row* before = nullptr;
  for (const auto& row : operator_table) {
    CAPTURE(std::string(row.op));
    CHECK(row.since >= 1);
    CHECK((row.until == 0 || row.until >= row.since));
    CHECK(row.least_inputs <= row.most_inputs);
    if (before != nullptr) CHECK((before->op < row.op || (before->op == row.op && before->until != 0 && before->until < row.since)));
    before = &row;
    CHECK(find_operator(row.op, row.since) == &row);
  }
  CHECK(find_operator("Upsample", 10) == nullptr);
  CHECK(knows_operator("Upsample"));
}
