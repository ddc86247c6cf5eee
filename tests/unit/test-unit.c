/* SPDX-License-Identifier: Apache-2.0
 * A job of systemd after the run that waited for it has ended. A child of the test plays systemd at the
 * private socket: it answers when the test wants it to, and reports each request. tests/check/units.sh has
 * a real systemd. */
#include "apply/units/unit.h"
#include "mounts.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#define JOB "/org/freedesktop/systemd1/job/7"

/* Its answer to a request for a job. */
typedef enum Manners {
        STOPS_US,               /* SIGTERM, and then the answer */
        STOPS_US_AND_REFUSES,
        STOPS_US_AND_HANGS_UP,
        STOPS_US_AND_IS_SILENT, /* until we hang up */
        ANSWERS,                /* and its job does not end */
        IS_LATE,                /* answers only after a question about another unit */
        STOPS_CONTAINERD,       /* for a restart that hangs, and cancels the job of the run */
} Manners;

typedef struct Manager {
        Manners manners;
        const char *active;     /* ActiveState of all units but b.service and containerd.service, which are active */
        int told;
        sd_bus *bus;
        sd_bus_message *late;
} Manager;

/* A run hangs up at its deadline, maybe in the middle of this. The calls that came before show how far it
 * got. */
static void must(int r) {
        if (r < 0)
                _exit(r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN ? 0 : 1);
}

static void stop_containerd(const Manager *m) {
        must(sd_bus_emit_signal(m->bus, UNIT_PATH "/containerd_2eservice", "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                                SYSTEMD ".Unit", 2, "ActiveState", "s", "deactivating", "Job", "(uo)", 9, MANAGER_PATH "/job/9", 0));
        must(sd_bus_emit_signal(m->bus, MANAGER_PATH, MANAGER, "JobRemoved", "uoss", 7, JOB, "a.service", "canceled"));
}

/* The client may have hung up already. */
static void answer_with_job(sd_bus_message *call) {
        (void)!sd_bus_reply_method_return(call, "o", JOB);
}

static void silence(const Manager *m) {
        struct pollfd p = { .fd = sd_bus_get_fd(m->bus) };
        while (!(p.revents & POLLHUP))
                must(poll(&p, 1, -1));
        _exit(0);
}

static void asked_for_job(Manager *m, sd_bus_message *call) {
        const char *name;
        must(sd_bus_message_read(call, "s", &name));
        dprintf(m->told, "%s %s\n", sd_bus_message_get_member(call), name);
        if (m->manners == IS_LATE) {
                m->late = sd_bus_message_ref(call);
                return;
        }
        if (m->manners != ANSWERS && m->manners != STOPS_CONTAINERD)
                kill(getppid(), SIGTERM);
        if (m->manners == STOPS_US_AND_HANGS_UP)
                _exit(0);
        if (m->manners == STOPS_US_AND_IS_SILENT)
                silence(m);
        if (m->manners == STOPS_US_AND_REFUSES)
                must(sd_bus_reply_method_errorf(call, "org.freedesktop.systemd1.NoSuchUnit", "no"));
        else
                answer_with_job(call);
        if (m->manners == STOPS_CONTAINERD)
                stop_containerd(m);
}

static void asked_for_state(Manager *m, sd_bus_message *call) {
        const char *path = sd_bus_message_get_path(call), *active = strstr(path, "/b_2e") || strstr(path, "/containerd_2e") ? "active" : m->active;
        sd_bus_message *reply;
        if (m->late)
                answer_with_job(m->late);
        m->late = sd_bus_message_unref(m->late);
        must(sd_bus_message_new_method_return(call, &reply));
        must(sd_bus_message_append(reply, "a{sv}", 4, "LoadState", "s", "loaded", "ActiveState", "s", active, "SubState", "s", "x", "Type", "s", "notify"));
        must(sd_bus_send(m->bus, reply, NULL));
        sd_bus_message_unref(reply);
}

static void asked(Manager *m, sd_bus_message *call) {
        const char *member = sd_bus_message_get_member(call);
        if (endswith(member, "Unit") && !streq(member, "ResetFailedUnit"))
                asked_for_job(m, call);
        else if (streq(member, "GetAll"))
                asked_for_state(m, call);
        else if (streq(member, "Subscribe"))
                must(sd_bus_reply_method_return(call, ""));
        else {
                dprintf(m->told, "%s %s\n", member, sd_bus_message_get_path(call));
                must(sd_bus_reply_method_return(call, ""));
        }
}

/* Serves one connection until it is closed. */
_noreturn_ static void manage(Manager *m, int listener) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r = fd;
        alarm(60);
        must(fd);
        must(sd_bus_new(&m->bus));
        must(sd_bus_set_fd(m->bus, fd, fd));
        must(sd_bus_set_server(m->bus, true, (sd_id128_t){ .bytes = { 1 } }));
        must(sd_bus_start(m->bus));
        while (r >= 0) {
                sd_bus_message *call = NULL;
                r = sd_bus_process(m->bus, &call);
                if (r > 0 && sd_bus_message_is_method_call(call, NULL, NULL) > 0)
                        asked(m, call);
                sd_bus_message_unref(call);
                if (r == 0)
                        r = sd_bus_wait(m->bus, UINT64_MAX);
        }
        _exit(0);
}

/* ---- one run of a plan ---- */

typedef struct Run { Root *root; Plan *plan; Results results; Diag diag; char *told; } Run;

static void run_done(Run *r) {
        results_done(&r->results);
        diag_done(&r->diag);
        plan_free(r->plan);
        root_free(r->root);
        free(r->told);
        umount2("/run", MNT_DETACH);
}

/* The root is that of the host, but /run belongs to the test. */
static void run_init(Run *r) {
        *r = (Run){ .plan = xcalloc(1, sizeof(Plan)) };
        ASSERT_EQ(mount("test", "/run", "tmpfs", 0, "mode=0755"), 0);
        ASSERT_OK(root_new("/", &r->root));
        ASSERT_OK(root_make_dirs(r->root, "/run/systemd", 0755));
        alarm(120);                     /* ends a run that hangs */
}
#define RUN(name) _cleanup_(run_done) Run name; run_init(&name)

static Action *add(Run *r, ActionType type, const char *unit) {
        r->plan->actions = xrealloc(r->plan->actions, r->plan->n + 1, sizeof(Action));
        Action *a = &r->plan->actions[r->plan->n++];
        *a = (Action){ .id = xasprintf("%s:%s", action_type_to_string(type), unit), .type = type, .target = xstrdup(unit) };
        return a;
}

static int listen_as_systemd(void) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/systemd/private" };
        (void)unlink(address.sun_path);
        int fd = ASSERT_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
        ASSERT_EQ(listen(fd, 1), 0);
        return fd;
}

