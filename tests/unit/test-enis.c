/* SPDX-License-Identifier: Apache-2.0
 * enis_ask() with a metadata service that answers from a table: its requests and their result. */
#include "nic/enis.h"

#include "base/str.h"
#include "base/time.h"
#include "test.h"

#define MACS "meta-data/network/interfaces/macs/"
#define A    "0a:00:00:00:00:0a"        /* the primary one, in the middle of the list */
#define B    "0a:00:00:00:00:0b"
#define C    "0a:00:00:00:00:0c"
#define Z    "0a:00:00:00:00:01"

/* ---- the service: it stands in for src/aws/imds.c ---- */
typedef struct Answer { const char *path, *text; } Answer;
struct Imds {
        Answer answers[256];
        size_t n;
        char **asked;
        const char *down;               /* a path that is not answered */
        size_t cut;                     /* bytes of an answer, where they are not those of its text */
};

void imds_forget(Imds *i _unused_, const char *path _unused_) {
}

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        strv_add(&i->asked, path);
        if (i->down && endswith(path, i->down))
                return diag_error(diag, -ETIMEDOUT, CAUSE_IMDS, "no answer");
        for (size_t k = i->n; k-- > 0;)
                if (streq(i->answers[k].path, path)) {
                        if (!i->answers[k].text)
                                return -ENOENT;
                        *ret = xstrdup(i->answers[k].text);
                        if (ret_size)
                                *ret_size = i->cut ?: strlen(*ret);
                        return 0;
                }
        return -ENOENT;
}

typedef struct World { Imds imds; Enis enis; Diag diag; } World;

static void world_done(World *w) {
        strv_free(w->imds.asked);
        for (size_t i = 0; i < w->imds.n; i++)
                free((char *)w->imds.answers[i].path);
        enis_done(&w->enis);
        diag_done(&w->diag);
}

/* A later call for the same path replaces the answer. */
static void say(World *w, const char *path, const char *text) {
        ASSERT_TRUE(w->imds.n < ARRAY_SIZE(w->imds.answers));
        w->imds.answers[w->imds.n++] = (Answer){ xstrdup(path), text };
}

static void say_of(World *w, const char *mac, const char *key, const char *text) {
        _free_ char *path = xasprintf(MACS "%s/%s", mac, key);
        say(w, path, text);
}

static World instance(const char *list) {
        World w = {};
        say(&w, "meta-data/instance-id", "i-0123456789abcdef0");
        say(&w, "meta-data/mac", A);
        say(&w, MACS, list);
        return w;
}

static void secondary(World *w, const char *mac, const char *card, const char *device, const char *ipv4s) {
        say_of(w, mac, "network-card", card);
        say_of(w, mac, "device-number", device);
        say_of(w, mac, "local-ipv4s", ipv4s);
}

static void ask(World *w, EniQuestion question) {
        ASSERT_OK(enis_ask(&w->imds, &question, &w->enis, &w->diag));
}

/* The number of requests for such a path since forget_asked(); NULL: of all requests. */
static unsigned count_asked(World *w, const char *end) {
        unsigned n = 0;
        for (char **path = w->imds.asked; path && *path; path++)
                n += !end || endswith(*path, end);
        return n;
}

static void forget_asked(World *w) {
        w->imds.asked = strv_free(w->imds.asked);
}

static const Eni *eni(const World *w, const char *mac) {
        const Eni *e = eni_find(&w->enis, mac);
        ASSERT_TRUE(e);
        return e;
}

#define ASSERT_LIST(list, text) ({                                                             \
        _free_ char *_joined = strv_join(list, " ");                                 \
        ASSERT_STREQ(_joined, text); })

