// Package node_test tests behaviour on a real cluster that simulated pods do not show: readiness,
// restarts, shutdowns, Leases and nodes. Each file in testdata is a script of testscript with its
// own namespace, $NS. Scripts in testdata/alone run one at a time, because they disturb the manager
// or a node. KUBECONFIG and LOCKSTEP_REGISTRY select the cluster and the registry; see
// docs/development/tests.md.
package node_test

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"lockstep.run/lockstep/internal/loader/presets"
	"lockstep.run/lockstep/test/require"
)

const patience = 3 * time.Minute

func TestNode(t *testing.T) {
	image := toy(t)
	play(t, "together", image, testscript.Params{Dir: "testdata"})
	alone, err := filepath.Glob("testdata/alone/*.txtar")
	require.NoError(t, err)
	for _, file := range alone {
		play(t, "alone", image, testscript.Params{Files: []string{file}})
	}
}

func play(t *testing.T, name, image string, p testscript.Params) {
	t.Run(name, func(t *testing.T) {
		p.Setup = func(env *testscript.Env) error { setup(env.T().(testing.TB), env, image); return nil }
		p.Condition = condition
		p.Cmds = map[string]func(*testscript.TestScript, bool, []string){"await": await, "let": let, "order": order}
		testscript.Run(t, p)
	})
}

// setup creates the namespace of a script, makes it kubectl's default, and replaces
// placeholders in the script's files.
func setup(tb testing.TB, env *testscript.Env, image string) {
	registry, ns := os.Getenv("LOCKSTEP_REGISTRY"), "lockstep-"+strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
	host, _, _ := strings.Cut(registry, "/")
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	kubectl := func(args ...string) string {
		out, err := run(kubeconfig, "kubectl", args...)
		require.NoError(tb, err)
		return out
	}
	config, err := run("", "kubectl", "config", "view", "--raw", "--minify", "--flatten")
	require.NoError(tb, err, os.WriteFile(kubeconfig, []byte(config), 0o600))
	kubectl("create", "namespace", ns)
	kubectl("config", "set-context", "--current", "--namespace="+ns)
	env.Defer(func() {
		kubectl("delete", "clusterpackage", ns, "--ignore-not-found", "--timeout=2m")
		kubectl("delete", "packages", "--all", "--timeout=2m")
		kubectl("delete", "namespace", ns, "--wait=false")
	})
	env.Vars = append(env.Vars, "NS="+ns, "REGISTRY="+registry, "INSECURE=--insecure-registry="+host, "IMAGE="+image,
		"KUBECONFIG="+kubeconfig, "HOME="+os.Getenv("HOME"), "PATH="+os.Getenv("PATH"), "LOCKSTEP_NODE="+os.Getenv("LOCKSTEP_NODE"))

	certificate, key := certificate(tb, "webhook."+ns+".svc")
	values := strings.NewReplacer("$NS", ns, "$REGISTRY", registry, "$IMAGE", image, "$CERTIFICATE", certificate, "$KEY", key,
		"$PROBES", probes(tb), "$READY", "readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}")
	for _, pattern := range []string{"*.yaml", "*/*.yaml*"} {
		files, err := filepath.Glob(filepath.Join(env.WorkDir, pattern))
		require.NoError(tb, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(tb, err, os.WriteFile(file, []byte(values.Replace(string(text))), 0o600))
		}
	}
}

// probes returns the probes that kickstart writes.
func probes(tb testing.TB) string {
	kinds := map[schema.GroupKind]bool{}
	for _, kind := range []string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch", "Pod"} {
		kinds[schema.ParseGroupKind(kind)] = true
	}
	all, _ := presets.Probes(kinds)
	text, err := json.Marshal(all)
	require.NoError(tb, err)
	return string(text)
}

// condition is [storage], a default StorageClass, or [node], a command that stops and starts nodes.
func condition(cond string) (bool, error) {
	switch cond {
	case "storage":
		classes, err := run("", "kubectl", "get", "storageclasses", "-o", `jsonpath={.items[*].metadata.annotations.storageclass\.kubernetes\.io/is-default-class}`)
		return strings.Contains(classes, "true"), err
	case "node":
		return os.Getenv("LOCKSTEP_NODE") != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

func run(kubeconfig, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = os.Environ()
	if kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// await REGEXP COMMAND…: repeats a command until its output matches, or with "!" until it does not.
func await(ts *testscript.TestScript, neg bool, args []string) {
	pattern, err := regexp.Compile("(?s)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		out, err := run(ts.Getenv("KUBECONFIG"), args[1], args[2:]...)
		if err == nil && pattern.MatchString(out) != neg {
			fmt.Fprint(ts.Stdout(), out)
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("no match for %s in %s:\n%s%v", pattern, patience, out, err)
		}
	}
}

// let NAME COMMAND…: a variable gets the output of a command.
func let(ts *testscript.TestScript, _ bool, args []string) {
	out, err := run(ts.Getenv("KUBECONFIG"), args[1], args[2:]...)
	ts.Check(err)
	ts.Logf("%s", out)
	ts.Setenv(args[0], strings.TrimSpace(out))
}

// order QUERY JSONPATH OBJECT: checks that the times at the path, in the results of the query, are
// before the creation of the object.
func order(ts *testscript.TestScript, _ bool, args []string) {
	out, err := run(ts.Getenv("KUBECONFIG"), "kubectl", append(strings.Fields("get "+args[0]), "-o", "jsonpath="+args[1])...)
	ts.Check(err)
	made, err := run(ts.Getenv("KUBECONFIG"), "kubectl", "get", args[2], "-o", "jsonpath={.metadata.creationTimestamp}")
	ts.Check(err)
	times := strings.Fields(out)
	ts.Logf("%s, then %s", times, made)
	if len(times) == 0 || slices.Max(times) > made {
		ts.Fatalf("%s was made too early", args[2])
	}
}

// toy pushes the image of the workloads, for the architecture of the first node, and returns its
// reference.
func toy(t *testing.T) string {
	t.Helper()
	registry := os.Getenv("LOCKSTEP_REGISTRY")
	if registry == "" {
		t.Skip("it needs a real cluster: ./task test:node")
	}
	arch, err := run("", "kubectl", "get", "nodes", "-o", "jsonpath={.items[0].status.nodeInfo.architecture}")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "toy")
	_, err = run("", "env", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./toy")
	require.NoError(t, err)
	content, err := os.ReadFile(program)
	require.NoError(t, err)

	var files bytes.Buffer
	w := tar.NewWriter(&files)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "toy", Mode: 0o755, Size: int64(len(content))}))
	_, err = w.Write(content)
	require.NoError(t, err, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	require.NoError(t, err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Entrypoint: []string{"/toy"}, User: "65532:65532"},
	})
	require.NoError(t, err)
	image, err = mutate.AppendLayers(image, layer)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	ref, err := name.NewTag(registry+"/lockstep-toy:e2e", name.Insecure)
	require.NoError(t, err, remote.Write(ref, image, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain)))
	return ref.Digest(digest.String()).String()
}

// certificate returns a certificate of a host, which is its own authority, and its key, in base64.
func certificate(tb testing.TB, host string) (string, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	encode := func(typ string, content []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: content}))
	}
	return encode("CERTIFICATE", public), encode("PRIVATE KEY", private)
}
