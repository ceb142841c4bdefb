package targets

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/require"
)

// server answers like the API server of a cluster.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	uid      string
	token    string
	status   int           // of all answers; 0 means the right one
	hang     chan struct{} // requests wait for it unless it is nil
	requests int
}

func newServer(t *testing.T, uid string) *server {
	t.Helper()
	s := &server{uid: uid, token: secretToken}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// ServeHTTP answers requests for the namespace kube-system.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	uid, token, status, hang := s.uid, s.token, s.status, s.hang
	s.requests++
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}

	switch {
	case status == http.StatusFound:
		http.Redirect(w, r, "http://169.254.169.254/latest", status)
	case status != 0:
		http.Error(w, secretToken, status)
	case r.Header.Get("Authorization") != "Bearer "+token:
		http.Error(w, secretToken, http.StatusUnauthorized)
	default:
		_, _ = fmt.Fprintf(w, `{"kind": "Namespace", "metadata": {"name": "kube-system", "uid": %q}}`, uid)
	}
}

func (s *server) kubeconfig() []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return []byte(kubeconfig(s.URL, ", certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca), withToken))
}

// connection is the session type of the tests.
type connection struct {
	cluster types.UID
	ctx     context.Context
	client  *http.Client
	host    string
}

func (c *connection) get(t *testing.T) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.host+"/api", http.NoBody)
	require.NoError(t, err)
	resp, err := c.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// fixture is a home cluster with one Secret.
type fixture struct {
	*Targets[*connection]
	ref   Ref
	woken chan struct{}

	mu       sync.Mutex
	data     map[string][]byte
	version  int
	listener livestate.Listener
}

func newFixture(t *testing.T, data []byte, allowLocal bool) *fixture {
	t.Helper()
	return newFixtureOf(t, data, allowLocal, func(context.Context, *rest.Config, func(int64)) error { return nil })
}

// newFixtureWith is newFixture with sessions that call open.
func newFixtureWith(t *testing.T, data []byte, open func(context.Context, *rest.Config, func(int64)) error) *fixture {
	t.Helper()
	return newFixtureOf(t, data, true, open)
}

func newFixtureOf(t *testing.T, data []byte, allowLocal bool, open func(context.Context, *rest.Config, func(int64)) error) *fixture {
	t.Helper()
	f := &fixture{ref: Ref{"shop", "target", "value"}, woken: make(chan struct{}, 100), data: map[string][]byte{"value": data}, version: 1}
	f.Targets = New(Options[*connection]{
		Get: func(context.Context, sources.Ref) (*sources.Object, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.data == nil {
				return nil, nil
			}
			return &sources.Object{Data: f.data}, nil
		},
		Listen: func(ctx context.Context, _ livestate.Selection, l livestate.Listener) {
			f.mu.Lock()
			f.listener = l
			f.mu.Unlock()
			l.Listed([]metav1.Object{f.object()})
			<-ctx.Done()
		},
		Home: func(context.Context) (types.UID, error) { return "home", nil },
		Open: func(ctx context.Context, _ Ref, config *rest.Config, cluster types.UID, held func(int64)) (*connection, error) {
			if err := open(ctx, config, held); err != nil {
				return nil, err
			}
			client, err := rest.HTTPClientFor(config)
			return &connection{cluster: cluster, ctx: ctx, client: client, host: config.Host}, err
		},
		Policy: outbound.Policy{Local: allowLocal}, Memory: quota.Of(16 << 20),
	})

	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() { _ = f.Start(ctx) }()
	f.Use("Package shop/app", f.ref, func() { f.woken <- struct{}{} })
	return f
}

func (f *fixture) object() metav1.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: fmt.Sprint(f.version)}}
}

// write changes the Secret, or deletes it if data is empty.
func (f *fixture) write(data []byte) {
	f.mu.Lock()
	f.version++
	f.data = map[string][]byte{"value": data}
	if data == nil {
		f.data = nil
	}

	l := f.listener
	f.mu.Unlock()
	if data == nil {
		l.Deleted(f.object())
		return
	}

	l.Changed(f.object())
}