/* ---- requests and their number ---- */
TEST(one_interface_costs_four_requests) {
        _cleanup_(world_done) World w = instance(A "/");
        ask(&w, (EniQuestion){ .cards = 1 });
        ASSERT_STREQ(w.enis.instance_id, "i-0123456789abcdef0");
        ASSERT_STREQ(w.enis.primary, A);
        ASSERT_EQ(w.enis.n, 1);
        ASSERT_EQ(w.enis.items[0].card, 0);
        ASSERT_EQ(w.enis.items[0].device, 0);
        ASSERT_TRUE(w.enis.items[0].asked_usec > 0);
        ASSERT_TRUE(!w.enis.ipv6);
        ASSERT_EQ(count_asked(&w, NULL), 4);    /* id, mac, list, IPv6 */
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 1, .older_usec = now_usec() });
        ASSERT_EQ(count_asked(&w, NULL), 0);
}

TEST(interfaces_of_several_cards) {
        _cleanup_(world_done) World w = instance(B "/\n" A "/\n" Z "/\n");
        secondary(&w, B, "3", "1", "10.0.0.2\n10.0.0.9");
        secondary(&w, Z, "1", "0", NULL);
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_EQ(w.enis.n, 3);
        ASSERT_STREQ(w.enis.items[0].mac, Z);
        ASSERT_STREQ(w.enis.items[2].mac, B);
        ASSERT_EQ(eni(&w, B)->card, 3);
        ASSERT_EQ(eni(&w, B)->device, 1);
        ASSERT_LIST(eni(&w, B)->ipv4s, "10.0.0.2 10.0.0.9");
        ASSERT_EQ(eni(&w, Z)->card, 1);
        ASSERT_EQ(eni(&w, Z)->device, 0);
        ASSERT_TRUE(!eni(&w, Z)->ipv4s);
        ASSERT_TRUE(!eni_find(&w.enis, C));
        ASSERT_EQ(w.diag.n, 0);
}

TEST(thirty_two_cards_cost_three_requests_each) {
        _cleanup_(world_done) World w = {};
        _free_ char *list = NULL;
        char *macs[32] = {}, *cards[32] = {};
        Text t = {};
        for (unsigned i = 0; i < 32; i++) {
                macs[i] = xasprintf("0e:00:00:00:00:%02x", i);
                cards[i] = xasprintf("%u", i);
                text_add(&t, "%s/\n", macs[i]);
        }
        list = text_take(&t);
        say(&w, "meta-data/instance-id", "i-1");
        say(&w, "meta-data/mac", macs[0]);
        say(&w, MACS, list);
        for (unsigned i = 1; i < 32; i++)
                secondary(&w, macs[i], cards[i], "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 32 });
        ASSERT_EQ(w.enis.n, 32);
        ASSERT_EQ(eni(&w, macs[31])->card, 31);
        ASSERT_EQ(count_asked(&w, NULL), 31 * 3 + 4);   /* and a token: 3 below the bound */
        ASSERT_EQ(count_asked(&w, "ipv4-prefix"), 0);
        /* the process of another interface */
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 32, .older_usec = now_usec() - 60 * USEC_PER_SEC });
        ASSERT_EQ(count_asked(&w, NULL), 0);
        /* one interface again */
        char *again[] = { macs[7], NULL };
        ask(&w, (EniQuestion){ .cards = 32, .again = again });
        ASSERT_EQ(count_asked(&w, NULL), 3);
        ASSERT_EQ(count_asked(&w, "0e:00:00:00:00:07/network-card"), 1);
        for (unsigned i = 0; i < 32; i++) {
                free(macs[i]);
                free(cards[i]);
        }
}

TEST(types_with_one_card_cost_no_request_for_cards) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        secondary(&w, B, "7", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 1 });
        ASSERT_EQ(eni(&w, B)->card, 0);
        ASSERT_EQ(count_asked(&w, "network-card"), 0);
        ASSERT_EQ(count_asked(&w, B "/ipv4-prefix"), 1);
        ASSERT_EQ(count_asked(&w, NULL), 4 + 3);
}

