/* SPDX-License-Identifier: Apache-2.0
 * Compares the links of networkd with the decisions. Debian 12 and 13 printed the answers, which are files
 * in the corpus of the fuzzer. */
#include "nic/plan/links.h"

#include "test.h"
#include "base/root.h"
#include "base/str.h"

#define CORPUS "/tests/fuzz/corpus/fuzz-links/"

static Links read_answer(const char *file) {
        _cleanup_(root_freep) Root *here = NULL;
        _free_ char *path = xasprintf(CORPUS "%s", file), *text = NULL;
        Links links = {};
        size_t size;
        ASSERT_OK(root_new(".", &here));
        ASSERT_OK(root_read(here, path, 1U << 20, &text, &size));
        ASSERT_OK(links_parse(text, size, &links));
        return links;
}

/* "1:lo=unmanaged/routable 2:v1=unmanaged/degraded " */
static char *said_by(const char *file) {
        _cleanup_(links_done) Links links = read_answer(file);
        Text t = {};
        for (size_t i = 0; i < links.n; i++)
                text_add(&t, "%u:%s=%s/%s ", links.items[i].index, links.items[i].name, links.items[i].setup, links.items[i].operational);
        return text_take(&t);
}

TEST(answers_of_systemd_252_and_257_are_read) {
        static const char *const files[] = { "describe-252", "describe-257", "networkctl-252", "networkctl-257" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _free_ char *said = said_by(files[i]);
                ASSERT_STREQ(said, "1:lo=unmanaged/routable 2:v1=unmanaged/degraded 3:v0=configured/routable 4:v2=unmanaged/off "
                                   "5:eth1=configuring/no-carrier ");
        }
}

/* "eth5 eth6:stuck " */
static char *ends_of(const char *file) {
        _cleanup_(links_done) Links links = read_answer(file);
        Text t = {};
        for (size_t i = 0; i < links.n; i++)
                text_add(&t, "%s%s%s ", links.items[i].name, links.items[i].stuck ? ":stuck" : "", links.items[i].unrouted ? ":unrouted" : "");
        return text_take(&t);
}

/* Answers of systemd 252: a reload came between a lease and its address; a link took another router as its
 * own. */
TEST(stuck_and_unrouted_links_are_found) {
        _free_ char *stuck = ends_of("describe-252-stuck"), *unrouted = ends_of("describe-252-unrouted"), *well = ends_of("describe-257");
        _cleanup_(links_done) Links links = {};
        ASSERT_STREQ(stuck, "eth5 eth6:stuck ");
        ASSERT_STREQ(unrouted, "eth29 eth30:unrouted ");
        ASSERT_STREQ(well, "lo v1 v0 v2 eth1 ");
        static const char removed[] = "{\"Interfaces\":[{\"Name\":\"a\",\"Routes\":[{\"ConfigState\":\"removing\"}]},"
                                      "{\"Name\":\"b\",\"Routes\":[{},{\"ConfigState\":\"requesting,removing\"}]}]}";
        ASSERT_OK(links_parse(removed, strlen(removed), &links));
        ASSERT_TRUE(!links.items[0].stuck && links.items[1].stuck);
}

