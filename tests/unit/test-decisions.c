/* SPDX-License-Identifier: Apache-2.0
 * Files about the manager of each interface, and /sys/class/net, as nodeadm, nodestrap and others left
 * them. */
#include "mounts.h"
#include "nic/nic.h"

#define ID     "i-0123456789abcdef0"
#define NAMES  DECISIONS_DIR "/" ID
#define MACS   DECISIONS_DIR "/by-mac/" ID
#define MAC_A  "0a:00:00:00:00:0a"
#define MAC_B  "0a:00:00:00:00:0b"

static Decisions read_all(const Box *b, size_t warnings) {
        _cleanup_(diag_done) Diag diag = {};
        Decisions d = {};
        ASSERT_OK(decisions_read(b->root, ID, &d, &diag));
        ASSERT_EQ(diag_count(&diag, true), warnings);
        ASSERT_EQ(diag_count(&diag, false), 0);
        return d;
}
#define READ(name, box, warnings) _cleanup_(decisions_done) Decisions name = read_all(box, warnings)

static void assert_decided(const Decisions *d, const char *mac, const char *name, Manager want) {
        const Decision *found = decision_find(d, mac, name);
        if ((found ? found->manager : MANAGER_NONE) != want)
                FAIL("%s %s is %s", mac, name, found ? manager_to_string(found->manager) : "undecided");
}

TEST(nothing_is_decided_at_first) {
        BOX(b);
        READ(d, &b, 0);
        ASSERT_EQ(d.n, 0);
        assert_decided(&d, MAC_A, "eth0", MANAGER_NONE);
}

TEST(bare_words_of_nodeadm_count_by_name) {
        BOX(b);
        put(&b, NAMES "/ens5", "io.systemd.Network");
        put(&b, NAMES "/ens6", " cni\n");
        READ(d, &b, 0);
        ASSERT_EQ(d.n, 2);
        assert_decided(&d, MAC_A, "ens5", MANAGER_NETWORKD);
        assert_decided(&d, MAC_B, "ens6", MANAGER_CNI);
        assert_decided(&d, MAC_A, "ens7", MANAGER_NONE);
}

TEST(the_newer_form_of_nodeadm_counts_for_its_mac_alone) {
        BOX(b);
        put(&b, NAMES "/ens6", "{\"mac\":\"0A:00:00:00:00:0A\",\"manager\":\"cni\"}");
        READ(d, &b, 0);
        assert_decided(&d, MAC_A, "ens6", MANAGER_CNI);
        assert_decided(&d, MAC_A, "ens9", MANAGER_CNI);         /* renamed */
        assert_decided(&d, MAC_B, "ens6", MANAGER_NONE);        /* another one of that name */
        ASSERT_TRUE(decision_find(&d, MAC_A, "ens6")->json);
}

TEST(a_decision_by_mac_replaces_the_bare_word_of_its_interface) {
        BOX(b);
        put(&b, MACS "/" MAC_A, "{\"interface\":\"ens6\",\"manager\":\"io.systemd.Network\"}");
        put(&b, NAMES "/ens6", "cni");
        READ(d, &b, 0);
        ASSERT_EQ(d.n, 1);
        assert_decided(&d, MAC_A, "ens9", MANAGER_NETWORKD);
        assert_decided(&d, MAC_B, "ens6", MANAGER_NONE);
        ASSERT_TRUE(!d.items[0].json);
}

TEST(two_interfaces_of_one_name_are_distinguished_by_mac) {
        BOX(b);
        put(&b, MACS "/" MAC_A, "{\"interface\":\"eth1\",\"manager\":\"io.systemd.Network\"}");
        put(&b, MACS "/" MAC_B, "{\"interface\":\"eth1\",\"manager\":\"cni\"}");
        put(&b, NAMES "/eth1", "{\"mac\":\"" MAC_B "\",\"manager\":\"cni\"}");
        READ(d, &b, 0);
        ASSERT_EQ(d.n, 2);
        assert_decided(&d, MAC_A, "eth1", MANAGER_NETWORKD);
        assert_decided(&d, MAC_B, "eth1", MANAGER_CNI);
        ASSERT_TRUE(!decision_find(&d, MAC_A, "eth1")->json);
        ASSERT_TRUE(decision_find(&d, MAC_B, "eth1")->json);
}

TEST(decisions_of_another_instance_are_ignored) {
        BOX(b);
        put(&b, DECISIONS_DIR "/i-0fedcba9876543210/eth0", "cni");
        put(&b, DECISIONS_DIR "/by-mac/i-0fedcba9876543210/" MAC_A, "{\"interface\":\"eth0\",\"manager\":\"cni\"}");
        READ(d, &b, 0);
        ASSERT_EQ(d.n, 0);
}

