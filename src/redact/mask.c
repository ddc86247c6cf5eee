/* SPDX-License-Identifier: Apache-2.0
 * Settings of the user, and files made of them, without the values of secret keys (redact/secret.c). */
#include "redact/mask.h"

#include "base/json.h"
#include "doc/doc.h"
#include "doc/env-file.h"
#include "redact/secret.h"

#include <errno.h>

/* Not secret: hidden in the environment like all variables, but not searched for in other texts. */
static const char plain_variables[] =
        " AWS_REGION AWS_DEFAULT_REGION AWS_RETRY_MODE AWS_MAX_ATTEMPTS AWS_CA_BUNDLE"
        " AWS_STS_REGIONAL_ENDPOINTS NO_PROXY no_proxy PATH LANG TERM TZ HOME ";

static bool is_plain(const char *name) {
        _free_ char *word = xasprintf(" %s ", name);
        return strstr(plain_variables, word) || startswith(name, "AWS_USE_") ||
               startswith(name, "AWS_EC2_METADATA_") || startswith(name, "AWS_ENDPOINT_URL");
}

static void note_variable(Secrets *s, const char *name, const char *value) {
        if (!is_plain(name))
                secrets_add(s, value);
}

/* ---- JSON ---- */

/* "auth" of containerd is "user:password" in base64. */
static void note_encoded(Secrets *s, const char *text) {
        _free_ char *plain = NULL;
        size_t size;
        if (base64_decode(text, strlen(text), true, &plain, &size) < 0 || strlen(plain) != size)
                return;
        const char *colon = strchr(plain, ':');
        if (colon)
                secrets_add(s, colon + 1);
}

typedef enum Hide { HIDE_NOTHING, HIDE_ALL, HIDE_VARIABLES } Hide;

/* "NAME=value" of process.env keeps its name; other texts are hidden whole. */
static json_t *mask_text(Secrets *s, const char *text, Hide hide) {
        const char *equals = strchr(text, '=');
        if (hide != HIDE_VARIABLES || !equals || equals == text ||
            text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] != '=') {
                secrets_add(s, text);
                note_encoded(s, text);
                return json_string(HIDDEN);
        }
        _free_ char *name = xstrndup(text, (size_t)(equals - text)),
                    *hidden = xasprintf("%s=" HIDDEN, name);
        if (is_plain(name))
                return json_string(text);
        secrets_add(s, equals + 1);
        return json_string(hidden);
}

static json_t *mask_value(Secrets *s, const json_t *json, Hide hide);

/* The key without any password in it; the caller frees it. */
static char *mask_key(Secrets *s, const char *key) {
        size_t size;
        const char *user = name_user(key, &size);
        if (!key_holds_password(key))
                return xstrdup(key);
        const char *colon = memchr(user, ':', size);
        _free_ char *all = xstrndup(user, size);
        secrets_add(s, colon ? all + (colon + 1 - user) : all);
        return xasprintf("%.*s" HIDDEN "%s", (int)(user - key), key, user + size);
}

static json_t *mask_object(Secrets *s, const json_t *object, Hide hide) {
        json_t *copy = json_object(), *value;
        const char *key;
        json_object_foreach((json_t *)object, key, value) {
                Hide below = hide                         ? hide
                             : !key_is_secret(key, value) ? HIDE_NOTHING
                             : streq(key, "env")          ? HIDE_VARIABLES
                                                          : HIDE_ALL;
                _free_ char *shown = mask_key(s, key);
                json_object_set_new_nocheck(copy, shown, mask_value(s, value, below));
        }
        return copy;
}

/* A bare URL with a password; secrets_scrub() hides it later. */
static json_t *note_url(Secrets *s, const json_t *text) {
        const char *url = json_string_value(text);
        if (text_holds_password(url) && !strpbrk(url, " \t\r\n"))
                secrets_add(s, url);
        return json_deep_copy(text);
}

/* The parsers bound the depth. */
static json_t *mask_value(Secrets *s, const json_t *json, Hide hide) {
        const json_t *item;
        size_t i;
        if (json_is_object(json))
                return mask_object(s, json, hide);
        if (json_is_array(json)) {
                json_t *copy = json_array();
                json_array_foreach(json, i, item)
                        json_array_append_new(copy, mask_value(s, item, hide));
                return copy;
        }
        if (json_is_string(json))
                return hide && json_string_length(json) > 0 ? mask_text(s, json_string_value(json), hide)
                                                            : note_url(s, json);
        if (!hide || !json_is_number(json))
                return json_deep_copy(json);
        _free_ char *number = json_dumps(json, JSON_ENCODE_ANY);
        return mask_text(s, number, HIDE_ALL);
}