TEST(unknown_types_cost_a_request_for_cards) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        secondary(&w, B, NULL, "1", "10.0.0.2");
        ask(&w, (EniQuestion){});
        ASSERT_EQ(eni(&w, B)->card, -1);
        ASSERT_EQ(eni(&w, B)->device, 1);
        ASSERT_EQ(count_asked(&w, B "/network-card"), 1);
}

TEST(prefixes_are_requested_for_card_0_alone) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/\n" Z "/\n0a:00:00:00:00:02/\n0a:00:00:00:00:03/");
        char *unknown[] = { (char *)Z, NULL };
        secondary(&w, B, "0", "1", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        secondary(&w, Z, NULL, "1", "10.0.0.4");
        say_of(&w, B, "ipv4-prefix", "10.0.1.16/28\n10.0.1.32/28");
        say_of(&w, Z, "ipv4-prefix", "10.0.1.48/28");
        ask(&w, (EniQuestion){});
        ASSERT_LIST(eni(&w, B)->ipv4_prefixes, "10.0.1.16/28 10.0.1.32/28");
        ASSERT_EQ(count_asked(&w, "ipv4-prefix"), 1);
        /* without a card, on an unknown type: the interface counts as on card 0 */
        ask(&w, (EniQuestion){ .again = unknown });
        ASSERT_LIST(eni(&w, Z)->ipv4_prefixes, "10.0.1.48/28");
        ASSERT_EQ(count_asked(&w, "ipv4-prefix"), 2);
        /* on a type with several cards its card is late, and only the card is requested */
        ask(&w, (EniQuestion){ .cards = 4, .again = unknown });
        ASSERT_EQ(count_asked(&w, "ipv4-prefix"), 2);
}

TEST(ipv6_where_the_vpc_has_it) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        say_of(&w, A, "vpc-ipv6-cidr-blocks", "2600:1f14:abc:de00::/56");
        secondary(&w, B, "1", "1", NULL);
        say_of(&w, B, "ipv6s", "2600:1F14:0abc:de00:0:0:0:1\n2600:1f14:abc:de00::2");
        say_of(&w, B, "ipv6-prefix", "2600:1f14:abc:de00:1:0:0:0/80");
        ask(&w, (EniQuestion){ .cards = 2 });
        ASSERT_TRUE(w.enis.ipv6);
        ASSERT_LIST(eni(&w, B)->ipv6s, "2600:1f14:abc:de00::1 2600:1f14:abc:de00::2");
        ASSERT_LIST(eni(&w, B)->ipv6_prefixes, "2600:1f14:abc:de00:1::/80");
        ASSERT_EQ(count_asked(&w, "ipv6-prefix"), 1);
}

TEST(a_vpc_without_ipv6_costs_no_request_for_addresses) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 2 });
        ASSERT_EQ(count_asked(&w, "ipv6s") + count_asked(&w, "ipv6-prefix"), 0);
        ASSERT_EQ(count_asked(&w, A "/vpc-ipv6-cidr-blocks"), 1);
}

TEST(skipped_interfaces_cost_no_request) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
        char *skip[] = { (char *)"0A:00:00:00:00:0B", NULL };
        secondary(&w, B, "1", "1", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        ask(&w, (EniQuestion){ .cards = 4, .skip = skip });
        ASSERT_EQ(eni(&w, B)->card, -1);
        ASSERT_EQ(eni(&w, B)->asked_usec, 0);
        ASSERT_EQ(eni(&w, C)->card, 2);
        ASSERT_EQ(count_asked(&w, B "/device-number"), 0);
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_EQ(eni(&w, B)->card, 1);
        ASSERT_EQ(count_asked(&w, C "/device-number"), 0);
}

