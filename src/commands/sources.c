/* SPDX-License-Identifier: Apache-2.0
 * Command line → sources. Without any, those of the boot: `plan` and `init` by hand follow the units. */
#include "commands/run.h"
#include "commands/sources.h"

#include "base/log.h"
#include "base/str.h"
#include "report/report.h"

#include <errno.h>

#define IMDS_SOURCE "imds://user-data"
#define FAILURE_UNITS "NODESTRAP_FAILURE_POLICY"        /* of units/nodestrap-{config,run}.service */
#define SYS_VENDOR  "/sys/devices/virtual/dmi/id/sys_vendor"

bool run_is_by_hand(const Run *run) {
        return run->sources->by_default && run->options.name == PROGRAM_NODESTRAP && !verdict_is_of_unit();
}

bool run_is_of_units(const Run *run) {
        return run->options.name == PROGRAM_NODESTRAP && verdict_is_of_unit() && getenv(FAILURE_UNITS);
}

/* Without a vendor, or on Xen, this may be EC2
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html). */
static int expect_imds(Run *run) {
        if (PORTABLE)
                return diag_error(&run->diag, -ENOTCONN, CAUSE_SOURCE,
                                  "no configuration: this build does not ask the metadata service; name a "
                                  "file: nodestrap %s -c file://PATH",
                                  run->options.command->words);
        _free_ char *vendor = NULL;
        bool foreign = root_read_line(run->root, SYS_VENDOR, &vendor) >= 0 && *vendor &&
                       !streq(vendor, "Amazon EC2") && !streq(vendor, "Xen");
        if (!foreign || !run_is_by_hand(run) || getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT") ||
            getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"))
                return 0;
        return diag_error(&run->diag, -ENODEV, CAUSE_SOURCE,
                          "no configuration: this machine is not an EC2 instance (" SYS_VENDOR
                          ": %s) and has no user data; name a file: nodestrap %s -c file://PATH",
                          vendor, run->options.command->words);
}

int run_choose_sources(Run *run) {
        Options *o = &run->options;
        if (o->each)
                return 0;
        run->step = "source";
        run->sources->by_default = !o->sources;
        /* the sources of an image are not on the machine that inspects it */
        bool image = o->command->sample && !root_is_host(run->root);
        if (run->sources->by_default && o->name == PROGRAM_NODESTRAP && !image) {
                int r = source_list_read(run->root, &run->sources->list, &run->diag);
                if (r < 0)
                        return r;
        }
        if (run->sources->list.from) {
                _free_ char *joined = strv_join(run->sources->list.uris, " ");
                log_info("Reading %s, as %s says.", joined, run->sources->list.from);
                o->sources = TAKE_PTR(run->sources->list.uris);
                bool takes_cache = o->command->flags & UINT64_C(1) << FLAG_CONFIG_CACHE;
                if (!run->cache && run->sources->list.cache && takes_cache)
                        run->cache = root_absolute(run->root, run->sources->list.cache);
        } else if (run->sources->by_default && !o->command->sample) {
                strv_add(&o->sources, IMDS_SOURCE);
                int r = expect_imds(run);
                if (r < 0)
                        return r;
        }
        if (run_changes_machine(run) && verdict_is_of_unit() &&
            source_list_record(run->root, o->sources, run->cache) < 0)
                log_debug("%s cannot be written", SOURCES_OF_BOOT);
        return 0;
}
