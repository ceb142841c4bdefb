package scenarios_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/sandbox"
)

// managerCommands start, stop and disturb managers. A script with two managers names each of
// them; otherwise, there is one without a name.
var managerCommands = commands{
	// manager start [NAME] [--FLAG…]: starts a process, and waits until it answers.
	// manager stop|kill [NAME]: with SIGTERM, or SIGKILL.
	// manager pause|resume [NAME]: with SIGSTOP, or SIGCONT.
	// manager await leads|exited [NAME]: until it holds the Lease, or has ended by itself.
	// manager await logs TEXT [NAME]: until its log contains the text.
	// manager log [NAME]: prints its log.
	"manager": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 1, "manager start|stop|kill|pause|resume|await|log …")
		action, args := args[0], args[1:]
		if action == "await" {
			s.usage(len(args) >= 1, "manager await leads|exited|logs …")
			action, args = "await "+args[0], args[1:]
		}
		text := "Successfully acquired lease"
		if action == "await logs" {
			s.usage(len(args) >= 1, "manager await logs TEXT [NAME]")
			text, args = args[0], args[1:]
		}
		limit, args := s.within(args)
		name := ""
		if len(args) > 0 && !strings.HasPrefix(args[0], "--") {
			name, args = args[0], args[1:]
		}
		if action == "start" {
			s.managers[name] = s.cluster().StartManager(s, args...)
			return
		}
		m := s.managers[name]
		s.usage(m != nil && len(args) == 0, "the manager must have been started, and only start takes flags")
		switch action {
		case "stop":
			m.Stop()
		case "kill":
			m.Kill()
		case "pause":
			m.Signal(syscall.SIGSTOP)
		case "resume":
			m.Signal(syscall.SIGCONT)
		case "await leads", "await logs":
			s.eventually(limit, "the manager to say "+text, func(context.Context) error {
				if strings.Contains(m.Log(), text) {
					return nil
				}
				return errors.New("its log does not")
			})
		case "await exited":
			s.eventually(limit, "the manager to exit", func(context.Context) error {
				if m.Exited() {
					return nil
				}
				return errors.New("it runs")
			})
		case "log":
			s.print(m.Log())
		default:
			s.Fatalf("unknown action %q", action)
		}
	},
	// lease clear: the next manager leads at once, without waiting for the Lease of a
	// dead one to expire. lease await renewed: the leader has renewed the Lease since.
	// lease await read: a manager that waits for the Lease has read it since.
	"lease": func(s *scenario, _ bool, args []string) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}
		c := s.cluster().Client
		switch strings.Join(args, " ") {
		case "clear":
			s.cluster().ClearLease(s)
		case "await renewed":
			s.check(c.Get(s.Context(), client.ObjectKeyFromObject(lease), lease))
			before := lease.ResourceVersion
			limit, _ := s.within(nil)
			s.eventually(limit, "the Lease to be renewed", func(ctx context.Context) error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
					return err
				}
				if lease.ResourceVersion == before {
					return errors.New("it is as it was")
				}
				return nil
			})
		case "await read": // the leader updates it without that
			from := s.position()
			s.eventually(patience, "the Lease to be read", func(ctx context.Context) error {
				reads, err := s.audit.Since(ctx, from, byManager[0], sandbox.ByVerb("get"), sandbox.ByResource("leases.coordination.k8s.io"))
				if err == nil && len(reads) == 0 {
					err = errors.New("no read of it is logged")
				}
				return err
			})
		default:
			s.usage(false, "lease clear|await renewed|await read")
		}
	},
	// elapse DURATION: waits. It is only for scenarios about time, such as an expiring Lease.
	"elapse": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1, "elapse DURATION")
		d, err := time.ParseDuration(args[0])
		s.check(err)
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.Context().Done():
		}
	},
}
