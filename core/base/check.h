// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

#include "absl/strings/string_view.h"

// FR_CHECK guards an invariant of this codebase: when it fails the program is wrong, not its input.
// It prints the condition, both sides where there are two, and what was streamed, and aborts.
// Bad input is an absl::Status; a failed collective is comm::GroupError.
//
//   FR_CHECK(shape.rank() == 2) << "matmul takes matrices, got " << shape;
//   FR_CHECK_EQ(a.dim(1), b.dim(0)) << "inner dimensions";
namespace forerun::internal {

// Collects the message of one failed check; aborts when destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, absl::string_view condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

  template <typename A, typename B>
  std::ostream& Sides(const A& a, const B& b) {
    return stream_ << " (" << Printable(a) << " vs. " << Printable(b) << ") ";
  }

 private:
  // Bytes are numbers here, not characters.
  template <typename T>
  static const T& Printable(const T& value) {
    return value;
  }
  static int Printable(signed char value) { return value; }
  static int Printable(unsigned char value) { return value; }

  std::ostringstream stream_;
};

}  // namespace forerun::internal

#define FR_CHECK(condition) \
  while (!(condition))      \
  [[unlikely]] ::forerun::internal::CheckFailure(__FILE__, __LINE__, #condition).stream() << ' '

// Each side is evaluated a second time only to be printed.
#define FR_CHECK_OP(op, a, b)                                                           \
  while (!((a)op(b)))                                                                   \
  [[unlikely]] ::forerun::internal::CheckFailure(__FILE__, __LINE__, #a " " #op " " #b) \
      .Sides((a), (b))

#define FR_CHECK_EQ(a, b) FR_CHECK_OP(==, a, b)
#define FR_CHECK_NE(a, b) FR_CHECK_OP(!=, a, b)
#define FR_CHECK_LT(a, b) FR_CHECK_OP(<, a, b)
#define FR_CHECK_LE(a, b) FR_CHECK_OP(<=, a, b)
#define FR_CHECK_GT(a, b) FR_CHECK_OP(>, a, b)
#define FR_CHECK_GE(a, b) FR_CHECK_OP(>=, a, b)
