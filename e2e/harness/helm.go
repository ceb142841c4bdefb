package harness

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/e2e/sandbox/binary"
	"lockstep.run/lockstep/test/require"
)

// Helm builds Helm, which takes ten minutes the first time, and returns its path.
func Helm(tb testing.TB) string {
	tb.Helper()
	root, err := binary.Repository(".")
	require.NoError(tb, err)
	path := filepath.Join(tb.TempDir(), "helm")
	ctx, cancel := context.WithTimeoutCause(tb.Context(), 20*time.Minute, errors.New("building Helm takes more than 20 minutes"))
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "helm.sh/helm/v4/cmd/helm")
	build.Dir, build.Env = filepath.Join(root, "operate"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("cannot build Helm: %v\n%s", err, out)
	}
	return path
}

// HelmRecord is a revision of a release as Helm stores it.
func HelmRecord(namespace, name string, revision int, status, manifest string) *corev1.Secret {
	text, err := json.Marshal(map[string]any{
		"name": name, "namespace": namespace, "version": revision, "info": map[string]any{"status": status}, "manifest": manifest,
	})
	if err != nil {
		panic(err) // only strings are encoded
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(text)
	_ = z.Close()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
			Labels: map[string]string{"owner": "helm", "name": name, "status": status, "version": strconv.Itoa(revision)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))},
	}
}
