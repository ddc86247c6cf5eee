/* SPDX-License-Identifier: Apache-2.0
 * Text → text without secrets, in two passes. The first finds values that are known to be secret, in all
 * forms that programs write. The second finds patterns: passwords in URLs, tokens of AWS, EKS and Kubernetes,
 * private keys, values of names like "password", variables of units. It rather hides too much. */
#include "redact/scrub.h"

#include "doc/doc.h"
#include "doc/env-file.h"
#include "redact/secret.h"

#include <ctype.h>
#include <jansson.h>
#include <strings.h>

#define URL_USER_MAX 1024       /* of user and password in a URL */
#define LIST_MAX     8192
#define KEY_MAX      (64U << 10)

void secrets_done(Secrets *s) {
        strv_free(s->items);
        *s = (Secrets){};
}

static void add_form(Secrets *s, const char *form) {
        if (strlen(form) < SECRET_MIN)
                return;
        strv_push_at(&s->items, s->n++, xstrdup(form));
        s->sorted = false;
}

/* From the first to the last quote. */
static char *within_quotes(const char *text) {
        const char *begin = strchr(text, '"'), *end = strrchr(text, '"');
        return begin && end > begin ? xstrndup(begin + 1, (size_t)(end - begin) - 1) : xstrdup(text);
}

static char *json_escaped(const char *value) {
        json_t *json = json_string(value);
        _free_ char *quoted = json ? json_dumps(json, JSON_ENCODE_ANY) : xstrdup(value);
        json_decref(json);
        return within_quotes(quoted);
}

/* As encoding/json of Go. */
static char *html_escaped(const char *json) {
        Text t = {};
        for (const char *p = json; *p; p++)
                if (strchr("<>&", *p))
                        text_add(&t, "\\u%04x", (unsigned char)*p);
                else
                        text_add_bytes(&t, p, 1);
        return text_take(&t);
}

/* In a longer text (user:password) it begins at one of three offsets. Shared characters are left off. */
static void add_base64(Secrets *s, const char *value) {
        size_t n = strlen(value);
        for (size_t shift = 0; shift < 3 && n >= 9; shift++) {
                _free_ char *shifted = xasprintf("%.*s%s", (int)shift, "xx", value);
                _free_ char *coded = base64_encode(shifted, n + shift);
                size_t begin = (shift * 8 + 5) / 6, end = (n + shift) * 8 / 6;
                _free_ char *middle = xstrndup(coded + begin, end - begin);
                add_form(s, middle);
        }
}

static void add_value(Secrets *s, const char *value) {
        char *words[] = { (char *)value, NULL };
        _free_ char *json = json_escaped(value), *html = html_escaped(json),
                    *twice = json_escaped(json), *unit = assignment_quote("X", value),
                    *joined = assignment_join(words), *plain = percent_decoded(value),
                    *unit_value = within_quotes(unit), *joined_value = within_quotes(joined);
        _cleanup_(text_done) Text percent = {};
        text_add_encoded(&percent, value);
        const char *forms[] = { value, json, html, twice,
                                startswith(unit_value, "X=") ? unit_value + 2 : unit_value,
                                joined_value, percent.data ?: "", plain };
        if (strlen(value) < SECRET_MIN)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
                add_form(s, forms[i]);
        add_base64(s, value);
}

/* "http://user:password@proxy:3128" */
static void add_url_password(Secrets *s, const char *value) {
        const char *begin = strstr(value, "://"), *at = begin ? strrchr(begin, '@') : NULL;
        const char *colon = at ? memchr(begin + 3, ':', (size_t)(at - begin) - 3) : NULL;
        if (!colon)
                return;
        _free_ char *password = xstrndup(colon + 1, (size_t)(at - colon) - 1);
        add_value(s, password);
}

void secrets_add(Secrets *s, const char *value) {
        _free_ char *stripped = str_strip(value);
        add_value(s, value);
        add_value(s, stripped);
        add_url_password(s, value);
        for (const char *line = strchr(value, '\n') ? value : ""; *line;) {
                _free_ char *whole = str_cut(&line, "\n"), *bare = str_strip(whole);
                add_value(s, bare);
        }
}

/* By their first byte, the longer one first, so that nothing is left of two that begin alike. */
static int by_first_byte(const void *a, const void *b) {
        const char *x = *(char *const *)a, *y = *(char *const *)b;
        if (*x != *y)
                return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        size_t n = strlen(x), m = strlen(y);
        return n == m ? strcmp(x, y) : n > m ? -1 : 1;
}

