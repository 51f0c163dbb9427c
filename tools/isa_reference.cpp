// Prints the instruction reference (docs/INSTRUCTIONS.md) on standard output.

#include <cstdio>
#include <string>

#include "raptor/isa/reference.hpp"

int main() {
  const std::string text = raptor::isa::reference();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
