/* SPDX-License-Identifier: Apache-2.0
 * The answers of the metadata service about network interfaces → Enis. The service throttles, and 32
 * interfaces may come up at once, so each request has a reason here
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html). */
#include "nic/enis.h"

#include "base/json.h"
#include "base/str.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <strings.h>

#define MACS           "meta-data/network/interfaces/macs/"
#define MAX_INTERFACES 1024
#define MAX_ADDRESSES  1024             /* of one interface; EC2 allows dozens */
#define MAX_NUMBER     255              /* of a card or device */
#define FEW_INTERFACES 4
/* no address for longer: EFA only, so not asked again */
#define ADDRESS_USEC   (8 * USEC_PER_SEC)
#define PARTIAL_USEC   (60 * USEC_PER_SEC)      /* an older partial round starts over */
#define DEVICE_BIT     1u               /* bits of Eni.answered; the lists follow */
#define CARD_BIT       2u
#define LIST_BIT(i)    (4u << (i))

/* The lists of an interface: key of the service, key in the snapshot, and type. */
static const struct EniList {
        const char *key, *name;
        size_t offset;
        int family;
        bool prefixes;
} eni_lists[] = {
        { "local-ipv4s", "ipv4s", offsetof(Eni, ipv4s), AF_INET, false },
        { "ipv6s", "ipv6s", offsetof(Eni, ipv6s), AF_INET6, false },
        { "ipv4-prefix", "ipv4Prefixes", offsetof(Eni, ipv4_prefixes), AF_INET, true },
        { "ipv6-prefix", "ipv6Prefixes", offsetof(Eni, ipv6_prefixes), AF_INET6, true },
};
static const struct EniList vpc_blocks = { .family = AF_INET6, .prefixes = true };

static char ***list_of(const Eni *eni, const struct EniList *l) {
        return (void *)((char *)eni + l->offset);
}

void eni_done(Eni *eni) {
        free(eni->mac);
        for (size_t i = 0; i < ARRAY_SIZE(eni_lists); i++)
                strv_free(*list_of(eni, &eni_lists[i]));
        *eni = (Eni){};
}

static void items_done(Enis *e) {
        for (size_t i = 0; i < e->n; i++)
                eni_done(&e->items[i]);
        free(e->items);
        e->items = NULL;
        e->n = 0;
}

void enis_done(Enis *e) {
        items_done(e);
        FREE_ALL(e->instance_id, e->primary);
        *e = (Enis){};
}

static Eni *find_eni(const Enis *e, const char *mac) {
        return FIND(eni, e->items, e->n, strcasecmp(eni->mac, mac) == 0);
}

bool eni_is_partial(const Eni *eni) {
        return eni->asked_usec == 0 && eni->begun_usec > 0;
}

const Eni *eni_find(const Enis *e, const char *mac) {
        return find_eni(e, mac);
}

static int compare_macs(const void *a, const void *b) {
        return strcmp(((const Eni *)a)->mac, ((const Eni *)b)->mac);
}

/* The normal_ functions copy a word in canonical form; NULL: invalid. */
static char *normal_mac(const char *s) {
        static const char form[] = "xx:xx:xx:xx:xx:xx";
        if (strlen(s) != strlen(form))
                return NULL;
        for (size_t i = 0; form[i]; i++)
                if (form[i] == ':' ? s[i] != ':' : hex_digit(s[i]) < 0)
                        return NULL;
        return str_lower(s);
}

/* It becomes the name of a directory. */
static char *normal_instance_id(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
        return n > 0 && n <= 64 && !s[n] ? xstrdup(s) : NULL;
}

static char *normal_address(int family, const char *s) {
        char text[INET6_ADDRSTRLEN];
        unsigned char bytes[16];
        return inet_pton(family, s, bytes) == 1 ? xstrdup(inet_ntop(family, bytes, text, sizeof text)) : NULL;
}

static char *normal_prefix(int family, const char *s) {
        const char *slash = strchr(s, '/');
        unsigned char bytes[16];
        uint64_t length = 0, bits = family == AF_INET ? 32 : 128;
        if (!slash || parse_u64(slash + 1, &length) < 0 || length < 1 || length > bits)
                return NULL;
        _free_ char *before = xstrndup(s, (size_t)(slash - s)),
                    *address = normal_address(family, before);
        if (!address || inet_pton(family, address, bytes) != 1)
                return NULL;
        for (uint64_t i = length; i < bits; i++)
                if (bytes[i / 8] & 0x80 >> i % 8)
                        return NULL;
        return xasprintf("%s/%u", address, (unsigned)length);
}

