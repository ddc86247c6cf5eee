/* SPDX-License-Identifier: Apache-2.0
 * The configuration by itself: is it valid, what do all sources come to, what may it hold? */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

int command_config_check(Run *run) {
        tell_signatures(run);
        return config_check_expression(run->config, &run->diag);
}

int command_config_dump(Run *run) {
        return output_json(run->config->document, run->options.output_file, &run->diag);
}

int command_config_schema(Run *run) {
        _cleanup_(json_decrefp) json_t *schema = config_schema();
        return output_json(schema, run->options.output_file, &run->diag);
}
