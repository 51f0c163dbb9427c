// The text forms. The first byte says which. What can be read is written and read again: it must be the same.
#include "support.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "raptor/communication/text.hpp"
#include "raptor/isa/binary.hpp"
#include "raptor/isa/json.hpp"
#include "raptor/isa/text.hpp"
#include "raptor/lowering/text.hpp"
#include "raptor/memory/plan.hpp"
#include "raptor/program/text.hpp"
#include "raptor/verify/program.hpp"

namespace {

using namespace raptor;

void instructions_text(std::string_view text) {
  const auto read = isa::assemble(text);
  fuzz::require(isa::assemble(isa::disassemble(read)) == read, "instructions change through their text");
}
void instructions_json(std::string_view text) {
  const auto read = isa::parse_json(text, "core_0.json");
  fuzz::require(isa::parse_json(isa::to_json(read), "core_0.json") == read, "instructions change through their JSON");
}
void instructions_binary(std::string_view text) {
  const auto read = isa::decode(std::as_bytes(std::span(text)), "core_0.pim");
  // The flags byte of a record is ignored, so that the bytes may differ.
  fuzz::require(isa::decode(isa::encode(read), "core_0.pim") == read, "instructions change through their bytes");
}
void program_text(std::string_view text) {
  const std::vector<float> constants(64, 1.0F);
  auto read = program::parse_text(text, constants);
  const auto form = program::to_text(read.value, read.weight_files);
  const auto again = program::parse_text(form.text, form.constants);
  fuzz::require(program::to_text(again.value, again.weight_files).text == form.text, "a program changes through its text");
  verify::check_program(read.value);
  memory::check_plan(memory::plan(std::move(read.value)));
}
void computes_text(std::string_view text) {
  const auto read = lowering::parse_text(text);
  const auto form = lowering::to_text(read.value);
  fuzz::require(lowering::to_text(lowering::parse_text(form.text).value).text == form.text, "a compute graph changes through its text");
}
void spatial_text(std::string_view text) {
  const auto read = communication::parse_spatial(text);
  const auto form = communication::to_text(read);
  fuzz::require(communication::to_text(communication::parse_spatial(form.text)).text == form.text, "a scheduled graph changes through its text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const auto text = fuzz::text_of(data + 1, size - 1);
  static constexpr void (*forms[])(std::string_view){instructions_text, instructions_json, instructions_binary, program_text, computes_text, spatial_text};
  const std::size_t which = data[0] - std::size_t{'0'};
  if (which >= std::size(forms)) return -1;
  fuzz::run(size, [&](std::int64_t& own) {
    if (forms[which] == program_text) own = static_cast<std::int64_t>(program::text_allowance);
    forms[which](text);
  });
  return 0;
}