static char *normal_entry(const struct EniList *l, const char *s) {
        return l->prefixes ? normal_prefix(l->family, s) : normal_address(l->family, s);
}

typedef struct Inquiry {
        Imds *imds;
        const EniQuestion *question;
        Enis *enis;
        bool tolerant;                  /* garbage is only a warning */
        Diag *diag;
} Inquiry;

/* 0, as for a missing answer, if it is a warning: the process that needs the value asks again. */
static int report_garbage(const Inquiry *q, const char *path, const char *wanted) {
        if (q->tolerant) {
                diag_warn(q->diag, "interface-metadata", "/latest/%s of the instance metadata is not %s",
                          path, wanted);
                return 0;
        }
        return diag_error(q->diag, -EBADMSG, CAUSE_IMDS,
                          "/latest/%s of the instance metadata is not %s; does the metadata service of EC2 "
                          "answer there?",
                          path, wanted);
}

/* 1 with the text, 0 without one. Asks the service, not the cache. */
static int ask_text(const Inquiry *q, const char *path, char **ret) {
        _free_ char *data = NULL, *text = NULL;
        size_t size = 0;
        imds_forget(q->imds, path);
        int r = imds_get(q->imds, path, &data, &size, q->diag);
        q->enis->answers += r >= 0 || r == -ENOENT;
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (memchr(data, '\0', size))
                return report_garbage(q, path, "a text");
        text = str_strip(data);
        *ret = *text ? TAKE_PTR(text) : NULL;
        return *ret != NULL;
}

/* A text of the instance. 0 also without an answer. */
static int ask_word(const Inquiry *q, const char *path, char *(*normal)(const char *), const char *wanted,
                    char **ret) {
        _free_ char *text = NULL;
        int r = ask_text(q, path, &text);
        if (!text)
                return r;
        *ret = normal(text);
        return *ret ? 0 : report_garbage(q, path, wanted);
}

static int ask_number(const Inquiry *q, const char *path, int *ret) {
        _free_ char *text = NULL;
        uint64_t n = 0;
        int r = ask_text(q, path, &text);
        if (!text)
                return r;
        if (parse_u64(text, &n) < 0 || n > MAX_NUMBER)
                return report_garbage(q, path, "a number from 0 to 255");
        *ret = (int)n;
        return 0;
}

/* The lines of a text, without blanks around them. */
static char **split_lines(char *text) {
        char **lines = NULL, *rest = text, *line = NULL;
        for (size_t n = 0; (line = strsep(&rest, "\n"));) {
                _free_ char *word = str_strip(line);
                if (*word)
                        strv_push_at(&lines, n++, TAKE_PTR(word));
        }
        return lines;
}

static int ask_list(const Inquiry *q, const char *path, const struct EniList *l, char ***ret) {
        _free_ char *text = NULL;
        _strv_ char **lines = NULL, **list = NULL;
        int r = ask_text(q, path, &text);
        if (!text)
                return r;
        lines = split_lines(text);
        for (size_t n = 0; lines && lines[n]; n++) {
                char *entry = n < MAX_ADDRESSES ? normal_entry(l, lines[n]) : NULL;
                if (!entry) {
                        _free_ char *wanted = xasprintf("a list of IPv%d %s", l->family == AF_INET ? 4 : 6,
                                                        l->prefixes ? "prefixes" : "addresses");
                        return report_garbage(q, path, wanted);
                }
                strv_push_at(&list, n, entry);
        }
        *ret = TAKE_PTR(list);
        return 0;
}

static bool names_mac(char *const *macs, const char *mac) {
        while (macs && *macs && strcasecmp(*macs, mac) != 0)
                macs++;
        return macs && *macs;
}

bool enis_want_list(const Enis *e, const EniQuestion *question) {
        STRV_FOREACH(mac, question->again)
                if (!find_eni(e, *mac))
                        return true;
        return e->n == 0;
}

/* Adds an interface once, with what was known before. */
static void add_listed(Enis *e, Enis *before, char *mac) {
        Eni *known = find_eni(before, mac);
        if (find_eni(e, mac) || e->n >= MAX_INTERFACES) {
                free(mac);
                return;
        }
        *APPEND(e->items, e->n) = known ? *known : (Eni){ .mac = mac, .card = -1, .device = -1 };
        if (known)
                *known = (Eni){ .mac = mac };
}

