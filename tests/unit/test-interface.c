/* SPDX-License-Identifier: Apache-2.0
 * The decision for one network interface in every situation. networkd reads the files in
 * tests/boot/network*.sh. */
#include "nic/plan/interface.h"

#include "base/str.h"
#include "plan/planner.h"
#include "test.h"

#define ID     "i-0123456789abcdef0"
#define ETC    DECISIONS_DIR "/" ID "/"
#define BY_MAC DECISIONS_DIR "/by-mac/" ID "/"
#define RUN    "/run/systemd/network/"
#define MAC_A  "0a:00:00:00:00:0a"      /* the primary one, eth0 */
#define MAC_B  "0a:00:00:00:00:0b"      /* eth1 */
#define MAC_C  "0a:00:00:00:00:0c"      /* eth2 */

/* Three interfaces of a machine with several cards, with complete metadata. Each test changes what it
 * needs. */
typedef struct Situation {
        Interface interfaces[3];
        Interfaces present;
        Eni items[3];
        Enis enis;
        Decision kept[4];
        Decisions decisions;
        char *v4[3][4], *v6[3][4], *p4[3][4], *p6[3][4];
        char *files[16], *drop_ins[8], *early[4], *managed[4];
        InterfaceFacts facts;
} Situation;

static char *lit(const char *s) {
        return (char *)s;
}

static void situation_init(Situation *s) {
        static const char *const macs[] = { MAC_A, MAC_B, MAC_C }, *const names[] = { "eth0", "eth1", "eth2" },
                                *const addresses[] = { "10.0.0.10", "10.0.1.20", "10.0.2.30" };
        memset(s, 0, sizeof *s);
        for (int i = 0; i < 3; i++) {
                s->interfaces[i] = (Interface){ .name = lit(names[i]), .mac = lit(macs[i]), .index = (unsigned)i + 2, .driver = lit("ena") };
                s->v4[i][0] = lit(addresses[i]);
                s->items[i] = (Eni){ .mac = lit(macs[i]), .card = i, .device = i > 0, .ipv4s = s->v4[i], .asked_usec = 1 };
        }
        s->present = (Interfaces){ s->interfaces, 3 };
        s->enis = (Enis){ .instance_id = lit(ID), .primary = lit(MAC_A), .items = s->items, .n = 3 };
        s->decisions.items = s->kept;
        s->facts = (InterfaceFacts){
                .interface = &s->interfaces[1], .enis = &s->enis, .decisions = &s->decisions, .interfaces = &s->present,
                .cards = 4, .files = s->files, .drop_ins = s->drop_ins,
                .early = s->early, .managed = s->managed,
        };
}
#define SITUATION(name) Situation name; situation_init(&name)

static void keep(Situation *s, const char *mac, const char *name, Manager manager, bool json) {
        s->kept[s->decisions.n++] = (Decision){ .mac = lit(mac), .name = lit(name), .manager = manager, .json = json };
}

static Plan *plan_of(const Situation *s) {
        _cleanup_(diag_done) Diag diag = {};
        Plan *plan = NULL;
        ASSERT_OK(interface_plan(&s->facts, &plan, &diag));
        ASSERT_EQ(diag.n, 0);
        return plan;
}
#define PLAN(name, s) _cleanup_(plan_freep) Plan *name = plan_of(s)

/* One line for each action: type, target and argument, with short names for folders. */
static char *lines_of(const Plan *plan) {
        static const char *const folders[][2] = { { BY_MAC, "MAC/" }, { ETC, "ETC/" }, { RUN, "" } };
        Text t = {};
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                const char *prefix = "", *target = a->target;
                for (size_t k = 0; k < ARRAY_SIZE(folders) && target == a->target; k++)
                        if (startswith(target, folders[k][0])) {
                                prefix = folders[k][1];
                                target += strlen(folders[k][0]);
                        }
                text_add(&t, "%s %s%s%s%s\n", action_type_to_string(a->type), prefix, target, a->with ? " " : "", a->with ?: "");
        }
        return text_take(&t);
}
static void assert_lines(const Plan *plan, const char *want) {
        _free_ char *lines = lines_of(plan);
        ASSERT_STREQ(lines, want);
}
#define ASSERT_PLANS(s, want) ({ PLAN(_plan, s); assert_lines(_plan, want); })