#define ROUTE(source, bits, byte) "{\"ConfigSource\":\"" source "\",\"Destination\":[32,1," byte ",0],\"DestinationPrefixLength\":" bits "}"
#define LINK(source, routes) "{\"Interfaces\":[{\"Name\":\"a\",\"Addresses\":[{\"ConfigSource\":\"" source "\",\"Address\":[32,1,7,5]}],\"Routes\":[" routes "]}]}"
TEST(a_dhcpv6_link_without_its_router_is_unrouted) {
        static const struct { const char *json; bool unrouted; } links[] = {
                { LINK("DHCPv6", ""), true },
                { LINK("DHCPv4", ""), false },
                { LINK("DHCPv6", ROUTE("DHCPv4", "24", "7")), true },
                { LINK("DHCPv6", ROUTE("NDisc", "24", "7")), false },
                { LINK("DHCPv6", ROUTE("NDisc", "0", "9")), false },            /* no subnet is announced */
                { LINK("DHCPv6", ROUTE("NDisc", "0", "9") "," ROUTE("NDisc", "24", "8")), true },       /* the subnet of another link */
                { LINK("DHCPv6", ROUTE("NDisc", "24", "8") "," ROUTE("NDisc", "24", "7")), false },
                { "{\"Interfaces\":[{\"Name\":\"a\",\"Addresses\":7,\"Routes\":[[],{\"ConfigSource\":\"NDisc\"}]}]}", false },
                { LINK("DHCPv6", ROUTE("NDisc", "-8", "7")), false },
                { LINK("DHCPv6", ROUTE("NDisc", "99999999999", "7")), true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                _cleanup_(links_done) Links l = {};
                ASSERT_OK(links_parse(links[i].json, strlen(links[i].json), &l));
                ASSERT_EQ(l.items[0].unrouted, links[i].unrouted);
        }
}

TEST(invalid_answers_are_refused) {
        static const char *const texts[] = { "", "Unit dbus-org.freedesktop.network1.service not found.", "[]", "{}",
                                             "{\"Interfaces\":{}}", "{\"Interfaces\":[", "{\"Interfaces\":[]}x" };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                Links links = {};
                ASSERT_ERROR(links_parse(texts[i], strlen(texts[i]), &links), EBADMSG);
        }
}

TEST(the_network_file_of_a_link_is_read) {
        _free_ char *files = NULL;
        Link with = link_from_state("v0", 2, "ADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/70-v0.network\n"), without = link_from_state("v1", 3, "ADMIN_STATE=unmanaged\n");
        files = xasprintf("%s %s", with.file, without.file ?: "none");
        ASSERT_STREQ(files, "/run/systemd/network/70-v0.network none");
        Links both = { .items = xcalloc(2, sizeof(Link)), .n = 2 };
        both.items[0] = with, both.items[1] = without;
        links_done(&both);
        static const char json[] = "{\"Interfaces\":[{\"Name\":\"a\",\"NetworkFile\":\"/b\"},{\"Name\":\"c\"}]}";
        ASSERT_OK(links_parse(json, strlen(json), &both));
        ASSERT_STREQ(both.items[0].file, "/b");
        ASSERT_TRUE(!both.items[1].file);
        links_done(&both);
}

TEST(links_without_a_name_are_ignored) {
        _free_ char *said = said_by("odd-members");
        ASSERT_STREQ(said, "0:a=/ ");
}

/* ---- a table of situations ---- */

/* Words of a situation. interfaces: "eth0:0a:00 eth1:0a:01!", where ! is the mark of the udev rule. links:
 * "eth0=configured", or "eth0=configured,/a/b.network" with the file. Both: "eth0#7" with an index. decisions: "0a:01/eth1=networkd", or
 * a bare name without the MAC. listed: what IMDS lists, "0a:01+" with an address and "0a:01-" without one.
 * The primary interface is 0a:00. */
typedef struct Situation {
        const char *name, *interfaces, *links, *decisions, *listed;
        bool settled;
        uint64_t since;                 /* when udev got the interfaces */
        const char *unready[4];         /* the beginning of each sentence */
        const char *foreign;            /* the beginning of the sentence about a foreign file */
} Situation;

typedef struct Facts { Interfaces interfaces; Links links; Decisions decisions; Enis enis; } Facts;

static char **words_of(const char *text) {
        _free_ char *copy = xstrdup(text ?: "");
        char **words = NULL, *rest = copy, *word;
        while ((word = strsep(&rest, " ")))
                if (*word)
                        strv_add(&words, word);
        return words;
}

/* Cuts a word in two at the last such character. Returns the second part, or "" if there is none. */
static const char *cut(char *word, char at) {
        char *behind = strrchr(word, at);
        if (!behind)
                return "";
        *behind = 0;
        return behind + 1;
}

static void facts_done(Facts *f) {
        interfaces_done(&f->interfaces);
        links_done(&f->links);
        decisions_done(&f->decisions);
        enis_done(&f->enis);
}