/* A missing interface is gone. An empty list does not count: the primary one is always there. */
static int ask_interfaces(Inquiry *q) {
        _free_ char *text = NULL;
        _strv_ char **lines = NULL;
        _cleanup_(enis_done) Enis listed = {};
        int r = ask_text(q, MACS, &text);
        if (!text)
                return r;
        lines = split_lines(text);
        STRV_FOREACH(line, lines) {
                size_t n = strlen(*line);
                (*line)[n - ((*line)[n - 1] == '/')] = '\0';
                char *mac = normal_mac(*line);
                if (mac)
                        add_listed(&listed, q->enis, mac);
                else
                        diag_warn(q->diag, "interface-metadata",
                                  "/latest/" MACS " of the instance metadata lists an invalid MAC address");
        }
        if (listed.n == 0)
                return 0;
        qsort(listed.items, listed.n, sizeof *listed.items, compare_macs);
        items_done(q->enis);
        q->enis->items = TAKE_PTR(listed.items);
        q->enis->n = listed.n;
        listed.n = 0;
        return 0;
}

static int ask_for_ipv6(const Inquiry *q, const char *primary) {
        _strv_ char **blocks = NULL;
        _free_ char *path = xasprintf(MACS "%s/vpc-ipv6-cidr-blocks", primary);
        int r = ask_list(q, path, &vpc_blocks, &blocks);
        if (r < 0)
                return r;
        q->enis->ipv6 = blocks;
        q->enis->ipv6_usec = now_usec();
        return 0;
}

/* Learns the primary MAC and IPv6 together: a 404 about an interface that is not listed yet says nothing. */
static int ask_primary(const Inquiry *q, char **primary) {
        if (q->enis->primary || !find_eni(q->enis, *primary))
                return 0;
        int r = ask_for_ipv6(q, *primary);
        if (r >= 0)
                q->enis->primary = TAKE_PTR(*primary);
        return r;
}

/* With the question for the card, one for prefixes would be the fourth request of an interface. 32 cards may
 * come up at once, so cards other than 0 do without: the CNI, which owns prefixes, ignores them
 * (aws/amazon-vpc-cni-k8s:README.md, ENABLE_MULTI_NIC). On an unknown type, a card that stays unknown is card
 * 0. */
static bool list_is_asked(const Inquiry *q, const Eni *eni, const struct EniList *l) {
        if (l->family == AF_INET6)
                return q->enis->ipv6;
        return !l->prefixes || q->question->cards == 1 || eni->card == 0 || q->enis->n <= FEW_INTERFACES ||
               (q->question->cards == 0 && eni->card < 0 && names_mac(q->question->again, eni->mac));
}

/* Its route table needs the place. EC2 may also list a secondary one in the primary place for a while. */
static bool lacks_place(const Inquiry *q, const Eni *eni) {
        return eni->device < 0 || (eni->card < 0 && q->question->cards != 1) ||
               (eni->card <= 0 && eni->device == 0);
}

static bool lacks_address(const Eni *eni) {
        return !eni->ipv4s && !eni->ipv6s;
}

static bool list_is_due(const Inquiry *q, const Eni *eni, size_t i) {
        const struct EniList *l = &eni_lists[i];
        return list_is_asked(q, eni, l) && (!(eni->answered & LIST_BIT(i)) || lacks_address(eni));
}

/* A late value that came is not asked for again. */
static bool lacks_something(const Inquiry *q, const Eni *eni) {
        bool lacks = lacks_place(q, eni) || lacks_address(eni) || !(eni->answered & DEVICE_BIT) ||
                     (q->question->cards != 1 && !(eni->answered & CARD_BIT));
        for (size_t i = 0; !lacks && i < ARRAY_SIZE(eni_lists); i++)
                lacks = list_is_due(q, eni, i);
        return lacks;
}

/* 0 also after garbage, which it notes: the other questions follow anyway. */
static int answered(Eni *eni, unsigned bit, int r, int *garbage) {
        if (r < 0 && r != -EBADMSG)
                return r;
        *garbage = *garbage ?: MIN(r, 0);
        eni->answered |= bit;
        return 0;
}

static int ask_place(const Inquiry *q, Eni *eni, int *garbage) {
        bool doubtful = eni->card <= 0 && eni->device == 0;
        int device = -1, card = -1, r = 0;
        if (!(eni->answered & DEVICE_BIT) || eni->device < 0 || doubtful) {
                _free_ char *path = xasprintf(MACS "%s/device-number", eni->mac);
                r = answered(eni, DEVICE_BIT, ask_number(q, path, &device), garbage);
                eni->device = r < 0 ? eni->device : device;
        }
        if (q->question->cards == 1)
                eni->card = 0;
        else if (r >= 0 && (!(eni->answered & CARD_BIT) || eni->card < 0 || doubtful)) {
                _free_ char *path = xasprintf(MACS "%s/network-card", eni->mac);
                r = answered(eni, CARD_BIT, ask_number(q, path, &card), garbage);
                eni->card = r < 0 ? eni->card : card;
        }
        return r;
}