static const Action *action_at(const Plan *plan, const char *id) {
        const Action *a = plan_find(plan, id);
        if (!a)
                FAIL("no action %s", id);
        return a;
}
static const char *content(const Plan *plan, const char *path) {
        _free_ char *id = xasprintf("write-file:%s", path);
        return action_at(plan, id)->file.content;
}

static char *read_fixture(const char *name) {
        _cleanup_(root_freep) Root *root = NULL;
        char *text = NULL;
        ASSERT_OK(root_new("tests/fixtures/networks", &root));
        ASSERT_OK(root_read(root, name, 1 << 16, &text, NULL));
        return text;
}

#define SECONDARY \
        "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\nwrite-file 70-eks-eth1.network\n" \
        "set-sysctl net/ipv4/conf/eth1/rp_filter 2\nreload-networkd systemd-networkd\n"
#define LEFT_TO_CNI "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\n"

/* ---- the manager ---- */

TEST(facts_and_decisions_select_the_manager) {
        static const struct {
                const char *what, *mac, *name;          /* of the recorded decision, if there is one */
                Manager kept;
                bool init_ran;
                NoManage tag;
                const char *early, *managed;            /* MACs */
                unsigned interface;
                Manager want;
        } cases[] = {
                { .what = "primary",              .want = MANAGER_NETWORKD },
                { .what = "secondary",            .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "after init",           .interface = 1, .init_ran = true, .want = MANAGER_CNI },
                { .what = "primary, after init",  .init_ran = true, .want = MANAGER_CNI },
                { .what = "primary, recorded",    .mac = MAC_A, .name = "eth0", .kept = MANAGER_NETWORKD, .init_ran = true, .want = MANAGER_NETWORKD },
                { .what = "recorded",             .mac = MAC_B, .name = "eth1", .kept = MANAGER_NETWORKD, .init_ran = true, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "after a reboot",       .mac = MAC_B, .name = "eth1", .kept = MANAGER_CNI, .interface = 1, .want = MANAGER_CNI },
                { .what = "under another name",   .mac = MAC_B, .name = "ens6", .kept = MANAGER_CNI, .interface = 1, .want = MANAGER_CNI },
                { .what = "recorded by name",     .name = "eth1", .kept = MANAGER_CNI, .interface = 1, .want = MANAGER_CNI },
                { .what = "other name recorded",  .name = "eth2", .kept = MANAGER_CNI, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "other MAC recorded",   .mac = MAC_C, .name = "eth1", .kept = MANAGER_CNI, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "tagged",               .init_ran = true, .tag = NO_MANAGE_TAGGED, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "not tagged",           .init_ran = true, .tag = NO_MANAGE_UNTAGGED, .interface = 1, .want = MANAGER_CNI },
                { .what = "tags unknown",         .init_ran = true, .tag = NO_MANAGE_UNKNOWN, .interface = 1, .want = MANAGER_CNI },
                { .what = "primary, recorded for the CNI", .mac = MAC_A, .name = "eth0", .kept = MANAGER_CNI, .want = MANAGER_NETWORKD },
                { .what = "primary, name alone",  .name = "eth0", .kept = MANAGER_CNI, .want = MANAGER_NETWORKD },
                { .what = "primary, this boot",   .name = "eth0", .kept = MANAGER_CNI, .init_ran = true, .want = MANAGER_CNI },
                { .what = "primary, MAC, this boot", .mac = MAC_A, .name = "eth0", .kept = MANAGER_CNI, .init_ran = true, .want = MANAGER_CNI },
                { .what = "primary, CNI, early",  .mac = MAC_A, .name = "eth0", .kept = MANAGER_CNI, .init_ran = true, .early = MAC_A, .want = MANAGER_NETWORKD },
                { .what = "primary, CNI, runs",   .mac = MAC_A, .name = "eth0", .kept = MANAGER_CNI, .init_ran = true, .managed = MAC_A, .want = MANAGER_NETWORKD },
                { .what = "primary, it runs",     .init_ran = true, .managed = MAC_A, .want = MANAGER_NETWORKD },
                { .what = "primary, early",       .init_ran = true, .early = MAC_A, .want = MANAGER_NETWORKD },
                { .what = "runs",                 .init_ran = true, .managed = MAC_B, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "another runs",         .init_ran = true, .managed = MAC_C, .interface = 1, .want = MANAGER_CNI },
                { .what = "early",                .init_ran = true, .early = MAC_B, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "another early",        .init_ran = true, .early = MAC_C, .interface = 1, .want = MANAGER_CNI },
                { .what = "early, not tagged",    .init_ran = true, .early = MAC_B, .tag = NO_MANAGE_UNTAGGED, .interface = 1, .want = MANAGER_NETWORKD },
                { .what = "recorded and early",   .mac = MAC_B, .name = "eth1", .kept = MANAGER_CNI, .init_ran = true, .early = MAC_B, .interface = 1, .want = MANAGER_CNI },
                { .what = "tagged too late",      .mac = MAC_B, .name = "eth1", .kept = MANAGER_CNI, .init_ran = true, .tag = NO_MANAGE_TAGGED, .interface = 1, .want = MANAGER_CNI },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SITUATION(s);
                if (cases[i].kept)
                        keep(&s, cases[i].mac, cases[i].name, cases[i].kept, false);
                s.facts.interface = &s.interfaces[cases[i].interface];
                s.facts.init_ran = cases[i].init_ran;
                s.facts.no_manage = cases[i].tag;
                s.early[0] = (char *)cases[i].early;
                s.managed[0] = (char *)cases[i].managed;
                Manager got = interface_manager(&s.facts);
                if (got != cases[i].want)
                        FAIL("%s: %s", cases[i].what, manager_to_string(got));
        }
}