static void secrets_sort(Secrets *s) {
        if (s->sorted)
                return;
        size_t kept = 0;
        if (s->n > 0)
                qsort(s->items, s->n, sizeof *s->items, by_first_byte);
        for (size_t i = 0; i < s->n; i++)
                if (kept > 0 && streq(s->items[kept - 1], s->items[i]))
                        free(s->items[i]);
                else
                        s->items[kept++] = s->items[i];
        if (s->items)
                s->items[kept] = NULL;
        s->n = kept;
        for (size_t c = 0, i = 0; c <= 256; c++) {
                while (i < s->n && (unsigned char)s->items[i][0] < c)
                        i++;
                s->first[c] = i;
        }
        s->sorted = true;
}

static size_t match_known(const Secrets *s, const char *p, size_t room) {
        for (size_t i = s->first[(unsigned char)*p]; i < s->first[(unsigned char)*p + 1]; i++) {
                size_t n = strlen(s->items[i]);
                if (n <= room && memcmp(p, s->items[i], n) == 0)
                        return n;
        }
        return 0;
}

static void scrub_known(Secrets *s, const char *text, size_t size, Text *out) {
        size_t from = 0;
        secrets_sort(s);
        for (size_t i = 0; i < size;) {
                size_t n = match_known(s, text + i, size - i);
                if (n == 0) {
                        i++;
                        continue;
                }
                text_add_bytes(out, text + from, i - from);
                text_add(out, HIDDEN);
                i += n;
                from = i;
        }
        text_add_bytes(out, text + from, size - from);
}

/* The part to hide, relative to the place of the search; size 0: nothing. */
typedef struct Span { size_t begin, size; } Span;

static size_t token_length(const char *p, size_t room) {
        size_t n = 0;
        while (n < room && (isalnum((unsigned char)p[n]) || is_char_of(p[n], "-._~+/=")))
                n++;
        return n;
}

static bool begins(const char *p, size_t room, const char *word) {
        return strlen(word) <= room && strncasecmp(p, word, strlen(word)) == 0;
}

/* "://user:password@host" → user:password */
static Span find_url_user(const char *p, size_t room) {
        Span span = { 3, 0 };
        if (!begins(p, room, "://"))
                return span;
        room = MIN(room, (size_t)URL_USER_MAX);
        for (size_t i = 3; i < room && p[i] && !strchr("/ \t\r\n\"'`<>?#\\", p[i]); i++)
                if (p[i] == '@')
                        span.size = i - 3;
        return span;
}

/* Ids of access keys (docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html), tokens for EKS,
 * JSON Web Tokens (RFC 7519). None ends before measured: the time stays linear. */
static Span find_token(const char *p, size_t room, const char **measured) {
        size_t n = 0;
        if (begins(p, room, "k8s-aws-v1."))
                return (Span){ 0, token_length(p, room) };
        if (begins(p, room, "eyJ")) {
                if (p < *measured)
                        return (Span){};
                n = token_length(p, room);
                *measured = p + n;
                return (Span){ 0, n >= 20 && memchr(p, '.', n) ? n : 0 };
        }
        if (room < 20 || (strncmp(p, "AKIA", 4) != 0 && strncmp(p, "ASIA", 4) != 0))
                return (Span){};
        while (n < room && ((p[n] >= 'A' && p[n] <= 'Z') || is_digit(p[n])))
                n++;
        return (Span){ 0, n >= 16 ? n : 0 };
}

/* After an Authorization header scheme, unless it looks like a word of a sentence. */
static Span find_credentials(const char *p, size_t room) {
        static const char schemes[][20] = { "Bearer ", "Basic ", "AWS4-HMAC-SHA256 " };
        for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
                size_t n = strlen(schemes[i]);
                if (!begins(p, room, schemes[i]))
                        continue;
                size_t size = i == 2 ? strcspn(p + n, "\r\n\"\\") : token_length(p + n, room - n);
                for (size_t k = 1; k < size; k++)
                        if (size >= 8 && !(p[n + k] >= 'a' && p[n + k] <= 'z') && p[n + k] != '.')
                                return (Span){ n, MIN(size, room - n) };
        }
        return (Span){};
}

/* PEM (RFC 7468); up to KEY_MAX where its end is missing. */
static Span find_private_key(const char *p, size_t room) {
        static const char end[] = "-----END ", mark[] = "PRIVATE KEY-----";
        if (!begins(p, room, "-----BEGIN "))
                return (Span){};
        const char *key = memmem(p, MIN(room, (size_t)64), mark, strlen(mark));
        if (!key)
                return (Span){};
        size_t from = (size_t)(key - p) + strlen(mark);
        const char *stop = memmem(p + from, room - from, end, strlen(end));
        return (Span){ from, stop ? (size_t)(stop - p) - from : MIN(room - from, (size_t)KEY_MAX) };
}