static void add_interface(Interfaces *to, char *word) {
        bool ours = endswith(word, "!");
        char *colon = strchr(word, ':');
        word[strcspn(word, "!")] = 0;
        *colon = 0;
        unsigned index = (unsigned)atoi(cut(word, '#'));
        to->items = xrealloc(to->items, to->n + 1, sizeof *to->items);
        to->items[to->n++] = (Interface){ .name = xstrdup(word), .mac = xstrdup(colon + 1), .index = index, .ours = ours };
}

static void add_link(Links *to, char *word) {
        char *comma = strchr(word, ',');
        _free_ char *file = comma ? xstrdup(comma + 1) : NULL;
        word[strcspn(word, ",")] = 0;
        const char *state = cut(word, '=');
        unsigned index = (unsigned)atoi(cut(word, '#'));
        to->items = xrealloc(to->items, to->n + 1, sizeof *to->items);
        to->items[to->n++] = (Link){ .name = xstrdup(word), .index = index, .setup = xstrdup(state), .operational = xstrdup("routable"),
                                        .file = TAKE_PTR(file) };
}

static void add_decision(Decisions *to, char *word) {
        const char *manager = cut(word, '=');
        const char *name = cut(word, '/');
        bool bare = !*name;
        to->items = xrealloc(to->items, to->n + 1, sizeof *to->items);
        to->items[to->n++] = (Decision){
                .mac = bare ? NULL : xstrdup(word),
                .name = xstrdup(bare ? word : name),
                .manager = streq(manager, "networkd") ? MANAGER_NETWORKD : MANAGER_CNI,
        };
}

static void add_eni(Enis *to, char *word) {
        char kind = word[strlen(word) - 1];
        word[strlen(word) - 1] = 0;
        to->items = xrealloc(to->items, to->n + 1, sizeof *to->items);
        Eni *eni = &to->items[to->n++];
        *eni = (Eni){ .mac = xstrdup(word), .card = 1, .device = 1, .asked_usec = 1 };
        if (kind == '+')
                strv_add(&eni->ipv4s, "10.0.0.1");
}

static void facts_make(const Situation *s, Facts *f) {
        _strv_ char **interfaces = words_of(s->interfaces), **links = words_of(s->links);
        _strv_ char **decisions = words_of(s->decisions), **listed = words_of(s->listed);
        f->enis.primary = xstrdup("0a:00");
        for (char **w = interfaces; w && *w; w++)
                add_interface(&f->interfaces, *w);
        for (char **w = links; w && *w; w++)
                add_link(&f->links, *w);
        for (char **w = decisions; w && *w; w++)
                add_decision(&f->decisions, *w);
        for (char **w = listed; w && *w; w++)
                add_eni(&f->enis, *w);
}

