"""The budget holds, far space goes back at once, and what is freed and taken again does not travel."""

import unittest

from support import MIB, FailureTest, Puppet, Sampler, Server

PAGES = 8192


class Budget(FailureTest):
    def test_held_by_eight_threads(self):
        budget = 64 * MIB
        # Under pressure paging begins when a thread of ours has noticed: on a busy machine that has to wait for a CPU,
        # while eight threads touch memory.
        for url, takeover, late in (("mem:", "start", 0), ("zmem:", "start", 0), ("mem:", "pressure", 64 * MIB)):
            with self.subTest(f"{url} from {takeover}"):
                puppet = Puppet(self, far=url, local="64M", takeover=takeover)
                sampler = Sampler(puppet.pid)
                self.assertEqual(puppet.do("hog 8 1024", 120), "hogged wrong 0")
                self.assertEqual(puppet.do("hog 8 128", 120), "hogged wrong 0")  # what was freed is taken again
                peak = sampler.stop()
                self.assertGreater(sampler.samples, 10)
                self.assertGreater(self.figures(puppet.pid)["pages_out"], 100000)
                allowed = budget + 48 * MIB + 1024 * MIB * 3 // 200 + late
                self.assertLessEqual(peak, allowed, f"{peak >> 20} MiB resident, {allowed >> 20} MiB is the most")
                self.assertEqual(puppet.finish(), 0)


class Space(FailureTest):
    def used(self, puppet):
        return self.figures(puppet.pid)["device_used_bytes"]

    def test_given_back_at_once(self):
        server = Server(self)
        for url in ("mem:", "zmem:", f"file:{self.path('far')}?size=256M", server.url):
            with self.subTest(url):
                puppet = Puppet(self, far=url)
                for free in ("unmap", f"drop 0 {PAGES}"):
                    puppet.do(f"fill {PAGES}")
                    self.wait_until("far space in use", lambda: self.used(puppet) > 20 * MIB, 2)
                    puppet.do(free)
                    if free == "unmap":
                        self.wait_until("far space given back", lambda: self.used(puppet) < MIB, 1)
                self.assertEqual(puppet.do(f"check 0 {PAGES}"), f"right {PAGES}")
                self.assertEqual(puppet.do("unmap"), "unmapped")
                self.wait_until("far space given back", lambda: self.used(puppet) < MIB, 1)
                self.assertEqual(puppet.finish(), 0)

    def test_freed_heap_gives_its_far_space_back(self):
        puppet = Puppet(self, far="mem:")
        self.assertEqual(puppet.do("hog 2 64"), "hogged wrong 0")
        self.wait_until("far space given back", lambda: self.used(puppet) < 2 * MIB, 2)
        self.assertEqual(puppet.finish(), 0)

    def test_taken_again_does_not_travel(self):
        puppet = Puppet(self, far="mem:", local="64M", takeover="pressure")
        puppet.do("fill 20480")  # 80 MiB: paging begins
        self.wait_until("paging", lambda: self.figures(puppet.pid)["managed"] == 1)
        self.assertEqual(puppet.do("recycle 32 2"), "recycled wrong 0")  # makes its room in the budget
        before = self.figures(puppet.pid)["pages_out"]
        self.assertEqual(puppet.do("recycle 32 40"), "recycled wrong 0")
        travelled = self.figures(puppet.pid)["pages_out"] - before
        self.assertLess(travelled, 40 * 8192 // 20, "pages written by a loop that fits the budget")
        self.assertEqual(puppet.finish(), 0)


class Forks(FailureTest):
    def test_far_space_does_not_grow_with_dead_children(self):
        server = Server(self)
        for url in ("mem:", server.url):
            for how in ("exit", "kill"):
                with self.subTest(f"{how} over {url}"):
                    puppet = Puppet(self, far=url)
                    puppet.do("fill 4096")
                    self.assertEqual(puppet.do(f"forks 2 {how}"), "children 2 bad 0")
                    self.assertEqual(puppet.do(f"forks 5 {how}"), "children 5 bad 0")
                    # The block, and what a last child may still hold for a moment.
                    self.wait_until("far space of dead children given back",
                                    lambda: self.figures(puppet.pid)["device_used_bytes"] <= 17 * MIB, 3)
                    self.assertEqual(puppet.do("check 0 4096"), "right 4096")
                    self.assertEqual(puppet.do("unmap"), "unmapped")
                    self.wait_until("all far space given back",
                                    lambda: self.figures(puppet.pid)["device_used_bytes"] < MIB, 3)
                    self.assertEqual(puppet.finish(), 0)


if __name__ == "__main__":
    unittest.main()