/* The name before text[at], a '=' or ':'. Blanks, quotes and backslashes may come between. */
static Span name_before(const char *text, size_t at) {
        size_t end = at, begin;
        while (end > 0 && at - end < 8 && strchr(" \t\"'\\", text[end - 1]))
                end--;
        begin = end;
        while (begin > 0 && end - begin < 64 &&
               (isalnum((unsigned char)text[begin - 1]) || strchr("_-.", text[begin - 1])))
                begin--;
        return (Span){ begin, end - begin };
}

/* "/etc/passwd: no such file", but not "example.com/password: x". */
static bool is_path(const char *text, size_t begin) {
        while (begin > 0 && (isalnum((unsigned char)text[begin - 1]) || strchr("/_-.", text[begin - 1])))
                begin--;
        return text[begin] == '/';
}

static bool begins_line(const char *text, size_t at) {
        while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'))
                at--;
        return at == 0 || text[at - 1] == '\n';
}

/* Of a quote with the backslashes in front of it; 0: no quote. */
static size_t mark_length(const char *p, size_t room) {
        size_t n = 0;
        while (n < room && p[n] == '\\')
                n++;
        return n < room && (p[n] == '"' || p[n] == '\'') ? n + 1 : 0;
}

/* The opening mark closes the text, backslashes included. A text that was cut off ends with its line. */
static size_t quoted_length(const char *p, size_t room, const char *mark, size_t n) {
        for (size_t i = 0; i + n <= room; i++) {
                if (p[i] == '\n' || memcmp(p + i, mark, n) == 0)
                        return i;
                i += n == 1 && p[i] == '\\';
        }
        return room;
}

/* ["a", "b]"], or the rest of its line; 0: it has no text. */
static size_t list_length(const char *p, size_t room) {
        bool texts = false;
        room = MIN(room, (size_t)LIST_MAX);
        for (size_t i = 1; i < room; i++) {
                size_t mark = mark_length(p + i, room - i);
                if (p[i] == ']')
                        return texts ? i + 1 : 0;
                if (mark == 0)
                        continue;
                texts = true;
                i += mark;
                i += quoted_length(p + i, room - i, p + i - mark, mark) + mark - 1;
        }
        return texts ? strcspn(p, "\n") : 0;
}

#define BARE_ENDS " \t\r\n\"',;&)]}<>|"

static size_t bare_length(const char *p, size_t room, const char *ends) {
        size_t i = 0;
        while (i < room && !strchr(ends, p[i]))
                i += p[i] == '\\' && i + 1 < room ? 2 : 1;
        return MIN(i, room);
}

static bool is_harmless(const char *p, size_t n) {
        _free_ char *word = xstrndup(p, n);
        return strlen(word) == n && ONE_OF(word, "null", "true", "false", "nil", HIDDEN, "(hidden");
}

/* The value behind the '=' or ':' at text[at]: "x", 'x', \"x\", x, ["x", "y"]. */
static Span find_assigned(const char *text, size_t at, size_t size) {
        const char *p = text + at;
        size_t room = size - at, i = 1, mark, n;
        Span name = name_before(text, at);
        if (name.size == 0 || !name_is_secret(text + name.begin, name.size, "") ||
            (*p == ':' && is_path(text, name.begin)))
                return (Span){};
        while (i < room && (p[i] == ' ' || p[i] == '\t' || p[i] == '='))
                i++;
        /* find_private_key() hides all lines of a key */
        if (!name_is_secret(text + name.begin, name.size, p + i) || begins(p + i, room - i, "-----BEGIN"))
                return (Span){};
        if (i < room && p[i] == '[')
                return (Span){ i, list_length(p + i, room - i) };
        mark = mark_length(p + i, room - i);
        const char *value = p + i + mark, *ends = BARE_ENDS;
        if (at >= 13 && begins(text + at - 13, 13, "authorization"))
                ends = "\r\n\"";
        else if (*p == ':' && p[1] == ' ' && begins_line(text, name.begin))
                ends = "\r\n";
        if (mark > 0 && begins(value, room - i - mark, "-----BEGIN"))
                return (Span){};
        n = mark > 0 ? quoted_length(value, room - i - mark, p + i, mark)
                     : bare_length(value, room - i, ends);
        bool keeps = (mark == 0 && strchr("{[", *value)) || is_harmless(value, n);
        return (Span){ i + mark, keeps ? 0 : n };
}