// await waits for a reason, and returns the session and the message.
func (f *fixture) await(t *testing.T, reason string) (*connection, string) {
	t.Helper()
	for {
		session, _, state := f.Find(f.ref)
		if state.Reason == reason {
			if strings.Contains(state.Message, "geheim") {
				t.Errorf("a secret is in %q", state.Message)
			}
			return session, state.Message
		}
		select {
		case <-f.woken:
		case <-time.After(time.Minute):
			t.Fatalf("the target is %+v, and never %s", state, reason)
		}
	}
}

// A panic caused by a user's input is a failure of that target alone. The target is tried again.
func TestPanics(t *testing.T) {
	t.Parallel()
	srv := newServer(t, "there")
	broken := true
	f := newFixtureWith(t, srv.kubeconfig(), func(context.Context, *rest.Config, func(int64)) error {
		if broken {
			broken = false
			panic("geheim")
		}
		return nil
	})

	if _, message := f.await(t, corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "failed by a defect of this engine") {
		t.Errorf("it says %q", message)
	}

	f.await(t, corev1alpha1.ReasonTargetConnected)
}

// TestTarget follows a target through its life: connected, away, back, with another Secret, in
// another cluster, without a Secret, and unused.
func TestTarget(t *testing.T) {
	t.Parallel()
	s := newServer(t, "one")
	f := newFixture(t, s.kubeconfig(), true)
	first, _ := f.await(t, corev1alpha1.ReasonTargetConnected)
	if status, err := first.get(t); status != http.StatusOK || err != nil || first.cluster != "one" {
		t.Fatalf("status %d of cluster %s, %v", status, first.cluster, err)
	}
	f.Use("Package shop/other", f.ref, func() {})
	if shared, ok, state := f.Find(f.ref); !ok || shared != first || !state.Ready || state.Cluster != "one" {
		t.Errorf("users of one Secret share no session: %+v", state)
	}

	s.set(func(s *server) { s.status = http.StatusUnauthorized })
	if _, err := first.get(t); err != nil {
		t.Fatal(err)
	}
	_, message := f.await(t, corev1alpha1.ReasonTargetUnauthorized)
	if !strings.Contains(message, "does not accept the credentials") || !strings.Contains(message, "tried again after 1s") {
		t.Errorf("message %q", message)
	}
	before := s.count()
	if _, err := first.get(t); !errors.Is(err, ErrAway) || s.count() > before+1 {
		t.Errorf("a request went to a target that is away: %v", err)
	}
	s.set(func(s *server) { s.status = 0 })
	<-first.ctx.Done()
	f.await(t, corev1alpha1.ReasonTargetConnected)
	if first = f.session(t); first.cluster != "one" {
		t.Errorf("after the outage: %+v", first)
	}
	if status, err := first.get(t); status != http.StatusOK || err != nil {
		t.Errorf("after the outage: %d, %v", status, err)
	}

	s.set(func(s *server) { s.status = http.StatusFound })
	if _, err := first.get(t); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a redirect was followed: %v", err)
	}
	s.set(func(s *server) { s.status = 0 })

	two := newServer(t, "two")
	f.write(two.kubeconfig())
	<-first.ctx.Done()
	f.await(t, corev1alpha1.ReasonTargetConnected)
	second := f.session(t)
	if second == first || second.cluster != "two" {
		t.Errorf("the Secret was not followed: %+v", second)
	}
	if _, err := first.get(t); !errors.Is(err, ErrAway) {
		t.Errorf("the old credentials are still used: %v", err)
	}

	f.write(nil)
	if left, _ := f.await(t, corev1alpha1.ReasonKubeconfigMissing); left != second || second.ctx.Err() != nil {
		t.Error("without the Secret there is no session left for the deletion")
	}
	f.write([]byte(kubeconfig(two.URL, "", "exec: {command: sh}")))
	if _, message = f.await(t, corev1alpha1.ReasonKubeconfigRefused); !strings.Contains(message, "user.exec") || !strings.Contains(message, "Secret shop/target") {
		t.Errorf("message %q", message)
	}
	<-second.ctx.Done()

	f.write(two.kubeconfig())
	f.await(t, corev1alpha1.ReasonTargetConnected)
	third := f.session(t)
	f.Release("Package shop/app")
	f.Release("Package shop/other")
	f.Targets.mu.Lock()
	unused := f.targets[f.ref]
	f.Targets.mu.Unlock()
	f.retire(unused)
	<-third.ctx.Done()
	if _, ok, _ := f.Find(f.ref); ok {
		t.Error("a session without users is kept")
	}
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (f *fixture) session(t *testing.T) *connection {
	t.Helper()
	session, ok, state := f.Find(f.ref)
	if !ok {
		t.Fatalf("no session: %+v", state)
	}
	return session
}