/* told gets the requests to systemd, except those for the state of units. */
static int apply(Run *r, Manners manners, const char *active) {
        char told[4096] = "";
        size_t n = 0;
        int pipe_fds[2], listener = listen_as_systemd(), status;
        sigset_t before;
        ASSERT_OK(pipe(pipe_fds));
        pid_t pid = ASSERT_OK(fork());
        if (pid == 0)
                manage(&(Manager){ .manners = manners, .active = active, .told = pipe_fds[1] }, listener);
        close(pipe_fds[1]);
        close(listener);                /* one connection is all there is */
        sigprocmask(SIG_BLOCK, NULL, &before);
        results_done(&r->results);
        diag_done(&r->diag);
        int result = apply_plan(r->root, r->plan, &r->results, &r->diag);
        sigprocmask(SIG_SETMASK, &before, NULL);
        for (ssize_t k; (k = read(pipe_fds[0], told + n, sizeof told - 1 - n)) > 0;)
                n += (size_t)k;
        close(pipe_fds[0]);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
        r->told = (free(r->told), xstrdup(told));
        return result;
}

/* The run of one action, which the signal ends. */
static void assert_stopped(ActionType type, Manners manners, const char *active, const char *told) {
        RUN(r);
        add(&r, type, "a.service")->storage.state = STEP_MAKE;
        ASSERT_TRUE(apply(&r, manners, active) < 0);
        ASSERT_STREQ(r.results.items[0].text, "stopped by SIGTERM");
        ASSERT_STREQ(r.told, told);
}

TEST(a_signal_before_the_answer_cancels_the_job_of_a_start) {
        assert_stopped(ACTION_START_UNIT, STOPS_US, "inactive", "StartUnit a.service\nCancel " JOB "\n");
}

TEST(a_signal_cancels_the_job_of_a_stop) {
        assert_stopped(ACTION_MASK_UNIT, STOPS_US, "active", "StopUnit a.service\nCancel " JOB "\n");
}

/* In the middle of a restart the unit is down, although it ran before. */
TEST(a_signal_does_not_cancel_the_job_of_a_restart) {
        assert_stopped(ACTION_RESTART_UNIT, STOPS_US, "active", "RestartUnit a.service\n");
}

TEST(a_job_that_systemd_refused_is_not_canceled) {
        assert_stopped(ACTION_START_UNIT, STOPS_US_AND_REFUSES, "inactive", "StartUnit a.service\n");
}

TEST(after_a_signal_a_lost_connection_is_not_made_again) {
        assert_stopped(ACTION_START_UNIT, STOPS_US_AND_HANGS_UP, "inactive", "StartUnit a.service\n");
}

