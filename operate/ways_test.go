package operate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// authority issues certificates.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a := &authority{key: key}
	a.certificate = a.issue(t, template, template, key)
	return a
}

func (a *authority) issue(t *testing.T, template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// registry is one over TLS, by a certificate of the authority, and returns its host.
func (a *authority) registry(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := a.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
	}, a.certificate, key)
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// programs builds the manager and the plugin of the working copy. Of certificate authorities they have one in place of Mozilla's.
func (a *authority) programs(t *testing.T) (manager, plugin string) {
	t.Helper()
	folder := t.TempDir()
	roots := filepath.Join(folder, "roots")
	files := map[string]string{
		filepath.Join(roots, "go.mod"):   "module golang.org/x/crypto/x509roots/fallback\n",
		filepath.Join(roots, "root.pem"): string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})),
		filepath.Join(roots, "roots.go"): `package fallback

import (
	"crypto/x509"
	_ "embed"
)

//go:embed root.pem
var root []byte

func init() {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	x509.SetFallbackRoots(pool)
}
`,
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(folder, name)] = string(content)
	}
	files[filepath.Join(folder, "go.mod")] += "\nreplace golang.org/x/crypto/x509roots/fallback => " + roots + "\n"
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, "..", nil, "go", "build", "-modfile", filepath.Join(folder, "go.mod"), "-ldflags=-s -w", "-o", folder+"/", "./cmd/lockstep-manager", "./cmd/kubectl-package")
	return filepath.Join(folder, "lockstep-manager"), filepath.Join(folder, "kubectl-package")
}

// typed runs a command as it is typed, and logs it with what it prints.
func (c *control) typed(program, as string, args ...string) (output string, err error) {
	c.t.Helper()
	var out bytes.Buffer
	command := exec.CommandContext(c.t.Context(), program, args...)
	command.Stdout, command.Stderr, command.Env = &out, &out, append(os.Environ(), withoutCertificates...)
	err = command.Run()
	c.t.Logf("$ %s %s\n%s", as, strings.Join(args, " "), folded(out.String()))
	return out.String(), err
}

// folded leaves out the middle of what is long.
func folded(output string) string {
	const ends = 8
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if more := len(lines) - 2*ends; more > 1 {
		lines = slices.Concat(lines[:ends], []string{fmt.Sprintf("… %d lines", more)}, lines[len(lines)-ends:])
	}
	return strings.Join(lines, "\n")
}

// withoutCertificates is the environment of an image without any.
var withoutCertificates = []string{"SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent"}

// lead starts a manager of the engine outside of the cluster, as its pods are pretended, and waits until it has the Lease.
func (c *control) lead(program string) {
	c.t.Helper()
	output, err := os.Create(filepath.Join(c.t.TempDir(), "manager.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	command := exec.CommandContext(context.WithoutCancel(c.t.Context()), program, "--namespace", namespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--allow-local-sources")
	command.Stdout, command.Stderr, command.Env = output, output, append(os.Environ(), withoutCertificates...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if content, err := os.ReadFile(output.Name()); err == nil && c.t.Failed() {
			c.t.Logf("the manager's log ends with:\n%s", content[max(0, len(content)-10_000):])
		}
		output.Close()
	})
	c.kubectl("", "wait", "--namespace", namespace, "--for=create", "lease/8a4hp84a6s.package-operator-lock", "--timeout=10m")
	c.kubectl("", "wait", "--namespace", namespace, "--for=jsonpath={.spec.holderIdentity}", "lease/8a4hp84a6s.package-operator-lock", "--timeout=10m")
}

// ways installs, upgrades, rolls back and uninstalls the engine by YAML, by Helm and as its own package, and hands it over from each
// of these to each other one: no object of it is recreated. Its manager pulls the package over TLS, and has no certificate authorities
// but those of its binary.
func ways(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	trusted := newAuthority(t)
	program, plugin := trusted.programs(t)
	host := trusted.registry(t)
	w := &way{
		control: newControl(t), plugin: plugin, file: filepath.Join(folder, "lockstep-"+released+".yaml"),
		chart: filepath.Join(folder, "lockstep-"+strings.TrimPrefix(released, "v")+".tgz"),
		own:   map[string]string{released: host + "/lockstep-package:" + released, next: host + "/lockstep-package:" + next},
	}
	w.push(files)
	w.image = imageIn(t, w.file)

	t.Log("=== by YAML: install, upgrade, back")
	w.apply(w.file)
	w.before = w.identities()
	w.lead(program)
	w.apply(w.laterFile)
	w.expect("upgraded", strings.Replace(w.image, released, next, 1), managerDeployment, imagePath)
	w.apply(w.file)
	w.same("by YAML")

	t.Log("=== from YAML to Helm")
	w.take()
	t.Log("=== from Helm to YAML")
	w.apply(w.file)
	w.kubectlTyped("delete", "secret", "--namespace", namespace, "-l", "owner=helm,name=lockstep")
	w.nothingToUninstall()
	w.same("from Helm to YAML")

	t.Log("=== from YAML to the package")
	w.adopt()
	t.Log("=== the package: upgrade, back")
	w.pkg("install", w.own[next], "clusterpackage/package-operator", "--wait")
	w.expect("upgraded", strings.Replace(w.image, released, next, 1), managerDeployment, imagePath)
	w.pkg("rollout", "undo", "clusterpackage/package-operator", "--yes")
	w.same("the package rolled back")
	t.Log("=== from the package to YAML")
	w.pkg("release-engine", "--self", "--yes")
	w.apply(w.file)
	w.same("from the package to YAML")

	w.take()
	t.Log("=== from Helm to the package")
	w.adopt()
	w.nothingToUninstall()
	w.same("from Helm to the package, and after an uninstall by Helm")
	w.refusedRegistry()
	t.Log("=== from the package to Helm")
	w.pkg("release-engine", "--self", "--yes")
	w.take()

	t.Log("=== uninstall by Helm, and by YAML")
	w.mustHelm("uninstall", "lockstep", "--wait", "--timeout", "10m")
	w.expect("uninstalled by Helm", "", managerDeployment, ".metadata.name")
	w.expect("uninstalled by Helm", "packages.package-operator.run", "crd/packages.package-operator.run", ".metadata.name")
	w.apply(w.file)
	w.kubectlTyped("delete", "-f", w.file, "--ignore-not-found", "--timeout=10m")
	w.expect("uninstalled by YAML", "", "crd/packages.package-operator.run", ".metadata.name")
}