TEST(garbage_is_ignored_with_a_warning) {
        static const char *const contents[] = {
                "", "\n", "none", "CNI", "cni cni", "{", "{}", "[]", "{\"manager\":\"\"}", "{\"manager\":1}",
                "{\"manager\":\"cni\",\"mac\":\"0a:00\"}", "{\"manager\":\"cni\",\"mac\":\"../../../etc/passwd\"}",
                "{\"manager\":\"cni\",\"manager\":\"io.systemd.Network\"}", "\xff\xfe",
                "{\"manager\":\"cni\",\"interface\":\"../eth0\"}",
        };
        for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
                BOX(b);
                _cleanup_(diag_done) Diag diag = {};
                _cleanup_(decisions_done) Decisions d = {};
                put(&b, NAMES "/eth0", contents[i]);
                put(&b, NAMES "/eth1", "cni");
                ASSERT_OK(decisions_read(b.root, ID, &d, &diag));
                if (d.n != 1 || diag.n != 1)
                        FAIL("\"%s\": %zu decisions, %zu warnings", contents[i], d.n, diag.n);
                ASSERT_CONTAINS(diag.items[0].text, NAMES "/eth0");
                assert_decided(&d, MAC_A, "eth1", MANAGER_CNI);
        }
}

TEST(files_with_invalid_names_are_ignored) {
        BOX(b);
        put(&b, NAMES "/an-interface-with-17", "cni");
        put(&b, NAMES "/eth0", "cni");
        put(&b, NAMES "/.eth1.0123456789abcdef.tmp", "c");      /* of a run that was killed: no warning */
        put(&b, MACS "/eth2", "{\"interface\":\"eth2\",\"manager\":\"cni\"}");
        put(&b, MACS "/" MAC_A, "{\"manager\":\"cni\"}");
        put(&b, MACS "/" MAC_B, "cni");
        box_mkdir(&b, NAMES "/eth3", 0755);
        READ(d, &b, 5);
        ASSERT_EQ(d.n, 1);
}

TEST(a_file_in_the_place_of_the_folder_is_an_error) {
        BOX(b);
        _cleanup_(diag_done) Diag diag = {};
        Decisions d = {};
        put(&b, NAMES, "cni");
        ASSERT_ERROR(decisions_read(b.root, ID, &d, &diag), ENOTDIR);
        ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_INTERFACE);
        ASSERT_CONTAINS(diag_first_error(&diag)->text, NAMES);
}

TEST(instance_ids_that_lead_elsewhere_are_refused) {
        static const char *const ids[] = { "", ".", "..", "../../..", "i-1/../..", "by-mac", "i-1\n", "i 1", "/etc" };
        BOX(b);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                _cleanup_(diag_done) Diag diag = {};
                Decisions d = {};
                ASSERT_TRUE(!instance_id_is_valid(ids[i]));
                ASSERT_ERROR(decisions_read(b.root, ids[i], &d, &diag), EINVAL);
                ASSERT_EQ(diag_count(&diag, false), 1);
        }
        ASSERT_TRUE(instance_id_is_valid(ID));
}

TEST(paths_stay_below_their_folder) {
        static const char *const words[] = { "..", ".", "../../etc/passwd", "/etc/passwd", "a/../../b", "" };
        _free_ char *name = decision_name_path(ID, "ens5"), *mac = decision_mac_path(ID, MAC_A);
        ASSERT_STREQ(name, "/etc/eks/nodeadm/udev-net-manager/" ID "/ens5");
        ASSERT_STREQ(mac, "/etc/eks/nodeadm/udev-net-manager/by-mac/" ID "/" MAC_A);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                _free_ char *a = decision_name_path(words[i], words[i]), *m = decision_mac_path(words[i], words[i]);
                ASSERT_TRUE(startswith(a, DECISIONS_DIR "/") && startswith(m, DECISIONS_DIR "/by-mac/"));
                ASSERT_TRUE(!strstr(a, "/../") && !endswith(a, "/..") && !strstr(m, "/../") && !endswith(m, "/.."));
                ASSERT_EQ(strchr(a + strlen(DECISIONS_DIR) + 1, '/') != strrchr(a, '/'), 0);
        }
}