json_t *mask_json(Secrets *s, const json_t *json) {
        return mask_value(s, json, HIDE_NOTHING);
}

/* ---- NodeConfig ---- */

static void hide_environment(Secrets *s, json_t *environment) {
        const char *service, *name;
        json_t *variables, *value;
        json_object_foreach(environment, service, variables)
                json_object_foreach(variables, name, value) {
                        if (json_is_string(value))
                                note_variable(s, name, json_string_value(value));
                        json_object_set_new_nocheck(variables, name, json_string(HIDDEN));
                }
}

/* "--bootstrap-token abc", in one flag or in two, or with '='. Other texts may repeat the value alone. */
static bool note_words(Secrets *s, const char *line, bool tells) {
        _strv_ char **words = assignment_split(line);
        STRV_FOREACH(w, words) {
                size_t n = strcspn(*w, "=");
                if (tells && **w != '-')
                        secrets_add(s, *w);
                tells = name_is_secret(*w, n, (*w)[n] ? *w + n + 1 : w[1] ?: "");
                if (tells && (*w)[n])
                        secrets_add(s, *w + n + 1);
                tells = tells && !(*w)[n];
        }
        return tells;
}

static void hide_toml(Secrets *s, json_t *containerd) {
        const json_t *config = json_object_get(containerd, "config");
        _free_ char *masked = NULL;
        size_t size;
        if (!json_is_string(config))
                return;
        int r = mask_file(s, MASK_TOML, json_string_value(config), json_string_length(config), &masked,
                          &size);
        json_object_set_new(containerd, "config", json_string(r < 0 ? HIDDEN : masked));
}

json_t *mask_config(Secrets *s, const json_t *document) {
        json_t *copy = mask_json(s, document), *spec = json_object_get(copy, "spec"), *flag;
        json_t *its_spec = json_object_get(document, "spec"),
               *environment = json_object_get(json_object_get(its_spec, "instance"), "environment");
        _cleanup_(json_decrefp) json_t *hidden = json_deep_copy(environment);
        bool tells = false;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(its_spec, "kubelet"), "flags"), i, flag)
                tells = note_words(s, json_string_value(flag) ?: "", tells);
        hide_toml(s, json_object_get(spec, "containerd"));
        hide_environment(s, hidden);
        if (hidden)
                json_object_set(json_object_get(spec, "instance"), "environment", hidden);
        return copy;
}

/* ---- files ---- */

static json_t *parse_yaml(const char *text, size_t size) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag ignored = {};
        Blob blob = { .at = { .line = 1 }, .data = xmemdup(text, size), .size = size };
        json_t *json = NULL;
        int r = yaml_parse(&blob, &documents, &ignored);
        if (r >= 0 && documents.n == 1 && yaml_to_json(documents.items[0].root, &json) < 0)
                json = NULL;
        free(blob.data);
        return json;
}

static json_t *read_shape(MaskFormat format, const char *text, size_t size) {
        const char *why;
        json_t *json = NULL;
        unsigned line;
        if (format == MASK_YAML)
                return parse_yaml(text, size);
        if (format == MASK_TOML)
                return toml_parse(text, size, &json, &line, &why) < 0 ? NULL : json;
        json = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
        /* jansson has no integer 18446744073709551615, which a runtime spec may have for "no limit" */
        return json ?: json_loadb(text, size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* Writes a line for each variable. */
static void hide_variables(Secrets *s, const char *setting, const char *value, Text *out) {
        _strv_ char **words = assignment_split(value);
        STRV_FOREACH(w, words) {
                size_t n = strcspn(*w, "=");
                _cleanup_(text_done) Text plain = {};
                for (const char *p = *w + n + ((*w)[n] == '='); *p; p += p[0] == '%' && p[1] == '%' ? 2 : 1)
                        text_add_bytes(&plain, p, 1);
                _free_ char *name = xstrndup(*w, n);
                note_variable(s, name, plain.data ?: "");
                text_add(out, "%.*s%s=" HIDDEN "\n", (int)(value - setting), setting, name);
        }
}

static char *mask_unit(Secrets *s, const char *text) {
        Text out = {};
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, "\n");
                while (n > 0 && p[n] && p[n - 1] == '\\')       /* continued */
                        n += 1 + strcspn(p + n + 1, "\n");
                _free_ char *line = xstrndup(p, n);
                size_t begin = environment_begin(line);
                for (char *end = strstr(line, "\\\n"); begin && end; end = strstr(end, "\\\n"))
                        end[0] = end[1] = ' ';  /* systemd.syntax(7): a blank */
                if (begin)
                        hide_variables(s, line, line + begin, &out);
                else
                        text_add(&out, "%s\n", line);
                p += n + (p[n] == '\n');
        }
        return text_take(&out);
}

