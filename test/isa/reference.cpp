#include "raptor/isa/reference.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace {

using namespace raptor::isa;

TEST_CASE("docs/INSTRUCTIONS.md is what the table generates") {
  std::ifstream in(RAPTOR_SOURCE_DIR "/docs/INSTRUCTIONS.md", std::ios::binary);
  REQUIRE(in.good());
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string expected = reference();
  const bool equal = text == expected;  // without printing two long texts
  INFO("run: raptor-isa-reference > docs/INSTRUCTIONS.md");
  CHECK(equal);
}

TEST_CASE("every instruction and every field that it names is in the reference") {
  const std::string text = reference();
  for (const auto& entry : infos) {
    CAPTURE(entry.mnemonic);
    CHECK(text.find("\n### " + std::string(entry.mnemonic) + "\n") != text.npos);
    CHECK(text.find("`" + to_text(sample(entry.op)) + "`") != text.npos);
    CHECK(text.find("`" + to_json(sample(entry.op, 1)) + "`") != text.npos);
  }
}

TEST_CASE("samples differ by their seed in every field that can differ") {
  for (const auto& entry : infos) {
    if (entry.op == opcode::nop) continue;
    CAPTURE(entry.mnemonic);
    CHECK(sample(entry.op, 0) != sample(entry.op, 1));
  }
}

}  // namespace
