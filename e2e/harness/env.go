package harness

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// Env is a sandbox with Lockstep's config installed.
type Env struct {
	*sandbox.Sandbox
	// Client acts as the administrator and reads without a cache.
	Client client.Client
	// Kubeconfig of the manager's service account.
	ManagerKubeconfig string
	// MemoryLimit is GOMEMLIMIT of managers; the default is the same as in config/manager.
	MemoryLimit string
	// collector starts the controller manager again, once.
	collector sync.Once

	mu       sync.Mutex
	managers []*Manager
}

// New starts a sandbox for the test and installs all of config except the manager's Deployment.
func New(tb testing.TB, opts ...sandbox.Option) *Env {
	tb.Helper()
	return install(tb, sandbox.Start(tb, opts...))
}

var shared struct {
	sync.Mutex
	env     *Env
	manager *Manager
}

// Shared returns the sandbox that all tests of a package share, with a running
// manager. It is for tests that disturb neither. Use a namespace for each test.
func Shared(tb testing.TB) *Env {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.env != nil {
		return shared.env
	}
	sb, err := sandbox.Run(context.Background())
	require.NoError(tb, err)
	env := install(tb, sb)
	shared.manager = env.launch(tb, Binary(tb, "lockstep-manager"))
	Eventually(tb, Patience, "the manager to be ready", shared.manager.Ready)
	shared.env = env
	return env
}

// Main runs the tests of a package and removes their shared sandbox and binaries.
func Main(m *testing.M) int {
	defer removeBinaries()
	log.SetLogger(logr.Discard()) // no warnings of clients, and no complaint about a missing logger
	code := m.Run()
	if shared.manager != nil {
		shared.manager.Stop()
		if code != 0 {
			fmt.Fprintf(os.Stderr, "last lines of the shared manager's log:\n%s\n", tail(shared.manager.log, 80))
		}
	}
	sandboxes := lent.idle
	if shared.env != nil {
		sandboxes = append(sandboxes, shared.env.Sandbox)
	}
	for _, sb := range sandboxes {
		if err := sb.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot stop a shared sandbox:", err)
		}
	}
	return code
}

func install(tb testing.TB, sb *sandbox.Sandbox) *Env {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		require.NoError(tb, add(scheme))
	}
	c, err := client.New(sb.Config(), client.Options{Scheme: scheme})
	require.NoError(tb, err)
	env := &Env{Sandbox: sb, Client: c}
	objs, err := config.Prerequisites()
	require.NoError(tb, err)
	for _, obj := range objs {
		err := wait.PollUntilContextTimeout(tb.Context(), 50*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
			//nolint:staticcheck // the typed apply of this client needs generated types
			err = c.Patch(ctx, obj.DeepCopy(), client.Apply, client.FieldOwner("config"), client.ForceOwnership)
			return err == nil, nil
		})
		if err != nil {
			tb.Fatalf("cannot install %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	env.waitEstablished(tb)
	env.ManagerKubeconfig = env.token(tb)
	return env
}

func (e *Env) waitEstablished(tb testing.TB) {
	tb.Helper()
	Eventually(tb, Patience, "the CRDs to be served", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&corev1alpha1.PackageList{}, &corev1alpha1.ClusterPackageList{}, &corev1alpha1.ObjectSetList{}, &corev1alpha1.ClusterObjectSliceList{}, &corev1alpha1.ObjectSetPhaseList{}} {
			if err := e.Client.List(ctx, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// RenewToken creates a token of the current service account for managers that start from now on.
func (e *Env) RenewToken(tb testing.TB) {
	tb.Helper()
	e.ManagerKubeconfig = e.token(tb)
}

// token writes a kubeconfig that carries a token of the manager's service
// account, good for a day.
func (e *Env) token(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(e.DataDir(), "manager.kubeconfig")
	_, err := e.credentials(tb.Context(), path)
	require.NoError(tb, err)
	return path
}

// credentials writes a kubeconfig with a new token of the manager's service account, and
// returns the credential ID of the token in the audit log.
func (e *Env) credentials(ctx context.Context, path string) (credential string, err error) {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: config.ServiceAccount}}
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(86400))}}
	if err := e.Client.SubResource("token").Create(ctx, sa, req); err != nil {
		return "", err
	}
	authority, err := e.authority()
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(req.Status.Token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", err
	}
	var claims struct{ JTI string }
	if err := json.Unmarshal(raw, &claims); err != nil {
		return "", err
	}
	cfg := api.NewConfig()
	cfg.Clusters["sandbox"] = &api.Cluster{Server: e.Server(), CertificateAuthorityData: authority}
	cfg.AuthInfos["manager"] = &api.AuthInfo{Token: req.Status.Token}
	cfg.Contexts["sandbox"] = &api.Context{Cluster: "sandbox", AuthInfo: "manager"}
	cfg.CurrentContext = "sandbox"
	return "JTI=" + claims.JTI, clientcmd.WriteToFile(*cfg, path)
}

