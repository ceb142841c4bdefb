package packages_test

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// patience is how long a test waits for a condition.
var patience = harness.Patience

// hanging is the address of a registry that accepts connections and never answers.
var hanging = sync.OnceValue(func() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		var held []net.Conn // the garbage collector closes unreferenced ones
		for {
			conn, err := l.Accept()
			if err != nil {
				runtime.KeepAlive(held)
				return
			}
			held = append(held, conn)
		}
	}()
	return l.Addr().String()
})

// counting is a registry that counts its requests.
var counting = sync.OnceValue(func() *countingRegistry {
	r := &countingRegistry{methods: map[string]map[string]int{}, next: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	r.host = strings.TrimPrefix(httptest.NewServer(r).URL, "http://")
	return r
})

type countingRegistry struct {
	host string
	next http.Handler

	mu sync.Mutex
	// methods counts requests by repository and method.
	methods map[string]map[string]int
}

// about returns the number of requests for a repository, by method.
func (r *countingRegistry) about(repository string) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.methods[repository])
}

func (r *countingRegistry) count(req *http.Request) {
	repository, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v2/"), "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.methods[repository] == nil {
		r.methods[repository] = map[string]int{}
	}
	r.methods[repository][req.Method]++
}

func (r *countingRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.count(req)
	r.next.ServeHTTP(w, req)
}

// metrics is the address of the manager's metrics.
var metrics string

// extraFlags returns flags for the manager in addition to the harness's. Intervals and retries are
// shortened to a tenth.
func extraFlags() []string {
	metrics = harness.Address(suite)
	return []string{"--insecure-registry", hanging(), "--insecure-registry", counting().host, "--insecure-registry", private(), "--metrics-bind-address", metrics, "--pace=0.1"}
}

// loadsOf reads how often the manager loaded the Package named shop.
func loadsOf(t *testing.T, ns string) int {
	t.Helper()
	prefix := fmt.Sprintf("lockstep_package_loads_total{pko_name=\"shop\",pko_namespace=%q} ", ns)
	_, rest, ok := strings.Cut(harness.Metrics(t, metrics), prefix)
	if !ok {
		t.Fatalf("no line starts with %s", prefix)
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	require.NoError(t, err)
	return n
}

// push pushes a package of n ConfigMaps in each phase, whose value is v.
func push(t *testing.T, phases, n int, v string) string {
	t.Helper()
	files := harness.Phased("shop", phases, n)
	for path, content := range files {
		files[path] = strings.ReplaceAll(content, `value: "v1"`, fmt.Sprintf("value: %q", v))
	}
	return env.Push(t, strings.ToLower(t.Name())+":"+v, files)
}

// install creates a Package named shop and waits until it is rolled out.
func install(t *testing.T, ns, image string) {
	t.Helper()
	env.Create(t, harness.Package(ns, "shop", image))
	env.WaitAvailable(t, ns, "shop")
}

// shop reads the Package named shop.
func shop(t *testing.T, ns string) *corev1alpha1.Package {
	t.Helper()
	return env.Package(t, ns, "shop").(*corev1alpha1.Package)
}

func deployment(t *testing.T, ns string) *corev1alpha1.ObjectDeployment {
	t.Helper()
	dep := &corev1alpha1.ObjectDeployment{}
	require.NoError(t, env.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "shop"}, dep))
	return dep
}

func named(ns string) *corev1alpha1.Package {
	return &corev1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}}
}

// lacks checks that a condition is not there.
func lacks(pkg *corev1alpha1.Package, typ string) error {
	if c := meta.FindStatusCondition(pkg.Status.Conditions, typ); c != nil {
		return fmt.Errorf("there is %s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return nil
}

// events returns the reasons of the events about the Package.
func events(t *testing.T, ns string) []string {
	t.Helper()
	list := &eventsv1.EventList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "Package" {
			reasons = append(reasons, e.Type+"/"+e.Reason)
		}
	}
	return reasons
}

// await reads obj again and again until check returns nil.
func await[T client.Object](t *testing.T, obj T, what string, check func(T) error) T {
	t.Helper()
	return harness.Await(t, env, patience, obj, what, check)
}