static char *mask_variables(Secrets *s, const char *text) {
        Text out = {};
        for (const char *p = text; *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n')) {
                _free_ char *name = xstrndup(p, strcspn(p, "=\n")),
                            *value = assignment_in_environment(text, name);
                if (value)
                        note_variable(s, name, value);
                text_add(&out, "%s=" HIDDEN "\n", name);
        }
        return text_take(&out);
}

int mask_file(Secrets *s, MaskFormat format, const char *text, size_t size, char **ret, size_t *ret_size) {
        char *masked = NULL;
        if (format == MASK_ARGUMENTS) {
                _free_ char *line = assignment_in_environment(text, "NODEADM_KUBELET_ARGS");
                (void)note_words(s, line ?: "", false);
        } else if (format == MASK_UNIT)
                masked = mask_unit(s, text);
        else if (format == MASK_VARIABLES)
                masked = mask_variables(s, text);
        else if (format != MASK_TEXT) {
                _cleanup_(json_decrefp) json_t *json = read_shape(format, text, size);
                _cleanup_(json_decrefp) json_t *hidden = json ? mask_json(s, json) : NULL;
                if (!json)
                        return -EBADMSG;
                if (!json_equal(json, hidden) && format == MASK_TOML && toml_format(hidden, &masked) < 0)
                        return -EBADMSG;
                if (!json_equal(json, hidden) && !masked)
                        masked = json_text(hidden, 4, false);
        }
        *ret_size = masked ? strlen(masked) : size;
        *ret = masked ?: xmemdup(text, size);
        return 0;
}

/* ---- free-form parts ---- */

/* A number, a quantity, a short word or a path: texts are full of them, and they are rarely secret. */
static bool is_common(const char *text) {
        const char *unit = text + strspn(text, "-.,:0123456789");
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-_./:");
        return ONE_OF(unit, "", "m", "s", "h", "ms", "%", "k", "M", "G", "Ki", "Mi", "Gi") ||
               (!text[n] && (n <= 12 || *text == '/'));
}

/* Also notes the value behind '=', with and without quotes, as kubelet logs its flags. */
static json_t *hide_free_text(Secrets *s, const char *text) {
        const char *equals = strchr(text, '=');
        _free_ char *value = equals ? str_strip(equals + 1) : NULL;
        size_t n = value ? strlen(value) : 0;
        if (is_common(text))
                return json_string(text);
        secrets_add(s, text);
        if (value && !is_common(value))
                secrets_add(s, value);
        if (n > 2 && value[0] == value[n - 1] && strchr("\"'", *value)) {
                value[n - 1] = 0;
                secrets_add(s, value + 1);
        }
        return json_string(HIDDEN);
}

/* Keys, numbers and switches stay. */
static json_t *hide_free(Secrets *s, const json_t *json) {
        const char *key;
        json_t *copy, *value;
        size_t i;
        if (json_is_string(json))
                return hide_free_text(s, json_string_value(json));
        if (!json_is_object(json) && !json_is_array(json))
                return json_deep_copy(json);
        copy = json_is_object(json) ? json_object() : json_array();
        json_object_foreach((json_t *)json, key, value)
                json_object_set_new_nocheck(copy, key, hide_free(s, value));
        json_array_foreach(json, i, value)
                json_array_append_new(copy, hide_free(s, value));
        return copy;
}

static json_t *hide_free_toml(Secrets *s, const char *text) {
        _cleanup_(json_decrefp) json_t *json = read_shape(MASK_TOML, text, strlen(text)),
                               *hidden = json ? hide_free(s, json) : NULL;
        _free_ char *masked = NULL;
        return json_string(hidden && toml_format(hidden, &masked) >= 0 ? masked : HIDDEN);
}

json_t *mask_config_whole(Secrets *s, const json_t *document) {
        static const char *const places[][2] = {
                { "kubelet", "config" }, { "kubelet", "flags" }, { "kubelet", "maxPodsExpression" },
                { "containerd", "config" }, { "containerd", "baseRuntimeSpec" }, { "instance", "sysctl" },
        };
        json_t *copy = mask_config(s, document);
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                json_t *into = json_object_get(json_object_get(copy, "spec"), places[i][0]);
                const json_t *given = json_object_get(
                        json_object_get(json_object_get(document, "spec"), places[i][0]), places[i][1]);
                if (given)
                        json_object_set_new(into, places[i][1],
                                            i == 3 && json_is_string(given)
                                                    ? hide_free_toml(s, json_string_value(given))
                                                    : hide_free(s, given));
        }
        return copy;
}
