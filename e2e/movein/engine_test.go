package movein_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/test/require"
)

// installOwn writes Package Operator's own package, which contains the definitions and the
// namespace.
func installOwn(t *testing.T) *installation {
	t.Helper()
	objs, err := config.Objects(config.FolderCRDs, config.FolderNamespace)
	require.NoError(t, err)
	var docs []string
	for _, u := range objs {
		u.SetAnnotations(map[string]string{corev1alpha1.PhaseAnnotation: "crds"})
		text, err := yaml.Marshal(u.Object)
		require.NoError(t, err)
		docs = append(docs, string(text))
	}
	i := &installation{scope: corev1alpha1.ScopeCluster, name: corev1alpha1.EnginePackage, image: "example.com/package-operator:v1", files: harness.Files{
		"manifest.yaml": harness.Manifest("package-operator", []string{"crds", "deploy"}, ""),
		"crds.yaml":     strings.Join(docs, "---\n"),
		"deploy.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: package-operator, namespace: package-operator-system, annotations: {package-operator.run/phase: deploy}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: package-operator, annotations: {package-operator.run/phase: deploy}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: package-operator, namespace: package-operator-system}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: package-operator-manager, namespace: package-operator-system, annotations: {package-operator.run/phase: deploy}}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: package-operator}}
  template:
    metadata: {labels: {app.kubernetes.io/name: package-operator}}
    spec: {containers: [{name: manager, image: example.com/package-operator-manager:v1}]}
`,
	}}
	i.install(t)
	return i
}

// hold makes another process hold the Lease from now on.
func hold(t *testing.T, holder string, seconds int32) {
	t.Helper()
	harness.Edit(t, env, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}},
		func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &holder, &seconds, ptr.To(metav1.NowMicro())
		})
}

// lead holds the Lease as Package Operator does, with its duration, and releases it once its
// manager is scaled down. Until then it follows the pause of its own package.
func lead(t *testing.T) {
	t.Helper()
	hold(t, "package-operator-manager-0_1", 137)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- formerLeader(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// formerLeader simulates Package Operator's reactions to its deployment and package until it is
// stopped.
func formerLeader(ctx context.Context) error {
	watcher, err := client.NewWithWatch(env.Config(), client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		return err
	}
	w, err := watcher.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(corev1alpha1.DefaultNamespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	p, err := watcher.Watch(ctx, &corev1alpha1.ClusterPackageList{})
	if err != nil {
		return err
	}
	defer p.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-p.ResultChan():
			if pkg, ok := e.Object.(*corev1alpha1.ClusterPackage); ok && pkg.Name == corev1alpha1.EnginePackage && pkg.Spec.Paused {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"lifecycleState":"Paused"}}`))
				set := &corev1alpha1.ClusterObjectSet{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha1.EnginePackage + "-b7d9c5b6f4"}}
				if err := env.Client.Patch(ctx, set, patch); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		case e := <-w.ResultChan():
			if d, ok := e.Object.(*appsv1.Deployment); ok && d.Name == "package-operator-manager" && ptr.Deref(d.Spec.Replicas, 1) == 0 {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`))
				return env.Client.Patch(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1alpha1.DefaultNamespace, Name: corev1alpha1.LeaderElectionLease}}, patch)
			}
		}
	}
}

// run runs a command as the administrator. With a limit, the command is killed at the write after
// that number of writes.
func run(t *testing.T, limit int, args ...string) (code int, out string, killed bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kubeconfig := env.Kubeconfig()
	var writes atomic.Int64
	if limit > 0 {
		kubeconfig = through(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && int(writes.Add(1)) > limit {
				cancel()
				http.Error(w, "killed", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	var buffer bytes.Buffer
	code = cli.Run(ctx, append(args, "--kubeconfig", kubeconfig), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &buffer, ErrOut: &buffer})
	return code, buffer.String(), ctx.Err() != nil
}

// through writes the kubeconfig of a proxy before the API server.
func through(t *testing.T, handle func(http.ResponseWriter, *http.Request, http.Handler)) string {
	t.Helper()
	target, err := url.Parse(env.Server())
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(env.Config())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, proxy) })}}
	server.Start()
	t.Cleanup(server.Close)
	cfg := api.NewConfig()
	cfg.Clusters["proxy"] = &api.Cluster{Server: server.URL}
	cfg.Contexts["proxy"] = &api.Context{Cluster: "proxy"}
	cfg.CurrentContext = "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*cfg, path))
	return path
}

// interrupted repeats a command that is killed by its writes, each time later, until it ends.
func interrupted(t *testing.T, check func(), args ...string) string {
	t.Helper()
	for _, limit := range []int{1, 8, 25, 0} {
		code, out, killed := run(t, limit, args...)
		check()
		if code == 0 {
			return out
		}
		if !killed {
			t.Fatalf("%s: exit code %d\n%s", strings.Join(args, " "), code, out)
		}
	}
	t.Fatal("it never ends")
	return ""
}

// adoptEngine moves in, and is killed repeatedly. It only deletes the objects of Package Operator's
// own package.
func adoptEngine(t *testing.T, own *installation) {
	t.Helper()
	if code, out, _ := run(t, 0, "adopt-engine", "--yes"); code == 0 || !strings.Contains(out, "nothing was changed: lockstep-manager-0_1 leads and is not the manager of Package Operator's own package") {
		t.Errorf("while this engine leads: exit code %d\n%s", code, out)
	}
	lead(t)
	leadsElsewhere(t)
	code, out, _ := run(t, 0, "adopt-engine", "--dry-run")
	for _, text := range []string{
		"held by package-operator-manager-0_1", "Deployment package-operator-manager", "1 replica", own.image, "would be deleted with that ClusterPackage",
		"> stop Deployment package-operator-system/package-operator-manager: 1 → 0 replicas",
	} {
		if code != 0 || !strings.Contains(out, text) {
			t.Errorf("exit code %d; the plan lacks %q:\n%s", code, text, out)
		}
	}
	out = interrupted(t, func() { own.stays(t) }, "adopt-engine", "--yes")
	if !strings.Contains(out, "kubectl apply --server-side --force-conflicts -k config") {
		t.Errorf("it says:\n%s", out)
	}
	own.stays(t)
	for _, set := range own.sets {
		env.WaitGone(t, patience, set)
	}
	env.WaitGone(t, patience, own.deployment)
	env.WaitGone(t, patience, &corev1alpha1.ClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: own.name}})
	own.stays(t)
	if code, out, _ := run(t, 0, "adopt-engine", "--yes"); code != 0 || !strings.Contains(out, "nothing to do") {
		t.Errorf("the second time: exit code %d\n%s", code, out)
	}
}

// leadsElsewhere checks that an engine in another namespace is not taken for absent.
func leadsElsewhere(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: corev1alpha1.LeaderElectionLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("package-operator-manager-0_3"), LeaseDurationSeconds: ptr.To[int32](137), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	require.NoError(t, env.Client.Create(t.Context(), lease))
	for _, command := range []string{"adopt-engine", "release-engine"} {
		if code, out, _ := run(t, 0, command, "--yes"); code == 0 || !strings.Contains(out, "nothing was changed: package-operator-manager-0_3 leads by the Lease default/") {
			t.Errorf("%s while another engine leads elsewhere: exit code %d\n%s", command, code, out)
		}
	}
	require.NoError(t, env.Client.Delete(t.Context(), lease))
}

// stays checks that no object of Package Operator's own package is deleted.
func (i *installation) stays(t *testing.T) {
	t.Helper()
	for name, live := range i.live(t) {
		if live.GetDeletionTimestamp() != nil {
			t.Fatalf("%s is being deleted", name)
		}
	}
}

// waitForLease starts a second manager, which has to wait for the Lease, and returns it after
// the first one ended.
func waitForLease(t *testing.T) *harness.Manager {
	t.Helper()
	hold(t, "package-operator-manager-0_2", 137)
	journal := env.Journal(t)
	manager := env.StartManager(t)
	harness.Eventually(t, patience, "the manager to wait", func(context.Context) error {
		if log := manager.Log(); !strings.Contains(log, "another manager leads") || !strings.Contains(log, "package-operator-manager-0_2") {
			return errors.New("it does not report that it waits")
		}
		return nil
	})
	requests, err := journal.Since(t.Context(), journal.From)
	require.NoError(t, err)
	for _, e := range requests {
		review := e.Object.Resource == "selfsubjectaccessreviews" // stores nothing
		if e.User == harness.ManagerUser() && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" && !review {
			t.Errorf("without the Lease it sent %s %s", e.Verb, e.RequestURI)
		}
	}
	hold(t, "", 1)
	return manager
}

// releaseEngine hands the cluster over to Package Operator. That fails while a Lockstep manager
// leads. Afterwards it only patches metadata, even if it is killed again and again.
func releaseEngine(t *testing.T, manager *harness.Manager, all []*installation) {
	t.Helper()
	if code, out, _ := run(t, 0, "release-engine", "--yes", "--timeout", "2s"); code == 0 || !strings.Contains(out, "still holds the Lease") {
		t.Errorf("while a manager leads: exit code %d\n%s", code, out)
	}
	manager.Stop()
	code, out, _ := run(t, 0, "release-engine", "--dry-run")
	for _, i := range all {
		key := objects.Key{Kind: i.scope.Kind("ObjectDeployment"), Namespace: i.namespace, Name: i.name}
		if text := "> give back " + key.String() + ", "; code != 0 || !strings.Contains(out, text) {
			t.Errorf("exit code %d; the plan lacks %q:\n%s", code, text, out)
		}
	}
	interrupted(t, func() {}, "release-engine", "--yes")
	if code, out, _ := run(t, 0, "release-engine", "--yes", "-o", "json"); code != 0 || !strings.Contains(out, `"text":"nothing to do"`) || !strings.Contains(out, `"succeeded":true`) {
		t.Errorf("the second time: exit code %d\n%s", code, out)
	}
}
