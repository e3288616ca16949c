#include "base/signal_mask.hpp"

namespace hinterland::signal_mask {

thread_local Words t_words;

}  // namespace hinterland::signal_mask