const (
	// next is a version after the one that is released.
	next = "v0.0.1-test.2"

	managerDeployment = "deployment/lockstep-manager"
	imagePath         = ".spec.template.spec.containers[0].image"
)

// way is a cluster with what the engine is installed from.
type way struct {
	*control
	plugin, file, laterFile, chart string
	own                            map[string]string // images of its package by versions
	image                          string            // of the manager
	before                         string            // identities
}

// kubectlTyped types a command of kubectl.
func (w *way) kubectlTyped(args ...string) {
	w.t.Helper()
	if _, err := w.typed(filepath.Join(filepath.Dir(w.sandbox), "kubectl"), "kubectl", args...); err != nil {
		w.t.Fatal(err)
	}
}

// pkg types a command of the plugin.
func (w *way) pkg(args ...string) {
	w.t.Helper()
	if _, err := w.typed(w.plugin, "kubectl package", args...); err != nil {
		w.t.Fatal(err)
	}
}

// apply installs by YAML.
func (w *way) apply(file string) {
	w.t.Helper()
	w.kubectlTyped("apply", "--server-side", "--force-conflicts", "-f", file)
	w.kubectlTyped("rollout", "status", managerDeployment, "--namespace", namespace, "--timeout=10m")
}

// take installs by Helm over what is there.
func (w *way) take() {
	w.t.Helper()
	w.mustHelm("upgrade", "--install", "lockstep", w.chart, "--take-ownership", "--force-conflicts", "--wait", "--timeout", "10m")
	w.same("by Helm")
}

// adopt hands over to the package.
func (w *way) adopt() {
	w.t.Helper()
	w.pkg("adopt-engine", "--self", "--image", w.own[released], "--yes")
	w.same("by the package")
}

// same compares the objects of the engine with those before.
func (w *way) same(step string) {
	w.t.Helper()
	if after := w.identities(); after != w.before {
		w.t.Errorf("%s: other objects than before:\n%s\nbefore:\n%s", step, after, w.before)
	}
	w.expect(step, w.image, managerDeployment, imagePath)
}

// identities are the objects of the engine with their UIDs, and when their deletion began.
func (w *way) identities() string {
	w.t.Helper()
	return w.kubectl("", "get", "-f", w.file, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
}

// imageIn is the image of the manager in a file.
func imageIn(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(content), " image: ")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// nothingToUninstall types helm uninstall, which has to find no release.
func (w *way) nothingToUninstall() {
	w.t.Helper()
	if _, err := w.helm("uninstall", "lockstep"); err == nil || !strings.Contains(err.Error(), "release: not found") {
		w.t.Errorf("Helm uninstalls: %v", err)
	}
}

// refusedRegistry is one whose authority the binary does not have.
func (w *way) refusedRegistry() {
	w.t.Helper()
	image := newAuthority(w.t).registry(w.t) + "/own:v1"
	w.kubectl(fmt.Sprintf("{apiVersion: package-operator.run/v1alpha1, kind: ClusterPackage, metadata: {name: stranger}, spec: {image: %q}}", image), "apply", "-f", "-")
	w.kubectl("", "wait", "clusterpackage/stranger", "--for=condition=Unpacked=False", "--timeout=10m")
	message := w.kubectl("", "get", "clusterpackage/stranger", "-o", `jsonpath={.status.conditions[?(@.type=="Unpacked")].message}`)
	w.t.Logf("of a registry by another authority: %s", message)
	if !strings.Contains(message, "certificate signed by unknown authority") {
		w.t.Errorf("an unknown authority: %s", message)
	}
	w.pkg("delete", "clusterpackage/stranger", "--yes")
}

// push pushes the engine's own package of the release, and of a later version, of which there is a YAML then, too.
func (w *way) push(files map[string][]byte) {
	w.t.Helper()
	folder := w.t.TempDir()
	write := func(path string, content []byte, version string) {
		w.t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, ofVersion(content, version), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	for version, ref := range w.own {
		at := filepath.Join(folder, version)
		for name, content := range ofImage(w.t, files["lockstep-package-"+released+".oci.tar"]) {
			write(filepath.Join(at, strings.TrimPrefix(name, "package/")), content, version)
		}
		w.pkg("build", at, "--tag", ref, "--push")
	}
	w.laterFile = filepath.Join(folder, "lockstep-"+next+".yaml")
	write(w.laterFile, files["lockstep-"+released+".yaml"], next)
}

// ofVersion replaces the version of the release in a file.
func ofVersion(content []byte, version string) []byte {
	content = bytes.ReplaceAll(content, []byte(released), []byte(version))
	return bytes.ReplaceAll(content, []byte(strings.TrimPrefix(released, "v")), []byte(strings.TrimPrefix(version, "v")))
}