// TestTargetsThatCannotBe checks the messages about impossible connections.
func TestTargetsThatCannotBe(t *testing.T) {
	t.Parallel()
	home, broken, forbidden := newServer(t, "home"), newServer(t, "x"), newServer(t, "x")
	broken.status, forbidden.status = http.StatusNotFound, http.StatusForbidden
	other := newServer(t, "x")
	untrusted := []byte(kubeconfig(other.URL, "", withToken))
	for _, tc := range []struct {
		name       string
		data       []byte
		allowLocal bool
		reason     string
		want       string
	}{
		{"the manager's own cluster", home.kubeconfig(), true, corev1alpha1.ReasonKubeconfigRefused, "leads to the manager's own cluster: leave targetRef out"},
		{"no Kubernetes", broken.kubeconfig(), true, corev1alpha1.ReasonTargetUnreachable, "not the API server of a Kubernetes cluster"},
		{"nothing listens", []byte(kubeconfig("https://127.0.0.1:1", "", withToken)), true, corev1alpha1.ReasonTargetUnreachable, "connection refused. It is tried again after 1s."},
		{"no rights", forbidden.kubeconfig(), true, corev1alpha1.ReasonTargetUnauthorized, "may not get the namespace kube-system, which identifies the target: bind a ClusterRole to it there with the rule {apiGroups"},
		{"an unknown authority", untrusted, true, corev1alpha1.ReasonTargetUnreachable, "certificate signed by unknown authority"},
		{"on loopback", other.kubeconfig(), false, corev1alpha1.ReasonKubeconfigRefused, "--allow-local-targets"},
		{"no key", nil, true, corev1alpha1.ReasonKubeconfigRefused, "current-context is not one of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tc.data, tc.allowLocal)
			session, message := f.await(t, tc.reason)
			if session != nil || !strings.Contains(message, tc.want) {
				t.Errorf("%q, want %q", message, tc.want)
			}
		})
	}
}

// TestPauses checks that the pauses between attempts grow to a limit, and that messages stay the
// same at the limit.
func TestPauses(t *testing.T) {
	t.Parallel()
	one := newTarget(&Targets[int]{}, Ref{})
	var last State
	for i := range 20 {
		state, pause := one.failed(&awayError{"Unreachable", "no answer"})
		if want := min(time.Second<<min(i, 16), 5*time.Minute); pause != want || !strings.Contains(state.Message, want.String()) {
			t.Errorf("attempt %d: %s, %q", i, pause, state.Message)
		}
		if i > 10 && state != last {
			t.Errorf("attempt %d changes the status", i)
		}
		last = state
	}
}

// TestConnect checks the connections of users, and their errors.
func TestConnect(t *testing.T) {
	t.Parallel()
	s := newServer(t, "there")
	config, id, err := Connect(t.Context(), s.kubeconfig())
	if err != nil || id != "there" {
		t.Fatalf("connected to %q: %v", id, err)
	}
	if config.BearerToken != "" || len(config.KeyData) > 0 {
		t.Error("the configuration has credentials, which its transport has")
	}

	get := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/version", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := config.Transport.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}

	if err := get(); err != nil {
		t.Error(err)
	}

	s.Close()
	if err := get(); !IsAway(err) || strings.Contains(err.Error(), secretToken) {
		t.Errorf("a server that has ended: %v", err)
	}
	if _, _, err := Connect(t.Context(), s.kubeconfig()); !IsAway(err) || strings.Contains(err.Error(), secretToken) {
		t.Errorf("without a server: %v", err)
	}
	if _, _, err := Connect(t.Context(), []byte("{")); !errors.As(err, new(*RefusedError)) {
		t.Errorf("no kubeconfig: %v", err)
	}
}