TEST(old_answers_are_requested_again) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4 });
        say_of(&w, B, "local-ipv4s", "10.0.0.2\n10.0.0.3");
        forget_asked(&w);
        uint64_t asked = eni(&w, B)->asked_usec;
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = asked });
        ASSERT_EQ(count_asked(&w, NULL), 0);
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = asked + 1 });
        ASSERT_EQ(count_asked(&w, MACS), 0);
        ASSERT_LIST(eni(&w, B)->ipv4s, "10.0.0.2 10.0.0.3");
}

TEST(the_list_is_requested_again_for_an_unlisted_interface) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        char *again[] = { (char *)C, NULL };
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4 });
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_EQ(count_asked(&w, NULL), 1);
        ASSERT_EQ(count_asked(&w, MACS), 1);
        ASSERT_TRUE(!eni_find(&w.enis, C));
        /* it comes, another one goes */
        say(&w, MACS, C "/\n" A "/");
        secondary(&w, C, "2", "1", "10.0.0.3");
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_EQ(eni(&w, C)->card, 2);
        ASSERT_TRUE(!eni_find(&w.enis, B));
        ASSERT_EQ(count_asked(&w, NULL), 1 + 4);
}

TEST(late_answers_are_taken_over) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        char *again[] = { (char *)B, NULL };
        secondary(&w, B, NULL, "0", NULL);
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_EQ(eni(&w, B)->card, -1);
        ASSERT_EQ(eni(&w, B)->device, 0);
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_EQ(eni(&w, B)->card, 1);
        ASSERT_EQ(eni(&w, B)->device, 1);
        ASSERT_LIST(eni(&w, B)->ipv4s, "10.0.0.2");
        /* an answer that has gone is not remembered */
        say_of(&w, B, "local-ipv4s", NULL);
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_TRUE(!eni(&w, B)->ipv4s);
}

TEST(no_request_for_interfaces_before_the_primary_one_is_known) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        say(&w, "meta-data/mac", NULL);
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_TRUE(!w.enis.primary);
        ASSERT_EQ(count_asked(&w, NULL), 2);
        /* known, and not listed: a 404 of its keys says nothing */
        say(&w, "meta-data/mac", A);
        say(&w, MACS, B "/");
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_TRUE(!w.enis.primary);
        ASSERT_EQ(count_asked(&w, "cidr-blocks") + count_asked(&w, "device-number"), 0);
        char *again[] = { (char *)A, NULL };
        say(&w, MACS, A "/\n" B "/");
        say_of(&w, A, "vpc-ipv6-cidr-blocks", "2600::/56");
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_STREQ(w.enis.primary, A);
        ASSERT_TRUE(w.enis.ipv6);
        ASSERT_EQ(count_asked(&w, "instance-id"), 1);
}

TEST(an_empty_list_is_ignored) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        char *again[] = { (char *)C, NULL };
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4 });
        say(&w, MACS, NULL);
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_EQ(w.enis.n, 2);
        say(&w, MACS, "\n");
        ask(&w, (EniQuestion){ .cards = 4, .again = again });
        ASSERT_EQ(eni(&w, B)->card, 1);
}

TEST(macs_in_capitals_are_accepted) {
        _cleanup_(world_done) World w = instance("0A:00:00:00:00:0B\n" A "/\n");
        say(&w, "meta-data/mac", "0A:00:00:00:00:0A\n");
        secondary(&w, B, " 1\n", "1", "10.0.0.2\n");
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_STREQ(w.enis.primary, A);
        ASSERT_EQ(eni(&w, "0A:00:00:00:00:0B")->card, 1);
        ASSERT_STREQ(eni(&w, B)->mac, B);
}

