/* SPDX-License-Identifier: Apache-2.0
 * The checks that all looks at needs share. */
#include "doctor/look.h"

#include "base/str.h"

#include <errno.h>

Check *look_fault(Look *l, const Need *need, const char *code, const char *found) {
        return checks_add(l->checks, need->optional ? CHECK_WARNING : CHECK_FAILED, code, need->name, found);
}

void look_well(Look *l, const Need *need, const char *code, const char *found) {
        Check *c = checks_add(l->checks, CHECK_OK, code, need->name, found);
        check_tell(c, need, "%s", "");
        RENEW(c->text, NULL);
}

static bool begins_with(const char *name, const char *const *prefixes) {
        for (; *prefixes; prefixes++)
                if (startswith(name, *prefixes))
                        return true;
        return false;
}

bool look_is_later(Look *l, const Need *need, const char *code) {
        /* The container toolkit is versioned apart from the driver, so the image itself has it. */
        static const char *const driver[] = { "nvidia",      "nv-",    "libnvidia",
                                              "libcuda",     "nvlsm",  "neuron",
                                              "set-nvidia-", "gdrdrv", "fabricmanager.cfg",
                                              NULL };
        static const char *const toolkit[] = { "nvidia-ctk", "nvidia-container-", "nvidia-cdi-",
                                               "libnvidia-container", NULL };
        const char *slash = strrchr(need->name, '/'), *base = slash ? slash + 1 : need->name;
        const char *loader = begins_with(base, driver) && !begins_with(base, toolkit)
                                     ? image_loader(l->image, need->name)
                                     : NULL;
        if (!loader || streq(loader, need->name))
                return false;
        check_tell(checks_add(l->checks, CHECK_UNKNOWN, code, need->name, NULL), need,
                   "%s brings it when the image boots: look at a machine that has booted from it", loader);
        return true;
}

bool look_is_closed(Look *l, const Need *need, const char *code, const char *path) {
        _cleanup_(close_fd) int fd = image_file(l->root, path);
        if (fd != -EACCES && fd != -EPERM)
                return false;
        check_tell(checks_add(l->checks, CHECK_UNKNOWN, code, need->name, NULL), need,
                   "%s cannot be looked at: %s; root can", path, strerror(-fd));
        return true;
}
