/* SPDX-License-Identifier: Apache-2.0
 * The two schemas of conf/, packed: no boot needs them or the texts in them. tests/helpers/schema-tool.c
 * makes them from the field table. */
#include "config/fields.h"

#include "base/json.h"

json_t *config_schema(bool strict) {
        static Table table = { config_schemas, &config_schemas_size, NULL };
        const char *text = table_text(&table);
        return json_loads(strict ? text + strlen(text) + 1 : text, 0, NULL);
}
