package repositories_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/test/require"
)

// many is an archive of packages, each a file of some versions with notes and a schema; more are added to the first one.
func many(t *testing.T, packages, versions int, more ...string) string {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for p := range packages {
		text := document()
		for v := range versions {
			text += "---\n" + entry(fmt.Sprintf("package-%04d", p), fmt.Sprintf("1.%d.0", v), "")
			text += "  configSchema: {type: object, properties: {size: {type: integer, description: How many there are, default: 3}, name: {type: string}}}\n"
		}
		if p == 0 {
			text += strings.Join(more, "")
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("packages/%04d.yaml", p), Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return archive.String()
}

// large is the size of a large repository.
func large() (packages, versions int) {
	if harness.Deep() {
		return 1000, 20
	}
	return 100, 20
}

// A large repository is published with one write for each package; a refresh without news writes nothing but that it
// was asked for, a new version one object, the status and an event. LOCKSTEP_DEEP has 1,000 packages of 20 versions.
func TestLargeRepository(t *testing.T) {
	t.Parallel()
	ns := env.TestNamespace(t)
	packages, versions := large()
	content := many(t, packages, versions)
	server := newServer(t, content)
	r := newRepository(ns, "large", web(server.URL+"/repository.tar"))
	memory := residentMiB(t)
	from, began := env.Journal(t), time.Now()
	env.Create(t, r)
	awaitReady(t, r)
	took := time.Since(began)
	requests := tally(began, from.Rest(t, ns))
	want := map[string]int{"create availablepackages": packages, "update packagerepositories/status": 1, "create events": 1}
	require.Equal(t, want, requests, "requests")
	t.Logf("%d packages of %d versions: %d KiB fetched, %d KiB published (%d KiB stored of the first) in %s; resident memory %d MiB before, %d MiB after",
		packages, versions, len(content)>>10, publishedBytes(t, ns)>>10, stored(t, ns)>>10, took.Round(10*time.Millisecond), memory, residentMiB(t))

	from, began = env.Journal(t), time.Now()
	retry(t, r, "nothing new")
	awaitHandled(t, r, "nothing new")
	require.Equal(t, map[string]int{"update packagerepositories/status": 1}, tally(began, from.Rest(t, ns)), "requests of a refresh without news")

	server.set(many(t, packages, versions, "---\n"+entry("package-0007", "2.0.0", "")))
	from, began = env.Journal(t), time.Now()
	retry(t, r, "a new version")
	awaitHandled(t, r, "a new version")
	took = time.Since(began)
	entries := from.Rest(t, ns)
	require.Equal(t, map[string]int{"update availablepackages": 1, "update packagerepositories/status": 1, "create events": 1}, tally(began, entries), "requests of a new version")
	t.Logf("a new version took %s; resident memory %d MiB", took.Round(10*time.Millisecond), residentMiB(t))

}

func publishedBytes(t *testing.T, ns string) (n int) {
	t.Helper()
	list := &corev1alpha1.AvailablePackageList{}
	require.NoError(t, env.Client.List(t.Context(), list, client.InNamespace(ns)))
	for i := range list.Items {
		encoded, err := json.Marshal(list.Items[i].Spec)
		require.NoError(t, err)
		n += len(encoded)
	}
	return n
}

// stored is the size of one object with its managedFields.
func stored(t *testing.T, ns string) int {
	t.Helper()
	encoded, err := json.Marshal(available(t, ns, "package-0000"))
	require.NoError(t, err)
	return len(encoded)
}

func residentMiB(t *testing.T) int { t.Helper(); return memoryMiB(t, "VmRSS:") }

// memoryMiB reads a figure of the manager's memory.
func memoryMiB(t *testing.T, key string) (n int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", manager.PID()))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), key)
	if _, err = fmt.Sscanf(strings.TrimSpace(rest), "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n >> 10
}