TEST(after_a_signal_the_wait_for_an_answer_ends) {
        assert_stopped(ACTION_START_UNIT, STOPS_US_AND_IS_SILENT, "inactive", "StartUnit a.service\n");
}

/* After the deadline of the first unit, the run asks about the other one, which runs already. */
TEST(a_job_that_systemd_reports_after_the_deadline_is_canceled) {
        RUN(r);
        add(&r, ACTION_START_UNIT, "a.service");
        add(&r, ACTION_START_UNIT, "b.service");
        strv_add(&r.plan->actions[1].after_any, r.plan->actions[0].id);
        for (uint64_t limit = 100 * USEC_PER_MSEC; !r.told || !*r.told; limit *= 2) {   /* until a job came in time */
                r.plan->actions[0].deadline_usec = limit;
                ASSERT_TRUE(apply(&r, IS_LATE, "inactive") < 0);
                ASSERT_STREQ(outcome_to_string(r.results.items[1].outcome), "unchanged");
        }
        ASSERT_CONTAINS(r.results.items[0].text, "systemd sent no answer about a.service");
        ASSERT_STREQ(r.told, "StartUnit a.service\nCancel " JOB "\n");
}

/* After the deadline of the job, the run asks systemd which job blocks it. */
static bool job_is_withdrawn(ActionType type, const char *active) {
        RUN(r);
        add(&r, type, "a.service");
        for (uint64_t limit = 100 * USEC_PER_MSEC; !r.told || !strstr(r.told, "GetBefore " JOB); limit *= 2) {
                r.plan->actions[0].deadline_usec = limit;
                ASSERT_TRUE(apply(&r, ANSWERS, active) < 0);
        }
        ASSERT_CONTAINS(r.results.items[0].text, "job for a.service was ");
        return strstr(r.told, "Cancel " JOB);
}

TEST(a_deadline_cancels_the_job_of_a_start_but_not_of_a_restart) {
        ASSERT_TRUE(job_is_withdrawn(ACTION_START_UNIT, "inactive"));
        ASSERT_TRUE(!job_is_withdrawn(ACTION_RESTART_UNIT, "active"));
}

/* The connection is lost for longer than the run waits for a new one. So the task ends within its own check,
 * which then goes on. */
TEST(a_unit_fails_if_the_connection_to_systemd_stays_lost) {
        Action action = { .id = (char *)"start-unit:a.service", .type = ACTION_START_UNIT, .target = (char *)"a.service" };
        const Plan plan = { .actions = &action, .n = 1 };
        Results results = {};
        Diag diag = {};
        Bus *bus = xcalloc(1, sizeof *bus);
        *bus = (Bus){ .lost_usec = 1 };
        ASSERT_OK(sd_bus_new(&bus->bus));
        Apply a = { .executors = executors, .plan = &plan, .diag = &diag, .bus = bus };
        ASSERT_OK(tasks_make(&a, &results));
        a.tasks[0].state = TASK_RUNNING;
        ASSERT_TRUE(unit_check(&a.tasks[0]) < 0);
        ASSERT_EQ(results.items[0].cause, CAUSE_BUS);
        ASSERT_CONTAINS(results.items[0].text, "lost the connection to systemd and could not reconnect (Connection timed out)");
        ASSERT_EQ(diag.n, 1);
        tasks_done(&a);
        bus_free(bus);
        results_done(&results);
        diag_done(&diag);
}

/* ---- does containerd serve CRI? ---- */

/* A process in place of containerd reads the request and sends the answer byte by byte. */
static pid_t answer_as_containerd(const char *answer, size_t n, const char *later, size_t n_later) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/cri.sock" };
        char question[129] = "";
        int listener = ASSERT_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
        ASSERT_EQ(listen(listener, 1), 0);
        pid_t pid = ASSERT_OK(fork());
        if (pid > 0) {
                close(listener);
                return pid;
        }
        alarm(60);
        for (bool first = true; first || later; first = false) {
                int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                if (recv(fd, question, sizeof question, MSG_WAITALL) != sizeof question || !startswith(question, "PRI * HTTP/2.0") ||
                    !memmem(question, sizeof question, "/runtime.v1.RuntimeService/Version", 34))
                        _exit(1);
                for (size_t i = 0; i < n; i++)
                        (void)!send(fd, answer + i, 1, MSG_NOSIGNAL);
                close(fd);
                if (!first)
                        break;
                answer = later ?: answer;
                n = later ? n_later : n;
        }
        _exit(0);
}

