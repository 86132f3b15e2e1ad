// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/process_group.h"

namespace forerun::comm {

absl::string_view NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kAllReduce:
      return "AllReduce";
    case OpKind::kAllGather:
      return "AllGather";
    case OpKind::kReduceScatter:
      return "ReduceScatter";
    case OpKind::kBroadcast:
      return "Broadcast";
    case OpKind::kSend:
      return "Send";
    case OpKind::kRecv:
      return "Recv";
    case OpKind::kBarrier:
      return "Barrier";
  }
  return "?";
}

}  // namespace forerun::comm