/* "NAME=(hidden)" of mask.c */
static bool is_hidden_already(const char *p, size_t n) {
        size_t name = 0;
        while (name < n && (isalnum((unsigned char)p[name]) || p[name] == '_'))
                name++;
        return n - name == strlen("=" HIDDEN) && memcmp(p + name, "=" HIDDEN, n - name) == 0;
}

size_t environment_begin(const char *line) {
        const char *p = line + strspn(line, " \t"), *name = startswith(p, "Default") ? p + 7 : p;
        const char *equals = startswith(name, "Environment") ? name + 11 + strspn(name + 11, " \t") : "";
        return *equals == '=' ? (size_t)(equals - line) + 1 + strspn(equals + 1, " \t") : 0;
}

/* Of "Environment=", with continued lines. */
static Span find_environment(const char *p, size_t room) {
        size_t n = environment_begin(p), end = n;
        while (n > 0 && end < room && (p[end] != '\n' || p[end - 1] == '\\'))
                end++;
        return (Span){ n, is_hidden_already(p + n, end - n) ? 0 : end - n };
}

/* "--bootstrap-token abc": only of options, or it would hide words of sentences. */
static Span find_option_value(const char *text, size_t at, size_t size) {
        size_t begin = at;
        while (begin > 0 && at - begin < 64 &&
               (isalnum((unsigned char)text[begin - 1]) || text[begin - 1] == '-'))
                begin--;
        if (at - begin < 3 || strncmp(text + begin, "--", 2) != 0 ||
            at + 1 >= size || text[at + 1] == '-' ||
            !name_is_secret(text + begin, at - begin, text + at + 1))
                return (Span){};
        size_t n = bare_length(text + at + 1, size - at - 1, BARE_ENDS);
        return (Span){ 1, is_harmless(text + at + 1, n) ? 0 : n };
}

static Span find_pattern(const char *text, size_t at, size_t size, const char **measured) {
        const char *p = text + at;
        size_t room = size - at;
        Span span = {};
        bool begins_word = at == 0 || !isalnum((unsigned char)p[-1]);
        if (at == 0 || p[-1] == '\n')
                span = find_environment(p, room);
        if (span.size == 0 && *p == ':')
                span = find_url_user(p, room);
        if (span.size == 0 && (*p == ':' || *p == '='))
                span = find_assigned(text, at, size);
        if (span.size == 0 && *p == ' ')
                span = find_option_value(text, at, size);
        if (span.size == 0 && *p == '-')
                span = find_private_key(p, room);
        if (span.size > 0 || !strchr("AaeKkBb", *p) || !begins_word)
                return span;
        span = find_token(p, room, measured);
        return span.size > 0 ? span : find_credentials(p, room);
}

static void scrub_patterns(const char *text, size_t size, Text *out) {
        const char *measured = text;
        size_t from = 0;
        for (size_t i = 0; i < size;) {
                Span span = text[i] ? find_pattern(text, i, size, &measured) : (Span){};
                if (span.size == 0) {
                        i++;
                        continue;
                }
                const char *value = text + i + span.begin;
                size_t mark = *value == '[' ? mark_length(value + 1, span.size - 1) : 0;
                text_add_bytes(out, text + from, i + span.begin - from);
                if (mark > 0)           /* escaped quotes stay escaped */
                        text_add(out, "[%.*s" HIDDEN "%.*s]", (int)mark, value + 1, (int)mark, value + 1);
                else
                        text_add(out, *value == '[' ? "[\"" HIDDEN "\"]" : HIDDEN);
                i += span.begin + span.size;
                from = i;
        }
        text_add_bytes(out, text + from, size - from);
}

char *secrets_scrub(Secrets *s, const char *text, size_t size, size_t *ret_size) {
        _cleanup_(text_done) Text known = {};
        Text out = {};
        scrub_known(s, text, size, &known);
        scrub_patterns(known.data, known.size, &out);
        *ret_size = out.size;
        return text_take(&out);
}

char *secrets_hide(Secrets *s, const char *message) {
        _cleanup_(text_done) Text known = {};
        Text out = {};
        scrub_known(s, message, strlen(message), &known);
        const char *text = known.data ?: "";
        size_t own = strcspn(text, "\"\n");
        text_add_bytes(&out, text, own);
        scrub_patterns(text + own, known.size - own, &out);
        return text_take(&out);
}
