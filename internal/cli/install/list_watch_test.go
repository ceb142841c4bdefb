package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/cluster/clustertest"
	"lockstep.run/lockstep/internal/cli/command"
)

type shared struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{}
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.written <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *shared) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// watching runs list -w until the test ends.
func watching(t *testing.T, cl *cluster.Cluster, args ...string) (out *shared, ended <-chan error, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = &shared{written: make(chan struct{}, 1)}
	cmd := newList(command.Command{Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}, Dial: clustertest.DialTo(cl)})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"-w"}, args...))
	failed := make(chan error, 1)
	go func() { failed <- cmd.ExecuteContext(ctx) }()
	return out, failed, cancel
}

// until waits until a text is printed.
func until(t *testing.T, out *shared, want string) {
	t.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(out.text(), want) {
		select {
		case <-out.written:
		case <-late:
			t.Fatalf("%q is not in\n%s", want, out.text())
		}
	}
}

func TestListWatch(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		cl := clustertest.FakeCluster(t, clustertest.Following(">=1", "1.2.0"))
		args, first, paused, gone := []string{"--not-ready"}, "NAMESPACE", "1.2.0    paused", "1.2.0    deleted"
		if asJSON {
			args, first, paused, gone = []string{"-o", "json"}, `"state":"Available"`, `"state":"Paused"`, `"deleted":true`
		}
		out, ended, stop := watching(t, cl, args...)
		until(t, out, first)
		if strings.Contains(out.text(), "web") != asJSON {
			t.Errorf("at first: %s", out.text())
		}
		pkg := &corev1alpha1.Package{}
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, pkg); err != nil {
			t.Fatal(err)
		}
		pkg.Status.Conditions = append(clustertest.Available().Conditions, clustertest.Condition("Paused", "True", "Paused", "Paused."))
		for _, retry := range []string{"", "x"} { // which is in no row
			pkg.Status.LastHandledRetry = retry
			if err := cl.Status().Update(t.Context(), pkg); err != nil {
				t.Fatal(err)
			}
			until(t, out, paused)
		}
		if err := cl.Delete(t.Context(), pkg); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(pkg), pkg); err == nil {
			pkg.Finalizers = nil
			if err := cl.Update(t.Context(), pkg); err != nil {
				t.Fatal(err)
			}
		}
		until(t, out, gone)
		if strings.Count(out.text(), paused) != 1 {
			t.Errorf("what has not changed is printed: %s", out.text())
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("an interrupt: %v", err)
		}
		for line := range strings.Lines(out.text()) {
			if asJSON && !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %q", line)
			}
		}
	}
}

// Who may not watch is told so.
func TestListWatchForbidden(t *testing.T) {
	t.Parallel()
	cl := clustertest.FakeCluster(t)
	for _, lost := range []int32{0, 1} { // the answer may come after the connection was lost
		of := *cl
		client := &refusing{Listing: clustertest.Listing{WithWatch: cl.WithWatch}}
		client.lost.Store(lost)
		of.WithWatch = client
		_, ended, stop := watching(t, &of, "-A")
		defer stop()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "Choose a namespace with -n") {
				t.Errorf("got %v", err)
			}
		case <-time.After(time.Minute):
			t.Errorf("after %d lost connections the command goes on", lost)
		}
	}
}

// A reader that stops leaves one row for each package, and none for those that come and go meanwhile.
func TestListWatchKeepsLatestRows(t *testing.T) {
	t.Parallel()
	w := newListWatch(&listCommand{}, nil)
	event := func(name string, version int, deleted bool) {
		pkg := &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		pkg.Spec.Image = fmt.Sprint("registry/web:", version)
		w.change(pkg, deleted)
	}
	for i := range 100 {
		event("web", i, false)
		event(fmt.Sprint("short", i), 1, false)
		event(fmt.Sprint("short", i), 1, true)
	}
	if len(w.rows) != 1 || len(w.changed) != 1 {
		t.Errorf("%d rows, %d changes are kept", len(w.rows), len(w.changed))
	}
	if all := w.take(); len(all) != 1 || all[0].Package != "registry/web:99" {
		t.Errorf("printed: %v", all)
	}
	if event("web", 99, false); len(w.take()) > 0 {
		t.Error("what has not changed is printed")
	}
	event("web", 99, true)
	if all := w.take(); len(all) != 1 || !all[0].Deleted || len(w.rows)+len(w.changed)+len(w.listed) > 0 {
		t.Errorf("printed: %v; kept: %v %v %v", all, w.rows, w.changed, w.listed)
	}
}

type refusing struct {
	clustertest.Listing
	// lost is how many requests are not answered before.
	lost atomic.Int32
}

// List implements client.Reader.
func (r *refusing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, is := list.(*corev1alpha1.PackageList); is {
		if r.lost.Add(-1) >= 0 {
			return errors.New("connection refused")
		}
		return apierrors.NewForbidden(corev1alpha1.Resource("packages"), "", nil)
	}
	return r.Listing.List(ctx, list, opts...)
}
