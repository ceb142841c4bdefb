package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"lockstep.run/lockstep/e2e/sandbox"
	"lockstep.run/lockstep/test/require"
)

// ownerEnv makes the test binary a program that starts a sandbox and then waits to
// be killed.
const ownerEnv = "LOCKSTEP_TEST_SANDBOX_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		s, err := sandbox.Run(context.Background(), sandbox.WithComponents(sandbox.Etcd, sandbox.Registry))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.DataDir(), s.Registry())
		select {}
	}
	os.Exit(m.Run())
}

func TestSandboxStartsAndStops(t *testing.T) {
	t.Parallel()
	s, err := sandbox.Run(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	client := clientFor(t, s.Config())

	t.Run("pods run", func(t *testing.T) { deploymentBecomesAvailable(t, client) })
	t.Run("kubectl works", func(t *testing.T) { kubectlGets(t, s) })
	t.Run("registry takes images", func(t *testing.T) { registryKeepsImages(t, s) })
	t.Run("users have the rights that RBAC gives", func(t *testing.T) { userIsForbidden(t, s) })
	t.Run("audit log counts requests", func(t *testing.T) { auditSeesRequests(t, s) })
	t.Run("components stop and start with their data", func(t *testing.T) { componentsRestart(t, s, client) })

	if err := s.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
	if _, err := os.Stat(s.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data folder after the stop: %v, want it gone", err)
	}
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Error("the API server still answers after the stop")
	}
}

func deploymentBecomesAvailable(t *testing.T, client kubernetes.Interface) {
	labels := map[string]string{"app": "web"}
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "the Deployment is available", func(ctx context.Context) (bool, error) {
		d, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 1, err
	})
}

func kubectlGets(t *testing.T, s *sandbox.Sandbox) {
	got, err := s.Kubectl(t.Context(), "get", "nodes", "--output", "name")
	require.NoError(t, err)
	require.Equal(t, "node/node-0\nnode/node-1\n", got, "nodes")
}

func registryKeepsImages(t *testing.T, s *sandbox.Sandbox) {
	image, err := random.Image(1024, 2)
	require.NoError(t, err)
	tag, err := name.NewTag(s.Registry() + "/team/app:v1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image))
	require.NoError(t, s.KillComponent(t.Context(), sandbox.Registry))
	require.NoError(t, s.StartComponent(t.Context(), sandbox.Registry))
	pulled, err := remote.Image(tag)
	require.NoError(t, err)
	want, _ := image.Digest()
	if got, _ := pulled.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func userIsForbidden(t *testing.T, s *sandbox.Sandbox) {
	config, err := s.User("jane", "team")
	require.NoError(t, err)
	_, err = clientFor(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("got %v, want jane to be forbidden", err)
	}
}

func auditSeesRequests(t *testing.T, s *sandbox.Sandbox) {
	config, err := s.User("counted", "system:masters")
	require.NoError(t, err)
	client, audit := clientFor(t, config), auditOf(t, s)
	secret := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	create := func(options metav1.CreateOptions) {
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), secret, options); err != nil {
			t.Fatal(err)
		}
	}
	create(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	position, err := audit.Mark(t.Context())
	require.NoError(t, err)
	create(metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	create(metav1.CreateOptions{})
	entries, err := audit.Since(t.Context(), position, sandbox.ByUser("counted"))
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s %s %d dryRun=%v", e.Verb, e.Object.Resource, e.Object.Name, e.Code, e.DryRun))
	}
	want := []string{"create configmaps c 201 dryRun=true", "create configmaps c 201 dryRun=false"}
	require.Equal(t, want, got, "requests since the mark")
}

func componentsRestart(t *testing.T, s *sandbox.Sandbox, client kubernetes.Interface) {
	for _, component := range []string{sandbox.APIServer, sandbox.Etcd} {
		require.NoError(t, s.KillComponent(t.Context(), component))
	}
	for _, component := range []string{sandbox.Etcd, sandbox.APIServer} {
		require.NoError(t, s.StartComponent(t.Context(), component))
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
		t.Errorf("reading an object from before the restart: %v", err)
	}
}

// TestSandboxEndsWithItsOwner kills the process that started a sandbox.
func TestSandboxEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the owner ended early: %v", errors.Join(err, owner.Wait()))
	}
	dataDir, registry, _ := strings.Cut(strings.TrimSpace(line), " ")
	if response, err := http.Get("http://" + registry + "/v2/"); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the registry does not answer: %v, %v", response, err)
	}
	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // it was killed
	eventually(t, "the data folder is gone", func(context.Context) (bool, error) {
		_, err := os.Stat(dataDir)
		return errors.Is(err, fs.ErrNotExist), nil
	})
	eventually(t, "the registry is gone", func(context.Context) (bool, error) {
		response, err := http.Get("http://" + registry + "/v2/")
		if err != nil {
			return true, nil
		}
		return false, response.Body.Close()
	})
}

func TestRunExplainsAWrongOption(t *testing.T) {
	t.Parallel()
	_, err := sandbox.Run(t.Context(), sandbox.WithComponents(sandbox.APIServer))
	if err == nil || !strings.Contains(err.Error(), "component kube-apiserver needs etcd: add it") {
		t.Errorf("got %v", err)
	}
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func auditOf(t *testing.T, s *sandbox.Sandbox) *sandbox.Audit {
	t.Helper()
	audit, err := s.Audit()
	require.NoError(t, err)
	return audit
}

// eventually fails the test when condition does not hold within three minutes.
func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 3*time.Minute, true, condition)
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
