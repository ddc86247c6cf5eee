/* SPDX-License-Identifier: Apache-2.0
 * The feature gates that kubelet knows, by version: conf/feature-gates.csv. It ends at its start with one
 * that it does not know, and with one that is locked to the other value (k8s.io/component-base
 * featuregate/feature_gate.go:SetFromMap). */
#include "base/str.h"
#include "config/kubelet.h"

#include <ctype.h>

static unsigned two_digits(const char *s) {
        return (unsigned)(s[0] - '0') * 10 + (unsigned)(s[1] - '0');
}

/* A row of the table: fixed cells and the name, the states, what it needs. */
typedef struct Row { unsigned from, until; const char *name, *states, *needs; } Row;

static bool row_next(const char **at, Row *ret) {
        if (!**at)
                return false;
        *ret = (Row){ .from = two_digits(*at), .until = two_digits(*at + 2), .name = *at + 4 };
        ret->states = ret->name + strlen(ret->name) + 1;
        ret->needs = ret->states + strlen(ret->states) + 1;
        *at = ret->needs + strlen(ret->needs) + 1;
        return true;
}

static bool row_find(const char *name, Row *ret) {
        for (const char *at = kubelet_known_gates; row_next(&at, ret);)
                if (streq(ret->name, name))
                        return true;
        return false;
}

bool kubelet_gate_find(const char *name, unsigned minor, KubeletGate *ret) {
        Row row;
        if (!row_find(name, &row) || minor < row.from || (row.until && minor >= row.until))
                return false;
        char letter = row.states[2];
        for (const char *state = row.states; *state && two_digits(state) <= minor; state += 3)
                letter = state[2];
        *ret = (KubeletGate){ .name = row.name, .on = isupper((unsigned char)letter),
                              .locked = tolower((unsigned char)letter) == 'l' };
        return true;
}

bool kubelet_gate_versions(const char *name, unsigned *ret_from, unsigned *ret_until) {
        Row row;
        if (!row_find(name, &row))
                return false;
        *ret_from = row.from;
        *ret_until = row.until;
        return true;
}

const char *kubelet_gate_nearest(const char *name) {
        _cleanup_(freep) const char **names = NULL;
        size_t n = 0;
        Row row;
        for (const char *at = kubelet_known_gates; row_next(&at, &row);) {
                names = xrealloc(names, n + 2, sizeof *names);
                names[n++] = row.name;
                names[n] = NULL;
        }
        return nearest_name(name, names);
}
