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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/quota"
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
		{"no key", nil, true, corev1alpha1.ReasonKubeconfigRefused, "is not one YAML document"},
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