/* containerd is active, so the run only asks it. */
static const Result *ask_containerd(Run *r, const char *answer, size_t n, const char *later, size_t n_later) {
        int status = 0;
        add(r, ACTION_START_UNIT, "containerd.service")->with = xstrdup("/run/cri.sock");
        pid_t pid = answer ? answer_as_containerd(answer, n, later, n_later) : 0;
        (void)!apply(r, ANSWERS, "active");
        ASSERT_TRUE(!answer || waitpid(pid, &status, 0) == pid);
        ASSERT_EQ(status, 0);
        ASSERT_STREQ(r->told, "");
        return r->results.items;
}
#define ASK(r, answer)          ask_containerd(&(r), answer, sizeof(answer) - 1, NULL, 0)
#define ASK_TWICE(r, answer, then) ask_containerd(&(r), answer, sizeof(answer) - 1, then, sizeof(then) - 1)

#define SETTINGS  "\0\0\6\4\0\0\0\0\0" "\0\5\0\0@\0" "\0\0\0\4\1\0\0\0\0"
#define HEADERS   "\0\0\1\1\4\0\0\0\1" "\x88"
#define ENDS_WITH "\0\0\1\1\5\0\0\0\1" "\x88"
#define STATUS(n) "\0\0\x11\1\5\0\0\0\1" "\x88\x40\x0b" "grpc-status\2" n
#define SERVES    SETTINGS HEADERS "\0\0\7\0\0\0\0\0\1" "\0\0\0\0\2\n\0" ENDS_WITH

TEST(containerd_is_ready_if_it_serves_cri) {
        RUN(r);
        ASSERT_STREQ(outcome_to_string(ASK(r, SERVES)->outcome), "unchanged");
}

/* containerd recovers its sandboxes, or was just started again. */
TEST(containerd_is_ready_if_it_serves_cri_at_the_second_request) {
        RUN(recovers);
        ASSERT_STREQ(outcome_to_string(ASK_TWICE(recovers, SETTINGS STATUS("14"), SERVES)->outcome), "unchanged");
        RUN(resets);
        ASSERT_STREQ(outcome_to_string(ASK_TWICE(resets, SETTINGS "\0\0\4\3\0\0\0\0\1" "\0\0\0\2", SERVES)->outcome), "unchanged");
        RUN(leaves);
        ASSERT_STREQ(outcome_to_string(ASK_TWICE(leaves, "\0\0\x8\7\0\0\0\0\0", SERVES)->outcome), "unchanged");
        RUN(hangs_up);
        ASSERT_STREQ(outcome_to_string(ASK_TWICE(hangs_up, SETTINGS HEADERS, SERVES)->outcome), "unchanged");
}

static void assert_refused(const char *answer, size_t n, const char *text) {
        RUN(r);
        const Result *result = ask_containerd(&r, answer, n, NULL, 0);
        ASSERT_EQ(result->cause, CAUSE_CRI);
        ASSERT_CONTAINS(result->text, text);
}

TEST(containerd_without_cri_is_an_error) {
        static const char without[] = SETTINGS STATUS("12");
        assert_refused(without, sizeof without - 1, "containerd.service runs without CRI, which kubelet needs, and its log does not say why: disabled_plugins may name CRI; ");
}

TEST(containerd_that_ends_without_an_answer_about_cri_is_an_error) {
        static char settings[600];
        for (size_t i = 0; i + 9 <= sizeof settings; i += 9)
                settings[i + 3] = 4;
        assert_refused(settings, sizeof settings, "does not answer CRI requests at /run/cri.sock: Connection refused; correct the address");
}

TEST(containerd_without_a_socket_is_an_error) {
        assert_refused(NULL, 0, "does not answer CRI requests at /run/cri.sock: No such file or directory; ");
}

/* Without a deadline the run would wait for the restart. */
TEST(the_wait_for_a_restart_of_containerd_ends_at_the_deadline) {
        RUN(r);
        int status;
        Action *a = add(&r, ACTION_START_UNIT, "containerd.service");
        a->with = xstrdup("/run/cri.sock");
        a->deadline_usec = 2 * USEC_PER_SEC;
        strv_add(&add(&r, ACTION_START_UNIT, "a.service")->after, r.plan->actions[0].id);
        pid_t pid = answer_as_containerd(SERVES, sizeof SERVES - 1, NULL, 0);
        ASSERT_TRUE(apply(&r, STOPS_CONTAINERD, "inactive") < 0);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_STREQ(r.told, "StartUnit a.service\n");
        ASSERT_EQ(r.results.items[0].cause, CAUSE_DEADLINE);
        ASSERT_STREQ(r.results.items[0].text, "not done after 2 s; another process is stopping or restarting containerd.service, but that hangs "
                     "(deactivating, x); see systemctl list-jobs and journalctl -u containerd.service");
}

TEST_MAIN
