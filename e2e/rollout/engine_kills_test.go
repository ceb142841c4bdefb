package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

const (
	rested = 200 // packages at rest
	kills  = 10
	// corrects is the maximum time until a new leader has corrected drift.
	corrects = 10 * time.Second
)

// process is a manager with its own token, which identifies its requests in the audit log.
type process struct {
	*harness.Process
	program string
}

// switches is a cluster with two versions of the manager, which take turns.
type switches struct {
	*testing.T
	env    *harness.Env
	audit  *sandbox.Audit
	random *rand.Rand
	leader *process
}

// launch starts a manager without waiting until it is ready.
func (s *switches) launch(program string) *process {
	s.Helper()
	return &process{s.env.LaunchProcess(s.T, program, reach...), program}
}

// reach contains flags that allow managers to use registries and clusters on this machine.
var reach = []string{"--allow-local-targets", "--allow-private-sources=127.0.0.0/8"}

// since returns the requests of all managers since a mark, except watches, requests for the
// Lease, and reviews of rights.
func (s *switches) since(mark sandbox.Position, filters ...sandbox.Filter) []sandbox.Entry {
	s.Helper()
	entries, err := s.audit.Since(s.Context(), mark, append(engine(), filters...)...)
	require.NoError(s.T, err)
	return entries
}

func engine() []sandbox.Filter {
	return []sandbox.Filter{
		sandbox.ByUser(harness.ManagerUser()), sandbox.Not(sandbox.ByVerb("watch")),
		sandbox.Not(sandbox.ByResource("leases.coordination.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io", "subjectaccessreviews.authorization.k8s.io")),
	}
}

// leases returns the successful writes of the Lease since a mark.
func (s *switches) leases(mark sandbox.Position) []sandbox.Entry {
	s.Helper()
	entries, err := s.audit.Since(s.Context(), mark, sandbox.ByUser(harness.ManagerUser()), sandbox.Writes(), sandbox.ByResource("leases.coordination.k8s.io"),
		func(e sandbox.Entry) bool { return e.Code < 300 })
	require.NoError(s.T, err)
	return entries
}

// leads waits until a process holds the Lease, and returns when it acquired it.
func (s *switches) leads(mark sandbox.Position, p *process) (at time.Time) {
	s.Helper()
	harness.Eventually(s.T, harness.Patience, "the other version to lead", func(context.Context) error {
		for _, e := range s.leases(mark) {
			if e.Credential == p.Credential {
				at = e.Done
				return nil
			}
		}
		return errors.New("it does not")
	})
	return at
}

// oneWriter checks that a process only writes while it holds the Lease.
func (s *switches) oneWriter(when string, writes, leases []sandbox.Entry, before string) {
	s.Helper()
	for i := range writes {
		holder := before
		for j := range leases {
			if leases[j].Done.Before(writes[i].Received) {
				holder = leases[j].Credential
			}
		}
		if w := &writes[i]; w.Credential != holder {
			s.Errorf("%s: %s %s by %s at %s while %s held the Lease", when, w.Verb, w.RequestURI, w.Credential, w.Received.Format(time.StampMicro), holder)
		}
	}
}

// requested waits until a process has made a number of requests, or waits to lead.
func (s *switches) requested(mark sandbox.Position, p *harness.Process, n int) {
	s.Helper()
	harness.Eventually(s.T, harness.Patience, "the other version to start", func(ctx context.Context) error {
		entries, err := s.audit.Since(ctx, mark, sandbox.ByCredential(p.Credential))
		if err != nil || len(entries) >= n || p.Ready(ctx) == nil {
			return err
		}
		return fmt.Errorf("%d requests", len(entries))
	})
}

