#include "cli/probe.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "far/aio_check.hpp"
#include "kernel/probe.hpp"
#include "kernel/userfaultfd_abi.hpp"

namespace hinterland::cli {
namespace {

Finding no_faults(const Error& refusal) {
  std::string mend = refusal.next_step();
  if (mend.starts_with("run: ")) mend.erase(0, 5);
  return {"userfaultfd", State::blocking, user_mode_faults_permitted() ? "user-mode faults only" : refusal.what(),
          "far memory is not possible: pages that system calls touch could not be brought back", mend};
}

Finding feature(const char* name, bool there, const char* since, const char* cost) {
  if (there) return {name, State::good, "works", "", ""};
  return {name, State::missing, "not there", cost, std::string("a kernel since ") + since};
}

Finding write_protect_finding(const KernelFeatures& works) {
  Finding finding = feature("write-protect faults", works.write_protect, "5.7 (better 5.10)",
                            "fetched pages always count as changed: they are written again when they are evicted");
  if (works.write_protect || works.move) return finding;
  finding.state = State::blocking;
  finding.cost = "changed pages cannot be taken from the program, neither protected nor moved";
  return finding;
}

Finding aio_finding() {
  int error = far::aio_error();
  if (error == 0) return {"Linux AIO", State::good, "works", "", ""};
  const char* mend = "a kernel with CONFIG_AIO, and a sandbox that permits io_setup";
  if (error == EAGAIN) mend = "sudo sysctl fs.aio-max-nr=1048576 (all contexts of the machine are in use)";
  return {"Linux AIO", State::missing, strerror(error),
          "file: reads and writes one page after the other, which is slower; other devices do not use it", mend};
}

// Lists what userfaultfd and its relatives can do here.
void add_features(const KernelFeatures& works, std::uint64_t offered, std::vector<Finding>& findings) {
  findings.push_back(write_protect_finding(works));
  findings.push_back(feature("exact fault addresses", works.exact_address, "5.18",
                             "fault addresses are known to the page only; nothing is lost in `run`"));
  findings.push_back(feature("faulting thread's identity", works.thread_id, "4.14",
                             "faults are not served on the CPU of the thread that waits, which on virtual machines "
                             "makes one many times as long"));
  findings.push_back(feature("POISON", works.poison, "6.6",
                             "lost pages are replaced by mappings that raise SIGBUS, which splits mappings"));
  // A write between looking and unmapping would be lost without a message:
  // docs/adr/0003-synchronous-write-protection.md
  findings.push_back({"WP_ASYNC", State::information,
                      (offered & abi::kFeatureWpAsync) != 0 ? "there, not used" : "not there, not needed", "", ""});
  // A mapping is registered for this or for write protection, and changed pages are found by the latter.
  findings.push_back({"access tracking (RWP)", State::information,
                      read_write_protect_works()
                          ? "there, not used"
                          : "not there: refaults, hints and first writes tell which pages are in use",
                      "", ""});
  findings.push_back(
      feature("MOVE", works.move, "6.8",
              "changed pages are protected and copied: four to five times the cost for runs of pages"));
  findings.push_back(feature("vectored madvise", works.vectored_discard, "6.13 (better 6.16)",
                             "pages are unmapped run by run: about 1.3 us a page instead of 0.25, and 20 us while "
                             "other threads run"));
}

}  // namespace

std::vector<Finding> examine_kernel() {
  std::vector<Finding> findings;
  Result<ProbedDescriptor> probed = open_fault_descriptor();
  if (!probed) {
    findings.push_back(no_faults(probed.error()));
  } else {
    close(probed->descriptor);
    findings.push_back({"userfaultfd", State::good, probed->way, "", ""});
    Kernel& kernel = real_kernel();
    if (Status opened = kernel.open(); opened)
      add_features(try_features(kernel), probed->offered, findings);
    else
      findings.back() = no_faults(opened.error());
  }
  findings.push_back(aio_finding());
  return findings;
}

}  // namespace hinterland::cli
