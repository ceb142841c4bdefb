package operate

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// signatures verifies those of a release with cosign: of the checksums, and of the image once it is in a registry with its own.
func signatures(t *testing.T, folder, public string) {
	t.Helper()
	home := t.TempDir()
	program := filepath.Join(home, "cosign")
	execute(t, "cosign", nil, "go", "build", "-ldflags=-s -w", "-o", program, "github.com/sigstore/cosign/v3/cmd/cosign")
	cosign := func(good bool, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, args...)
		command.Env = append(os.Environ(), "HOME="+home)
		out, err := command.CombinedOutput()
		t.Logf("$ cosign %s\n%s", strings.ReplaceAll(strings.Join(args, " "), folder+"/", ""), out)
		if (err == nil) != good {
			t.Errorf("cosign %s: %v, want success: %t", args[0], err, good)
		}
	}
	sums, offline := filepath.Join(folder, "SHA256SUMS"), "--insecure-ignore-tlog"
	blob := []string{"verify-blob", "--key", public, "--bundle", sums + ".sigstore.json", offline}
	cosign(true, append(blob, sums)...)
	cosign(false, append(blob, filepath.Join(folder, "provenance.json"))...)

	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	plugin := filepath.Join(t.TempDir(), "kubectl-package")
	archive, err := os.ReadFile(filepath.Join(folder, "kubectl-package-"+released+"-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plugin, untar(t, archive)["kubectl-package"], 0o700); err != nil {
		t.Fatal(err)
	}
	_, stranger := newKey(t)
	ref := strings.TrimPrefix(server.URL, "http://") + "/mirror/lockstep-manager:" + released
	push(t, filepath.Join(folder, "lockstep-manager-"+released+".oci.tar"), ref)
	cosign(false, "verify", "--key", public, offline, "--allow-http-registry", ref)
	t.Log(execute(t, ".", nil, plugin, "sign", ref, "--bundle", filepath.Join(folder, "lockstep-manager-"+released+".sigstore.json")))
	cosign(true, "verify", "--key", public, offline, "--allow-http-registry", ref)
	cosign(false, "verify", "--key", stranger, offline, "--allow-http-registry", ref)
	t.Log(execute(t, ".", nil, plugin, "verify", ref, "--key", public))
}

// push pushes what an OCI layout in an archive holds.
func push(t *testing.T, archive, ref string) {
	t.Helper()
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range untar(t, content) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tag, err := name.NewTag(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if digest := list.Manifests[0].Digest; list.Manifests[0].MediaType.IsIndex() {
		child, childErr := index.ImageIndex(digest)
		if err = childErr; err == nil {
			err = remote.WriteIndex(tag, child)
		}
	} else {
		child, childErr := index.Image(digest)
		if err = childErr; err == nil {
			err = remote.Write(tag, child)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