static int ask_addresses(const Inquiry *q, Eni *eni, int *garbage) {
        bool due[ARRAY_SIZE(eni_lists)];
        int r = 0;
        for (size_t i = 0; i < ARRAY_SIZE(eni_lists); i++)
                due[i] = list_is_due(q, eni, i);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(eni_lists); i++) {
                const struct EniList *l = &eni_lists[i];
                _strv_ char **list = NULL;
                _free_ char *path = xasprintf(MACS "%s/%s", eni->mac, l->key);
                if (!due[i])
                        continue;
                r = answered(eni, LIST_BIT(i), ask_list(q, path, l, &list), garbage);
                if (r < 0)
                        break;
                strv_free(*list_of(eni, l));
                *list_of(eni, l) = TAKE_PTR(list);
        }
        return r;
}

static int ask_eni(const Inquiry *q, Eni *eni) {
        bool again = names_mac(q->question->again, eni->mac), partial = eni->begun_usec > eni->asked_usec;
        int garbage = 0;
        if (partial ? now_usec() - eni->begun_usec > PARTIAL_USEC
                    : eni->asked_usec < q->question->older_usec || eni->begun_usec == 0 ||
                              (again && !lacks_something(q, eni))) {
                eni->answered = 0;
                eni->begun_usec = now_usec();
        }
        int r = ask_place(q, eni, &garbage);
        THEN(r, ask_addresses(q, eni, &garbage));
        if (r < 0)
                return r;
        eni->asked_usec = now_usec();
        return garbage;
}

static bool eni_is_due(const Inquiry *q, const Eni *eni) {
        const EniQuestion *question = q->question;
        bool late = lacks_place(q, eni) ||
                    (lacks_address(eni) && now_usec() - eni->begun_usec < ADDRESS_USEC);
        return !streq(eni->mac, q->enis->primary) &&
               (names_mac(question->again, eni->mac) ||
                (!names_mac(question->skip, eni->mac) &&
                 (eni->asked_usec < question->older_usec || eni->asked_usec == 0 ||
                  eni->begun_usec > eni->asked_usec || (late && eni->asked_usec < question->late_usec))));
}

/* First the interfaces that the caller waits for, then the others. */
static int ask_enis(Inquiry *q) {
        const EniQuestion *question = q->question;
        size_t n = q->enis->n;
        int garbage = 0;
        for (size_t i = 0; i < 2 * n; i++) {
                Eni *eni = &q->enis->items[i % n];
                q->tolerant = i >= n;
                if (names_mac(question->again, eni->mac) == q->tolerant || !eni_is_due(q, eni))
                        continue;
                if (q->tolerant && question->until_usec && now_usec() >= question->until_usec)
                        return garbage ?: 1;
                int r = ask_eni(q, eni);
                if (r < 0 && r != -EBADMSG)
                        return r;
                garbage = garbage ?: r;
        }
        return garbage;
}

static void place_primary(Enis *e) {
        Eni *eni = find_eni(e, e->primary);
        if (!eni)
                return;
        eni->card = eni->device = 0;
        eni->asked_usec = eni->asked_usec ?: now_usec();
}

int enis_ask(Imds *imds, const EniQuestion *question, Enis *e, Diag *diag) {
        Inquiry q = { .imds = imds, .question = question, .enis = e, .diag = diag };
        _free_ char *primary = xstrdup_or_null(e->primary);
        int r = 0;
        if (!e->instance_id)
                r = ask_word(&q, "meta-data/instance-id", normal_instance_id, "the id of an instance",
                             &e->instance_id);
        if (r >= 0 && !primary)
                r = ask_word(&q, "meta-data/mac", normal_mac, "a MAC address", &primary);
        /* nothing can be decided without the MAC */
        if (r < 0 || !primary)
                return r;
        if (enis_want_list(e, question))
                r = ask_interfaces(&q);
        THEN(r, ask_primary(&q, &primary));
        if (r < 0 || !e->primary)
                return r;
        place_primary(e);
        if (!e->ipv6 && e->ipv6_usec < question->late_usec &&
            ANY(eni, e->items, e->n, eni_is_due(&q, eni)))
                r = ask_for_ipv6(&q, e->primary);
        return r < 0 ? r : ask_enis(&q);
}

