package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/test/require"
)

// Other namespaces can pull regardless of how many registries of one namespace hang.
func TestPullsTakeTurns(t *testing.T) {
	t.Parallel()
	hanging, healthy := serve(t, httptest.NewServer), serve(t, httptest.NewServer)
	ref, digest := healthy.push(t, imageOf(t, testFiles))
	ref = strings.TrimSuffix(ref, ":v1") + "@" + digest // evil waits for it as well
	hanging.set(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	p := newPuller(t, Options{InsecureRegistries: []string{hanging.host, healthy.host}})
	ctx, cancel := context.WithCancel(t.Context())
	evil := p.With(Access{Namespace: "evil"})
	ended := make(chan struct{})
	for i := range limits.PullsInFlight {
		go func() {
			image := fmt.Sprintf("%s/evil-%d:v1", hanging.host, i)
			if i == limits.PullsInFlight-1 {
				until(t, func() bool { used, _ := p.pulls.Depth(); return used == limits.PullsOfNamespace })
				image = ref
			}
			_, _ = evil.Pull(ctx, image)
			ended <- struct{}{}
		}()
	}

	defer func() {
		cancel()
		for range limits.PullsInFlight {
			<-ended
		}
	}()

	until(t, func() bool {
		used, waiting := p.pulls.Depth()
		return used+waiting == limits.PullsInFlight
	})
	limited, end := context.WithTimeout(t.Context(), 8*time.Second)
	defer end()
	began := time.Now()
	_, err := p.With(Access{Namespace: "victim"}).Pull(limited, ref)
	if took := time.Since(began); err != nil || took > 2*time.Second {
		t.Errorf("it took %s: %v", took, err)
	}
}

// All downloads together stay within their account on disk, and the downloads of one namespace
// leave room for others.
func TestDiskOfAllDownloads(t *testing.T) {
	t.Parallel()
	s := serve(t, httptest.NewServer)
	image := imageOf(t, testFiles)
	ref, _ := s.push(t, image)
	manifest, err := image.Manifest()
	require.NoError(t, err)
	layer := manifest.Layers[0].Size
	p := newPuller(t, Options{InsecureRegistries: []string{s.host}})
	p.disk = queueing.NewSemaphore(4*layer, 2*layer)

	var onDisk, most atomic.Int64
	s.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if kindOf(r.URL.Path) == "blobs" {
			now := onDisk.Add(layer)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
		}
		return false
	})
	admit := make(chan struct{})
	pull := func(namespace string, n int) <-chan error {
		ended := make(chan error, n)
		for range n {
			access := Access{Namespace: namespace, Selection: &archive.Selection{}, Admit: func() error {
				<-admit
				onDisk.Add(-layer)
				return nil
			}}
			go func() {
				_, err := p.With(access).Pull(t.Context(), ref)
				ended <- err
			}()
		}
		return ended
	}
	evil := pull("evil", 24)
	until(t, func() bool {
		_, waiting := p.disk.Depth()
		return onDisk.Load()/layer+waiting == 24
	})
	victim := pull("victim", 1)
	until(t, func() bool { return onDisk.Load() == most.Load() && onDisk.Load() >= 3*layer })
	close(admit)
	require.NoError(t, <-victim)
	for range 24 {
		require.NoError(t, <-evil)
	}
	if used, _ := p.disk.Depth(); used != 0 || most.Load() > 3*layer {
		t.Errorf("%d bytes stay reserved, and %d layers were on the disk at a time", used, most.Load()/layer)
	}
}

// until waits until a condition holds.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	require.NoError(t, err)
}