// Process is a manager with a token of its own.
type Process struct {
	*Manager
	// Credential is the ID of its token in the audit log.
	Credential string
}

// LaunchProcess is LaunchManagerOf with a token that no other process has.
func (e *Env) LaunchProcess(tb testing.TB, program string, args ...string) *Process {
	tb.Helper()
	own := filepath.Join(tb.TempDir(), "manager.kubeconfig")
	credential, err := e.credentials(tb.Context(), own)
	require.NoError(tb, err)
	return &Process{e.LaunchManagerOf(tb, program, append([]string{"--kubeconfig", own}, args...)...), credential}
}

func (e *Env) authority() ([]byte, error) {
	rc := e.Config()
	if len(rc.CAData) > 0 {
		return rc.CAData, nil
	}
	return os.ReadFile(rc.CAFile)
}

// ManagerUser is the manager's user name for the API server.
func ManagerUser() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", corev1alpha1.DefaultNamespace, config.ServiceAccount)
}

// Namespace makes a namespace for the test.
func (e *Env) Namespace(tb testing.TB, name string) {
	tb.Helper()
	require.NoError(tb, e.Client.Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the manager's log about the namespace:\n%s", e.logAbout(name))
			e.dump(tb, name)
		}
	})
}

// dump logs the objects of the engine in a namespace, without their specs.
func (e *Env) dump(tb testing.TB, namespace string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
	defer cancel()
	for _, kind := range []string{"Package", "ObjectDeployment", "ObjectSet"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := e.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(20)); err != nil {
			tb.Logf("list %ss: %v", kind, err)
		}
		for _, obj := range list.Items {
			obj.SetManagedFields(nil)
			delete(obj.Object, "spec")
			raw, err := obj.MarshalJSON()
			tb.Logf("%s %v", raw, err)
		}
	}
}

// logAbout returns the last lines of all managers' logs that contain a text.
func (e *Env) logAbout(text string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, m := range e.managers {
		for line := range strings.Lines(m.Log()) {
			if strings.Contains(line, text) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

// TestNamespace makes a namespace named after the test, and returns its name.
func (e *Env) TestNamespace(tb testing.TB) string {
	tb.Helper()
	name := strings.ToLower(strings.NewReplacer("Test", "", "/", "-", "_", "-", " ", "-").Replace(tb.Name()))
	e.Namespace(tb, name)
	return name
}

// Watch watches objects of the kind of list until the test ends.
func (e *Env) Watch(tb testing.TB, list client.ObjectList, opts ...client.ListOption) <-chan watch.Event {
	tb.Helper()
	watcher, err := client.NewWithWatch(e.Config(), client.Options{Scheme: e.Client.Scheme()})
	require.NoError(tb, err)
	w, err := watcher.Watch(tb.Context(), list, opts...)
	require.NoError(tb, err)
	tb.Cleanup(w.Stop)
	return w.ResultChan()
}

// Deep reports whether tests sweep all cases instead of a sample, as in ./task test:deep.
func Deep() bool { return os.Getenv("LOCKSTEP_DEEP") != "" }

// Patience is the time that tests wait for a condition. It suffices on a busy machine.
const Patience = 3 * time.Minute

// polling is the backoff between checks of a condition. Intervals grow with the time, so that
// waiting tests leave the processors to others.
var polling = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.25, Steps: 30, Cap: 250 * time.Millisecond}

// Eventually repeats check until it returns nil, and fails the test with the
// last error after timeout.
func Eventually(tb testing.TB, timeout time.Duration, what string, check func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	defer cancel()
	var last error
	err := polling.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := check(ctx); last == nil || err == nil || ctx.Err() == nil {
			last = err // more useful than the error of the context
		}
		return last == nil, nil
	})
	if err != nil {
		tb.Fatalf("waited %s for %s: %v", timeout, what, last)
	}
}
