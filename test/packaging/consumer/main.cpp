// The toolkit without ONNX, as a user's program sees it.
#include <raptor/isa/table.hpp>
#include <raptor/support/box.hpp>

int main() {
  const raptor::box a{{0, 4}, {2, 6}}, b{{1, 9}, {0, 3}};
  return raptor::element_count(raptor::intersect(a, b)) == 3 ? 0 : 1;
}