/* ---- do the facts suffice? ---- */

TEST(incomplete_facts_delay_the_decision) {
        static const struct {
                const char *what;
                int card, device;
                unsigned cards;
                Judgement want;
                const char *why;        /* a part of it */
        } cases[] = {
                { "all is known",                   1, 1,  4, JUDGEMENT_DECIDED, NULL },
                { "no device yet",                  1, -1, 4, JUDGEMENT_LATE, "device number" },
                { "no card yet",                    -1, 1, 4, JUDGEMENT_LATE, "several" },
                { "no card, of an unknown type",    -1, 1, 0, JUDGEMENT_LATE, "not known" },
                { "no card where there is one",     -1, 1, 1, JUDGEMENT_DECIDED, NULL },
                { "the primary's place",            0, 0,  4, JUDGEMENT_LATE, "primary" },
                { "the primary's place, one card",  -1, 0, 1, JUDGEMENT_LATE, "primary" },
                { "device 0 of another card",       3, 0,  4, JUDGEMENT_DECIDED, NULL },
                { "the last of 32 cards",           31, 1, 32, JUDGEMENT_DECIDED, NULL },
                { "a card, of an unknown type",     2, 1,  0, JUDGEMENT_DECIDED, NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SITUATION(s);
                _free_ char *why = NULL;
                s.items[1].card = cases[i].card;
                s.items[1].device = cases[i].device;
                s.facts.cards = cases[i].cards;
                if (interface_judge(&s.facts, &why) != cases[i].want)
                        FAIL("%s: %s", cases[i].what, why ?: "decided");
                if (cases[i].why)
                        ASSERT_CONTAINS(why, cases[i].why);
                else
                        ASSERT_TRUE(!why);
                if (cases[i].want == JUDGEMENT_LATE)
                        ASSERT_PLANS(&s, "");
        }
}

TEST(an_interface_is_late_until_metadata_lists_it) {
        SITUATION(s);
        _free_ char *id = NULL, *primary = NULL, *listed = NULL;
        s.enis.n = 1;
        ASSERT_EQ(interface_judge(&s.facts, &listed), JUDGEMENT_LATE);
        ASSERT_CONTAINS(listed, "list");
        s.enis.primary = NULL;
        ASSERT_EQ(interface_judge(&s.facts, &primary), JUDGEMENT_LATE);
        s.enis.instance_id = NULL;
        ASSERT_EQ(interface_judge(&s.facts, &id), JUDGEMENT_LATE);
        ASSERT_PLANS(&s, "");
}

TEST(an_interface_without_an_address_is_ignored) {
        SITUATION(s);
        _free_ char *why = NULL, *none = NULL;
        s.items[1].ipv4s = NULL;
        ASSERT_EQ(interface_judge(&s.facts, &why), JUDGEMENT_IGNORED);
        ASSERT_CONTAINS(why, "no address");
        ASSERT_PLANS(&s, "");
        s.v6[1][0] = lit("2001:db8::b");
        s.items[1].ipv6s = s.v6[1];
        ASSERT_EQ(interface_judge(&s.facts, &none), JUDGEMENT_DECIDED);
}

/* The primary interface may get its address later, and the decision cni needs no metadata. */
TEST(primary_and_cni_interfaces_need_no_metadata) {
        SITUATION(s);
        _free_ char *why = NULL;
        s.enis.n = 0;
        s.facts.interface = &s.interfaces[0];
        ASSERT_EQ(interface_judge(&s.facts, &why), JUDGEMENT_DECIDED);
        s.facts.interface = &s.interfaces[1];
        s.facts.init_ran = true;
        ASSERT_EQ(interface_judge(&s.facts, &why), JUDGEMENT_DECIDED);
        ASSERT_PLANS(&s, LEFT_TO_CNI);
}

/* ---- the plan ---- */

TEST(plan_of_the_primary_interface) {
        SITUATION(s);
        s.facts.interface = &s.interfaces[0];
        PLAN(plan, &s);
        assert_lines(plan, "write-file MAC/" MAC_A "\nwrite-file ETC/eth0\nwrite-file 70-eks-eth0.network\n"
                           "write-file 80-ec2.network.d/10-eks-disable.conf\nreload-networkd systemd-networkd\n");
        ASSERT_STREQ(content(plan, ETC "eth0"), "io.systemd.Network");
        ASSERT_STREQ(content(plan, BY_MAC MAC_A), "{\"interface\":\"eth0\",\"manager\":\"io.systemd.Network\"}");
        ASSERT_STREQ(content(plan, RUN "80-ec2.network.d/10-eks-disable.conf"), "[Match]\nName=none");
        ASSERT_TRUE(!strstr(content(plan, RUN "70-eks-eth0.network"), "Table"));
        ASSERT_TRUE(startswith(plan->id, "sha256:"));
}

TEST(plan_of_a_secondary_interface) {
        SITUATION(s);
        ASSERT_PLANS(&s, SECONDARY);
        s.facts.init_ran = true;
        ASSERT_PLANS(&s, LEFT_TO_CNI);
        keep(&s, MAC_B, "eth1", MANAGER_NETWORKD, false);
        ASSERT_PLANS(&s, SECONDARY);
}

/* A power cut, or networkd that starts meanwhile, must not find half a configuration, or a file without
 * its decision. */
TEST(decisions_come_before_files_and_files_before_the_reload) {
        SITUATION(s);
        s.facts.interface = &s.interfaces[0];
        s.drop_ins[0] = lit("/etc/systemd/network/70-eth0.network.d/a.conf");
        PLAN(plan, &s);
        const Action *file = action_at(plan, "write-file:" RUN "70-eks-eth0.network"),
                     *off = action_at(plan, "write-file:" RUN "80-ec2.network.d/10-eks-disable.conf"),
                     *link = action_at(plan, "link-file:" RUN "70-eks-eth0.network.d/a.conf"),
                     *reload = action_at(plan, "reload-networkd:systemd-networkd"),
                     *by_mac = action_at(plan, "write-file:" BY_MAC MAC_A), *by_name = action_at(plan, "write-file:" ETC "eth0");
        ASSERT_TRUE(strv_contains(link->after, by_mac->id) && strv_contains(link->after, by_name->id));
        ASSERT_TRUE(strv_contains(file->after, link->id) && strv_contains(off->after, file->id));
        ASSERT_EQ(strv_length(reload->after), 3);       /* the changes that it loads, not the decision */
        ASSERT_TRUE(!strv_contains(reload->after, by_mac->id));
        ASSERT_TRUE(by_mac->lenient && by_name->lenient && !file->lenient && !link->lenient && !reload->lenient);
}

TEST(a_failed_rp_filter_does_not_block_the_reload) {
        SITUATION(s);
        PLAN(plan, &s);
        const Action *filter = action_at(plan, "set-sysctl:net/ipv4/conf/eth1/rp_filter"),
                     *reload = action_at(plan, "reload-networkd:systemd-networkd");
        ASSERT_TRUE(filter->lenient && strv_contains(reload->after_any, filter->id));
        s.v6[1][0] = lit("2001:db8::b");
        s.items[1].ipv4s = NULL;
        s.items[1].ipv6s = s.v6[1];
        ASSERT_PLANS(&s, "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\nwrite-file 70-eks-eth1.network\n"
                         "reload-networkd systemd-networkd\n");
}

/* The next boot would leave the primary interface alone. nodeadm knows no MACs and would do the same. */
TEST(the_primary_mac_is_never_recorded_for_the_cni) {
        SITUATION(s);
        s.facts.interface = &s.interfaces[0];
        s.facts.init_ran = true;
        PLAN(plan, &s);
        assert_lines(plan, "write-file ETC/eth0\n");
        ASSERT_STREQ(content(plan, ETC "eth0"), "cni");
        s.facts.init_ran = false;
        keep(&s, NULL, "eth0", MANAGER_CNI, false);
        PLAN(next, &s);
        ASSERT_STREQ(content(next, BY_MAC MAC_A), "{\"interface\":\"eth0\",\"manager\":\"io.systemd.Network\"}");
        ASSERT_STREQ(content(next, ETC "eth0"), "io.systemd.Network");
}

/* With a read-only /etc no decision is recorded. Another event must not take files from interfaces that
 * run. */
TEST(a_managed_interface_stays_with_networkd_without_a_decision) {
        SITUATION(s);
        s.facts.init_ran = true;
        s.files[0] = lit("70-eks-eth1.network");
        s.managed[0] = lit(MAC_B);
        ASSERT_PLANS(&s, SECONDARY);
        s.facts.no_manage = NO_MANAGE_UNKNOWN;
        ASSERT_PLANS(&s, SECONDARY);
        s.facts.no_manage = NO_MANAGE_NOT_ASKED;
        s.managed[0] = lit(MAC_C);
        ASSERT_PLANS(&s, LEFT_TO_CNI "remove-file 70-eks-eth1.network\nreload-networkd systemd-networkd\n");
        s.managed[0] = lit(MAC_B);
        keep(&s, MAC_B, "eth1", MANAGER_CNI, false);    /* a recorded decision, not a guess */
        ASSERT_PLANS(&s, LEFT_TO_CNI "remove-file 70-eks-eth1.network\nreload-networkd systemd-networkd\n");
}

TEST(a_decision_file_of_nodeadm_keeps_its_json_form) {
        SITUATION(s);
        keep(&s, MAC_C, "eth1", MANAGER_CNI, true);     /* another interface had the name */
        PLAN(plan, &s);
        ASSERT_STREQ(content(plan, ETC "eth1"), "{\"mac\":\"" MAC_B "\",\"manager\":\"io.systemd.Network\"}");
        ASSERT_STREQ(content(plan, BY_MAC MAC_B), "{\"interface\":\"eth1\",\"manager\":\"io.systemd.Network\"}");
}

TEST(without_readable_tags_no_decision_is_recorded) {
        SITUATION(s);
        s.facts.init_ran = true;
        s.facts.no_manage = NO_MANAGE_UNKNOWN;
        PLAN(plan, &s);
        assert_lines(plan, "");
        ASSERT_EQ(plan->warnings.n, 1);
        ASSERT_STREQ(plan->warnings.items[0].code, "no-manage-unknown");
        keep(&s, MAC_B, "eth1", MANAGER_NETWORKD, false);
        ASSERT_PLANS(&s, SECONDARY);
        s.kept[0].manager = MANAGER_CNI;
        ASSERT_PLANS(&s, LEFT_TO_CNI);
}

TEST(drop_ins_of_the_image_are_linked) {
        SITUATION(s);
        s.drop_ins[0] = lit("/usr/lib/systemd/network/70-eth1.network.d/b.conf");
        s.drop_ins[1] = lit("/run/systemd/network/70-eth1.network.d/eni.conf");
        s.drop_ins[2] = lit("/etc/systemd/network/70-eth1.network.d/b.conf");
        ASSERT_PLANS(&s, "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\n"
                         "link-file 70-eks-eth1.network.d/b.conf /etc/systemd/network/70-eth1.network.d/b.conf\n"
                         "link-file 70-eks-eth1.network.d/eni.conf /run/systemd/network/70-eth1.network.d/eni.conf\n"
                         "write-file 70-eks-eth1.network\n"
                         "set-sysctl net/ipv4/conf/eth1/rp_filter 2\nreload-networkd systemd-networkd\n");
}

TEST(links_to_missing_drop_ins_are_removed) {
        SITUATION(s);
        s.drop_ins[0] = lit("/usr/lib/systemd/network/70-eth1.network.d/b.conf");
        s.files[0] = lit("70-eks-eth1.network.d");
        s.files[1] = lit("70-eks-eth1.network.d/a.conf");
        s.files[2] = lit("70-eks-eth1.network.d/b.conf");
        s.files[3] = lit("70-eks-eth10.network.d/a.conf");
        ASSERT_PLANS(&s, "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\n"
                         "link-file 70-eks-eth1.network.d/b.conf /usr/lib/systemd/network/70-eth1.network.d/b.conf\n"
                         "remove-file 70-eks-eth1.network.d/a.conf\nwrite-file 70-eks-eth1.network\n"
                         "set-sysctl net/ipv4/conf/eth1/rp_filter 2\nreload-networkd systemd-networkd\n");
}

/* ---- names change ---- */

TEST(a_renamed_interface_gets_new_files) {
        SITUATION(s);
        keep(&s, MAC_B, "ens6", MANAGER_NETWORKD, false);
        keep(&s, MAC_B, "ens6", MANAGER_NETWORKD, true);        /* one file of each kind */
        s.facts.init_ran = true;
        s.files[0] = lit("70-eks-ens6.network");
        s.files[1] = lit("70-eks-ens6.network.d");
        s.files[2] = lit("70-eks-ens6.network.d/eni.conf");
        ASSERT_PLANS(&s, "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\nremove-file ETC/ens6\n"
                         "write-file 70-eks-eth1.network\nremove-file 70-eks-ens6.network\n"
                         "remove-file 70-eks-ens6.network.d/eni.conf\nremove-file 70-eks-ens6.network.d\n"
                         "set-sysctl net/ipv4/conf/eth1/rp_filter 2\nreload-networkd systemd-networkd\n");
}

TEST(swapped_names_leave_the_file_of_the_other_interface) {
        SITUATION(s);
        keep(&s, MAC_B, "eth2", MANAGER_NETWORKD, false);
        s.files[0] = lit("70-eks-eth2.network");        /* the event of eth2 replaces this one */
        ASSERT_PLANS(&s, "write-file MAC/" MAC_B "\nwrite-file ETC/eth1\nremove-file ETC/eth2\n"
                         "write-file 70-eks-eth1.network\n"
                         "set-sysctl net/ipv4/conf/eth1/rp_filter 2\nreload-networkd systemd-networkd\n");
        keep(&s, MAC_C, "eth2", MANAGER_CNI, false);    /* its event has come, so the files under this name are its own */
        ASSERT_PLANS(&s, SECONDARY);
}

TEST(swapped_names_leave_the_decision_of_the_other_interface) {
        SITUATION(s);
        keep(&s, MAC_B, "eth2", MANAGER_NETWORKD, false);
        keep(&s, MAC_C, "eth1", MANAGER_CNI, false);    /* its event may have come first and written what this plan would remove */
        ASSERT_PLANS(&s, SECONDARY);
}

TEST(a_file_of_another_interface_under_the_same_name_is_removed) {
        SITUATION(s);
        s.facts.init_ran = true;
        keep(&s, MAC_C, "eth1", MANAGER_NETWORKD, false);
        s.files[0] = lit("70-eks-eth1.network");
        s.files[1] = lit("70-eks-eth10.network");
        ASSERT_PLANS(&s, LEFT_TO_CNI "remove-file 70-eks-eth1.network\nreload-networkd systemd-networkd\n");
}

static Plan *removal_of(const Situation *s, const char *name) {
        _cleanup_(diag_done) Diag diag = {};
        Plan *plan = NULL;
        ASSERT_OK(interface_plan_removal(name, &s->facts, &plan, &diag));
        return plan;
}
#define ASSERT_REMOVES(s, name, want) ({ _cleanup_(plan_freep) Plan *_plan = removal_of(s, name); assert_lines(_plan, want); })

TEST(removal_deletes_the_files_of_an_interface) {
        SITUATION(s);
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(plan_freep) Plan *bad = NULL;
        s.facts.interface = NULL;
        s.enis.instance_id = NULL;
        ASSERT_REMOVES(&s, "eth1", "remove-file 70-eks-eth1.network\nreload-networkd systemd-networkd\n");
        static const char *const files[] = { "70-eks-eth1.network", "70-eks-eth1.network.d", "70-eks-eth1.network.d/b.conf",
                                             "70-eks-eth10.network.d/b.conf", "80-ec2.network.d" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                s.files[i] = lit(files[i]);
        ASSERT_REMOVES(&s, "eth1", "remove-file 70-eks-eth1.network\nremove-file 70-eks-eth1.network.d/b.conf\n"
                                   "remove-file 70-eks-eth1.network.d\nreload-networkd systemd-networkd\n");
        ASSERT_ERROR(interface_plan_removal("../eth1", &s.facts, &bad, &diag), EINVAL);
        ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_INTERFACE);
}

/* Interfaces of the CNI come and go while the node runs. Settings of other interfaces stay. */
TEST(removal_deletes_the_decision_for_a_cni_interface) {
        static const char files[] = "remove-file 70-eks-eth1.network\n", reload[] = "reload-networkd systemd-networkd\n";
        _free_ char *with = xasprintf("%sremove-file MAC/" MAC_B "\nremove-file ETC/eth1\n%s", files, reload),
                    *anothers = xasprintf("%sremove-file MAC/" MAC_B "\n%s", files, reload),
                    *without = xasprintf("%s%s", files, reload);
        SITUATION(s);
        s.interfaces[1] = s.interfaces[2];
        s.present.n = 2;
        keep(&s, MAC_B, "eth1", MANAGER_CNI, false);
        keep(&s, MAC_C, "eth2", MANAGER_CNI, false);
        ASSERT_REMOVES(&s, "eth1", with);
        s.kept[1].name = lit("eth1");           /* the interface that has the name now wrote this decision */
        ASSERT_REMOVES(&s, "eth1", anothers);
        s.kept[1].name = lit("eth2");
        s.interfaces[1] = (Interface){ .name = lit("eth7"), .mac = lit(MAC_B), .driver = lit("ena") };  /* renamed */
        ASSERT_REMOVES(&s, "eth1", without);
        s.present.n = 1;
        s.kept[0].manager = MANAGER_NETWORKD;
        ASSERT_REMOVES(&s, "eth1", without);
        s.kept[0] = (Decision){ .name = lit("eth1"), .manager = MANAGER_CNI };
        ASSERT_REMOVES(&s, "eth1", without);
}

TEST(names_that_are_not_file_names_are_refused) {
        static const struct { const char *id, *name, *mac; } cases[] = {
                { "../../..", "eth1", MAC_B }, { ID, "../x", MAC_B }, { ID, "eth1", "../x" }, { ID, "eth1", "" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                SITUATION(s);
                _cleanup_(diag_done) Diag diag = {};
                Plan *plan = NULL;
                s.enis.instance_id = lit(cases[i].id);
                s.interfaces[1].name = lit(cases[i].name);
                s.interfaces[1].mac = s.items[1].mac = lit(cases[i].mac);
                ASSERT_ERROR(interface_plan(&s.facts, &plan, &diag), EINVAL);
                ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_INTERFACE);
        }
}

/* ---- files ---- */

/* nodeadm-internal wrote the fixture for this MAC. The files must be equal byte for byte. */
TEST(the_primary_file_has_the_bytes_of_nodeadm) {
        _free_ char *want = read_fixture("/primary.network"),
                    *got = network_file(&(Eni){ .mac = lit("0a:1b:2c:3d:4e:5f"), .card = -1, .device = -1 }, true);
        ASSERT_STREQ(got, want);
}

TEST(the_mac_is_read_from_a_network_file) {
        static const char *const none[] = { "", "[Match]\nName=none", "[Match]\nPermanentMACAddress=", "PermanentMACAddress=" MAC_B "\n",
                                            "[Match]\nPermanentMACAddress=0A:00:00:00:00:0B\n", "\nPermanentMACAddress=0a:00:00:00:00:0" };
        for (int i = 0; i < 2; i++) {
                Eni eni = { .mac = lit(MAC_B), .card = 1, .device = 1 };
                _free_ char *file = network_file(&eni, i > 0), *mac = network_file_mac(file);
                ASSERT_STREQ(mac, MAC_B);
        }
        for (size_t i = 0; i < ARRAY_SIZE(none); i++)
                if (network_file_mac(none[i]))
                        FAIL("%s", none[i]);
}

TEST(a_secondary_file_has_addresses_and_prefixes_of_both_families) {
        SITUATION(s);
        Eni *eni = &s.items[1];
        s.v4[1][1] = lit("10.0.1.21");
        s.p4[1][0] = lit("10.0.1.32/28");
        s.v6[1][0] = lit("2001:db8::b");
        s.p6[1][0] = lit("2001:db8:0:0:1::/80");
        *eni = (Eni){ .mac = eni->mac, .card = 31, .device = 1, .ipv4s = s.v4[1], .ipv6s = s.v6[1],
                      .ipv4_prefixes = s.p4[1], .ipv6_prefixes = s.p6[1] };
        _free_ char *want = read_fixture("/secondary.network"), *got = network_file(eni, false);
        ASSERT_STREQ(got, want);
}

TEST(metrics_and_tables_of_32_cards_are_unique) {
        bool metrics[4096] = {}, tables[16384] = {};
        for (int card = 0; card < 32; card++)
                for (int device = card == 0; device < 4; device++) {
                        char metric[32], table[32];
                        _free_ char *file = network_file(&(Eni){ .mac = lit(MAC_B), .card = card, .device = device }, false);
                        snprintf(metric, sizeof metric, "Metric=%d\n", 512 + 100 * card + device);
                        snprintf(table, sizeof table, "Table=%d\n", 10000 + 100 * card + device);
                        ASSERT_CONTAINS(file, metric);
                        ASSERT_CONTAINS(file, table);
                        ASSERT_TRUE(!metrics[INTERFACE_METRIC(card, device)] && !tables[INTERFACE_TABLE(card, device)]);
                        metrics[INTERFACE_METRIC(card, device)] = tables[INTERFACE_TABLE(card, device)] = true;
                }
}

TEST_MAIN