static json_t *eni_to_json(const Eni *eni) {
        json_t *object = json_pack("{ss so* so*}", "mac", eni->mac, "card",
                                   eni->card >= 0 ? json_integer(eni->card) : NULL, "device",
                                   eni->device >= 0 ? json_integer(eni->device) : NULL);
        for (size_t i = 0; i < ARRAY_SIZE(eni_lists); i++)
                json_set_list(object, eni_lists[i].name, *list_of(eni, &eni_lists[i]));
        json_object_update_new(object, json_pack("{sI sI si si}", "askedUsec", (json_int_t)eni->asked_usec,
                                                 "begunUsec", (json_int_t)eni->begun_usec, "answered",
                                                 (int)eni->answered, "ifindex", (int)eni->ifindex));
        return object;
}

json_t *enis_to_json(const Enis *e) {
        json_t *interfaces = json_array();
        for (size_t i = 0; i < e->n; i++)
                json_array_append_new(interfaces, eni_to_json(&e->items[i]));
        return json_pack("{ss* ss* sb sI so}", "instanceId", e->instance_id, "primary", e->primary, "ipv6",
                         e->ipv6, "ipv6Usec", (json_int_t)e->ipv6_usec, "interfaces", interfaces);
}

static char *word_from_json(const json_t *object, const char *key, char *(*normal)(const char *)) {
        const char *text = json_string_value(json_object_get(object, key));
        return text ? normal(text) : NULL;
}

/* A missing number is valid. */
static bool number_from_json(const json_t *object, const char *key, int *ret) {
        const json_t *value = json_object_get(object, key);
        json_int_t n = json_integer_value(value);
        if (value && (!json_is_integer(value) || n < 0 || n > MAX_NUMBER))
                return false;
        *ret = value ? (int)n : -1;
        return true;
}

static bool list_from_json(const json_t *object, const struct EniList *l, char ***ret) {
        const json_t *array = json_object_get(object, l->name);
        size_t n = json_array_size(array);
        if ((array && !json_is_array(array)) || n > MAX_ADDRESSES)
                return false;
        for (size_t i = 0; i < n; i++) {
                const char *text = json_string_value(json_array_get(array, i));
                char *entry = text ? normal_entry(l, text) : NULL;
                if (!entry)
                        return false;
                strv_push_at(ret, i, entry);
        }
        return true;
}

/* An instant of this boot, in the past. */
static bool usec_from_json(const json_t *object, const char *key, uint64_t *ret) {
        json_int_t usec = json_integer_value(json_object_get(object, key));
        if (usec < 0 || (uint64_t)usec > now_usec())
                return false;
        *ret = (uint64_t)usec;
        return true;
}

/* An invalid interface keeps only its MAC. */
static Eni eni_from_json(const json_t *object, char *mac) {
        Eni eni = { .mac = mac };
        bool understood = usec_from_json(object, "askedUsec", &eni.asked_usec) &&
                          usec_from_json(object, "begunUsec", &eni.begun_usec) &&
                          eni.asked_usec + eni.begun_usec > 0 &&
                          number_from_json(object, "card", &eni.card) &&
                          number_from_json(object, "device", &eni.device);
        for (size_t i = 0; understood && i < ARRAY_SIZE(eni_lists); i++)
                understood = list_from_json(object, &eni_lists[i], list_of(&eni, &eni_lists[i]));
        eni.answered = (unsigned)json_integer_value(json_object_get(object, "answered"));
        eni.ifindex = (unsigned)json_integer_value(json_object_get(object, "ifindex"));
        if (understood)
                return eni;
        eni.mac = NULL;
        eni_done(&eni);
        return (Eni){ .mac = mac, .card = -1, .device = -1 };
}

void enis_from_json(const json_t *json, Enis *ret) {
        const json_t *interfaces = json_object_get(json, "interfaces");
        size_t n = MIN(json_array_size(interfaces), (size_t)MAX_INTERFACES);
        const json_t *ipv6 = json_object_get(json, "ipv6");
        *ret = (Enis){ .ipv6 = json_is_true(ipv6) };
        ret->instance_id = word_from_json(json, "instanceId", normal_instance_id);
        (void)usec_from_json(json, "ipv6Usec", &ret->ipv6_usec);
        if (json_is_boolean(ipv6))
                ret->primary = word_from_json(json, "primary", normal_mac);
        ret->items = xcalloc(n + 1, sizeof *ret->items);
        for (size_t i = 0; i < n; i++) {
                const json_t *object = json_array_get(interfaces, i);
                char *mac = word_from_json(object, "mac", normal_mac);
                if (mac && !find_eni(ret, mac))
                        ret->items[ret->n++] = eni_from_json(object, mac);
                else
                        free(mac);
        }
        qsort(ret->items, ret->n, sizeof *ret->items, compare_macs);
}
