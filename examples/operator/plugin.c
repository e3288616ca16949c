/* What `hinterland serve --operators DIRECTORY` loads:
 *
 *     cc -O2 -shared -fPIC plugin.c -o DIRECTORY/longest_trips.so
 */
#include "longest_trips.h"

HL_OPERATOR_PLUGIN = LONGEST_TRIPS;
