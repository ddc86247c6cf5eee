/* SPDX-License-Identifier: Apache-2.0
 * Which settings of the user hold secrets: by keys, by ends of names, and by passwords in URLs. */
#include "redact/secret.h"

#include "base/str.h"

#include <strings.h>

/* registry.headers and registry.configs.*.auth of containerd; headers of the static pod URL of kubelet;
 * process.env of an OCI spec. */
static const char secret_keys[][20] = { "identitytoken", "header", "headers", "staticPodURLHeader",
                                        "env" };
/* X-Amz-Security-Token, AWS_SECRET_ACCESS_KEY, client-key-data */
static const char secret_ends[][16] = {
        "tokens",     "secrets",   /* these two may also count something: tokens=3 */
        "password",   "passwd",    "passphrase", "pass",       "pwd",        "token",      "secret",
        "access_key", "accesskey", "apikey",     "api_key",    "api-key",    "private_key", "privatekey",
        "secret_key", "secretkey", "secret-key", "credential", "credentials", "signature", "authorization",
        "cookie",     "key-data",  "auth",
};

static bool is_number(const char *value) {
        size_t n = strspn(value, "0123456789.");
        return n > 0 && (!value[n] || strchr(" \t\r\n,;&)}]\"'", value[n]));
}

bool name_is_secret(const char *name, size_t size, const char *value) {
        for (size_t i = 0; i < ARRAY_SIZE(secret_ends); i++) {
                size_t n = strlen(secret_ends[i]);
                if (size >= n && strncasecmp(name + size - n, secret_ends[i], n) == 0)
                        return i >= 2 || !is_number(value);
        }
        return false;
}

bool key_is_secret(const char *key, const json_t *value) {
        if (streq(key, "authorization") && json_is_object(value))       /* of kubelet: not a header */
                return false;
        return ANY(k, secret_keys, ARRAY_SIZE(secret_keys), strcasecmp(key, *k) == 0) ||
               name_is_secret(key, strlen(key), json_is_number(value) ? "0" : "");
}

/* "://user:password@host"; an '@' in the path does not count (RFC 3986, section 3.2) */
bool text_holds_password(const char *text) {
        for (const char *p = strstr(text, "://"); p; p = strstr(p + 3, "://"))
                if (p[3 + strcspn(p + 3, "@/?# \t\r\n\"'\\")] == '@')
                        return true;
        return false;
}

bool key_holds_password(const char *key) {
        size_t size;
        const char *user = name_user(key, &size);
        return size > 0 && (user > key || memchr(user, ':', size));
}

/* The decoders bound the depth (DOC_MAX_DEPTH). */
bool json_holds_secret(const json_t *json) {
        const char *key;
        json_t *value;
        size_t i;
        json_object_foreach((json_t *)json, key, value)
                if (key_is_secret(key, value) || key_holds_password(key) || json_holds_secret(value))
                        return true;
        json_array_foreach(json, i, value)
                if (json_holds_secret(value))
                        return true;
        return json_is_string(json) && text_holds_password(json_string_value(json));
}

bool words_hold_secret(char *const *words) {
        STRV_FOREACH(w, words) {
                size_t n = strcspn(*w, "=");
                const char *value = (*w)[n] ? *w + n + 1 : w[1] ?: "-";
                bool has_value = (*w)[n] || *value != '-';
                bool is_switch = streq(value, "true") || streq(value, "false");
                if (text_holds_password(*w) ||
                    (**w == '-' && name_is_secret(*w, n, value) && has_value && !is_switch))
                        return true;
        }
        return false;
}
