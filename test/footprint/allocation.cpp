#include "allocation.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

// Each block has its size in front of it.
namespace {

std::atomic<std::size_t> live{0}, most{0};
constexpr std::size_t header = alignof(std::max_align_t);

void* allocate(std::size_t size) {
  auto* const block = static_cast<unsigned char*>(std::malloc(size + header));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = size;
  const auto now = live += size;
  for (auto before = most.load(); before < now && !most.compare_exchange_weak(before, now);) continue;
  return block + header;
}
void release(void* block) noexcept {
  if (block == nullptr) return;
  auto* const begin = static_cast<unsigned char*>(block) - header;
  live -= *reinterpret_cast<std::size_t*>(begin);
  std::free(begin);
}

std::size_t base = 0;

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }

namespace footprint {

void restart() { most = base = live.load(); }
std::size_t peak() { return most - base; }

}  // namespace footprint
