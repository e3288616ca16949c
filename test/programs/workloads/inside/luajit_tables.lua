-- The work of the LuaJIT test: luajit_tables.lua ENTRIES SEED prints `check: value` lines.
local entries, state = tonumber(arg[1]), tonumber(arg[2])

-- Drawn by a product modulo a power of two, small enough for exact numbers, so that every run has the same.
local all = {}
for i = 1, entries do
  state = (state * 1103515 + 12345) % 2147483648
  all[i] = {key = state, name = "v" .. state % 1000, at = i}
end
table.sort(all, function(a, b) return a.key < b.key or (a.key == b.key and a.at < b.at) end)
local sum = 0
for i = 1, entries, 7 do sum = (sum * 31 + all[i].key) % 1000000007 end
print("sorted: " .. sum)
print("first and last: " .. all[1].name .. " " .. all[entries].name)

local by_name = {}
for _, one in ipairs(all) do
  by_name[one.name] = by_name[one.name] or {}
  table.insert(by_name[one.name], one)
end
local longest = ""
for name, list in pairs(by_name) do
  if longest == "" or #list > #by_name[longest] or (#list == #by_name[longest] and name < longest) then longest = name end
end
print("most often: " .. longest .. " " .. #by_name[longest])