/* ---- failures ---- */
TEST(a_failure_leaves_earlier_answers) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
        secondary(&w, B, "1", "1", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        w.imds.down = C "/local-ipv4s";
        ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){ .cards = 4 }, &w.enis, &w.diag), ETIMEDOUT);
        ASSERT_EQ(w.diag.n, 1);
        ASSERT_EQ(w.diag.items[0].cause, CAUSE_IMDS);
        ASSERT_EQ(eni(&w, B)->card, 1);
        ASSERT_EQ(eni(&w, C)->card, 2);
        ASSERT_EQ(eni(&w, C)->asked_usec, 0);
        ASSERT_TRUE(eni_is_partial(eni(&w, C)));
        w.imds.down = NULL;
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_EQ(eni(&w, C)->card, 2);
        /* only the missing answer is requested, and prefixes, since there are few interfaces */
        ASSERT_EQ(count_asked(&w, NULL), 1 + 1);
        ASSERT_TRUE(!eni_is_partial(eni(&w, C)));
}

TEST(the_interface_of_the_caller_comes_first) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
        char *again[] = { (char *)C, NULL };
        secondary(&w, B, "1", "1", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        w.imds.down = B "/device-number";
        ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){ .cards = 4, .again = again }, &w.enis, &w.diag), ETIMEDOUT);
        ASSERT_TRUE(eni(&w, C)->asked_usec > 0);
        ASSERT_EQ(eni(&w, B)->begun_usec > 0, eni_is_partial(eni(&w, B)));
        ASSERT_TRUE(w.enis.answers >= 4 + 3);
}

TEST(requests_for_other_interfaces_have_a_deadline) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
        char *again[] = { (char *)C, NULL };
        EniQuestion question = { .cards = 4, .again = again, .until_usec = 1 };
        secondary(&w, B, "1", "1", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        ASSERT_EQ(enis_ask(&w.imds, &question, &w.enis, &w.diag), 1);
        ASSERT_TRUE(eni(&w, C)->asked_usec > 0);
        ASSERT_EQ(count_asked(&w, B "/device-number"), 0);
        question.until_usec = 0;
        ASSERT_EQ(enis_ask(&w.imds, &question, &w.enis, &w.diag), 0);
        ASSERT_EQ(eni(&w, B)->card, 1);
}

TEST(only_late_answers_are_requested_again) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/\n" Z "/");
        char *again[] = { (char *)C, NULL };
        secondary(&w, B, NULL, "1", "10.0.0.2");
        secondary(&w, C, "2", "1", NULL);
        secondary(&w, Z, "3", "1", "10.0.0.4");
        ask(&w, (EniQuestion){ .cards = 4 });
        forget_asked(&w);
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = 1, .late_usec = 1, .again = again });
        ASSERT_EQ(count_asked(&w, NULL), 2);            /* of C: addresses and prefixes */
        ASSERT_EQ(count_asked(&w, C "/local-ipv4s"), 1);
        forget_asked(&w);
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = 1, .late_usec = now_usec() + 1, .again = again });
        ASSERT_EQ(eni(&w, B)->card, 1);
        ASSERT_EQ(count_asked(&w, B "/network-card"), 1);
        ASSERT_EQ(count_asked(&w, B "/device-number") + count_asked(&w, B "/local-ipv4s"), 0);
        ASSERT_EQ(count_asked(&w, Z "/network-card"), 0);
        ASSERT_EQ(count_asked(&w, "vpc-ipv6-cidr-blocks"), 1);
}

TEST(ipv6_may_come_late) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/");
        char *again[] = { (char *)B, NULL };
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_TRUE(!w.enis.ipv6);
        say_of(&w, A, "vpc-ipv6-cidr-blocks", "2600::/56");
        say_of(&w, B, "ipv6s", "2600::1");
        forget_asked(&w);
        /* without another question: IPv6 alone is not a reason to ask */
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = 1, .late_usec = now_usec() + 1 });
        ASSERT_EQ(count_asked(&w, NULL), 0);
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = 1, .late_usec = 1, .again = again });
        ASSERT_EQ(count_asked(&w, "vpc-ipv6-cidr-blocks"), 0);
        ask(&w, (EniQuestion){ .cards = 4, .older_usec = 1, .late_usec = now_usec() + 1, .again = again });
        ASSERT_TRUE(w.enis.ipv6);
        ASSERT_LIST(eni(&w, B)->ipv6s, "2600::1");
}