static const Situation situations[] = {
        { .name = "the primary interface is configured", .interfaces = "eth0:0a:00 lo:00:00", .links = "lo=unmanaged eth0=configured" },
        { .name = "the primary interface is being configured",
          .interfaces = "eth0:0a:00 lo:00:00",
          .links = "lo=unmanaged eth0=configuring",
          .unready = { "eth0 (0a:00), the primary interface, is configuring, routable, instead of configured" } },
        { .name = "networkd has not seen the primary interface yet",
          .interfaces = "eth0:0a:00 lo:00:00",
          .links = "lo=unmanaged",
          .unready = { "eth0 (0a:00), the primary interface, is not known to systemd-networkd" } },
        { .name = "networkd has not seen yet that the primary interface came again",
          .interfaces = "eth0#7:0a:00",
          .links = "eth0#2=configured",
          .unready = { "eth0 (0a:00), the primary interface, is not known to systemd-networkd" } },
        { .name = "networkd gives no index",
          .interfaces = "eth0#7:0a:00",
          .links = "eth0=configured" },
        { .name = "networkd has configured the primary interface that came again",
          .interfaces = "eth0#7:0a:00",
          .links = "eth0#2=linger eth0#7=configured" },
        { .name = "the kernel has not seen the primary interface yet",
          .interfaces = "lo:00:00",
          .links = "lo=unmanaged",
          .unready = { "the primary interface (0a:00) has not appeared" } },
        { .name = "the primary interface is unmanaged",
          .interfaces = "eth0:0a:00",
          .links = "eth0=unmanaged",
          .unready = { "eth0 (0a:00), the primary interface, is unmanaged" } },
        { .name = "the primary interface is unmanaged and decided for the CNI",
          .interfaces = "eth0:0a:00",
          .links = "eth0=unmanaged",
          .decisions = "0a:00/eth0=cni",
          .unready = { "eth0 (0a:00), the primary interface, is unmanaged" } },
        { .name = "two interfaces are configured",
          .interfaces = "eth0:0a:00! eth1:0a:01!",
          .links = "eth0=configured eth1=configured",
          .decisions = "0a:01/eth1=networkd" },
        { .name = "an interface decided for networkd is pending",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=pending",
          .decisions = "0a:01/eth1=networkd",
          .unready = { "eth1 (0a:01), decided for systemd-networkd, is pending, routable, instead of configured" } },
        { .name = "an interface decided for networkd has another name now",
          .interfaces = "eth0:0a:00 eth7:0a:01!",
          .links = "eth0=configured eth7=unmanaged",
          .decisions = "0a:01/eth1=networkd",
          .unready = { "eth7 (0a:01), decided for systemd-networkd, is unmanaged, routable, instead of configured" } },
        { .name = "an interface decided for the CNI is unmanaged",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .decisions = "0a:01/eth1=cni" },
        { .name = "an interface decided for the CNI is configured",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=configured",
          .decisions = "0a:01/eth1=cni",
          .unready = { "eth1 (0a:01) is configured, routable, instead of unmanaged" } },
        { .name = "an undecided interface is not ready",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .settled = true,
          .unready = { "eth1 (0a:01) is not ready: its unit has left no decision; see journalctl -u nodestrap-udev-net-manager@eth1" } },
        { .name = "the unit name of an interface is escaped",
          .interfaces = "eth0:0a:00 efa-0:0a:01!",
          .links = "eth0=configured efa-0=unmanaged",
          .unready = { "efa-0 (0a:01) is not ready: its unit has left no decision; see journalctl -u 'nodestrap-udev-net-manager@efa\\x2d0'" } },
        { .name = "an interface without the udev mark is ignored",
          .interfaces = "eth0:0a:00 veth1:0a:01",
          .links = "eth0=configured veth1=unmanaged" },
        { .name = "an interface without an address may still get one",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .listed = "0a:00+ 0a:01-",
          .unready = { "eth1 (0a:01) is not ready: its unit has left no decision" } },
        { .name = "a settled interface without an address is ready",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .listed = "0a:00+ 0a:01-",
          .settled = true },
        { .name = "a late interface without an address is not settled yet",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .listed = "0a:00+ 0a:01-",
          .settled = true,
          .since = 8,
          .unready = { "eth1 (0a:01) is not ready: its unit has left no decision" } },
        { .name = "an undecided interface with an address is not ready",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=unmanaged",
          .listed = "0a:00+ 0a:01+",
          .settled = true,
          .unready = { "eth1 (0a:01) is not ready: its unit has left no decision" } },
        { .name = "a listed and decided interface is missing",
          .interfaces = "eth0:0a:00",
          .links = "eth0=configured",
          .decisions = "0a:01/eth1=networkd",
          .listed = "0a:00+ 0a:01+",
          .unready = { "eth1 (0a:01), decided for systemd-networkd, has not appeared" } },
        { .name = "a decided interface of an earlier boot was detached",
          .interfaces = "eth0:0a:00",
          .links = "eth0=configured",
          .decisions = "0a:01/eth1=networkd",
          .listed = "0a:00+" },
        { .name = "a VLAN has the MAC of its interface and not its decision",
          .interfaces = "eth0:0a:00 eth1:0a:01! eth1.5:0a:01",
          .links = "eth0=configured eth1=configured eth1.5=unmanaged",
          .decisions = "0a:01/eth1=networkd" },
        { .name = "links without interfaces are judged by their names",
          .interfaces = "eth0:0a:00",
          .links = "eth0=configured eth1=pending eth2=pending lo=pending",
          .decisions = "eth1=networkd eth2=cni",
          .unready = { "eth1, decided for systemd-networkd, is pending, routable, instead of configured", "eth2 is pending, routable, instead of unmanaged",
                       "lo is pending, routable, instead of unmanaged" } },
        { .name = "links without interfaces are ready by their names",
          .interfaces = "eth0:0a:00",
          .links = "eth0=configured eth1=configured eth2=unmanaged lo=unmanaged",
          .decisions = "eth1=networkd eth2=cni" },
        { .name = "the links use our files",
          .interfaces = "eth0:0a:00! eth1:0a:01!",
          .links = "eth0=configured,/run/systemd/network/70-eks-eth0.network eth1=configured,/run/systemd/network/70-eks-eth1.network",
          .decisions = "0a:01/eth1=networkd" },
        { .name = "the links use the file of the image until networkd reads ours",
          .interfaces = "eth0:0a:00! eth1:0a:01!",
          .links = "eth0=configured,/usr/lib/systemd/network/80-ec2.network eth1=configured,/usr/lib/systemd/network/80-ec2.network",
          .decisions = "0a:01/eth1=networkd",
          .unready = { "eth0 (0a:00), the primary interface, is configured, routable by /usr/lib/systemd/network/80-ec2.network, instead of "
                       "configured by /run/systemd/network/70-eks-eth0.network",
                       "eth1 (0a:01), decided for systemd-networkd, is configured, routable by /usr/lib/systemd/network/80-ec2.network, instead of configured by "
                       "/run/systemd/network/70-eks-eth1.network" } },
        { .name = "a file that comes before ours is reported and not waited for",
          .interfaces = "eth0:0a:00! eth1:0a:01!",
          .links = "eth0=configured,/run/systemd/network/70-eks-eth0.network eth1=configured,/run/systemd/network/10-netplan-all.network",
          .decisions = "0a:01/eth1=networkd",
          .foreign = "eth1 is configured by /run/systemd/network/10-netplan-all.network, which comes before 70-eks-eth1.network" },
        { .name = "a file of the same name in /etc is reported",
          .interfaces = "eth0:0a:00!",
          .links = "eth0=configured,/etc/systemd/network/70-eks-eth0.network",
          .foreign = "eth0 is configured by /etc/systemd/network/70-eks-eth0.network" },
        { .name = "an interface of the CNI has no foreign file, but is not unmanaged",
          .interfaces = "eth0:0a:00 eth1:0a:01!",
          .links = "eth0=configured eth1=configured,/etc/systemd/network/10-all.network",
          .decisions = "0a:01/eth1=cni",
          .unready = { "eth1 (0a:01) is configured, routable by /etc/systemd/network/10-all.network, instead of unmanaged" } },
        { .name = "the state of a link is empty",
          .interfaces = "eth0:0a:00",
          .links = "eth0=",
          .unready = { "eth0 (0a:00), the primary interface, is in an unknown state, routable" } },
};