// A session can take as much memory as its namespace has, and returns all of it.
func TestHolding(t *testing.T) {
	t.Parallel()
	account := quota.Of(1200)
	one, same := &holding{memory: account, key: quota.Key{Namespace: "one", ID: "1"}}, &holding{memory: account, key: quota.Key{Namespace: "one", ID: "2"}}
	if !one.change(500) || !one.change(-100) || one.change(500) || one.bytes != 400 || !same.change(100) || same.change(200) {
		t.Errorf("holds %d and %d", one.bytes, same.bytes)
	}

	one.end()
	one.end()
	if !one.change(10_000) || one.bytes != 0 {
		t.Errorf("holds %d after its end", one.bytes)
	}
	if !same.change(400) {
		t.Error("something is not given back")
	}
	if unlimited := (&holding{}); !unlimited.change(1 << 60) {
		t.Error("an account that does not exist has a limit")
	}
}

// The targets of a namespace are connected only as long as there is room next to other namespaces'
// targets. The rest report this, and connect once there is room.
func TestManyTargets(t *testing.T) {
	t.Parallel()
	const room = 8
	all := New(Options[int]{
		Get:    func(context.Context, sources.Ref) (*sources.Object, error) { return nil, nil },
		Listen: func(ctx context.Context, _ livestate.Selection, _ livestate.Listener) { <-ctx.Done() },
		Home:   func(context.Context) (types.UID, error) { return "home", nil },
		Open: func(context.Context, Ref, *rest.Config, types.UID, func(int64)) (int, error) {
			return 0, nil
		},
		Memory: quota.Of(room * targetMemory),
	})

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = all.Start(ctx) }()
	woken := make(chan struct{}, 100)
	use := func(namespace string, i int) Ref {
		ref := Ref{namespace, fmt.Sprintf("target-%d", i), "value"}
		all.Use(ref.String(), ref, func() { woken <- struct{}{} })
		return ref
	}

	refused := func(ref Ref) bool {
		_, _, state := all.Find(ref)
		if state.Reason == corev1alpha1.ReasonTargetLimitExceeded && !strings.Contains(state.Message, "the targets of the namespace "+ref.Namespace) {
			t.Errorf("message %q", state.Message)
		}
		return state.Reason == corev1alpha1.ReasonTargetLimitExceeded
	}

	var connected, waiting []Ref
	for i := range room {
		if ref := use("many", i); refused(ref) {
			waiting = append(waiting, ref)
		} else {
			connected = append(connected, ref)
		}
	}

	other := use("other", 0)
	if len(connected) != room/2 || refused(other) {
		t.Fatalf("%d of %d targets of one namespace are connected", len(connected), room)
	}

	for _, ref := range []Ref{other, connected[0]} {
		all.Release(ref.String())
		all.mu.Lock()
		one := all.targets[ref]
		all.mu.Unlock()
		all.retire(one)
	}

	for refused(waiting[0]) {
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatal("a target waits although there is room")
		}
	}

	if !refused(waiting[1]) {
		t.Error("two are connected in place of one")
	}
}

// Only a few large answers are read at a time, one per namespace. Small ones never wait.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := queueing.NewSemaphore(targetsAtATime, 1)
		large := func(namespace string) *answer {
			ctx, cancel := context.WithCancelCause(t.Context())
			return &answer{
				ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("a", 2*targetFreeLine))), bytes: limits.TargetResponseBytes, values: 10,
				admission: &admission{of: all, namespace: namespace, ctx: ctx, cancel: cancel},
			}
		}
		read := func(a *answer) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(a)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		one, same, two, three := large("one"), large("one"), large("two"), large("three")
		reads := []chan error{read(one), read(same), read(two), read(three)}
		for i, want := range []int{1, 0, 1, 0} {
			require.Equal(t, want, len(reads[i]), fmt.Sprintf("answer %d", i))
		}
		small := large("one")
		small.ReadCloser = io.NopCloser(strings.NewReader("small"))
		if err := <-read(small); err != nil {
			t.Errorf("a small one waits: %v", err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 0 {
			t.Error("the next one is read while this one is decoded")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 1 {
			t.Error("the next one is not read afterwards")
		}
		time.Sleep(3 * targetDecodeTime) // the others are not closed
		if synctest.Wait(); len(reads[1])+len(reads[3]) != 2 || !errors.Is(context.Cause(two.admission.ctx), errSlow) {
			t.Errorf("one that does not end stays admitted: %v", context.Cause(two.admission.ctx))
		}
		for _, a := range []*answer{same, two, three} {
			_ = a.Close()
		}
	})
}