TEST(garbage_about_one_interface_does_not_stop_other_requests) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
        char *again[] = { (char *)B, NULL };
        secondary(&w, B, "x", "y", "10.0.0.2");
        secondary(&w, C, "2", "1", "10.0.0.3");
        ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){ .cards = 4, .again = again }, &w.enis, &w.diag), EBADMSG);
        ASSERT_EQ(eni(&w, C)->card, 2);
        ASSERT_LIST(eni(&w, B)->ipv4s, "10.0.0.2");
        ASSERT_TRUE(eni(&w, B)->asked_usec > 0);
}

TEST(a_failure_of_the_first_requests_can_be_retried) {
        static const char *const paths[] = { "instance-id", "meta-data/mac", "macs/", "vpc-ipv6-cidr-blocks" };
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _cleanup_(world_done) World w = instance(A "/");
                w.imds.down = paths[i];
                ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){}, &w.enis, &w.diag), ETIMEDOUT);
                ASSERT_TRUE(!w.enis.primary);
                w.imds.down = NULL;
                ask(&w, (EniQuestion){});
                ASSERT_STREQ(w.enis.primary, A);
                ASSERT_EQ(count_asked(&w, "instance-id"), i == 0 ? 2 : 1);
        }
}

TEST(garbage_about_an_interface_is_refused) {
        static const struct { const char *key, *text, *wanted; } cases[] = {
                { "network-card", "x", "a number from 0 to 255" },
                { "network-card", "-1", "a number from 0 to 255" },
                { "network-card", "256", "a number from 0 to 255" },
                { "network-card", "18446744073709551617", "a number from 0 to 255" },
                { "network-card", "1\n2", "a number from 0 to 255" },
                { "device-number", "1.5", "a number from 0 to 255" },
                { "local-ipv4s", "10.0.0.256", "a list of IPv4 addresses" },
                { "local-ipv4s", "10.0.0.2\nten", "a list of IPv4 addresses" },
                { "local-ipv4s", "2600::1", "a list of IPv4 addresses" },
                { "local-ipv4s", "10.0.0.2/32", "a list of IPv4 addresses" },
                { "ipv6s", "10.0.0.2", "a list of IPv6 addresses" },
                { "ipv6s", "2600::1\n\x1b[31m", "a list of IPv6 addresses" },
                { "ipv4-prefix", "10.0.1.16", "a list of IPv4 prefixes" },
                { "ipv4-prefix", "10.0.1.16/0", "a list of IPv4 prefixes" },
                { "ipv4-prefix", "10.0.1.16/33", "a list of IPv4 prefixes" },
                { "ipv4-prefix", "10.0.1.17/28", "a list of IPv4 prefixes" },
                { "ipv4-prefix", "10.0.1.16/", "a list of IPv4 prefixes" },
                { "ipv4-prefix", "/28", "a list of IPv4 prefixes" },
                { "ipv6-prefix", "2600::/129", "a list of IPv6 prefixes" },
                { "ipv6-prefix", "2600::1/80", "a list of IPv6 prefixes" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/");
                char *again[] = { (char *)B, NULL };
                say_of(&w, A, "vpc-ipv6-cidr-blocks", "2600::/56");
                secondary(&w, B, "0", "1", "10.0.0.2");
                secondary(&w, C, "1", "1", "10.0.0.3");
                say_of(&w, B, cases[i].key, cases[i].text);
                /* about another interface it is only a warning */
                ask(&w, (EniQuestion){ .cards = 4 });
                ASSERT_EQ(diag_count(&w.diag, true), 1);
                ASSERT_EQ(w.diag.n, 1);
                ASSERT_STREQ(w.diag.items[0].code, "interface-metadata");
                ASSERT_EQ(eni(&w, C)->card, 1);
                diag_done(&w.diag);

                ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){ .cards = 4, .again = again }, &w.enis, &w.diag),
                             EBADMSG);
                ASSERT_EQ(w.diag.n, 1);
                ASSERT_EQ(w.diag.items[0].cause, CAUSE_IMDS);
                ASSERT_CONTAINS(w.diag.items[0].text, B);
                ASSERT_CONTAINS(w.diag.items[0].text, cases[i].key);
                ASSERT_CONTAINS(w.diag.items[0].text, cases[i].wanted);
        }
}