// install makes packages at rest, and one of each other kind.
func (s *switches) install() {
	t, env := s.T, s.env
	name := func(i int) string { return fmt.Sprintf("shop-%d", i) }
	for i := range rested {
		env.Create(t, harness.Package("default", name(i), env.Push(t, name(i)+":1", harness.Phased(name(i), 2, 3))))
	}
	const gate = "  availabilityProbes:\n  - selector: {kind: {group: \"\", kind: ConfigMap}}\n" +
		"    probes: [{fieldsEqual: {fieldA: .data.value, fieldB: .metadata.annotations.ready}}]\n"
	waits := harness.Phased("waits", 2, 1)
	waits["manifest.yaml"] = harness.Manifest("waits", []string{"phase-00", "phase-01"}, gate)
	env.Create(t, harness.Package("default", "waits", env.Push(t, "waits:1", waits)))
	refused := harness.Phased("refused", 1, 1)
	refused["service.yaml"] = "apiVersion: v1\nkind: Service\nmetadata: {name: refused, annotations: {package-operator.run/phase: phase-00}}\nspec: {ports: [{port: 99999}]}\n"
	env.Create(t, harness.Package("default", "refused", env.Push(t, "refused:1", refused)))
	env.Create(t, harness.Package("default", "absent", env.Registry()+"/absent:1"))
	env.Create(t, harness.Package("default", "leaves", env.Push(t, "leaves:1", harness.Phased("leaves", 2, 1))))
	away := harness.Package("default", "away", env.Push(t, "away:1", harness.Phased("away", 2, 2)))
	away.Spec.TargetRef = &corev1alpha1.TargetReference{KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: "stores"}, Namespace: "stores"}
	env.Create(t, away)
	for i := range rested {
		env.WaitAvailableWithin(t, harness.Patience, "default", name(i))
	}
	for _, name := range []string{"leaves", "away"} {
		env.WaitAvailable(t, "default", name)
	}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "leaves-00-000"}}
	harness.Edit(t, env, held, func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.com/held"} })
	require.NoError(t, env.Client.Delete(t.Context(), harness.Package("default", "leaves", "")))
	harness.Await(t, env, harness.Patience, held, "its deletion", func(cm *corev1.ConfigMap) error {
		if cm.DeletionTimestamp == nil {
			return errors.New("it is not deleted")
		}
		return nil
	})
	s.asBefore()
}

// asBefore checks that all other packages are still in the state that the test created.
func (s *switches) asBefore() {
	s.Helper()
	t, env := s.T, s.env
	for name, condition := range map[string]string{"waits": corev1alpha1.ConditionAvailable, "refused": corev1alpha1.ConditionAvailable, "absent": corev1alpha1.ConditionUnpacked} {
		env.WaitCondition(t, "default", name, condition, "False")
	}
	env.WaitAvailable(t, "default", "away")
	if leaves := env.Package(t, "default", "leaves"); leaves.GetDeletionTimestamp() == nil {
		t.Error("leaves is not being deleted")
	}
	open := &corev1.ConfigMap{}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "waits-01-000"}, open); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the second phase of waits is open: %v", err)
	}
}

