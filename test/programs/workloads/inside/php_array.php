<?php
// The work of the PHP test: php_array.php ENTRIES SEED prints `check: value` lines.
ini_set('memory_limit', '-1');
[$entries, $state] = [(int)$argv[1], (int)$argv[2]];

// Drawn by a product modulo a power of two, so that every run has the same.
$lists = [];
for ($i = 0; $i < $entries; $i++) {
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    $lists[$state % (intdiv($entries, 9) + 1)][] = "x$state";
}
echo "keys: ", count($lists), "\n";
ksort($lists);
$sum = 0;
foreach ($lists as $key => $list) $sum = ($sum * 31 + $key + count($list) + crc32(implode($list))) % 1000000007;
echo "in order: $sum\n";
echo "as JSON: ", hash('sha256', json_encode($lists)), "\n";