TEST(garbage_about_the_instance_is_refused) {
        static const Answer answers[] = { { "meta-data/instance-id", "../../etc" }, { "meta-data/instance-id", "i-1\ni-2" },
                                          { "meta-data/mac", "0a:00:00:00:00" }, { "meta-data/mac", "0a-00-00-00-00-0a" },
                                          { "meta-data/mac", "0g:00:00:00:00:0a" },
                                          { MACS A "/vpc-ipv6-cidr-blocks", "none" } };
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                _cleanup_(world_done) World w = instance(A "/");
                say(&w, answers[i].path, answers[i].text);
                ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){}, &w.enis, &w.diag), EBADMSG);
                ASSERT_EQ(w.diag.n, 1);
                ASSERT_CONTAINS(w.diag.items[0].text, answers[i].path);
                ASSERT_TRUE(!w.enis.primary);
        }
}

TEST(garbage_in_the_list_is_ignored_with_warnings) {
        _cleanup_(world_done) World w = instance("../../x/\n" A "/\n" A "/\n/\n" B "/x/\n" B "/");
        secondary(&w, B, "1", "1", "10.0.0.2");
        ask(&w, (EniQuestion){ .cards = 4 });
        ASSERT_EQ(w.enis.n, 2);
        ASSERT_EQ(eni(&w, B)->card, 1);
        ASSERT_EQ(diag_count(&w.diag, true), 3);
        ASSERT_EQ(w.diag.n, 3);
}

TEST(a_nul_byte_in_an_answer_is_refused) {
        _cleanup_(world_done) World w = instance(A "/");
        w.imds.cut = strlen("i-0123456789abcdef0") + 1; /* the NUL */
        ASSERT_ERROR(enis_ask(&w.imds, &(EniQuestion){}, &w.enis, &w.diag), EBADMSG);
}

/* ---- kept for the next process ---- */
TEST(answers_survive_as_json) {
        _cleanup_(world_done) World w = instance(A "/\n" B "/\n" C "/\n" Z "/");
        char *skip[] = { (char *)Z, NULL };
        say_of(&w, A, "vpc-ipv6-cidr-blocks", "2600::/56");
        secondary(&w, B, "0", "1", "10.0.0.2\n10.0.0.3");
        secondary(&w, C, NULL, "0", NULL);
        say_of(&w, B, "ipv4-prefix", "10.0.1.16/28");
        say_of(&w, B, "ipv6s", "2600::1");
        say_of(&w, B, "ipv6-prefix", "2600::1:0:0:0/80");
        ask(&w, (EniQuestion){ .cards = 4, .skip = skip });

        json_t *kept = enis_to_json(&w.enis), *again = NULL;
        char *text = json_dumps(kept, 0);
        _cleanup_(enis_done) Enis read = {};
        json_t *parsed = json_loads(text, 0, NULL);
        enis_from_json(parsed, &read);
        again = enis_to_json(&read);
        ASSERT_TRUE(json_equal(kept, again));
        ASSERT_STREQ(read.instance_id, "i-0123456789abcdef0");
        ASSERT_STREQ(read.primary, A);
        ASSERT_TRUE(read.ipv6);
        ASSERT_EQ(read.n, 4);
        ASSERT_EQ(eni_find(&read, Z)->asked_usec, 0);
        ASSERT_EQ(eni_find(&read, C)->card, -1);
        ASSERT_EQ(eni_find(&read, B)->asked_usec, eni(&w, B)->asked_usec);
        ASSERT_LIST(eni_find(&read, B)->ipv4s, "10.0.0.2 10.0.0.3");
        ASSERT_LIST(eni_find(&read, B)->ipv6_prefixes, "2600::1:0:0:0/80");
        forget_asked(&w);
        ASSERT_OK(enis_ask(&w.imds, &(EniQuestion){ .cards = 4 }, &read, &w.diag));
        ASSERT_EQ(count_asked(&w, NULL), count_asked(&w, Z "/device-number") + 5);      /* Z alone */
        free(text);
        json_decref(kept);
        json_decref(again);
        json_decref(parsed);
}