TEST(names_and_macs) {
        static const char *const good[] = { "eth0", "ens5", "eth0.5", "enp0s31f6", "a23456789012345", "\"" },
                          *const bad[] = { "", ".", "..", "a/b", "a b", "a:b", "a\n", "a234567890123456", "eth\x01", "\xc3\xa9" },
                          *const macs[] = { "", "0a:00:00:00:00", "0a:00:00:00:00:0", "0A:00:00:00:00:0A", "0a-00-00-00-00-0a",
                                            "0a:00:00:00:00:0a:00", "0g:00:00:00:00:0a" };
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                if (!interface_name_is_valid(good[i]))
                        FAIL("\"%s\" is refused", good[i]);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (interface_name_is_valid(bad[i]))
                        FAIL("\"%s\" is accepted", bad[i]);
        for (size_t i = 0; i < ARRAY_SIZE(macs); i++)
                if (mac_is_valid(macs[i]))
                        FAIL("\"%s\" is accepted", macs[i]);
        ASSERT_TRUE(mac_is_valid(MAC_A));
}

/* ---- interfaces ---- */

static void add_interface(const Box *b, const char *name, const char *index, const char *mac) {
        _free_ char *number = xasprintf("/sys/class/net/%s/ifindex", name),
                    *address = xasprintf("/sys/class/net/%s/address", name);
        put(b, number, index);
        put(b, address, mac);
}

static void add_hardware(const Box *b, const char *name) {
        _free_ char *dir = xasprintf("/sys/class/net/%s/device", name), *path = xasprintf("%s/driver", dir),
                    *link = box_path(b, path);
        box_mkdir(b, dir, 0755);
        ASSERT_EQ(symlink("../../../../bus/pci/drivers/ena", link), 0);
}

TEST(interfaces_have_their_properties_from_udev) {
        BOX(b);
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(interfaces_done) Interfaces all = {};
        add_interface(&b, "lo", "1\n", "00:00:00:00:00:00\n");
        add_interface(&b, "eth0", "2\n", MAC_A "\n");
        add_hardware(&b, "eth0");
        add_interface(&b, "eth1", "3\n", MAC_B "\n");
        add_hardware(&b, "eth1");
        add_interface(&b, "alias", "4\n", MAC_B "\n");          /* a VLAN on eth1, and before it in the order of names */
        add_interface(&b, "tun0", "5\n", "\n");
        put(&b, "/run/udev/data/n2", "I:2481\nE:ID_NET_DRIVER=ena\nE:NODESTRAP_INTERFACE=1\nE:SYSTEMD_ALIAS=/x\n");
        put(&b, "/run/udev/data/n3", "E:NODESTRAP_INTERFACE=0\nE:X=E:NODESTRAP_INTERFACE=1\nE:NODESTRAP_INTERFACE=10\n");
        ASSERT_OK(interfaces_read(b.root, &all, &diag));
        ASSERT_EQ(all.n, 5);
        const Interface *eth0 = interface_by_name(&all, "eth0"), *eth1 = interface_by_mac(&all, MAC_B);
        ASSERT_TRUE(eth0 && eth0->ours && eth0->index == 2 && eth0->since_usec == 2481);
        ASSERT_STREQ(eth0->driver, "ena");
        ASSERT_STREQ(eth0->mac, MAC_A);
        ASSERT_TRUE(eth1 && !eth1->ours && eth1->since_usec == 0);
        ASSERT_STREQ(eth1->name, "eth1");
        ASSERT_TRUE(interface_by_name(&all, "lo") && !interface_by_name(&all, "lo")->driver);
        ASSERT_STREQ(interface_by_name(&all, "tun0")->mac, "");
        ASSERT_TRUE(!interface_by_name(&all, "eth2") && !interface_by_mac(&all, "0a:00:00:00:00:0c"));
}

TEST(interfaces_that_have_gone_are_ignored) {
        BOX(b);
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(interfaces_done) Interfaces all = {};
        put(&b, "/sys/class/net/bonding_masters", "bond0\n");
        box_mkdir(&b, "/sys/class/net/eth7", 0755);             /* its attributes have gone first */
        add_interface(&b, "eth0", "2\n", MAC_A "\n");
        ASSERT_OK(interfaces_read(b.root, &all, &diag));
        ASSERT_EQ(all.n, 1);
        ASSERT_EQ(diag.n, 0);
}

TEST(a_missing_sysfs_is_an_error) {
        BOX(b);
        _cleanup_(diag_done) Diag diag = {};
        Interfaces all = {};
        ASSERT_ERROR(interfaces_read(b.root, &all, &diag), ENOENT);
        ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_INTERFACE);
}

TEST_MAIN