TEST(each_situation_names_its_unready_links) {
        for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
                const Situation *s = &situations[i];
                _cleanup_(facts_done) Facts f = {};
                facts_make(s, &f);
                const LinkFacts facts = { .links = &f.links,
                                          .interfaces = &f.interfaces,
                                          .decisions = &f.decisions,
                                          .enis = &f.enis,
                                          .settled = s->settled,
                                          .settled_usec = 7 };
                for (size_t k = 0; k < f.interfaces.n; k++)
                        f.interfaces.items[k].since_usec = s->since;
                _strv_ char **unready = links_find_unready(&facts);
                _free_ char *all = strv_join(unready, "\n# ");
                size_t wanted = 0;
                for (; wanted < ARRAY_SIZE(s->unready) && s->unready[wanted]; wanted++)
                        if (wanted >= strv_length(unready) || !startswith(unready[wanted], s->unready[wanted]))
                                FAIL("%s: not \"%s\" but\n# %s", s->name, s->unready[wanted], all);
                if (strv_length(unready) != wanted)
                        FAIL("%s: also\n# %s", s->name, all);
                _strv_ char **foreign = links_find_foreign(&facts);
                if (strv_length(foreign) != (s->foreign ? 1 : 0) || (s->foreign && !startswith(foreign[0], s->foreign)))
                        FAIL("%s: of others' files \"%s\"", s->name, foreign ? foreign[0] : "nothing");
        }
}

TEST_MAIN
