"""The report's page: whole, needing nothing else, and in a browser what it says it is."""

import json
import os
import pathlib
import re
import subprocess
import unittest

from support import HINTERLAND, TraceTest


class Pages(TraceTest):
    def setUp(self):
        super().setUp()
        self.use_shared_trace()
        done = self.call("report", "t.trace", "--html", "t.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("t.html"), encoding="utf-8") as file:
            self.page = file.read()

    def test_needs_nothing_else(self):
        """No address of another file or of the network, and the data is whole."""
        markup = re.sub(r'<script id="data".*?</script>', "", self.page, flags=re.DOTALL)
        self.assertNotRegex(markup, r"https?:|src=|href=|@import|url\(")
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', self.page, re.DOTALL).group(1))
        report = self.report("t.trace")
        self.assertEqual(sum(data["faults"]), report["faults"])
        self.assertEqual(sum(cell[3] for cell in data["map"]["cells"]), report["faults"])
        self.assertAlmostEqual(data["tree"][1][1] / report["faults"], data["faults"][1] / report["faults"], delta=0.05)
        fetches = [point[1] for point in data["curve"]]
        self.assertEqual(fetches, sorted(fetches, reverse=True))
        self.assertTrue(any("MARK read" in line[1] for site in data["sites"] for line in site["source"]))

    def test_curve_is_what_replay_says(self):
        """Each point of "what more local memory would save" is the fetches that `replay` foretells for that budget."""
        data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', self.page, re.DOTALL).group(1))
        self.assertEqual(data["replayed"], sum(data["faults"]))
        self.assertGreater(len(data["curve"]), 2)
        for local, fetches in data["curve"]:
            done = self.call("replay", "t.trace", "--local", str(local), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["runs"][0]["faults_fetch"], fetches, local)

    def test_in_a_browser(self):
        """Drawn without an error; a search, a click that zooms, and a click on a line do what they say."""
        script = """
          const result = {errors: window.errors};
          search('read_pages');
          result.found = document.getElementById('found').textContent;
          const box = canvas.getBoundingClientRect(), read = drawn.find(d => d[3].name.startsWith('read_pages'));
          const at = {clientX: box.left + read[0] + read[2] / 2, clientY: box.top + read[1] + 5, bubbles: true};
          canvas.dispatchEvent(new MouseEvent('mousemove', at));
          result.tip = document.getElementById('tip').textContent;
          canvas.dispatchEvent(new MouseEvent('click', at));
          result.zoomed = zoom.name;
          document.getElementById('reset').click();
          result.reset = zoom.name;
          document.querySelector('#sites tr').click();
          result.source = document.querySelector('#sites pre b').textContent;
          const map = document.getElementById('map');
          const pixels = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
          result.painted = pixels.some(value => value !== 0);
          document.body.dataset.result = JSON.stringify(result);
        """
        result = self.driven(self.page, script)
        self.assertRegex(result["found"], r"^[67]\d\.\d % of all faults$")
        self.assertIn("read_pages", result["tip"])
        self.assertIn("read_pages", result["zoomed"])
        self.assertIn("all faults", result["reset"])
        self.assertIn("MARK read", result["source"])
        self.assertTrue(result["painted"])


    def colours(self):
        """Of the kinds of faults, as the page has them: (red, green, blue) each."""
        text = re.search(r"const COLOURS = \[([^\]]*)\]", self.page).group(1)
        return [tuple(bytes.fromhex(colour)) for colour in re.findall(r"#(\w{6})", text)]

    def test_colours_for_every_eye(self):
        """First touches, reads, writes and protection faults differ for those who lack one kind of cone, too (Machado,
        Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009)."""
        full = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        no_red = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
        no_green = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
        no_blue = ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))
        for eye in (full, no_red, no_green, no_blue):
            seen = [lab([min(max(sum(a * b for a, b in zip(row, linear(colour))), 0), 1) for row in eye])
                    for colour in self.colours()[:4]]
            for i, one in enumerate(seen):
                for other in seen[:i]:
                    distance = sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5
                    self.assertGreater(distance, 12, (eye, i, seen))  # 2.3 is what is just told apart

    def test_screenshot(self):
        """The kinds that the program has are there to be seen, in the flame graph and in the picture of addresses."""
        seen = self.screenshot(self.page)
        for colour in self.colours()[:3]:  # first touch, read, write
            self.assertGreater(seen.get(colour, 0), 100, colour)

    def test_a_hundred_thousand_stacks(self):
        """Drawn in their colours, searched, and zoomed by a click."""
        maker = os.path.join(os.path.dirname(os.path.dirname(HINTERLAND)), "bench", "large_trace")
        if not os.access(maker, os.X_OK):
            self.skipTest("bench/large_trace is not built")
        subprocess.run([maker, self.path("large.trace"), "100000", "100000"], check=True)
        done = self.call("report", "large.trace", "--html", "large.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = pathlib.Path(self.path("large.html")).read_text(encoding="utf-8")
        result = self.driven(page, """
          const result = {errors: window.errors, nodes: nodes.length, drawn: drawn.length};
          const box = canvas.getBoundingClientRect(), one = drawn.find(d => d[3].depth === 3 && d[2] > 20);
          canvas.dispatchEvent(new MouseEvent('click', {clientX: box.left + one[0] + one[2] / 2,
            clientY: box.top + one[1] + 5, bubbles: true}));
          result.zoomed = zoom === one[3];
          search('TraceWriter');
          result.found = document.getElementById('found').textContent;
          search('');
          document.getElementById('reset').click();
          const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          result.reads = 0;  // in their colour
          for (let i = 0; i < pixels.length; i += 4)
            result.reads += pixels[i] === 0x56 && pixels[i + 1] === 0xb4 && pixels[i + 2] === 0xe9;
          document.body.dataset.result = JSON.stringify(result);""")
        self.assertGreater(result["nodes"], 100000)
        self.assertGreater(result["drawn"], 100)
        self.assertTrue(result["zoomed"])
        self.assertRegex(result["found"], r"^[1-9][\d.]* % of all faults$")
        self.assertGreater(result["reads"], 1000)


def linear(colour):
    return [(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in (value / 255 for value in colour)]


def lab(colour):
    """CIELAB of a linear colour."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(a * b for a, b in zip(row, colour)) / white for row, white in zip(rows, (0.9505, 1, 1.089)))
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


if __name__ == "__main__":
    unittest.main()
