/* lookup.so: lookups in hl::far::table, for `hinterland serve --operators`. */
#include "hinterland/table.h"

HL_OPERATOR_PLUGIN = HL_TABLE_LOOKUP;