static Enis read_text(const char *text) {
        Enis e = {};
        json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
        enis_from_json(json, &e);
        json_decref(json);
        return e;
}

TEST(an_interface_with_a_damaged_field_is_unknown) {
        static const char *const damaged[] = {
                "\"card\": 256, \"askedUsec\": 1", "\"card\": -1, \"askedUsec\": 1", "\"card\": \"0\", \"askedUsec\": 1",
                "\"device\": 1.0, \"askedUsec\": 1", "\"card\": 1", "\"askedUsec\": -1", "\"askedUsec\": 9223372036854775807",
                "\"ipv4s\": \"10.0.0.1\", \"askedUsec\": 1", "\"ipv4s\": [1], \"askedUsec\": 1",
                "\"ipv4s\": [\"10.0.0.1\", \"x\"], \"askedUsec\": 1", "\"ipv6Prefixes\": [\"2600::/0\"], \"askedUsec\": 1",
        };
        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                _free_ char *text = xasprintf("{\"interfaces\": [{\"mac\": \"" B "\", \"device\": 1, %s}]}", damaged[i]);
                _cleanup_(enis_done) Enis e = read_text(text);
                ASSERT_EQ(e.n, 1);
                ASSERT_STREQ(e.items[0].mac, B);
                ASSERT_EQ(e.items[0].asked_usec, 0);
                ASSERT_EQ(e.items[0].card, -1);
                ASSERT_EQ(e.items[0].device, -1);
                ASSERT_TRUE(!e.items[0].ipv4s);
        }
}

TEST(json_that_is_not_a_snapshot_is_ignored) {
        static const char *const texts[] = { "null", "[]", "1", "{}", "{\"interfaces\": {}}",
                                             "{\"interfaces\": [1, {}, {\"mac\": 1}, {\"mac\": \"x\"}]}",
                                             "{\"instanceId\": \"..\", \"primary\": \"x\", \"ipv6\": true}" };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(enis_done) Enis e = read_text(texts[i]);
                ASSERT_EQ(e.n, 0);
                ASSERT_TRUE(!e.instance_id && !e.primary);
        }
        _cleanup_(enis_done) Enis e = {};
        enis_from_json(NULL, &e);
        ASSERT_EQ(e.n, 0);
}

/* Otherwise nodestrap would never ask again for IPv6. */
TEST(a_snapshot_without_ipv6_has_no_primary_interface) {
        _cleanup_(enis_done) Enis e = read_text("{\"instanceId\": \"i-1\", \"primary\": \"" A "\", \"interfaces\": []}");
        ASSERT_STREQ(e.instance_id, "i-1");
        ASSERT_TRUE(!e.primary);
}

TEST(the_first_of_two_equal_macs_counts) {
        _cleanup_(enis_done) Enis e = read_text("{\"interfaces\": [{\"mac\": \"" B "\", \"card\": 1, \"askedUsec\": 1},"
                                                "{\"mac\": \"0A:00:00:00:00:0B\", \"card\": 2, \"askedUsec\": 1},"
                                                "{\"mac\": \"" A "\"}]}");
        ASSERT_EQ(e.n, 2);
        ASSERT_EQ(eni_find(&e, B)->card, 1);
        ASSERT_STREQ(e.items[0].mac, A);
}

TEST_MAIN
