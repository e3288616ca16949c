#include "object/all_threads.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/raw_call.hpp"

namespace hinterland::object::all_threads {
namespace {

int barrier(int command) { return static_cast<int>(-raw::call(SYS_membarrier, command, 0)); }

}  // namespace

int allow_barriers() { return barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
int allow_restarts() { return barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ); }
void pass_a_barrier() { barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }
bool restart_sequences() { return barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) == 0; }

}  // namespace hinterland::object::all_threads