// drift changes an object of a package at rest, and returns its name.
func (s *switches) drift() string {
	s.Helper()
	name := fmt.Sprintf("shop-%d-0%d-00%d", s.random.IntN(rested), s.random.IntN(2), s.random.IntN(3))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	require.NoError(s.T, s.env.Client.Patch(s.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"drift"}}`)), client.FieldOwner("someone")))
	return name
}

// corrected waits until drift is corrected, and returns when it was.
func (s *switches) corrected(name string, mark sandbox.Position) (at time.Time) {
	s.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	harness.Await(s.T, s.env, harness.Patience, cm, "to be corrected", func(cm *corev1.ConfigMap) error {
		if cm.Data["value"] != "v1" {
			return fmt.Errorf("it is %v", cm.Data)
		}
		return nil
	})
	harness.Eventually(s.T, harness.Patience, "the correction to be logged", func(context.Context) error {
		for _, e := range s.since(mark, sandbox.Writes()) {
			if e.Object.Name == name && e.Object.Resource == "configmaps" && e.Code < 300 {
				at = e.Done
				return nil
			}
		}
		return errors.New("it is not")
	})
	return at
}

// rest waits until the packages are at rest, and checks the writes since a mark: each drift is
// corrected once, and each leader writes each status at most once.
func (s *switches) rest(when string, mark sandbox.Position, drifted, before string) {
	s.Helper()
	ofRested := func(e sandbox.Entry) bool { return strings.HasPrefix(e.Object.Name, "shop-") }
	_, err := s.audit.Settled(s.Context(), mark, 4*time.Second, append(engine(), ofRested)...)
	require.NoError(s.T, err)
	writes := s.since(mark, sandbox.Writes())
	s.oneWriter(when, writes, s.leases(mark), before)
	seen := map[string]int{}
	for i := range writes {
		e := &writes[i]
		if !ofRested(*e) || e.Object.Resource == "events" {
			continue
		}
		key := e.Credential + e.RequestURI
		seen[key]++
		switch {
		case e.Object.Resource == "configmaps" && e.Object.Name == drifted && seen[key] == 1:
		case e.Object.Group == corev1alpha1.GroupName && e.Object.Subresource == "status" && seen[key] == 1:
		default:
			s.Errorf("%s: a write to an object at rest: %s %s (%d)", when, e.Verb, e.RequestURI, e.Code)
		}
	}
}

// round lets the other version take over while one of both is killed.
func (s *switches) round(i int, program string) {
	s.Helper()
	n := s.random.IntN(120)
	s.change(fmt.Sprintf("switch %d, after %d requests of the next", i, n), program, n, func(from, next *process) *process {
		if s.random.IntN(2) == 0 {
			from.Kill()
			return next
		}
		next.Kill()
		next = s.launch(program)
		harness.Eventually(s.T, harness.Patience, "the next to be ready", next.Ready)
		from.Stop()
		return next
	})
}

// outage lets the other version take over while the API server is killed and started again.
func (s *switches) outage(program string) {
	s.Helper()
	n := s.random.IntN(60)
	s.change(fmt.Sprintf("the API server is killed after %d requests of the next", n), program, n, func(from, next *process) *process {
		require.NoError(s.T, s.env.KillComponent(s.Context(), sandbox.APIServer))
		from.Stop()
		require.NoError(s.T, s.env.StartComponent(s.Context(), sandbox.APIServer))
		if next.Exited() { // as the kubelet starts it again
			next = s.launch(program)
		}
		return next
	})
}

// change starts another version, and judges its work after the present one has ended.
func (s *switches) change(when, program string, requests int, end func(from, next *process) *process) {
	s.Helper()
	mark, err := s.audit.Mark(s.Context())
	require.NoError(s.T, err)
	from, next := s.leader, s.launch(program)
	s.requested(mark, next.Process, requests)
	drifted := s.drift()
	s.leader = end(from, next)
	since := s.leads(mark, s.leader)
	took := s.corrected(drifted, mark).Sub(since)
	if took > corrects {
		s.Errorf("%s: drift of %s lasted %s", when, drifted, took)
	}
	s.rest(when, mark, drifted, from.Credential)
	s.asBefore()
	s.Logf("%s: drift corrected %.1f s after there was a leader", when, took.Seconds())
}

// stores makes another cluster, and the Secret with its kubeconfig.
func (s *switches) stores() {
	t := s.T
	sb := sandbox.Start(t, sandbox.WithComponents(sandbox.Etcd, sandbox.APIServer))
	c, err := client.New(sb.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stores"}}))
	kubeconfig := harness.Kubeconfig(sb.Server(), sb.Config().CAData, "token: "+harness.Account(t, c, "stores", "manager", "cluster-admin"))
	s.env.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stores"}, StringData: map[string]string{"value": kubeconfig}})
}

// The former and the current version take turns, while either is killed and the API server is away.
// Only statuses of packages at rest are written, only the process that holds the Lease writes, and
// drift is corrected. Packages in the middle of a rollout, failed ones, ones that are being
// deleted, and ones in another cluster keep their state.
func TestSwitchUnderKills(t *testing.T) {
	if !harness.Deep() {
		t.Skip("a sweep: LOCKSTEP_DEEP=1 builds the former manager")
	}
	old, _ := former(t)
	s := newSwitches(t, harness.New(t))
	s.leader = s.launch(old)
	harness.Eventually(t, harness.Patience, "the former version to be ready", s.leader.Ready)
	s.install()
	programs := []string{harness.Binary(t, "lockstep-manager"), old}
	for i := range kills {
		s.round(i+1, programs[i%2])
	}
	for i := range programs {
		s.outage(programs[i])
	}
}

// newSwitches draws by a seed, which it logs.
func newSwitches(t *testing.T, env *harness.Env) *switches {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	var err error
	if given := os.Getenv("LOCKSTEP_SEED"); given != "" {
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("LOCKSTEP_SEED=%d", seed)
	s := &switches{T: t, env: env, random: rand.New(rand.NewPCG(seed, 0))}
	s.audit, err = env.Audit()
	require.NoError(t, err)
	s.stores()
	return s
}
